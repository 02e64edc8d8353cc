"""`fairlead cost`: the spending, as bars."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple

import typer

from fairlead.cli.commands.usage import FIELDS, name_groups
from fairlead.cli.money import total_of
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import print_message, show_json
from fairlead.cli.printable import printable
from fairlead.cli.span import Since, since_parameter

_PAGE: Final = 500
_LABEL_CHARS: Final = 40
_PIPED_WIDTH: Final = 100
_BAR: Final = "█"
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"


class CostGroup(StrEnum):
    """How costs are grouped."""

    DAY = "day"
    MODEL = "model"
    KEY = "key"
    PROVIDER = "provider"


def cost(
    by: Annotated[CostGroup, typer.Option(help="How to group costs.")] = CostGroup.DAY,
    since: Since = "30d",
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Show costs by day, model, key or provider."""
    from fairlead.cli.instance import Instance

    start = since_parameter(since)
    with Instance(url, data_dir) as instance:
        rows: list[dict[str, Any]] = []
        while True:
            page = instance.get(
                "/api/usage/history",
                groupBy=by.value,
                limit=_PAGE,
                offset=len(rows),
                **{"from": start},
            )
            rows += page["history"]
            if not page["history"] or len(rows) >= page["total"]:
                break
        if as_json:
            show_json({**page, "history": rows, "limit": len(rows), "offset": 0})
            return
        name_groups(instance, rows, [by.value])
    sums = [
        CostSum(
            _label(row[FIELDS[by.value]], by),
            int(row["costUsdMicros"]),
            int(row["unpricedRequests"]),
        )
        for row in rows
    ]
    sums.sort(
        key=(lambda each: each.label) if by is CostGroup.DAY else (lambda each: -each.usd_micros)
    )
    for line in bars(sums, _width()):
        print(line)
    if not sums:
        print_message("Nothing was called in that time.")
        return
    whole = total_of(sum(each.usd_micros for each in sums), sum(each.unpriced for each in sums))
    print_message(f"{whole} since {page['from']}.")


class CostSum(NamedTuple):
    """The cost of a group in micro-dollars, and its requests without a price, which are not in it."""

    label: str
    usd_micros: int
    unpriced: int = 0


def bars(sums: list[CostSum], width: int) -> list[str]:
    """A line for each sum: its label, a bar as long as its share of the largest, and the money; all of one width."""
    labels = [_clipped(printable(each.label)) for each in sums]
    moneys = [total_of(each.usd_micros, each.unpriced) for each in sums]
    label_width = max(map(len, labels), default=0)
    money_width = max(map(len, moneys), default=0)
    bar_width = max(width - label_width - money_width - 2, 1)
    most = max((each.usd_micros for each in sums), default=0)
    return [
        f"{label:<{label_width}} {_bar(each.usd_micros, most, bar_width):<{bar_width}} {money:>{money_width}}"
        for label, money, each in zip(labels, moneys, sums, strict=True)
    ]


def _bar(value: int, most: int, bar_width: int) -> str:
    if most <= 0 or value <= 0:
        return ""
    # Whole arithmetic: a sum that is not zero is seen, however small.
    eighths = max(value * bar_width * 8 // most, 1)
    whole, rest = divmod(eighths, 8)
    return _BAR * whole + (_EIGHTHS[rest] if rest else "")


def _label(value: Any, by: CostGroup) -> str:
    if value is None:
        return "no key" if by is CostGroup.KEY else "unknown"
    return str(value)[:10] if by is CostGroup.DAY else str(value)


def _clipped(label: str) -> str:
    return label if len(label) <= _LABEL_CHARS else label[: _LABEL_CHARS - 1] + "…"


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPED_WIDTH
