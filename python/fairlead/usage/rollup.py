"""Usage rolled up by minute, hour and day (`0003_rollups.sql`).

A round of ingestion adds what its records come to, in the transaction that adds the records: one row
for each bucket and set of dimensions, at each level. A bucket may have many such rows, and whoever
reads sums over them, so that what comes late or piecemeal is counted like anything else. Rows of one
bucket are merged once it is closed, or when there are many.
"""

from __future__ import annotations

from typing import Final, Literal

from fairlead.moment import now_ms
from fairlead.store.database import Database
from fairlead.store.file import Connection

Level = Literal["requests", "minute", "hour", "day"]
RollupLevel = Literal["minute", "hour", "day"]

# The length of a bucket, milliseconds. The records themselves are the finest level.
BUCKET_MS: Final[dict[Level, int]] = {
    "requests": 1,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
}
ROLLUPS: Final[tuple[RollupLevel, ...]] = ("minute", "hour", "day")

DIMENSIONS: Final = (
    "key_id", "endpoint", "provider", "connection_id", "model", "upstream_model", "combo",
    "strategy",
)  # fmt: skip
SUMS: Final = (
    "requests", "let_through", "errors", "attempts", "tokens_input", "tokens_output",
    "tokens_cached", "tokens_reasoning", "tokens_cache_write", "cost_usd_micros",
    "cost_saved_usd_micros", "cache_hits", "cache_misses", "latency_us", "ok_latency_us", "ttft_us",
    "ttft_requests", "generation_us", "generation_tokens", "warm_calls", "cold_calls",
    "rewrite_calls", "uncached_calls",
)  # fmt: skip
MAXES: Final = ("cache_write_max", "last_ts_ms")

# Bins of a histogram are so wide: the greatest of a bin is so many times its least.
BIN_WIDTH: Final = 1.02

# A closed bucket's rows are merged this long after its end, when hardly anything is late.
MERGE_AFTER_MS: Final = 120_000
# An open bucket's rows are merged when they are so many.
MERGE_ABOVE_ROWS: Final = 20_000
WRITE_DEADLINE_S: Final = 60.0

_NAMES = ", ".join(DIMENSIONS)
_SAME = " AND ".join(f"d.{name} IS NOT DISTINCT FROM f.{name}" for name in DIMENSIONS)


def measures(alias: str = "") -> str:
    """Every measure of a group, as SQL over rows of facts or of rollups."""
    dot = f"{alias}." if alias else ""
    sums = [f"sum({dot}{name})::BIGINT AS {name}" for name in SUMS]
    maxes = [f"max({dot}{name}) AS {name}" for name in MAXES]
    return ", ".join(sums + maxes)


_ADD_DIMENSIONS = f"""
INSERT INTO dimensions
SELECT (SELECT coalesce(max(id), 0) FROM dimensions) + row_number() OVER (), {_NAMES}
FROM (SELECT DISTINCT {_NAMES} FROM settled_facts) f
WHERE NOT EXISTS (SELECT 1 FROM dimensions d WHERE {_SAME})
"""
_FACTS = f"""
CREATE OR REPLACE TEMP TABLE settled_minutes AS
SELECT f.ts_ms - f.ts_ms % 60000 AS bucket_ms, d.id AS dimension_id, {measures("f")}
FROM settled_facts f JOIN dimensions d ON {_SAME} GROUP BY ALL
"""
_VALUES = f"""
CREATE OR REPLACE TEMP TABLE settled_bins AS
SELECT f.ts_ms - f.ts_ms % 60000 AS bucket_ms, d.id AS dimension_id, f.measure, f.bin,
    count(*) AS requests, sum(f.value)::BIGINT AS total
FROM usage_values('settled_facts') f JOIN dimensions d ON {_SAME} GROUP BY ALL
"""


