"""The golden requests of each caller dialect at a model of each family: no referee refuses what the gateway writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.gateway_pool import GatewayPool
from tests.support.processes import Gateway
from tests.support.referees.connected import connected_gateway, is_own_dialect
from tests.support.referees.upstream import Referee
from tests.support.switching_talks import TALKS, shown

pytestmark = pytest.mark.one_node(reason="connections to providers are made for this file alone")

FOLDER: Final = Path(__file__).parents[1] / "golden" / "dialects" / "requests"
MODELS: Final = (
    "openai/gpt-4.1",
    "openai/gpt-5.6-sol",
    "openai/gpt-6-astra",
    "anthropic/claude-opus-5-5",
    "anthropic/claude-opus-4-5",
    "gemini/gemini-3.1-pro-preview",
    "gemini/gemini-2.5-pro",
    "mistral/mistral-medium-latest",
    "deepseek/deepseek-v4-pro",
    "moonshot/kimi-k2.6",
    "dashscope/qwen3-30b-a3b",
    "groq/openai/gpt-oss-120b",
    "cerebras/gpt-oss-120b",
    "fireworks/accounts/fireworks/models/kimi-k2p6",
    "nvidia/meta/llama-3.3-70b-instruct",
    "bedrock/amazon.nova-pro-v1:0",
)
# A request in the provider's own dialect passes unchanged, so its faults are the caller's.
PAIRS: Final = [
    (caller, model) for caller in TALKS for model in MODELS if not is_own_dialect(caller, model)
]


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    with Referee() as running:
        # The files have signatures of real vendors.
        running.judge.ledger.accepts_all = True
        yield running


@pytest.fixture(scope="module")
def gateway(gateway_pool: GatewayPool, referee: Referee) -> Iterator[Gateway]:
    with connected_gateway(gateway_pool, referee) as running:
        yield running


def requests_of(caller: str) -> dict[str, dict[str, Any]]:
    """The caller's requests in the golden files, without those that the gateway itself refuses."""
    files = (FOLDER / caller).glob("*.json")
    names = [path.name for path in files if ".to-" not in path.name]
    kept = sorted(name for name in names if not name.startswith("refused-"))
    return {name: json.loads((FOLDER / caller / name).read_text("utf-8")) for name in kept}


@pytest.mark.parametrize(("caller", "model"), PAIRS)
def test_no_referee_refuses_a_golden_request(
    gateway: Gateway, referee: Referee, caller: str, model: str
) -> None:
    told = []
    for name, body in requests_of(caller).items():
        referee.refused.clear()
        path = TALKS[caller].path.replace("{model}", model)
        sent = {**body, "stream": False} if caller != "gemini" else body
        sent |= {} if caller == "gemini" else {"model": model}
        headers = {"X-Gateway-Inexpressible": "drop", "X-Gateway-No-Cache": "true"}
        answer = gateway.caller.post(path, json=sent, headers=headers)
        if referee.refused:
            told.append(f"{name}: {referee.refused[0]}\nasked: {shown(path, sent)}")
        elif answer.status_code not in (200, 400):
            told.append(f"{name}: {answer.status_code} {answer.text[:500]}")
    assert not told, "\n".join(told)
