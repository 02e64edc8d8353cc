"""Limits and budgets that several relay workers hold together over one Redis: at their limits, when a worker is killed,
and when the store is gone or comes back empty.
"""

from __future__ import annotations

import signal
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.process import Process, children_of, command_line
from tests.support.processes import Gateway, Lane, expect, start_gateway
from tests.support.prometheus import read_metrics
from tests.support.shared_store import PASSWORD, SharedStore, shared_store
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import Upstream, completion, reply

TOKENS_IN, TOKENS_OUT = 7, 3
# 1,000 USD for a million output tokens: an answer of three costs 3,000 micro-dollars.
PRICES = {"m": {"input": 0, "output": 1000}}
COST_USD = 0.003
DAY_S = 86_400
CLIENTS = 8
# Made once: reading the system's authorities takes longer than a call.
TLS = ssl.create_default_context()
POLL_S = 2.5
GREETING_S = 10
RETURNED_S = 2


@contextmanager
def cluster(
    folder: Path, *, front: str = "native", workers: int = 2, **environment: str
) -> Iterator[tuple[Gateway, SharedStore]]:
    """A gateway of so many relay workers, and their store."""
    with shared_store(folder / "store") as store:
        url = {"FAIRLEAD_SHARED_URL": store.url, "FAIRLEAD_FRONT": front, **environment}
        with start_gateway(folder, "--workers", str(workers), **url) as gateway:
            gateway.canaries.append(PASSWORD)
            yield gateway, store


@pytest.fixture(scope="module")
def workers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Gateway, SharedStore]]:
    with cluster(tmp_path_factory.mktemp("shared")) as running:
        yield running


@pytest.fixture(scope="module")
def provider() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


def priced(gateway: Gateway, upstream: Upstream) -> Lane:
    """A lane whose model has a price, and whose answers use what `TOKENS_IN` and `TOKENS_OUT` say."""
    lane = gateway.add_lane(upstream, connections=0)
    secret = f"sk-upstream-canary-{lane.prefix}"
    prices = {"providerSpecificData": {"prices": PRICES}}
    lane.connections.append(gateway.add_connection(lane.node["id"], secret, **prices))
    lane.secrets.append(secret)
    answer = completion(tokens_in=TOKENS_IN, tokens_out=TOKENS_OUT)
    upstream.script(reply(answer), key=secret)
    return lane


def relays(gateway: Gateway) -> list[Process]:
    """The relay workers' processes."""
    found = children_of(gateway.popen.pid)
    return [Process.of(pid) for pid in found if "-m fairlead.serve relay " in command_line(pid)]


def ask(
    gateway: Gateway, lane: Lane, key: dict[str, Any], session: str | None = None
) -> tuple[int, str]:
    """Status and code of one call over a connection of its own, which is either worker's."""
    headers = {"Authorization": f"Bearer {key['key']}", "Cache-Control": "no-store"}
    if session is not None:
        headers["X-Session-Id"] = session
    try:
        answer = httpx.post(
            gateway.url + CHAT,
            json=lane.body(max_tokens=TOKENS_OUT),
            headers=headers,
            trust_env=False,
            verify=TLS,
            timeout=20,
        )
    except httpx.TransportError:
        # Its worker was killed.
        return 0, "transport"
    code = "" if answer.status_code == 200 else answer.json()["error"]["code"]
    return answer.status_code, code


def flood(
    gateway: Gateway, lane: Lane, keys: list[dict[str, Any]], each: int
) -> list[Counter[Any]]:
    """Calls with every key from several clients at once; what was answered, by key."""
    counts: list[Counter[Any]] = [Counter() for _ in keys]
    order = [at for _ in range(each) for at in range(len(keys))]
    with ThreadPoolExecutor(CLIENTS) as pool:
        answers = pool.map(lambda at: (at, ask(gateway, lane, keys[at])), order)
        for at, answer in answers:
            counts[at][answer] += 1
    return counts


