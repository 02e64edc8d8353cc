"""Pages that were scraped, kept for whoever asked: one caller's copies are not another's."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Final

from fairlead.store.file import Connection

ROWS_MAX: Final = 5000
STALE_KEPT_MS: Final = 7 * 86_400_000

_COLUMNS = (
    "key, owner, url, final_url, status, etag, last_modified, stored_at_ms, expires_at_ms, document"
)


@dataclass(frozen=True, slots=True)
class Cached:
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

    def renewed(self, expires_at_ms: int) -> Cached:
        """The same page, good for longer."""
        return replace(self, expires_at_ms=expires_at_ms)


def find_cached(con: Connection, key: str) -> Cached | None:
    """The copy, fresh or stale."""
    row = con.execute(f"SELECT {_COLUMNS} FROM scrape_cache WHERE key = ?", [key]).fetchone()
    return None if row is None else Cached(*row)


def store_cached(con: Connection, cached: Cached) -> None:
    """Keeps a copy in the place of an earlier one, in the writer."""
    con.execute("DELETE FROM scrape_cache WHERE key = ?", [cached.key])
    con.execute(
        f"INSERT INTO scrape_cache ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        list(astuple(cached)),
    )


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


def sweep_cache(con: Connection, at_ms: int) -> None:
    """Drops copies that are long stale, and the oldest beyond `ROWS_MAX`, in the writer."""
    con.execute("DELETE FROM scrape_cache WHERE expires_at_ms < ?", [at_ms - STALE_KEPT_MS])
    con.execute(
        "DELETE FROM scrape_cache WHERE key IN "
        "(SELECT key FROM scrape_cache ORDER BY stored_at_ms DESC OFFSET ?)",
        [ROWS_MAX],
    )
