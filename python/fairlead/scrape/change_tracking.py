"""Change tracking: the fingerprint of a page when its caller last asked whether it had changed."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import orjson

from fairlead.moment import iso, moment_of
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.store.file import Connection

KEPT_MS: Final = 30 * 86_400_000
ROWS_MAX: Final = 100_000


def tracking_key(owner: str, url: str, options: ScrapeOptions) -> str:
    """The hash of the key, the address and the options that say which part of the page counts."""
    parts = [options.include_tags, options.exclude_tags]
    chosen = parts if any(parts) else []
    text = orjson.dumps([owner, url, options.only_main_content, *chosen])
    return hashlib.sha256(text).hexdigest()


def record_fingerprint(con: Connection, key: str, fingerprint: str, at_ms: int) -> dict[str, Any]:
    """Stores the page's fingerprint, in the writer. `changeStatus` is new, same or changed."""
    row = con.execute(
        "DELETE FROM scrape_seen WHERE key = ? RETURNING fingerprint, at_ms", [key]
    ).fetchone()
    con.execute(
        "INSERT INTO scrape_seen (key, fingerprint, at_ms) VALUES (?, ?, ?)",
        [key, fingerprint, at_ms],
    )
    if row is None or row[1] < at_ms - KEPT_MS:
        return {"changeStatus": "new", "previousScrapeAt": None}
    status = "same" if row[0] == fingerprint else "changed"
    return {"changeStatus": status, "previousScrapeAt": iso(moment_of(row[1]))}


def sweep_fingerprints(con: Connection, at_ms: int) -> None:
    """Drops fingerprints older than `KEPT_MS`, and the oldest beyond `ROWS_MAX`, in the writer."""
    con.execute("DELETE FROM scrape_seen WHERE at_ms < ?", [at_ms - KEPT_MS])
    con.execute(
        "DELETE FROM scrape_seen WHERE key IN "
        "(SELECT key FROM scrape_seen ORDER BY at_ms DESC OFFSET ?)",
        [ROWS_MAX],
    )
