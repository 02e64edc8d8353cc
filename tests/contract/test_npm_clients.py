"""Clients from npm work through the gateway, whichever dialect the provider speaks.

Skipped where they are not installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.dialects import DIALECTS
from tests.support.processes import Gateway

SCRIPTS = Path(
    os.environ.get("FAIRLEAD_TEST_NODE") or Path(__file__).parents[1] / "support" / "node"
)
HELLO = "Hello from the stand-in provider. You said: Say hello."

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None or not (SCRIPTS / "node_modules" / "ai").is_dir(),
    reason="needs node and `npm ci` in tests/support/node",
)
# One of each always runs.
EACH = [
    dialect if dialect == "gemini" else pytest.param(dialect, marks=pytest.mark.slow)
    for dialect in DIALECTS
]
PROVIDERS = [
    provider if provider == "responses" else pytest.param(provider, marks=pytest.mark.slow)
    for provider in ("responses", "chat", "compatible", "anthropic")
]


def run(script: str, gateway: Gateway, model: str, **more: str) -> dict[str, Any]:
    """What the script told."""
    asked = json.dumps({"url": gateway.url, "key": gateway.key, "model": model, **more})
    done = subprocess.run(
        ["node", str(SCRIPTS / script), asked],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=SCRIPTS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.parametrize("dialect", EACH)
def test_openai(gateway: Gateway, standin: dict[str, str], dialect: str) -> None:
    told = run("openai_responses.mjs", gateway, f"{standin[dialect]}/standin")
    for name in ("text", "streamed", "final", "chat", "chatStreamed"):
        assert told[name] == HELLO, name
    assert told["ends"] == ["response.completed"]
    assert told["error"] == ["NotFoundError", 404, "model_not_found"]


@pytest.mark.parametrize("dialect", EACH)
def test_anthropic(gateway: Gateway, standin: dict[str, str], dialect: str) -> None:
    told = run("anthropic_messages.mjs", gateway, f"{standin[dialect]}/standin")
    assert (told["text"], told["streamed"], told["stop"]) == (HELLO, HELLO, "end_turn")
    assert told["call"] == ["weather", {"city": "example"}]
    assert told["error"] == ["NotFoundError", 404, "not_found_error"]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("dialect", EACH)
def test_ai(gateway: Gateway, standin: dict[str, str], dialect: str, provider: str) -> None:
    told = run("ai_sdk.mjs", gateway, f"{standin[dialect]}/standin", provider=provider)
    assert told["errors"] == []
    assert (told["text"], told["streamed"]) == (HELLO, HELLO)
    assert (told["finish"], told["streamFinish"], told["usage"]) == ("stop", "stop", True)
    assert told["call"] == ["weather", {"city": "example"}]
    assert told["callFinish"] == "tool-calls"
