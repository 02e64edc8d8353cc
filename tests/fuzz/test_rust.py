"""The readers in Rust against whatever may come, each for a while (`FAIRLEAD_FUZZ_SECONDS`, 60 by default).

Each target is a property beside the code that it is about. What was compiled for `make test` is not compiled again,
unless each target has a minute or more.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.fuzz.budget import VARIABLE, seconds

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = seconds()
PROFILE: Final = os.environ.get("PROFILE", "fast")
# The profile leaves our crates without optimisation. Many seconds for each target repay it by many more inputs.
OPTIMISED_FROM_S: Final = 60.0
# A first run compiles what is not compiled yet.
COMPILE_S: Final = 1_800.0
# The last round of cases is finished, and a case that fails is made small.
MARGIN_S: Final = 120.0

KNOWN: Final = {
    "fuzz_chunks",
    "fuzz_compression",
    "fuzz_frozen_sessions",
    "fuzz_http1",
    "fuzz_json",
    "fuzz_model_address",
    "fuzz_model_name",
    "fuzz_multipart",
    "fuzz_routes",
    "fuzz_sse",
    "fuzz_stream_chat",
    "fuzz_stream_gemini",
    "fuzz_stream_messages",
    "fuzz_stream_responses",
}


def _properties() -> dict[str, str]:
    """Every property that the code has, with its crate: one that is written later is run for its while, too."""
    found: dict[str, str] = {}
    for crate in sorted(path.name for path in (ROOT / "rust").iterdir() if path.is_dir()):
        for path in sorted((ROOT / "rust" / crate / "src").rglob("*.rs")):
            for name in re.findall(
                r"^\s*fn (fuzz_\w+)\(\) \{", path.read_text("utf-8"), re.MULTILINE
            ):
                found[name] = f"fairlead-{crate}"
    return found


TARGETS: Final = _properties()


def _optimised() -> list[str]:
    """What tells cargo to optimise the crates that have properties."""
    levels = [f"profile.{PROFILE}.package.{crate}.opt-level=2" for crate in set(TARGETS.values())]
    return [word for level in sorted(levels) for word in ("--config", level)]


@pytest.fixture(scope="module")
def binaries() -> dict[str, Path]:
    """Where the tests of each crate are, compiled as `make test` compiles them."""
    command = [
        "cargo",
        "test",
        "--workspace",
        "--lib",
        # Other features would compile everything anew.
        "--features",
        "fairlead-py/same-as-tests",
        "--profile",
        PROFILE,
        "--locked",
        "--no-run",
        *(_optimised() if SECONDS >= OPTIMISED_FROM_S else ()),
    ]
    built = subprocess.run(
        [*command, "--message-format=json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=COMPILE_S,
        check=False,
    )
    assert built.returncode == 0, built.stderr[-4000:]
    found: dict[str, Path] = {}
    for line in built.stdout.splitlines():
        told = json.loads(line) if line.startswith("{") else {}
        if told.get("executable") and told["profile"]["test"]:
            found[told["target"]["name"].replace("_", "-")] = Path(told["executable"])
    return found


def test_no_property_is_lost() -> None:
    assert TARGETS.keys() >= KNOWN


@pytest.mark.timeout(COMPILE_S + SECONDS + MARGIN_S)
@pytest.mark.parametrize("target", TARGETS)
def test_a_property_holds(binaries: dict[str, Path], target: str) -> None:
    ran = subprocess.run(
        [binaries[TARGETS[target]], target, "--nocapture"],
        cwd=ROOT / "rust" / TARGETS[target].removeprefix("fairlead-"),
        env={**os.environ, VARIABLE: str(SECONDS)},
        capture_output=True,
        text=True,
        timeout=SECONDS + MARGIN_S,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout[-6000:]}\n{ran.stderr[-6000:]}"
    # A filter that finds nothing passes.
    assert re.search(r"test result: ok\. [1-9]\d* passed", ran.stdout), ran.stdout[-2000:]