def until_refused(gateway: Gateway, lane: Lane, key: dict[str, Any], code: str) -> Counter[Any]:
    """Calls until nothing is let through any more for that reason, whichever worker is asked, and although what either
    has leased and does not use has come back.
    """
    (total,) = until_all_refused(gateway, lane, [key], [code])
    return total


def until_all_refused(
    gateway: Gateway, lane: Lane, keys: list[dict[str, Any]], codes: list[str]
) -> list[Counter[Any]]:
    """The same of several keys at once, each for its reason."""
    totals: list[Counter[Any]] = [Counter() for _ in keys]
    refused_at_s: list[float] = []

    def all_refused() -> bool:
        answers = flood(gateway, lane, keys, 16)
        for total, found in zip(totals, answers, strict=True):
            total.update(found)
        if [set(found) for found in answers] != [{(429, code)} for code in codes]:
            refused_at_s.clear()
            return False
        refused_at_s.append(time.monotonic())
        return refused_at_s[-1] - refused_at_s[0] > RETURNED_S

    eventually(all_refused, f"every call is answered {codes[0]}", within_s=90, every_s=0.5)
    return totals


def let_through(found: Counter[Any]) -> int:
    return int(found[200, ""])


def round_trips(gateway: Gateway) -> float:
    text = httpx.get(
        f"{gateway.url}/metrics", trust_env=False, timeout=20, verify=NO_AUTHORITIES
    ).text
    family = read_metrics(text).get("fairlead_shared_store_round_trips_total")
    return family.value() if family else 0.0


def test_two_workers_hold_limits_and_budgets_together(
    workers: tuple[Gateway, SharedStore], provider: Upstream
) -> None:
    gateway, _ = workers
    assert len(relays(gateway)) == 2
    lane = priced(gateway, provider)
    calls = 40
    rated = gateway.create_key(rateLimits=[{"limit": calls, "window": DAY_S}])
    paid = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=calls * COST_USD)
    counted, spent = flood(gateway, lane, [rated, paid], calls + 20)
    spent += until_refused(gateway, lane, paid, "budget_exceeded")
    counted += until_refused(gateway, lane, rated, "rate_limited")
    assert let_through(counted) == calls
    assert let_through(spent) == calls, (
        "to the last call that the budget pays for, and not one more"
    )


def test_the_store_is_told_without_its_password(workers: tuple[Gateway, SharedStore]) -> None:
    gateway, _ = workers

    def reports() -> list[dict[str, Any]]:
        health = expect(gateway.admin.get("/api/monitoring/health"), 200)
        return [worker["leases"] for worker in health["workers"] if worker["live"]]

    def all_connected() -> bool:
        return [(each["connected"], len(each["nodes"])) for each in reports()] == [(True, 2)] * 2

    eventually(all_connected, "both workers hold limits with each other", within_s=15)
    assert PASSWORD not in gateway.log


def await_poll(since_s: float) -> None:
    """Until every worker has told its counters since a time, which it does with each poll of control."""
    eventually(lambda: time.monotonic() > since_s + POLL_S, "every worker has told its counters")


def settled_round_trips(gateway: Gateway) -> float | None:
    """How often the store was asked so far, once it is only greeted: keys of other tests give back their leases."""
    before = round_trips(gateway)
    await_poll(time.monotonic())
    after = round_trips(gateway)
    return after if after and after - before <= 2 else None


def test_workers_that_just_started_let_in_what_there_is_room_for(
    tmp_path: Path, provider: Upstream
) -> None:
    """Each knows soon that the other is there: the first one to start had to refuse new keys for ten seconds."""
    with cluster(tmp_path) as (gateway, _):
        lane = priced(gateway, provider)
        limits = {"rateLimits": [{"limit": 1_000_000, "window": DAY_S}]}
        money = {"usageLimitEnabled": True, "dailyUsageLimitUsd": 9000}

        def is_let_in() -> bool:
            (found,) = flood(gateway, lane, [gateway.create_key(**limits, **money)], 32)
            return let_through(found) == 32

        eventually(is_let_in, "a new key is let in at both workers", within_s=4, every_s=0.2)
        assert is_let_in()


