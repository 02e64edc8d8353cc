"""Active sessions: requests of the last minutes by callers' session ids and tags."""

from __future__ import annotations

from typing import Any

from fairlead.store.file import Connection
from fairlead.usage.figures.unpriced import IS_UNPRICED
from fairlead.usage.sums.rollup import bounded_sum

SESSIONS_MAX = 1000

_SESSION = "coalesce(session_tag, session_id)"


def read_sessions(con: Connection, from_ms: int) -> list[dict[str, Any]]:
    """Sessions with a request since then, the latest first, at most 1,000. A session belongs to one
    key. Sessions of keys that ask for no log are left out.
    """
    result = con.execute(
        f"""
        SELECT {_SESSION} AS session_id, key_id,
            max(session_id) IS NOT NULL AS is_sticky,
            min(ts_ms) AS first_seen_ms, max(ts_ms) AS last_seen_ms,
            count(*) AS requests,
            count(*) FILTER (outcome <> 'completed') AS errors,
            {bounded_sum("tokens_input")} AS tokens_input,
            {bounded_sum("tokens_output")} AS tokens_output,
            {bounded_sum("cost_usd_micros")} AS cost_usd_micros,
            count(*) FILTER ({IS_UNPRICED}) AS unpriced_requests,
            arg_max(model, ts_ms) AS model,
            arg_max(provider, ts_ms) AS provider,
            arg_max(connection_id, ts_ms) AS connection_id
        FROM requests
        WHERE ts_ms >= ? AND NOT no_log AND {_SESSION} IS NOT NULL
        GROUP BY {_SESSION}, key_id
        ORDER BY last_seen_ms DESC, session_id, key_id
        LIMIT ?
        """,
        [from_ms, SESSIONS_MAX],
    )
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def count_sessions(con: Connection, from_ms: int) -> dict[str | None, int]:
    """The number of sessions by key; null for callers without a key."""
    rows = con.execute(
        f"""
        SELECT key_id, count(DISTINCT {_SESSION}) FROM requests
        WHERE ts_ms >= ? AND NOT no_log AND {_SESSION} IS NOT NULL GROUP BY key_id
        """,
        [from_ms],
    ).fetchall()
    return dict(rows)
