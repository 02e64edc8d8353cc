"""The code of `docs/how-to/clients` runs as it is printed, with the real packages.

Only three things are replaced: the gateway's address, the key and the names of models.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway

ROOT = Path(__file__).parents[2]
HOW_TO = ROOT / "docs" / "how-to"
CLIENTS = HOW_TO / "clients"
NODE = ROOT / "tests" / "support" / "node"
FRAMEWORKS = ROOT / ".venv" / "clients" / "bin" / "python"
"""Python of the environment that `make .venv/.stamp-clients` makes from requirements/clients.txt."""

WITH_OUR_SDKS = ["clients/openai-sdk", "use-an-anthropic-client"]
"""Pages whose packages are those that the tests use themselves."""

WITH_FRAMEWORKS = [
    "clients/dspy",
    "clients/instructor",
    "clients/langchain",
    "clients/litellm",
    "clients/llamaindex",
    "clients/openai-agents",
    "clients/pydantic-ai",
]
WITH_NODE = ["clients/openai-sdk", "clients/vercel-ai-sdk"]
WITH_A_SITE = ["clients/firecrawl"]
"""Pages that read a site; `test_firecrawl_clients.py` makes their calls of a site that the test serves."""

MODELS = {
    "anthropic/claude-sonnet-4-5": ("anthropic", "standin"),
    "openai/gpt-4o-mini": ("openai", "standin"),
    "openai/text-embedding-3-small": ("openai", "standin-embedding"),
    "gemini/gemini-2.5-flash": ("gemini", "standin"),
}
"""Names of models in the pages; each becomes the stand-in's model behind a provider of the same dialect."""


def code_of(page: str, language: str) -> str:
    """Every block of a language on a page, one after the other, as its reader would paste them."""
    text = (HOW_TO / f"{page}.md").read_text("utf-8")
    return "\n\n".join(re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def fill_in(code: str, gateway: Gateway, standin: dict[str, str], key: str) -> str:
    for name, (dialect, model) in MODELS.items():
        code = code.replace(name, f"{standin[dialect]}/{model}")
    return code.replace("http://127.0.0.1:20128", gateway.url).replace("sk-fl-...", key)


def run(command: list[str], folder: Path, gateway: Gateway, key: str) -> str:
    """What the program printed; it must end well."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "ANTHROPIC_BASE_URL": gateway.url,
        "ANTHROPIC_API_KEY": key,
    }
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        cwd=folder,
        env=environment,
    )
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout


def assert_reached(gateway: Gateway, key_id: str, expected: set[str]) -> None:
    """Each of these models was called with the key, no other was, and no call failed."""

    def find() -> list[dict[str, Any]]:
        called = [record for record in gateway.records() if record["keyId"] == key_id]
        return called if {record["model"] for record in called} >= expected else []

    called = eventually(find, f"calls of {expected}", within_s=8)
    assert {record["model"] for record in called} == expected
    assert {record["outcome"] for record in called} == {"completed"}


def run_page(
    page: str, language: str, command: list[str], folder: Path, lane: tuple[Gateway, dict[str, str]]
) -> None:
    gateway, standin = lane
    code = code_of(page, language)
    assert code, f"{page} has no {language}"
    made = gateway.create_key()
    path = folder / ("page.mjs" if language == "js" else "page.py")
    path.write_text(fill_in(code, gateway, standin, made["key"]), "utf-8")
    printed = run([*command, str(path)], folder, gateway, made["key"])
    assert printed.strip()
    models = {f"{standin[MODELS[name][0]]}/{MODELS[name][1]}" for name in MODELS if name in code}
    assert_reached(gateway, made["id"], models)


@pytest.mark.parametrize("page", WITH_OUR_SDKS)
def test_the_code_of_an_sdk_runs(
    page: str, gateway: Gateway, standin: dict[str, str], tmp_path: Path
) -> None:
    run_page(page, "python", [sys.executable], tmp_path, (gateway, standin))


@pytest.mark.skipif(
    shutil.which("node") is None or not (NODE / "node_modules" / "ai").is_dir(),
    reason="needs node and `npm ci` in tests/support/node",
)
@pytest.mark.parametrize("page", WITH_NODE)
def test_the_code_for_node_runs(
    page: str, gateway: Gateway, standin: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "node_modules").symlink_to(NODE / "node_modules")
    run_page(page, "js", ["node"], tmp_path, (gateway, standin))


@pytest.mark.slow
@pytest.mark.skipif(not FRAMEWORKS.exists(), reason="needs `make .venv/.stamp-clients`")
@pytest.mark.parametrize("page", WITH_FRAMEWORKS)
def test_the_code_of_a_framework_runs(
    page: str, gateway: Gateway, standin: dict[str, str], tmp_path: Path
) -> None:
    run_page(page, "python", [str(FRAMEWORKS)], tmp_path, (gateway, standin))


def test_every_page_is_run() -> None:
    """A page with code that no test runs would go stale."""
    with_code = {
        f"clients/{page.stem}" for page in CLIENTS.glob("*.md") if "```python" in page.read_text()
    }

    assert with_code == {
        page
        for page in [*WITH_OUR_SDKS, *WITH_FRAMEWORKS, *WITH_A_SITE]
        if page.startswith("clients/")
    }