def test_away_from_the_limit_the_store_is_asked_seldom(
    workers: tuple[Gateway, SharedStore], provider: Upstream
) -> None:
    gateway, _ = workers
    lane = priced(gateway, provider)
    key = gateway.create_key(
        rateLimits=[{"limit": 1_000_000, "window": DAY_S}],
        usageLimitEnabled=True,
        dailyUsageLimitUsd=9000,
    )
    flood(gateway, lane, [key], 20)
    before = eventually(
        lambda: settled_round_trips(gateway),
        "nobody asks the store for what was before",
        within_s=60,
    )
    began_s = time.monotonic()
    (found,) = flood(gateway, lane, [key], 400)
    assert let_through(found) == 400
    # Counters come with each poll of control, which ends after two seconds at the latest.
    greetings = 2 * (1 + (time.monotonic() - began_s + POLL_S) / GREETING_S)
    await_poll(began_s)
    assert round_trips(gateway) - before - greetings <= 20 * 0.4


def test_a_store_that_comes_back_empty_brings_no_second_limit(
    workers: tuple[Gateway, SharedStore], provider: Upstream
) -> None:
    gateway, store = workers
    lane = priced(gateway, provider)
    calls = 60
    key = gateway.create_key(rateLimits=[{"limit": calls, "window": DAY_S}])
    (found,) = flood(gateway, lane, [key], 30)
    assert let_through(found) == 30
    store.stop()
    store.start()
    found += until_refused(gateway, lane, key, "rate_limited")
    # What a worker had leased when it lost the store may be given to nobody for a time.
    assert calls / 2 <= let_through(found) <= calls * 1.01


def test_without_the_store_each_worker_goes_on_with_its_part(
    workers: tuple[Gateway, SharedStore], provider: Upstream
) -> None:
    gateway, store = workers
    lane = priced(gateway, provider)
    calls = 80
    key = gateway.create_key(rateLimits=[{"limit": calls, "window": DAY_S}])
    (found,) = flood(gateway, lane, [key], 20)
    store.stop()
    try:
        (alone,) = flood(gateway, lane, [key], 100)
    finally:
        store.start()
    assert let_through(alone) > 0, "each has its part"
    found += alone + until_refused(gateway, lane, key, "rate_limited")
    # What a worker had leased when it lost the store may be given to nobody for a time.
    assert calls / 2 <= let_through(found) <= calls * 1.01


def test_sessions_of_a_key_are_counted_over_both_workers(
    workers: tuple[Gateway, SharedStore], provider: Upstream
) -> None:
    gateway, store = workers
    lane = priced(gateway, provider)
    key = gateway.create_key(maxSessions=4)
    full = (429, "rate_limited")

    def enter(sessions: list[str]) -> dict[str, tuple[int, str]]:
        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = pool.map(lambda session: ask(gateway, lane, key, session), sessions)
            return dict(zip(sessions, answers, strict=True))

    def is_connected() -> bool:
        health = expect(gateway.admin.get("/api/monitoring/health"), 200)
        return [one["leases"]["connected"] for one in health["workers"] if one["live"]] == [
            True
        ] * 2

    eventually(is_connected, "both workers have the store", within_s=15)
    answers = enter([f"session-{number}" for number in range(24)])
    assert set(answers.values()) == {(200, ""), full}
    inside = [session for session, answer in answers.items() if answer != full]
    outside = [session for session, answer in answers.items() if answer == full]
    assert len(inside) == 4
    for _ in range(12):
        assert set(enter(inside).values()) == {(200, "")}, "whichever worker is asked"
    assert set(enter(outside).values()) == {full}
    store.stop()
    try:
        assert set(enter(inside).values()) == {(200, "")}, "what is in goes on without the store"
    finally:
        store.start()
    eventually(is_connected, "both workers have the store again", within_s=15)
    assert set(enter(inside).values()) == {(200, "")}
    assert set(enter(outside).values()) == {full}, "an empty store is told of those that are in"