def add_to_rollups(con: Connection) -> None:
    """Adds the records of the registered table `settled` to every level, in the writer."""
    con.execute("CREATE OR REPLACE TEMP TABLE settled_facts AS FROM usage_facts('settled')")
    con.execute(_ADD_DIMENSIONS)
    con.execute(_FACTS)
    con.execute(_VALUES)
    for level in ROLLUPS:
        bucket = f"bucket_ms - bucket_ms % {BUCKET_MS[level]} AS bucket_ms, dimension_id"
        con.execute(
            f"INSERT INTO rollup_{level} BY NAME "
            f"SELECT {bucket}, TRUE AS is_delta, {measures()} FROM settled_minutes GROUP BY ALL"
        )
        con.execute(
            f"INSERT INTO histogram_{level} BY NAME SELECT {bucket}, TRUE AS is_delta, measure, "
            "bin, sum(requests)::BIGINT AS requests, sum(total)::BIGINT AS total "
            "FROM settled_bins GROUP BY ALL"
        )
    for table in ("settled_facts", "settled_minutes", "settled_bins"):
        con.execute(f"DROP TABLE {table}")


async def merge_rollups(usage: Database, at_ms: int | None = None) -> int:
    """Merges what may be merged at this time; how many rows that made fewer. A transaction for each
    table, so that ingest never waits long.
    """
    at = now_ms() if at_ms is None else at_ms
    fewer = 0
    for level in ROLLUPS:
        for table, columns in (
            (f"rollup_{level}", measures()),
            (
                f"histogram_{level}",
                "measure, bin, sum(requests)::BIGINT AS requests, sum(total)::BIGINT AS total",
            ),
        ):

            def work(
                con: Connection, level: Level = level, table: str = table, columns: str = columns
            ) -> int:
                return _merge(con, level, table, columns, at)

            fewer += await usage.write(work, deadline_s=WRITE_DEADLINE_S)
    return fewer


def _merge(con: Connection, level: Level, table: str, columns: str, at_ms: int) -> int:
    closed_ms = at_ms - MERGE_AFTER_MS - BUCKET_MS[level]
    found = con.execute(
        f"SELECT bucket_ms FROM {table} WHERE is_delta GROUP BY bucket_ms "
        "HAVING bucket_ms <= ? OR count(*) > ?",
        [closed_ms, MERGE_ABOVE_ROWS],
    ).fetchall()
    if not found:
        return 0
    buckets = [row[0] for row in found]
    chosen = f"FROM {table} WHERE bucket_ms IN (SELECT unnest(?))"
    con.execute(
        "CREATE OR REPLACE TEMP TABLE merged AS "
        f"SELECT bucket_ms, dimension_id, FALSE AS is_delta, {columns} {chosen} GROUP BY ALL",
        [buckets],
    )
    before = con.execute(f"DELETE {chosen}", [buckets]).fetchone()
    after = con.execute(f"INSERT INTO {table} BY NAME FROM merged ORDER BY bucket_ms").fetchone()
    con.execute("DROP TABLE merged")
    return int(before[0]) - int(after[0]) if before and after else 0


async def delete_rollups_before(usage: Database, level: RollupLevel, kept_from_ms: int) -> int:
    """Deletes a level's buckets that end before this time; how many rows there were."""
    from_ms = kept_from_ms - kept_from_ms % BUCKET_MS[level]

    def work(con: Connection) -> int:
        deleted = 0
        for table in (f"rollup_{level}", f"histogram_{level}"):
            row = con.execute(f"DELETE FROM {table} WHERE bucket_ms < ?", [from_ms]).fetchone()
            deleted += int(row[0]) if row else 0
        keep_from(con, level, from_ms)
        return deleted

    return await usage.write(work, deadline_s=WRITE_DEADLINE_S)


async def forget_dimensions(usage: Database) -> None:
    """Deletes dimensions that no rollup has any more."""
    await usage.write(
        lambda con: con.execute(
            "DELETE FROM dimensions WHERE id NOT IN (SELECT dimension_id FROM rollup_day "
            "UNION ALL SELECT dimension_id FROM rollup_hour "
            "UNION ALL SELECT dimension_id FROM rollup_minute)"
        ).fetchall(),
        deadline_s=WRITE_DEADLINE_S,
    )


def keep_from(con: Connection, level: Level, from_ms: int) -> None:
    """Notes that a level is whole from this time on only, in the writer."""
    con.execute(
        "UPDATE kept SET from_ms = ? WHERE level = ? AND from_ms < ?", [from_ms, level, from_ms]
    )


def read_kept(con: Connection) -> dict[Level, int]:
    """From when on each level is whole, UTC milliseconds."""
    return dict(con.execute("SELECT level, from_ms FROM kept").fetchall())
