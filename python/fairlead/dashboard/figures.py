"""Figures as people read them. The template or the figure itself adds the unit."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from fairlead.moment import now_ms
from fairlead.money import without_price

NO_PRICE: Final = "no price"
NONE: Final = "\N{EN DASH}"
_THOUSANDS: Final = ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k"))


def count(value: float | None) -> str:
    """A number in few digits: 987, 12.4k, 3.1M."""
    if value is None:
        return NONE
    for size, letter in _THOUSANDS:
        if abs(value) >= size:
            scaled = value / size
            return f"{scaled:.0f}{letter}" if abs(scaled) >= 100 else f"{scaled:.1f}{letter}"
    if value == int(value):
        return f"{int(value)}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def exact(value: float | None) -> str:
    """Every digit, in groups of three."""
    return NONE if value is None else f"{value:,}"


def money(micros: float | None) -> str:
    """Micro-dollars as dollars: cents from one dollar on, and as many digits as a small sum needs."""
    if micros is None:
        return NONE
    usd = micros / 1_000_000
    if usd == 0:
        return "$0"
    if abs(usd) >= 100_000:
        return f"${usd:,.0f}"
    if abs(usd) >= 0.1:
        return f"${usd:,.2f}"
    if abs(usd) >= 0.001:
        return f"${usd:.4f}"
    # Two digits that count, of at least a micro-dollar.
    return f"${usd:.5f}" if abs(usd) >= 0.0001 else f"${usd:.6f}"


def cost(row: Mapping[str, Any]) -> str:
    """The cost of a request. Without a price the cost is unknown: that is a word and not zero."""
    return sum_of(row["costUsdMicros"], is_unpriced=row["isUnpriced"])


def sum_of(micros: float | None, *, is_unpriced: bool) -> str:
    """A sum of money that may leave something out which has no price."""
    if not is_unpriced:
        return money(micros)
    return f"{money(micros)} + {NO_PRICE}" if micros else NO_PRICE


def total(row: Mapping[str, Any]) -> str:
    """The cost of a group of requests, and how many of them have no price and are not in it."""
    return total_of(row["costUsdMicros"], row["unpricedRequests"])


def total_of(micros: float, unpriced: int) -> str:
    """Like `total`. A group without any known cost is not shown as $0."""
    left_out = without_price(unpriced)
    return money(micros) + left_out if micros or not unpriced else left_out.removeprefix(" + ")


def milliseconds(value: float | None) -> str:
    """A duration with its unit."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    # As it is rounded: 999.6 ms are a second.
    if round(value) >= 1000:
        value = max(value, 1000)
    if value >= 60_000:
        minutes, rest = divmod(round(value / 1000), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    if value >= 1000:
        if value < 10_000:
            return f"{value / 1000:.2f} s"
        return f"{f'{value / 1000:.1f}'.removesuffix('.0')} s"
    if value < 0.1:
        return f"{value * 1000:.0f} µs"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def share(value: float | None) -> str:
    """A part of one as per cent."""
    if value is None:
        return NONE
    per_cent = value * 100
    return f"{per_cent:.0f} %" if per_cent in (0, 100) else f"{per_cent:.1f} %"


def size(value: float | None) -> str:
    """Bytes."""
    if value is None:
        return NONE
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def parse_time(text: str) -> datetime:
    """A time of the API's answers."""
    return datetime.fromisoformat(text).astimezone(UTC)


def moment(text: str | None) -> str:
    """A time in UTC to the second."""
    return NONE if text is None else f"{parse_time(text):%Y-%m-%d %H:%M:%S}"


def seconds(at_s: int | None) -> str:
    """A time that is given in seconds since 1970, in UTC."""
    return NONE if at_s is None else f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S}"


def ago(text: str | None) -> str:
    """How long ago, or how far ahead, a time is."""
    if text is None:
        return "never"
    seconds = (now_ms() - parse_time(text).timestamp() * 1000) / 1000
    ahead = seconds < 0
    words = _length(abs(seconds))
    return f"in {words}" if ahead else "just now" if abs(seconds) < 5 else f"{words} ago"


def _length(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"


def short(text: str | None, most: int = 13) -> str:
    """The beginning of an id."""
    if text is None:
        return NONE
    return text if len(text) <= most else f"{text[:most]}…"


def indented(text: str) -> str:
    """JSON over several lines; another text as it is."""
    try:
        return orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2).decode()
    except orjson.JSONDecodeError:
        return text


def capitalize_first(text: str) -> str:
    """The text with a capital letter at its start; the rest stays as it is."""
    return text[:1].upper() + text[1:]


def change(now: float, before: float) -> str | None:
    """How much more or less this is than before; None where there was nothing before."""
    if not before:
        return None
    per_cent = (now - before) / before * 100
    if abs(per_cent) >= 1000:
        return f"\N{MULTIPLICATION SIGN}{now / before:.0f}" if now > before else "-100 %"
    return f"{per_cent:+.0f} %" if abs(per_cent) >= 0.5 else "±0 %"
