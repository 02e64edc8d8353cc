"""Five wrong passwords in 15 minutes lock an address for 15; the clock is the monotonic one."""

from __future__ import annotations

import pytest

from fairlead.errors import RateLimited
from fairlead.identity.guess_limit import ADDRESSES_MAX, FAILURES_MAX, LOCK_S, WINDOW_S, GuessLimit

PEER = "192.0.2.1"


class Clock:
    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limit(clock: Clock) -> GuessLimit:
    return GuessLimit(clock)


def fail(limit: GuessLimit, times: int, peer: str = PEER) -> None:
    for _ in range(times):
        limit.begin(peer)


def is_locked(limit: GuessLimit, peer: str = PEER) -> bool:
    try:
        limit.withdraw(peer, limit.begin(peer))
    except RateLimited:
        return True
    return False


def test_the_fifth_failure_locks_for_fifteen_minutes(limit: GuessLimit, clock: Clock) -> None:
    fail(limit, FAILURES_MAX - 1)
    assert not is_locked(limit)
    fail(limit, 1)
    with pytest.raises(RateLimited) as caught:
        limit.begin(PEER)
    assert caught.value.retry_after_s == LOCK_S
    clock.s += LOCK_S - 0.5
    with pytest.raises(RateLimited) as caught:
        limit.begin(PEER)
    assert caught.value.retry_after_s == 1
    clock.s += 0.5
    assert not is_locked(limit)
    fail(limit, FAILURES_MAX - 1)
    assert not is_locked(limit)


def test_failures_older_than_the_window_do_not_count(limit: GuessLimit, clock: Clock) -> None:
    fail(limit, FAILURES_MAX - 1)
    clock.s += WINDOW_S
    fail(limit, FAILURES_MAX - 1)
    assert not is_locked(limit)


def test_attempts_in_flight_count_before_they_are_known_to_be_wrong(limit: GuessLimit) -> None:
    for _ in range(FAILURES_MAX):
        limit.begin(PEER)
    with pytest.raises(RateLimited):
        limit.begin(PEER)


def test_a_right_password_starts_afresh_even_as_the_fifth(limit: GuessLimit) -> None:
    fail(limit, FAILURES_MAX)
    limit.forgive(PEER)
    fail(limit, FAILURES_MAX - 1)
    assert not is_locked(limit)


def test_an_attempt_that_came_to_nothing_is_taken_back(limit: GuessLimit, clock: Clock) -> None:
    for _ in range(20):
        clock.s += 1
        limit.withdraw(PEER, limit.begin(PEER))
    fail(limit, FAILURES_MAX - 1)
    clock.s += 1
    limit.withdraw(PEER, limit.begin(PEER))
    assert not is_locked(limit)
    fail(limit, 1)
    assert is_locked(limit)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:DB8:0:0::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::1%eth1", True),
        ("unix:", "unix:", True),
    ],
)
def test_an_address_is_one_however_it_is_written(
    limit: GuessLimit, one: str, other: str, same: bool
) -> None:
    fail(limit, FAILURES_MAX, one)
    assert is_locked(limit, other) is same


def test_the_table_is_bounded_and_forgets_who_was_not_seen_for_longest(limit: GuessLimit) -> None:
    fail(limit, FAILURES_MAX, "192.0.2.1")
    for n in range(ADDRESSES_MAX - 1):
        limit.begin(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}")
    assert is_locked(limit, "192.0.2.1")
    for n in range(ADDRESSES_MAX):
        limit.begin(f"11.{n >> 16}.{n >> 8 & 255}.{n & 255}")
    assert not is_locked(limit, "192.0.2.1")
    assert len(limit._records) <= ADDRESSES_MAX