@pytest.mark.slow
@pytest.mark.parametrize("front", ["granian", "native"])
def test_a_worker_that_is_killed_takes_no_limit_with_it(
    tmp_path: Path, provider: Upstream, front: str
) -> None:
    lease = {"FAIRLEAD_SHARED_LEASE_MS": "2000"}
    with cluster(tmp_path, front=front, **lease) as (gateway, _):
        lane = priced(gateway, provider)
        calls = 300
        rated = gateway.create_key(rateLimits=[{"limit": calls, "window": DAY_S}])
        paid = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=calls * COST_USD)
        counted, spent = flood(gateway, lane, [rated, paid], 100)
        relays(gateway)[0].signal(signal.SIGKILL)
        for key, code, found in (
            (rated, "rate_limited", counted),
            (paid, "budget_exceeded", spent),
        ):
            found.update(until_refused(gateway, lane, key, code))
            # What the dead worker had leased is known once its records are in, and comes back.
            eventually(
                lambda key=key, code=code, found=found: _goes_on(
                    gateway, lane, key, code, found, calls
                ),
                "all of the limit can be used",
                within_s=60,
            )
        assert calls * 0.99 <= let_through(counted) <= calls * 1.01
        assert let_through(spent) <= calls


def _goes_on(
    gateway: Gateway,
    lane: Lane,
    key: dict[str, Any],
    code: str,
    found: Counter[Any],
    calls: int,
) -> bool:
    found.update(until_refused(gateway, lane, key, code))
    return let_through(found) >= calls * 0.99


@pytest.mark.slow
def test_twenty_keys_at_their_limits_from_many_clients(tmp_path: Path, provider: Upstream) -> None:
    with cluster(tmp_path, workers=4) as (gateway, _):
        assert len(relays(gateway)) == 4
        lane = priced(gateway, provider)
        calls = 50
        keys = [
            gateway.create_key(rateLimits=[{"limit": calls, "window": DAY_S}])
            if at % 2
            else gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=calls * COST_USD)
            for at in range(20)
        ]
        found = flood(gateway, lane, keys, calls + 20)
        codes = ["rate_limited" if at % 2 else "budget_exceeded" for at in range(20)]
        for total, more in zip(found, until_all_refused(gateway, lane, keys, codes), strict=True):
            total.update(more)
        assert [let_through(each) for each in found] == [calls] * 20
        limits = {"rateLimits": [{"limit": 1_000_000, "window": DAY_S}]}
        money = {"usageLimitEnabled": True, "dailyUsageLimitUsd": 9000}
        away = [gateway.create_key(**limits, **money) for _ in range(20)]
        flood(gateway, lane, away, 8)
        before = eventually(
            lambda: settled_round_trips(gateway), "nobody asks for what was before", within_s=60
        )
        began_s = time.monotonic()
        found = flood(gateway, lane, away, 50)
        assert sum(let_through(each) for each in found) == 1_000
        greetings = 4 * (1 + (time.monotonic() - began_s + POLL_S) / GREETING_S)
        await_poll(began_s)
        trips = round_trips(gateway) - before - greetings
        print(f"{trips:.0f} round trips in {time.monotonic() - began_s:.1f} s")
        assert trips <= 20, trips


@pytest.mark.slow
def test_without_the_store_a_gateway_may_refuse_what_is_limited(
    tmp_path: Path, provider: Upstream
) -> None:
    with cluster(tmp_path, FAIRLEAD_SHARED_ON_LOSS="refuse") as (gateway, store):
        lane = priced(gateway, provider)
        limited = gateway.create_key(rateLimits=[{"limit": 50, "window": DAY_S}])
        free = gateway.create_key()
        assert ask(gateway, lane, limited) == (200, "")
        store.pause()
        eventually(lambda: ask(gateway, lane, limited) == (503, "limits_unknown"), "it is refused")
        assert ask(gateway, lane, free) == (200, "")
        store.resume()
        eventually(lambda: ask(gateway, lane, limited) == (200, ""), "it is let through again")
