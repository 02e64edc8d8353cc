"""Rollups of usage by minute, hour and day (their tables are in `store/migrations/usage`).

A round of ingestion (`intake.py`) adds the sums of its records in the transaction that adds the
records: one row for each bucket and set of dimensions, at each level. A bucket may have many such
rows, and readers sum over them, so that late or partial records count like any other. Rows of one
bucket are merged once it is closed, or when there are many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, Literal

from fairlead.moment import now_ms
from fairlead.store.database import Database
from fairlead.store.file import Connection
from fairlead.store.table import read_number

Level = Literal["requests", "minute", "hour", "day"]
RollupLevel = Literal["minute", "hour", "day"]

# Length of a bucket in milliseconds. The records themselves are the finest level.
BUCKET_MS: Final[dict[Level, int]] = {
    "requests": 1,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
}
ROLLUPS: Final[tuple[RollupLevel, ...]] = ("minute", "hour", "day")

DIMENSIONS: Final = (
    "key_id",
    "endpoint",
    "provider",
    "connection_id",
    "model",
    "upstream_model",
    "combo",
    "strategy",
    "group_path",
    "tags",
)
SUMS: Final = (
    "requests",
    "let_through",
    "errors",
    "attempts",
    "tokens_input",
    "tokens_output",
    "tokens_cached",
    "tokens_reasoning",
    "tokens_cache_write",
    "cost_usd_micros",
    "unpriced_requests",
    "cost_saved_usd_micros",
    "cache_hits",
    "cache_misses",
    "latency_us",
    "ok_latency_us",
    "ttft_us",
    "ttft_requests",
    "generation_us",
    "generation_tokens",
    "warm_calls",
    "cold_calls",
    "rewrite_calls",
    "uncached_calls",
)
MAXES: Final = ("cache_write_max", "last_ts_ms")

# The largest sum that is stored or shown. A sum of sums still fits 128 bits, and one impossible
# figure
# must not make everybody else's usage unreadable.
SUM_MAX: Final = 10**18


def bounded_sum(column: str) -> str:
    """SQL of a sum that never fails: one that leaves the bounds stays at them."""
    return f"greatest(least(sum({column}), {SUM_MAX}), -{SUM_MAX})::BIGINT"


# SQL of every measure of a bin, over rows of histograms.
HISTOGRAM_SUMS: Final = f"{bounded_sum('requests')} AS requests, {bounded_sum('total')} AS total"
HISTOGRAM_MEASURES: Final = f"measure, bin, {HISTOGRAM_SUMS}"

# Width of a histogram's bins: the ratio of a bin's greatest value to its least.
BIN_WIDTH: Final = 1.02

# Time after a bucket's end when its rows are merged; hardly any record comes later.
MERGE_AFTER_MS: Final = 120_000
# Rows of an open bucket above which they are merged.
MERGE_ABOVE_ROWS: Final = 20_000
# Rows that one transaction merges, about.
MERGE_ROWS: Final = 100_000
WRITE_DEADLINE_S: Final = 60.0


def measures(wanted: Sequence[str] = (*SUMS, *MAXES)) -> str:
    """SQL of measures of a group, over rows of facts or of rollups."""
    return ", ".join(
        f"{f'max({name})' if name in MAXES else bounded_sum(name)} AS {name}" for name in wanted
    )


async def merge_rollups(usage: Database, at_ms: int | None = None) -> int:
    """Merges the rows that may be merged at this time; returns by how many rows the tables shrank.
    Each transaction is short, so that ingestion never waits long.
    """
    at = now_ms() if at_ms is None else at_ms
    fewer = 0
    for level in ROLLUPS:
        for table, columns in (
            (f"rollup_{level}", measures()),
            (
                f"histogram_{level}",
                HISTOGRAM_MEASURES,
            ),
        ):
            closed_ms = at - MERGE_AFTER_MS - BUCKET_MS[level]
            dirty = await usage.read(partial(_dirty_buckets, table=table, closed_ms=closed_ms))
            for buckets in _rounds(dirty):
                work = partial(_merge, table=table, columns=columns, buckets=buckets)
                fewer += await usage.write(work, deadline_s=WRITE_DEADLINE_S)
    return fewer


def _dirty_buckets(con: Connection, table: str, closed_ms: int) -> list[tuple[int, int]]:
    """Buckets to merge, oldest first, and the number of new rows in each."""
    return con.execute(
        f"SELECT bucket_ms, count(*) FROM {table} WHERE is_delta GROUP BY bucket_ms "
        "HAVING bucket_ms <= ? OR count(*) > ? ORDER BY bucket_ms",
        [closed_ms, MERGE_ABOVE_ROWS],
    ).fetchall()


def _rounds(dirty: list[tuple[int, int]]) -> Iterator[list[int]]:
    """Buckets for one transaction each: few rows, or one bucket however many it has."""
    buckets: list[int] = []
    rows = 0
    for bucket_ms, count in dirty:
        if buckets and rows + count > MERGE_ROWS:
            yield buckets
            buckets, rows = [], 0
        buckets.append(bucket_ms)
        rows += count
    if buckets:
        yield buckets


def _merge(con: Connection, table: str, columns: str, buckets: list[int]) -> int:
    # Buckets of one round are close in time, so the range leaves most of the table unread.
    chosen = f"FROM {table} WHERE bucket_ms BETWEEN ? AND ? AND bucket_ms IN (SELECT unnest(?))"
    bound = [buckets[0], buckets[-1], buckets]
    # Inserted rows come after every existing row. A temporary table would be simpler,
    # but would make ingestion plan its statements again in each round.
    last = con.execute(f"SELECT max(rowid) {chosen}", bound).fetchone()
    after = con.execute(
        f"INSERT INTO {table} BY NAME SELECT bucket_ms, dimension_id, FALSE AS is_delta, {columns} "
        f"{chosen} GROUP BY ALL ORDER BY bucket_ms",
        bound,
    ).fetchone()
    before = con.execute(
        f"DELETE {chosen} AND rowid <= ?", [*bound, last[0] if last else None]
    ).fetchone()
    return int(before[0]) - int(after[0]) if before and after else 0


async def delete_rollups_before(usage: Database, level: RollupLevel, kept_from_ms: int) -> int:
    """Deletes a level's buckets that end before this time, oldest first, one day in each
    transaction; returns the number of rows.
    """
    from_ms = kept_from_ms - kept_from_ms % BUCKET_MS[level]

    def oldest(con: Connection) -> int | None:
        row = con.execute(f"SELECT min(bucket_ms) FROM rollup_{level}").fetchone()
        return None if row is None or row[0] is None else int(row[0])

    deleted = 0
    while (start_ms := await usage.read(oldest)) is not None and start_ms < from_ms:
        until_ms = min(from_ms, start_ms - start_ms % BUCKET_MS["day"] + BUCKET_MS["day"])
        work = partial(_delete_before, level=level, until_ms=until_ms)
        deleted += await usage.write(work, deadline_s=WRITE_DEADLINE_S)
    return deleted


def _delete_before(con: Connection, level: RollupLevel, until_ms: int) -> int:
    deleted = 0
    for table in (f"rollup_{level}", f"histogram_{level}"):
        deleted += read_number(con, f"DELETE FROM {table} WHERE bucket_ms < ?", [until_ms])
    keep_from(con, level, until_ms)
    return deleted


async def forget_dimensions(usage: Database) -> None:
    """Deletes dimensions that no rollup uses."""
    await usage.write(
        lambda con: con.execute(
            "DELETE FROM dimensions WHERE id NOT IN (SELECT dimension_id FROM rollup_day "
            "UNION ALL SELECT dimension_id FROM rollup_hour "
            "UNION ALL SELECT dimension_id FROM rollup_minute)"
        ).fetchall(),
        deadline_s=WRITE_DEADLINE_S,
    )


def keep_from(con: Connection, level: Level, from_ms: int) -> None:
    """Stores from which time on a level is complete, in the writer."""
    con.execute(
        "UPDATE kept SET from_ms = ? WHERE level = ? AND from_ms < ?", [from_ms, level, from_ms]
    )


def read_kept(con: Connection) -> dict[Level, int]:
    """The time from which each level is complete, UTC milliseconds."""
    return dict(con.execute("SELECT level, from_ms FROM kept").fetchall())
