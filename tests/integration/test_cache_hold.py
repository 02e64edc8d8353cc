"""A conversation stays with the target whose provider has it in its prompt cache, where its combo asks for that."""

from __future__ import annotations

import secrets
from typing import Any

import pytest

from tests.integration.test_combo_rules import call, make_combo
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply

pytestmark = pytest.mark.one_node(
    reason="where a conversation was served is told to other workers within a second, and the next turn comes at once"
)

FAILED = reply({"error": {"message": "broken"}}, status=500)
TURNS = 12


def cached_reply(messages: list[Any], seen: set[str]) -> Any:
    """The answer of a provider with a prompt cache: what of the messages this account has seen before is cached."""
    known = [repr(messages[: count + 1]) for count in range(len(messages))]
    cached = 100 * sum(each in seen for each in known)
    seen.update(known)
    usage = {
        "prompt_tokens": 100 * len(messages),
        "completion_tokens": 3,
        "total_tokens": 100 * len(messages) + 3,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return reply(completion("done") | {"usage": usage})


@pytest.fixture
def lanes(gateway: Gateway, upstream: Upstream) -> list[Lane]:
    return [gateway.add_lane(upstream) for _ in range(4)]


@pytest.fixture
def models(lanes: list[Lane]) -> list[str]:
    return [f"{lane.prefix}/m{at}" for at, lane in enumerate(lanes)]


def hold_conversation(
    gateway: Gateway, upstream: Upstream, combo: str, turns: int = TURNS
) -> tuple[list[str], int]:
    """Who served each turn of a conversation without a session's id, and how many of its tokens were cached."""
    seen: dict[str, set[str]] = {}
    messages: list[Any] = [{"role": "user", "content": f"Begin {secrets.token_hex(6)}."}]
    served, cached = [], 0
    for turn in range(turns):
        for at in range(4):
            trial = set(seen.get(f"m{at}", set()))
            upstream.script(cached_reply(messages, trial), model=f"m{at}")
        answer = expect(call(gateway, combo, messages=messages), 200)
        model = upstream.last.json()["model"]
        cached_reply(messages, seen.setdefault(model, set()))
        served.append(model)
        cached += answer["usage"]["prompt_tokens_details"]["cached_tokens"]
        messages += [
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": f"Go on, {turn}."},
        ]
    return served, cached


@pytest.mark.parametrize("strategy", ["random", "round-robin", "p2c", "least-used", "weighted"])
def test_a_conversation_stays_where_its_prompt_is_cached(
    gateway: Gateway, models: list[str], upstream: Upstream, strategy: str
) -> None:
    weights = [{"model": model, "weight": 1} for model in models]
    protected = make_combo(gateway, *weights, strategy=strategy, contextCacheProtection=True)
    served, cached = hold_conversation(gateway, upstream, protected)
    assert len(set(served)) == 1, served
    # Of each turn all is cached that the turn before had.
    assert cached == 100 * sum(2 * turn - 1 for turn in range(1, TURNS))
    records = eventually(
        lambda: found if len(found := gateway.shown_records(model=protected)) == TURNS else None,
        "all turns are on record",
        within_s=8,
    )
    by_time = sorted(records, key=lambda record: record["timestamp"])
    assert [record["cacheHold"] for record in by_time] == ["begun", *["held"] * (TURNS - 1)]


def test_without_it_turns_are_spread(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    free = make_combo(gateway, *models, strategy="round-robin")
    served, cached = hold_conversation(gateway, upstream, free, turns=4)
    assert len(set(served)) == 4, served
    assert cached == 0


def test_conversations_spread_and_each_stays(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    combo = make_combo(gateway, *models, strategy="round-robin", contextCacheProtection=True)
    homes = [hold_conversation(gateway, upstream, combo, turns=3)[0] for _ in range(4)]
    assert all(len(set(served)) == 1 for served in homes)
    assert len({served[0] for served in homes}) > 1


def test_a_target_that_fails_loses_the_conversation(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    combo = make_combo(gateway, *models[:2], strategy="priority", contextCacheProtection=True)
    turn = {"messages": [{"role": "user", "content": f"Begin {secrets.token_hex(6)}."}]}
    ok = reply(completion())
    upstream.script(ok, FAILED, model="m0")
    upstream.script(ok, model="m1")
    served = []
    for _ in range(3):
        expect(call(gateway, combo, **turn), 200)
        served.append(upstream.last.json()["model"])
    assert served == ["m0", "m1", "m1"], "and it stays with the one that served it since"
    records = eventually(
        lambda: found if len(found := gateway.shown_records(model=combo)) == 3 else None,
        "all turns are on record",
        within_s=8,
    )
    by_time = sorted(records, key=lambda record: record["timestamp"])
    assert [record["cacheHold"] for record in by_time] == ["begun", "moved", "held"]


def test_another_key_with_the_same_words_is_another_conversation(
    gateway: Gateway, models: list[str], upstream: Upstream
) -> None:
    combo = make_combo(gateway, *models, strategy="round-robin", contextCacheProtection=True)
    upstream.script(reply(completion()))
    body = {"model": combo, "messages": [{"role": "user", "content": "The same words."}]}
    served = []
    for _ in range(2):
        key = gateway.create_key()["key"]
        headers = {"Authorization": f"Bearer {key}"}
        expect(gateway.caller.post("/v1/chat/completions", json=body, headers=headers), 200)
        served.append(upstream.last.json()["model"])
    assert served[0] != served[1]


@pytest.mark.parametrize("strategy", ["fusion", "pipeline", "context-relay"])
def test_strategies_that_say_who_sees_a_conversation_refuse_it(
    gateway: Gateway, models: list[str], strategy: str
) -> None:
    body = {
        "name": f"c{secrets.token_hex(4)}",
        "models": models[:2],
        "strategy": strategy,
        "contextCacheProtection": True,
    }
    error = expect(gateway.admin.post("/api/combos", json=body), 400)["error"]
    assert error["param"] == "contextCacheProtection"
    assert strategy in error["message"]
