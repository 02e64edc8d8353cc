"""No owner holds all places, and whoever holds the fewest is next."""

from __future__ import annotations

from fairlead.store.shares import Shares


def fill(shares: Shares, waiting: list[str]) -> list[str]:
    """Who was given a place, in order; each waiting item is its owner's name."""
    given = []
    while (owner := shares.next_of(waiting, lambda item: item)) is not None:
        waiting.remove(owner)
        shares.take(owner)
        given.append(owner)
    return given


def test_one_owner_leaves_half_and_others_find_a_place_at_once() -> None:
    shares = Shares(8)
    assert fill(shares, ["a"] * 20) == ["a"] * 4
    assert fill(shares, ["a"] * 20 + ["b"]) == ["b"]
    assert fill(shares, ["a"] * 20 + ["c", "d"]) == ["c", "d"]
    assert shares.free == 1
    shares.give_back("b")
    assert fill(shares, ["a"] * 20 + ["d", "e"]) == ["e"], "whoever holds the fewest"


def test_turns_go_round_among_those_who_wait() -> None:
    assert fill(Shares(8), ["a"] * 9 + ["b"] * 9) == ["a", "b", "a", "b", "a", "b"]


def test_one_place_is_used() -> None:
    shares = Shares(1)
    assert fill(shares, ["a", "a", "b"]) == ["a"]
    shares.give_back("a")
    assert fill(shares, ["b"]) == ["b"]
