"""Bars and sums of money."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cli.commands.cost import CostSum, bars
from fairlead.cli.failure import CommandFailed
from fairlead.cli.money import dollars, total_of
from fairlead.cli.span import since_parameter


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "$0.00"),
        (42, "$0.000042"),
        (120_000, "$0.12"),
        (999_999, "$0.999999"),
        (1_000_000, "$1.00"),
        (12_345_678, "$12.35"),
        (1_234_567_000_000, "$1,234,567.00"),
        (-500_000, "-$0.50"),
    ],
)
def test_money(micros: int, text: str) -> None:
    assert dollars(micros) == text


@pytest.mark.parametrize(
    ("micros", "unpriced", "text"),
    [
        (0, 0, "$0.00"),
        (0, 1, "1 request without a price"),
        (1_200_000, 0, "$1.20"),
        (1_200_000, 1, "$1.20 + 1 request without a price"),
        (1_200_000, 1_400, "$1.20 + 1,400 requests without a price"),
    ],
)
def test_a_sum_says_what_it_leaves_out(micros: int, unpriced: int, text: str) -> None:
    assert total_of(micros, unpriced) == text


@given(
    st.lists(
        st.builds(CostSum, st.text(max_size=80), st.integers(0, 10**15), st.integers(0, 10**4))
    ),
    st.integers(40, 200),
)
def test_every_bar_fits_and_what_was_spent_is_seen(sums: list[CostSum], width: int) -> None:
    lines = bars(sums, width)
    assert len(lines) == len(sums)
    most = max((each.usd_micros for each in sums), default=0)
    for line, (_, micros, unpriced) in zip(lines, sums, strict=True):
        assert len(line) <= max(width, 110)
        assert line.endswith(total_of(micros, unpriced))
        drawn = any(char in "█▉▊▋▌▍▎▏" for char in line)
        assert drawn or micros == 0 or most == 0


@pytest.mark.parametrize("text", ["", "7", "7y", "-1d", "0d", "9999999d", "yesterday"])
def test_a_span_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="--since"):
        since_parameter(text)


def test_a_moment_goes_on_as_it_is() -> None:
    assert since_parameter("2026-01-31T00:00:00Z") == "2026-01-31T00:00:00Z"
    assert since_parameter("7d").isdigit()
