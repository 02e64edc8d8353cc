"""Bars and sums of money."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cli.commands.cost import bars
from fairlead.cli.failure import CommandFailed
from fairlead.cli.money import dollars
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


@given(st.lists(st.tuples(st.text(max_size=80), st.integers(0, 10**15))), st.integers(40, 200))
def test_every_bar_fits_and_what_was_spent_is_seen(sums: list[tuple[str, int]], width: int) -> None:
    lines = bars(sums, width)
    assert len(lines) == len(sums)
    most = max((micros for _, micros in sums), default=0)
    for line, (_, micros) in zip(lines, sums, strict=True):
        assert len(line) <= max(width, 80)
        drawn = any(char in "█▉▊▋▌▍▎▏" for char in line)
        assert drawn or micros == 0 or most == 0


@pytest.mark.parametrize("text", ["", "7", "7y", "-1d", "0d", "9999999d", "yesterday"])
def test_a_span_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CommandFailed, match="--since"):
        since_parameter(text)


def test_a_moment_goes_on_as_it_is() -> None:
    assert since_parameter("2026-01-31T00:00:00Z") == "2026-01-31T00:00:00Z"
    assert since_parameter("7d").isdigit()
