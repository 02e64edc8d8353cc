"""Coding tools of others, as npm or the user installed them, and a gateway with the stand-in as their model."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from fairlead.coding_tools.catalogue import catalogue
from tests.support.processes import Gateway

FOLDERS = [
    Path(__file__).parent / "node_tools" / name / "node_modules/.bin" for name in ("light", "heavy")
]
# Those that are Python packages stand beside the interpreter, or in an environment of their own.
FOLDERS += [Path(sys.executable).parent, Path(sys.prefix) / "tools/bin"]
PATH = os.pathsep.join([*map(str, FOLDERS), os.environ["PATH"]])


def need(command: str) -> str:
    """The tool's command. Skips the test where it is not installed."""
    found = shutil.which(command, path=PATH)
    if found is None:
        pytest.skip(
            f"{command} is not installed: `npm install --no-save` in tests/support/node_tools, or `make test-slow`"
        )
    return found


def standin_prefix(gateway: Gateway, standin_url: str, dialect: str = "openai") -> str:
    """The prefix of a node in front of the stand-in."""
    prefix = f"s{secrets.token_hex(4)}"
    path = {"openai": "/v1", "anthropic": "/v1", "gemini": "/v1beta"}[dialect]
    node = gateway.add_node(prefix, f"{standin_url}{path}", dialect=dialect)
    gateway.add_connection(node["id"], "sk-standin")
    return prefix


@dataclass(frozen=True)
class Person:
    """Somebody with an empty home and a folder to work in, beside a running gateway."""

    gateway: Gateway
    home: Path
    work: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: os.environ[name] for name in ("LANG", "TZ", "SSL_CERT_FILE") if name in os.environ
        }
        return kept | {
            "PATH": PATH,
            "HOME": str(self.home),
            "TERM": "dumb",
            "CI": "1",
            "FAIRLEAD_DATA_DIR": str(self.gateway.data_dir),
            "GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE": "true",
            "FAIRLEAD_SETUP_API_KEY": self.gateway.key,
            **{tool.own_variable: self.gateway.key for tool in catalogue().values()},
        }

    def fairlead(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One command of ours; fails unless it succeeds."""
        ended = self.run([sys.executable, "-m", "fairlead", *arguments])
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended

    def run(self, command: list[str], typed: str = "") -> subprocess.CompletedProcess[str]:
        """A program, in the folder to work in."""
        return subprocess.run(
            command,
            cwd=self.work,
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
