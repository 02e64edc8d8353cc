"""Sums and percentiles of the last moments, from the requests themselves.

A statement over rollups and their ragged ends is planned for longer than it takes to read the requests of
a minute.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.store.file import Connection
from fairlead.usage.figures.unpriced import IS_UNPRICED
from fairlead.usage.sums.rollup import bounded_sum
from fairlead.usage.sums.span import Span

LONGEST_MS: Final = 125_000
"""Two minutes, and the time that a question about them takes from a caller who said when they began."""
SHARES: Final = (50, 95, 99)

_SUMMED: Final = (
    "tokens_input",
    "tokens_output",
    "tokens_cached",
    "tokens_reasoning",
    "tokens_cache_write",
    "cost_usd_micros",
    "latency_us",
)
_PARTS: Final = ", ".join(str(share / 100) for share in SHARES)
_SUMS: Final = f"""
SELECT count(*), count(*) FILTER (outcome <> 'completed'), {", ".join(map(bounded_sum, _SUMMED))},
    count(*) FILTER ({IS_UNPRICED}),
    quantile_disc(latency_us, [{_PARTS}]), quantile_disc(chosen_ms, [{_PARTS}]),
    quantile_disc(latency_ms - chosen_ms, [{_PARTS}]) FILTER (attempts > 0)
FROM (SELECT *, round(latency_ms * 1000)::BIGINT AS latency_us FROM requests)
WHERE ts_ms >= ? AND ts_ms < ?
"""
_BY_CONNECTION: Final = f"""
SELECT connection_id, count(*), {bounded_sum("tokens_input + tokens_output")} FROM requests
WHERE ts_ms >= ? AND connection_id IS NOT NULL GROUP BY connection_id
"""


def read_recent(con: Connection, span: Span) -> dict[str, Any] | None:
    """The measures of a short span, with percentiles in microseconds, and in milliseconds those of the time until a
    request's targets were chosen and of the time from there on, where a provider was asked; None where nothing was
    requested.
    """
    until_ms = span.until_ms if not span.is_open else 1 << 62
    row = con.execute(_SUMS, [span.from_ms, until_ms]).fetchone()
    if row is None or not row[0]:
        return None
    requests, errors, *sums, unpriced, of_whole, of_choice, of_providers = row
    latencies = {}
    for name, values in (
        ("latency_us", of_whole),
        ("chosen_ms", of_choice),
        ("provider_ms", of_providers),
    ):
        for share, value in zip(SHARES, values or (None,) * len(SHARES), strict=True):
            latencies[f"p{share}_{name}"] = value
    return {
        "requests": requests,
        "errors": errors,
        "unpriced_requests": unpriced,
        **dict(zip(_SUMMED, sums, strict=True)),
        **latencies,
    }


def read_recent_by_connection(con: Connection, from_ms: int) -> dict[str, tuple[int, int]]:
    """Requests and tokens of each connection since this time, UTC milliseconds."""
    rows = con.execute(_BY_CONNECTION, [from_ms]).fetchall()
    return {row[0]: (int(row[1]), int(row[2])) for row in rows}
