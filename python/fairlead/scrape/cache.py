"""The cache of scraped pages, for each key its own. Bounded by rows and by bytes, with a share for each key."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Final

from fairlead.store.file import Connection

ROWS_MAX: Final = 5000
# One owner has at most this part (1/4) of the bytes.
OWNER_SHARE: Final = 4
STALE_KEPT_MS: Final = 7 * 86_400_000

_COLUMNS = (
    "key, owner, url, final_url, status, etag, last_modified, stored_at_ms, expires_at_ms, document"
)


@dataclass(frozen=True, slots=True)
class CachedPage:
    """A page in the cache. `key` is `scraper.cache_key`; `document` is JSON text. A stale copy still has what a
    conditional request needs.
    """

    key: str
    owner: str
    url: str
    final_url: str
    status: int
    etag: str | None
    last_modified: str | None
    stored_at_ms: int
    expires_at_ms: int
    document: str

    def renewed(self, expires_at_ms: int) -> CachedPage:
        """A copy of this row that expires later."""
        return replace(self, expires_at_ms=expires_at_ms)


def find_cached(con: Connection, key: str) -> CachedPage | None:
    """The copy, fresh or stale."""
    row = con.execute(f"SELECT {_COLUMNS} FROM scrape_cache WHERE key = ?", [key]).fetchone()
    return None if row is None else CachedPage(*row)


def store_cached(con: Connection, cached: CachedPage, most_bytes: int) -> None:
    """Stores a copy in place of an earlier one and drops the oldest beyond `most_bytes`, in the writer. A copy that
    is larger than its owner's share is not stored.
    """
    con.execute("DELETE FROM scrape_cache WHERE key = ?", [cached.key])
    size = len(cached.document.encode())
    if size > most_bytes // OWNER_SHARE:
        return
    con.execute(
        f"INSERT INTO scrape_cache ({_COLUMNS}, size_bytes) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [*astuple(cached), size],
    )
    own, all_ = con.execute(
        "SELECT coalesce(sum(size_bytes) FILTER (WHERE owner = ?), 0), coalesce(sum(size_bytes), 0) "
        "FROM scrape_cache",
        [cached.owner],
    ).fetchone() or (0, 0)
    if own > most_bytes // OWNER_SHARE or all_ > most_bytes:
        _drop_oldest(con, most_bytes)


def forget_cached(con: Connection, owner: str, url: str | None) -> int:
    """Drops an owner's copies of one address, or all; returns the number."""
    if url is None:
        done = con.execute("DELETE FROM scrape_cache WHERE owner = ? RETURNING 1", [owner])
    else:
        done = con.execute(
            "DELETE FROM scrape_cache WHERE owner = ? AND (url = ? OR final_url = ?) RETURNING 1",
            [owner, url, url],
        )
    return len(done.fetchall())


def sweep_cache(con: Connection, at_ms: int, most_bytes: int) -> None:
    """Drops copies that are long stale, and the oldest beyond `ROWS_MAX` and the bytes, in the writer."""
    con.execute("DELETE FROM scrape_cache WHERE expires_at_ms < ?", [at_ms - STALE_KEPT_MS])
    _drop_oldest(con, most_bytes)


def _drop_oldest(con: Connection, most_bytes: int) -> None:
    con.execute(
        "DELETE FROM scrape_cache WHERE key IN (SELECT key FROM (SELECT key, "
        "row_number() OVER newest AS place, sum(size_bytes) OVER newest AS bytes, "
        "sum(size_bytes) OVER own AS own_bytes FROM scrape_cache WINDOW "
        "newest AS (ORDER BY stored_at_ms DESC, key), "
        "own AS (PARTITION BY owner ORDER BY stored_at_ms DESC, key)) AS placed "
        "WHERE place > ? OR bytes > ? OR own_bytes > ?)",
        [ROWS_MAX, most_bytes, most_bytes // OWNER_SHARE],
    )
