"""Ranks: whatever is moved wherever, the order is the one that the moves meant."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.board.rank import HEAD, RANK_MAX, STEP, RanksExhausted, rank_between, spread


@given(st.lists(st.integers(0, 10**6), max_size=120))
def test_whatever_is_put_in_wherever_the_ranks_are_in_that_order(places) -> None:
    order: list[str] = []
    for place in places:
        at = place % (len(order) + 1)
        low = order[at - 1] if at else None
        high = order[at] if at < len(order) else None
        order.insert(at, rank_between(low, high))
    assert order == sorted(set(order))
    assert not any(rank.endswith("0") for rank in order)


@settings(max_examples=30)
@given(st.booleans(), st.integers(1, 400))
def test_ranks_at_an_end_stay_short(first, count) -> None:
    rank = rank_between(None, None)
    for _ in range(count):
        rank = rank_between(None, rank) if first else rank_between(rank, None)
    assert len(rank) <= HEAD


@pytest.mark.parametrize("under", [True, False])
def test_ranks_in_one_gap_grow_by_a_digit_for_several_moves(under) -> None:
    low, high = rank_between(None, None), rank_between(rank_between(None, None), None)
    moves = 0
    while len(low if under else high) <= RANK_MAX:
        middle = rank_between(low, high)
        assert low < middle < high
        low, high = (middle, high) if under else (low, middle)
        moves += 1
    assert moves > 5 * (RANK_MAX - HEAD)


def test_a_spread_leaves_room_at_each_place() -> None:
    ranks = spread(10_000)
    assert ranks == sorted(set(ranks))
    assert ranks[0] < rank_between(ranks[0], ranks[1]) < ranks[1]
    assert rank_between(None, ranks[0]) < ranks[0]
    assert rank_between(ranks[-1], None) > ranks[-1]


def test_a_full_end_and_ranks_out_of_order_are_told() -> None:
    with pytest.raises(RanksExhausted):
        rank_between("z" * HEAD, None)
    with pytest.raises(RanksExhausted):
        rank_between(None, "00001")
    with pytest.raises(ValueError, match="not in order"):
        rank_between("b", "a")
    assert STEP > 1
