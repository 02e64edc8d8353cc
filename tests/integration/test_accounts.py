"""Several connections of one provider with real processes: who gets a call, and what happens at their limits."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import PROMPT, Gateway, Lane, expect
from tests.support.upstream import Gate, Upstream, completion, reply

MESSAGES = "/v1/messages"
OK = reply(completion())


def change(lane: Lane, *places: int, **fields: Any) -> None:
    """Changes these connections of a lane, or all of them."""
    for place in places or range(len(lane.connections)):
        path = f"/api/providers/{lane.connections[place]['id']}"
        expect(lane.gateway.admin.put(path, json=fields), 200)


def ask(lane: Lane, headers: dict[str, str] | None = None, **fields: Any) -> Any:
    return lane.gateway.caller.post(CHAT, json=lane.body(**fields), headers=headers or {})


def asked(lane: Lane, since: int = 0) -> list[int]:
    """Which connections were asked, by their places in the lane."""
    credentials = [f"Bearer {secret}" for secret in lane.secrets]
    seen = lane.upstream.requests[since:]
    return [credentials.index(str(each.header("authorization"))) for each in seen]


def limits_of(lane: Lane, place: int = 0) -> dict[str, Any]:
    shown = expect(lane.gateway.admin.get("/api/rate-limits"), 200)["connections"]
    wanted = lane.connections[place]["id"]
    return next(each for each in shown if each["connectionId"] == wanted)


class Held:
    """A call that its provider does not answer before it is let go."""

    def __init__(self, lane: Lane) -> None:
        self._gate = Gate()
        self._answers: list[Any] = []
        lane.upstream.script([self._gate, *OK], OK, model="m")
        self._thread = threading.Thread(target=lambda: self._answers.append(ask(lane)))
        self._thread.start()
        assert self._gate.reached.wait(10)

    def let_go(self) -> Any:
        self._gate.open()
        self._thread.join(10)
        return self._answers[0]


@pytest.fixture
def sticky(gateway: Gateway, upstream: Upstream) -> Iterator[Lane]:
    """Four equal connections, shared by session."""
    lane = gateway.add_lane(upstream, connections=4)
    change(lane, priority=7)
    path = "/api/settings"
    expect(gateway.admin.patch(path, json={"accountStrategies": {lane.node["id"]: "sticky"}}), 200)
    yield lane
    expect(gateway.admin.patch(path, json={"accountStrategies": {}}), 200)


def test_equal_connections_share_the_calls_and_others_wait_their_turn(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream, connections=5)
    change(lane, 0, 1, 2, 3, priority=7)
    change(lane, 4, priority=8)
    for _ in range(80):
        assert ask(lane).status_code == 200
    counts = Counter(asked(lane))
    assert set(counts) == {0, 1, 2, 3}, "the less preferred one is for failures"
    assert min(counts.values()) >= 5
    change(lane, 0, 1, 2, 3, isActive=False)
    before = len(upstream.requests)
    assert ask(lane).status_code == 200
    assert asked(lane, before) == [4]


def test_sessions_stay_with_one_connection(sticky: Lane) -> None:
    homes = set()
    for _ in range(12):
        before = len(sticky.upstream.requests)
        headers = {"X-Session-Id": secrets.token_hex(6)}
        assert all(ask(sticky, headers).status_code == 200 for _ in range(3))
        [home] = set(asked(sticky, before))
        homes.add(home)
    assert len(homes) >= 2
    # Without a session the beginning of the conversation tells.
    opening = {"role": "user", "content": PROMPT + secrets.token_hex(6)}
    before = len(sticky.upstream.requests)
    for turn in range(3):
        more = [
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "And?"},
        ] * turn
        assert ask(sticky, messages=[opening, *more]).status_code == 200
    assert len(set(asked(sticky, before))) == 1


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_a_full_connection_leaves_the_call_to_the_next(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    change(lane, 0, maxConcurrent=1)
    held = Held(lane)
    assert [ask(lane).status_code for _ in range(2)] == [200, 200]
    assert asked(lane) == [0, 1, 1]
    assert held.let_go().status_code == 200
    assert ask(lane).status_code == 200
    assert asked(lane)[-1] == 0, "a place that was given back is taken"


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_a_queue_that_is_late_or_full_is_a_429_that_says_when(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream)
    change(lane, maxConcurrent=1, queueDepth=1, queueTimeoutMs=300)
    held = Held(lane)
    late = ask(lane)
    assert late.status_code == 429
    assert late.json()["error"]["code"] == "accounts_busy"
    assert int(late.headers["retry-after"]) >= 1
    message = {**lane.body(), "max_tokens": 9}
    other = gateway.caller.post(MESSAGES, json=message, headers={"anthropic-version": "2023-06-01"})
    assert (other.status_code, other.json()["error"]["type"]) == (429, "rate_limit_error")
    assert "retry-after" in other.headers
    record = gateway.record(late.headers["x-gateway-request-id"])
    assert (record["outcome"], record["errorKind"], record["attempts"]) == (
        "refused",
        "accounts_busy",
        0,
    )
    shown = limits_of(lane)
    assert shown["limits"] == {
        "maxConcurrent": 1,
        "requestsPerMinute": None,
        "tokensPerMinute": None,
        "minGapMs": None,
        "queueDepth": 1,
        "queueTimeoutMs": 300,
    }
    eventually(lambda: limits_of(lane)["remaining"]["slots"] == 0, "the worker tells of it")
    # Who waits is served as soon as there is room.
    change(lane, queueTimeoutMs=20_000)
    answers: list[Any] = []
    waiting = threading.Thread(target=lambda: answers.append(ask(lane)))
    waiting.start()
    eventually(lambda: limits_of(lane)["queued"] == 1, "one waits")
    assert ask(lane).status_code == 429, "the queue is full"
    assert held.let_go().status_code == 200
    waiting.join(10)
    assert answers[0].status_code == 200
    eventually(lambda: limits_of(lane)["remaining"]["slots"] == 1, "every place is given back")


def test_a_caller_who_leaves_gives_its_place_back(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    change(lane, maxConcurrent=1)
    gate = Gate()
    upstream.script([gate, *OK], OK, model="m")
    with pytest.raises(Exception, match="timed out"):
        gateway.caller.post(CHAT, json=lane.body(), timeout=0.5)
    eventually(lambda: ask(lane).status_code == 200, "its place is free")
    gate.open()


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_requests_and_tokens_of_a_minute_are_counted(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    change(lane, 0, requestsPerMinute=2, tokensPerMinute=5_000)
    assert [ask(lane).status_code for _ in range(3)] == [200, 200, 200]
    assert asked(lane) == [0, 0, 1]
    eventually(lambda: limits_of(lane)["remaining"]["requests"] == 0, "the worker tells of it")
    shown = limits_of(lane)
    used = 2 * sum(completion()["usage"][name] for name in ("prompt_tokens", "completion_tokens"))
    assert shown["remaining"] == {"slots": None, "requests": 0, "tokens": 5_000 - used}
    assert limits_of(lane, 1)["remaining"] is None
    change(lane, 1, isActive=False)
    refused = ask(lane)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "accounts_busy")
    assert 30 <= int(refused.headers["retry-after"]) <= 61


def told(limit: int, left: int, reset: str, what: str = "requests") -> Any:
    """An answer that tells of such a rate."""
    headers = [
        (f"x-ratelimit-limit-{what}", str(limit)),
        (f"x-ratelimit-remaining-{what}", str(left)),
        (f"x-ratelimit-reset-{what}", reset),
    ]
    return reply(completion(), headers=headers)


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_a_rate_that_the_provider_tells_is_held_to_until_it_is_full(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream, connections=2)
    change(lane, 1, priority=90)
    upstream.script(told(60, 1, "59s"), OK, key=lane.secrets[0])
    assert [ask(lane).status_code for _ in range(3)] == [200, 200, 200]
    assert asked(lane) == [0, 0, 1], "one was left, and one a second comes back"
    eventually(lambda: limits_of(lane)["learnedLimits"], "the worker tells of it")
    shown = limits_of(lane)
    [learned] = shown["learnedLimits"]
    assert (learned["model"], learned["name"], learned["limit"]) == ("m", "requests", 60)
    assert (learned["perMinute"], learned["remaining"] <= 3) == (60, True)
    assert (shown["limits"], shown["remaining"]) == (None, None), "nobody has set one"
    # Another model has a rate of its own.
    assert ask(lane, model=f"{lane.prefix}/other").status_code == 200
    assert asked(lane)[-1] == 0


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_who_may_wait_for_a_learnt_rate_waits_and_others_are_told_when(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(told(600, 0, "60s"), OK, OK)
    assert ask(lane).status_code == 200
    change(lane, queueDepth=5)
    assert ask(lane).status_code == 200, "ten come back each second"
    upstream.script(told(2, 0, "59s"), OK)
    assert ask(lane).status_code == 200
    change(lane, queueTimeoutMs=100)
    refused = ask(lane)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "accounts_busy")
    assert 20 <= int(refused.headers["retry-after"]) <= 30
    before = len(upstream.requests)
    idle = {"queueDepth": None, "queueTimeoutMs": None}
    change(lane, providerSpecificData={"learnLimits": False}, **idle)
    assert ask(lane).status_code == 200, "what was learnt is no limit any more"
    assert len(upstream.requests) == before + 1
    eventually(lambda: not limits_of(lane)["learnedLimits"], "the worker tells of it")


@pytest.mark.one_node(reason="each worker holds the limits of a connection for itself")
def test_tokens_that_the_provider_tells_are_held_to_and_the_setting_lifts_them(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(told(1_000, 100, "300s", "tokens"), OK)
    assert ask(lane).status_code == 200
    assert ask(lane).status_code == 429, "it is estimated at more than 500"
    path = "/api/resilience"
    expect(gateway.admin.patch(path, json={"quota": {"learnLimits": False}}), 200)
    try:
        assert ask(lane).status_code == 200
    finally:
        expect(gateway.admin.patch(path, json={"quota": {"learnLimits": True}}), 200)
