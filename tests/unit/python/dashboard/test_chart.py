"""Charts and figures: what is drawn is what is told."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.dashboard import chart, figures
from fairlead.dashboard.chart_markup import draw_columns, draw_rows

NUMBERS = st.lists(st.floats(0, 1e12), min_size=1, max_size=12)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(NUMBERS, NUMBERS)
def test_columns_stay_in_their_box_and_stand_upon_each_other(
    one: list[float], two: list[float]
) -> None:
    many = min(len(one), len(two))
    series = [chart.Series("a", tuple(one[:many]), 0), chart.Series("b", tuple(two[:many]), 1)]
    drawn = chart.bars("t", [str(at) for at in range(many)], series, figures.count)
    assert len(drawn.columns) == many
    assert len(drawn.labels) <= chart.LABELS_MAX
    for column in drawn.columns:
        foot = 100.0
        for bar in column.bars:
            assert bar.y + bar.height == pytest.approx(foot, abs=1e-6)
            assert bar.y >= -0.2
            assert column.x <= bar.x <= bar.x + bar.width <= column.x + column.width + 1e-6
            foot = bar.y


def test_a_line_has_a_gap_where_nothing_is_known_and_its_table_says_so() -> None:
    series = [chart.Series("p50", (1.0, None, 3.0, 4.0), 0)]
    drawn = chart.lines("t", ["a", "b", "c", "d"], series, figures.milliseconds)
    assert len(drawn.lines) == 2
    assert [row[1] for row in drawn.rows] == ["1.0 ms", figures.NONE, "3.0 ms", "4.0 ms"]
    assert drawn.ticks[0] == "4.0 ms"
    assert drawn.ticks[-1] == "0"
    assert chart.lines("t", [], [], figures.count).is_empty


def test_names_are_text_in_what_is_drawn() -> None:
    series = [chart.Series('<b title="x">', (1.0, 3.0), 2)]
    drawn = chart.bars("t", ["a&b", "c"], series, figures.count)
    columns, rows = draw_columns(drawn.columns), draw_rows(drawn)
    assert "<b" not in columns
    assert columns.count("&lt;b title=&quot;x&quot;&gt;: ") == 4, "said twice of each column"
    assert columns.count('<rect class="s2" ') == 2
    assert 'x="50.000" width="50.000"' in columns
    assert rows == (
        '<tr><th scope="row">a&amp;b</th><td class="number">1</td></tr>'
        '<tr><th scope="row">c</th><td class="number">3</td></tr>'
    )


def test_the_largest_are_named_in_order() -> None:
    assert chart.top_series({"a": 1, "b": 3, "c": 3, "d": 2}, 3) == ["b", "c", "d"]


@pytest.mark.parametrize(("many", "step"), [(24, 4), (30, 5), (60, 10)])
def test_labels_are_at_one_distance(many: int, step: int) -> None:
    """Of the windows of a day, of 30 days and of an hour."""
    labels = [str(at) for at in range(many)]
    values = chart.Series("one", (1.0,) * many, 0)
    drawn = chart.bars("title", labels, [values], figures.count)
    assert drawn.labels == tuple(labels[::step])
    assert (drawn.is_even, drawn.is_labelled) == (True, False)
    week = chart.bars("title", labels[:7], [chart.Series("one", (1.0,) * 7, 0)], figures.count)
    assert (week.labels, week.is_labelled, week.is_even) == (tuple(labels[:7]), True, False)


def test_columns_that_cannot_be_divided_have_a_label_at_both_ends() -> None:
    labels = [str(at) for at in range(23)]
    series = [chart.Series("one", (1.0,) * 23, 0)]
    drawn = chart.bars("title", labels, series, figures.count)
    assert (drawn.labels[0], drawn.labels[-1], drawn.is_even) == ("0", "22", False)


@pytest.mark.parametrize(
    ("show", "value", "words"),
    [
        (figures.count, 987, "987"),
        (figures.count, 12_345, "12.3k"),
        (figures.count, 2_500_000_000, "2.5B"),
        (figures.count, None, figures.NONE),
        (figures.money, 0, "$0"),
        (figures.money, 910, "$0.00091"),
        (figures.money, 4_900, "$0.0049"),
        (figures.money, 486_200, "$0.49"),
        (figures.money, 1_234_567_890, "$1,234.57"),
        (figures.milliseconds, 4.25, "4.2 ms"),
        (figures.milliseconds, 1_260, "1.26 s"),
        (figures.milliseconds, 40_000, "40 s"),
        (figures.milliseconds, 40_400, "40.4 s"),
        (figures.milliseconds, 95_000, "1 min 35 s"),
        (figures.share, 0.0123, "1.2 %"),
        (figures.share, 1, "100 %"),
        (figures.size, 64 * 1024 * 1024, "64.0 MiB"),
    ],
)
def test_figures_are_told_with_their_units(show, value, words: str) -> None:
    assert show(value) == words


def test_a_change_is_told_against_what_was() -> None:
    assert figures.change(110, 100) == "+10 %"
    assert figures.change(100.1, 100) == "±0 %"
    assert figures.change(5, 0) is None
    assert figures.change(2200, 100) == "\N{MULTIPLICATION SIGN}22"
