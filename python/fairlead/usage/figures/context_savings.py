"""Tokens and money that were saved by making conversations shorter, from the log of requests."""

from __future__ import annotations

from typing import Any, Final, Literal

from fairlead.store.connection import Result
from fairlead.store.file import Connection
from fairlead.usage.sums.span import Span

Group = Literal["pipeline", "key", "model", "day"]

_GROUPS: Final[dict[Group, str]] = {
    "pipeline": "compression",
    "key": "key_id",
    "model": "coalesce(upstream_model, model)",
    "day": "strftime(make_timestamp(ts_ms * 1000), '%Y-%m-%d')",
}
_WHERE: Final = "compression IS NOT NULL AND ts_ms >= $from_ms AND ts_ms < $until_ms"
_SUMS: Final = (
    "count(*) AS requests, "
    "count(*) FILTER (compression_tokens_after < compression_tokens_before) AS shortened, "
    "coalesce(sum(compression_tokens_before), 0)::BIGINT AS tokens_before, "
    "coalesce(sum(compression_tokens_after), 0)::BIGINT AS tokens_after, "
    "coalesce(sum(compression_saved_usd_micros), 0)::BIGINT AS saved_usd_micros, "
    "coalesce(avg(compression_ms), 0)::DOUBLE AS mean_ms"
)
GROUPS_MAX: Final = 1_000


def read_savings(con: Connection, span: Span, group: Group) -> list[dict[str, Any]]:
    """A row for each group, the one that saved most first; at most `GROUPS_MAX`."""
    found = con.execute(
        f"SELECT {_GROUPS[group]} AS name, {_SUMS} FROM requests WHERE {_WHERE} "
        f"GROUP BY 1 ORDER BY tokens_before - tokens_after DESC, name LIMIT {GROUPS_MAX}",
        {"from_ms": span.from_ms, "until_ms": span.until_ms},
    )
    return _rows(found)


def read_total(con: Connection, span: Span) -> dict[str, Any]:
    """The sums over all requests of the span."""
    found = con.execute(
        f"SELECT {_SUMS} FROM requests WHERE {_WHERE}",
        {"from_ms": span.from_ms, "until_ms": span.until_ms},
    )
    return _rows(found)[0]


def read_rejections(con: Connection, span: Span) -> dict[str, int]:
    """How often texts stayed as they were, by `engine:reason`."""
    rows = con.execute(
        "SELECT split_part(part, '=', 1), sum(coalesce(try_cast(split_part(part, '=', 2) AS BIGINT), 1))::BIGINT "
        "FROM (SELECT unnest(string_split(compression_rejected, ',')) AS part FROM requests "
        f"WHERE {_WHERE} AND compression_rejected IS NOT NULL) GROUP BY 1 ORDER BY 1",
        {"from_ms": span.from_ms, "until_ms": span.until_ms},
    ).fetchall()
    return {str(name): int(count) for name, count in rows}


def _rows(found: Result) -> list[dict[str, Any]]:
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
