"""Pages that were scraped, kept for whoever asked: one caller's copies are not another's."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Final

from fairlead.store.file import Connection

ROWS_MAX: Final = 5000
# Of the bytes, to one owner.
OWNER_SHARE: Final = 4
STALE_KEPT_MS: Final = 7 * 86_400_000

_COLUMNS = (
    "key, owner, url, final_url, status, etag, last_modified, stored_at_ms, expires_at_ms, document"
)


@dataclass(frozen=True, slots=True)
class CachedPage:
    """`key` is `scraper.cache_key`; `document` is JSON text. A stale copy serves to ask again."""

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
        """The same page, good for longer."""
        return replace(self, expires_at_ms=expires_at_ms)


def find_cached(con: Connection, key: str) -> CachedPage | None:
    """The copy, fresh or stale."""
    row = con.execute(f"SELECT {_COLUMNS} FROM scrape_cache WHERE key = ?", [key]).fetchone()
    return None if row is None else CachedPage(*row)


def store_cached(con: Connection, cached: CachedPage, most_bytes: int) -> None:
    """Keeps a copy in the place of an earlier one, and no more than there is room for, in the writer.
    One that is more than its owner's share alone is not kept.
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
        "SELECT coalesce(sum(size_bytes) FILTER (owner = ?), 0), coalesce(sum(size_bytes), 0) "
        "FROM scrape_cache",
        [cached.owner],
    ).fetchone() or (0, 0)
    if own > most_bytes // OWNER_SHARE or all_ > most_bytes:
        _drop_oldest(con, most_bytes)


def forget_cached(con: Connection, owner: str, url: str | None) -> int:
    """Drops an owner's copies of one address, or all of them; how many."""
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
        "own AS (PARTITION BY owner ORDER BY stored_at_ms DESC, key)) "
        "WHERE place > ? OR bytes > ? OR own_bytes > ?)",
        [ROWS_MAX, most_bytes, most_bytes // OWNER_SHARE],
    )
