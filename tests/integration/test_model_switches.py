"""Conversations of five turns, with another model at each of them, from each caller dialect: no referee refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.gateway_pool import GatewayPool
from tests.support.processes import Gateway
from tests.support.referees.connected import MODELS, connected_gateway, is_own_dialect
from tests.support.referees.plan import Plan
from tests.support.referees.upstream import Referee
from tests.support.switching_talks import TALKS, Talk, Turn, shown

pytestmark = pytest.mark.one_node(reason="connections to providers are made for this file alone")

TURNS: Final = st.lists(
    st.builds(
        Turn,
        model=st.sampled_from(list(MODELS)).flatmap(
            lambda provider: st.sampled_from(
                [f"{provider}/{model}" for model in MODELS[provider][1]]
            )
        ),
        has_picture=st.sampled_from([False, False, True]),
        has_system_turn=st.sampled_from([False, False, True]),
        choice=st.sampled_from(["auto", "auto", "none", "required", "named"]),
        is_parallel=st.booleans(),
        effort=st.sampled_from([None, None, "none", "low", "high"]),
        temperature=st.sampled_from([None, None, 0.2, 1, 1.4]),
        calls=st.sampled_from([0, 1, 1, 2]),
        has_text=st.booleans(),
        has_thought=st.booleans(),
        result=st.sampled_from(["text", "empty", "error", "picture"]),
    ),
    min_size=5,
    max_size=5,
)
# The same conversations in every run: a new one must not stop somebody else's work.
SHORT: Final = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
LONG: Final = settings(SHORT, max_examples=1_000)


@pytest.fixture(scope="module")
def referee() -> Iterator[Referee]:
    with Referee() as running:
        yield running


@pytest.fixture(scope="module")
def gateway(gateway_pool: GatewayPool, referee: Referee) -> Iterator[Gateway]:
    with connected_gateway(gateway_pool, referee) as running:
        yield running


def hold(gateway: Gateway, referee: Referee, talk: Talk, turns: list[Turn]) -> None:
    """Holds one conversation, and fails with the refusal and the request before it."""
    for number, turn in enumerate(turns):
        referee.refused.clear()
        referee.judge.plan = Plan(turn.calls, turn.has_text, turn.has_thought)
        is_neutral = is_own_dialect(talk.name, turn.model)
        path, body = talk.request(turn, number, is_neutral)
        headers = {"X-Gateway-Inexpressible": "drop", "X-Gateway-No-Cache": "true"}
        answer = gateway.caller.post(path, json=body, headers=headers)
        refused = "\n".join(map(str, referee.refused))
        assert (answer.status_code, refused) == (200, ""), (
            f"turn {number}, {turn.model}: {answer.status_code} {answer.text[:600]}\n"
            f"{refused}\nasked: {shown(path, body)}"
        )
        talk.take(answer.json())


@pytest.mark.parametrize("caller", TALKS)
def test_no_referee_refuses_a_conversation(gateway: Gateway, referee: Referee, caller: str) -> None:
    @SHORT
    @given(TURNS, st.sampled_from([True, True, True, False]))
    def run(turns: list[Turn], has_tools: bool) -> None:
        hold(gateway, referee, TALKS[caller](has_tools), turns)

    run()


@pytest.mark.slow
@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("caller", TALKS)
def test_no_referee_refuses_any_of_many_conversations(
    gateway: Gateway, referee: Referee, caller: str
) -> None:
    @LONG
    @given(TURNS, st.sampled_from([True, True, True, False]))
    def run(turns: list[Turn], has_tools: bool) -> None:
        hold(gateway, referee, TALKS[caller](has_tools), turns)

    run()
