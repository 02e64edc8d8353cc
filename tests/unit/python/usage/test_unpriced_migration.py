"""Requests without a price that were stored before rollups counted them: the migration counts them too."""

from __future__ import annotations

import shutil
from pathlib import Path

from fairlead.store.file import Connection, open_file
from fairlead.store.prepare import MIGRATIONS
from fairlead.usage.sums.rollup import BUCKET_MS, DIMENSIONS, ROLLUPS
from tests.support.records import usage_record
from tests.support.rollups import assert_levels_agree

START_MS = 1_800_000_000_000
BEFORE = 12
"""The version before the migration."""


def _fill(con: Connection) -> None:
    """Requests and their rollups, as the version before stored them."""
    columns = {row[0] for row in con.execute("DESCRIBE requests").fetchall()}
    for at, tiers in enumerate(["unpriced", "flex,unpriced", None, "cached_input", "unpriced"]):
        fields = {"ts_ms": START_MS + at * 40_000, "price_tiers": tiers, "key_id": f"k{at % 2}"}
        later = usage_record(f"r{at}", **fields)
        record = {name: value for name, value in later.items() if name in columns}
        names = ", ".join(record)
        marks = ", ".join("?" for _ in record)
        con.execute(f"INSERT INTO requests ({names}) VALUES ({marks})", list(record.values()))
    names = ", ".join(DIMENSIONS)
    con.execute(
        f"INSERT INTO dimensions BY NAME SELECT row_number() OVER () AS id, {names} "
        f"FROM (SELECT DISTINCT {names} FROM request_facts)"
    )
    same = " AND ".join(f"d.{name} IS NOT DISTINCT FROM f.{name}" for name in DIMENSIONS)
    for level in ROLLUPS:
        bucket = f"f.ts_ms - f.ts_ms % {BUCKET_MS[level]} AS bucket_ms, d.id AS dimension_id"
        known = [row[0] for row in con.execute(f"DESCRIBE rollup_{level}").fetchall()]
        sums = ", ".join(f"f.{name}" for name in known[3:])
        con.execute(
            f"INSERT INTO rollup_{level} BY NAME SELECT {bucket}, TRUE AS is_delta, {sums} "
            f"FROM request_facts f JOIN dimensions d ON {same}"
        )
        con.execute(
            f"INSERT INTO histogram_{level} BY NAME SELECT {bucket}, TRUE AS is_delta, f.measure, "
            "f.bin, 1 AS requests, f.value AS total "
            f"FROM request_values f JOIN dimensions d ON {same}"
        )


def _older_schema(folder: Path) -> Path:
    folder.mkdir()
    for path in sorted((MIGRATIONS / "usage").glob("*.sql"))[:BEFORE]:
        shutil.copy(path, folder)
    return folder


def test_stored_requests_without_a_price_are_counted_at_every_level(tmp_path: Path) -> None:
    path = tmp_path / "usage.duckdb"
    older = open_file(path, _older_schema(tmp_path / "older"))
    _fill(older)
    older.close()
    con = open_file(path, MIGRATIONS / "usage")
    try:
        assert_levels_agree(con)
        for level in ROLLUPS:
            rows = con.execute(f"SELECT sum(unpriced_requests) FROM rollup_{level}").fetchall()
            assert rows == [(3,)], level
    finally:
        con.close()


def test_buckets_that_are_deleted_stay_deleted(tmp_path: Path) -> None:
    path = tmp_path / "usage.duckdb"
    older = open_file(path, _older_schema(tmp_path / "older"))
    _fill(older)
    kept_from_ms = START_MS + 120_000
    older.execute("DELETE FROM rollup_minute WHERE bucket_ms < ?", [kept_from_ms])
    older.execute("UPDATE kept SET from_ms = ? WHERE level = 'minute'", [kept_from_ms])
    older.close()
    con = open_file(path, MIGRATIONS / "usage")
    try:
        minute = con.execute("SELECT min(bucket_ms), sum(unpriced_requests) FROM rollup_minute")
        assert minute.fetchall() == [(kept_from_ms, 1)]
        day = con.execute("SELECT sum(unpriced_requests) FROM rollup_day")
        assert day.fetchall() == [(3,)]
    finally:
        con.close()
