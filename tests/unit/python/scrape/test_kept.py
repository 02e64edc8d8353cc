"""What is kept for a while: how long, for whom, and no more than there is room for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.scrape.css import table as css_table
from fairlead.scrape.css.table import KEPT_MS, find_css_schema, store_css_schema, sweep_css_schemas
from fairlead.scrape.map import cache as map_cache
from fairlead.scrape.map.cache import CachedMap, find_map, map_stats, store_map
from fairlead.scrape.saved import template
from fairlead.store.database import Database
from tests.support.databases import open_fresh_database

pytestmark = pytest.mark.anyio


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await asyncio.to_thread(open_fresh_database, tmp_path, "state")
    yield opened
    await opened.close()


def kept(key: str, at_ms: int, size_bytes: int = 10) -> CachedMap:
    return CachedMap(key, "k1", f"http://{key}.example/", size_bytes, at_ms, at_ms + 1000, "{}")


async def test_selectors_hold_for_a_week(database: Database) -> None:
    schema: dict[str, Any] = {"baseSelector": "li", "fields": []}
    await database.write(lambda con: store_css_schema(con, "a", "k1", schema, 0))
    assert await database.read(lambda con: find_css_schema(con, "a", KEPT_MS - 1)) == schema
    assert await database.read(lambda con: find_css_schema(con, "a", KEPT_MS)) is None


async def test_selectors_are_bounded(database: Database, monkeypatch: Any) -> None:
    monkeypatch.setattr(css_table, "ROWS_MAX", 2)
    for n in range(4):
        await database.write(lambda con, n=n: store_css_schema(con, str(n), "k1", {}, n))
    await database.write(lambda con: sweep_css_schemas(con, 10))
    left = await database.read(
        lambda con: con.execute("SELECT key FROM scrape_css_schemas ORDER BY key").fetchall()
    )
    assert left == [("2",), ("3",)]


async def test_maps_are_bounded_by_number_and_weight(database: Database, monkeypatch: Any) -> None:
    monkeypatch.setattr(map_cache, "ROWS_MAX", 3)
    for n in range(5):
        await database.write(lambda con, n=n: store_map(con, kept(str(n), n)))
    stats = await database.read(lambda con: map_stats(con, "k1", 5))
    assert (stats.count, stats.size_bytes) == (3, 30)
    monkeypatch.setattr(map_cache, "BYTES_MAX", 25)
    await database.write(lambda con: store_map(con, kept("new", 6)))
    assert (await database.read(lambda con: map_stats(con, "k1", 6))).size_bytes == 20
    assert await database.read(lambda con: find_map(con, "new", 6)) is not None
    assert await database.read(lambda con: find_map(con, "new", 1006)) is None


@pytest.mark.parametrize(
    ("url", "values", "filled"),
    [
        (
            "http://a.example/{x}",
            {"x": "a b/c?d#e&f=%"},
            "http://a.example/a%20b%2Fc%3Fd%23e%26f%3D%25",
        ),
        ("http://a.example/?q={x}&n=1", {"x": "a&n=2#"}, "http://a.example/?q=a%26n%3D2%23&n=1"),
        ("http://a.example/{x}", {"x": "@evil.example"}, "http://a.example/%40evil.example"),
        ("http://a.example/{x}", {"x": "{x}"}, "http://a.example/%7Bx%7D"),
        ("http://a.example/../{x}", {"x": "..."}, "http://a.example/../..."),
    ],
)
async def test_a_value_stays_in_its_place(url: str, values: dict[str, str], filled: str) -> None:
    assert template.fill(url, {"x": None}, values, place="params") == filled


@pytest.mark.parametrize(
    "url", ["http://a.example/{x}", "http://a.example/b/{x}{x}/c", "http://a.example/.{x}"]
)
async def test_a_value_makes_no_step_up(url: str) -> None:
    with pytest.raises(template.InvalidRequest, match="must not become"):
        template.fill(
            url, {"x": None}, {"x": "." if url.endswith(("c", ".{x}")) else ".."}, place="params"
        )
