"""The cache of maps, for each key its own. Bounded by number and by bytes."""

from __future__ import annotations

import hashlib
from dataclasses import astuple, dataclass
from typing import Final

import orjson

from fairlead.scrape.requests.site import MapRequest
from fairlead.store.file import Connection

ROWS_MAX: Final = 1000
BYTES_MAX: Final = 128 * 1024 * 1024
OWNER_BYTES_MAX: Final = 32 * 1024 * 1024

_COLUMNS: Final = "key, owner, url, size_bytes, stored_at_ms, expires_at_ms, document"


@dataclass(frozen=True, slots=True)
class CachedMap:
    """A map in the cache. `key` is `map_key`; `document` is JSON text."""

    key: str
    owner: str
    url: str
    size_bytes: int
    stored_at_ms: int
    expires_at_ms: int
    document: str


@dataclass(frozen=True, slots=True)
class MapCacheStats:
    """How many maps of one key are in the cache, and their bytes."""

    count: int
    size_bytes: int


def map_key(owner: str, url: str, body: MapRequest) -> str:
    """The hash of the key, the address and every field that changes the answer."""
    options = body.model_dump(exclude={"url", "skip_cache", "cache_ttl", "timeout_ms"})
    text = orjson.dumps([owner, url, options], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()


def find_map(con: Connection, key: str, at_ms: int) -> CachedMap | None:
    """The map, while it is fresh."""
    row = con.execute(
        f"SELECT {_COLUMNS} FROM scrape_maps WHERE key = ? AND expires_at_ms > ?", [key, at_ms]
    ).fetchone()
    return None if row is None else CachedMap(*row)


def store_map(con: Connection, entry: CachedMap) -> None:
    """Stores a map in place of an earlier one and drops the oldest beyond the bounds, in the writer."""
    con.execute("DELETE FROM scrape_maps WHERE key = ?", [entry.key])
    con.execute(
        f"INSERT INTO scrape_maps ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", list(astuple(entry))
    )
    sweep_maps(con, entry.stored_at_ms)


def map_stats(con: Connection, owner: str, at_ms: int) -> MapCacheStats:
    """Number and bytes of an owner's fresh maps."""
    count, size = con.execute(
        "SELECT count(*), coalesce(sum(size_bytes), 0) FROM scrape_maps "
        "WHERE owner = ? AND expires_at_ms > ?",
        [owner, at_ms],
    ).fetchone() or (0, 0)
    return MapCacheStats(int(count), int(size))


def forget_maps(con: Connection, owner: str, url: str | None) -> int:
    """Drops an owner's maps of one address, or all of them, in the writer; how many."""
    done = con.execute(
        "DELETE FROM scrape_maps WHERE owner = ? AND (?::VARCHAR IS NULL OR url = ?) RETURNING 1",
        [owner, url, url],
    )
    return len(done.fetchall())


def sweep_maps(con: Connection, at_ms: int) -> None:
    """Drops stale maps, and the oldest beyond `ROWS_MAX`, `BYTES_MAX` and `OWNER_BYTES_MAX`, in the
    writer.
    """
    con.execute("DELETE FROM scrape_maps WHERE expires_at_ms <= ?", [at_ms])
    con.execute(
        "DELETE FROM scrape_maps WHERE key IN (SELECT key FROM (SELECT key, "
        "row_number() OVER newest AS place, sum(size_bytes) OVER newest AS bytes, "
        "sum(size_bytes) OVER own AS own_bytes FROM scrape_maps WINDOW "
        "newest AS (ORDER BY stored_at_ms DESC, key), "
        "own AS (PARTITION BY owner ORDER BY stored_at_ms DESC, key)) AS placed "
        "WHERE place > ? OR bytes > ? OR own_bytes > ?)",
        [ROWS_MAX, BYTES_MAX, OWNER_BYTES_MAX],
    )
