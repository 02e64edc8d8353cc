"""The rows of selectors that a model found, for each key its own, kept for `KEPT_MS`."""

from __future__ import annotations

from typing import Any, Final

import orjson

from fairlead.store.file import Connection

KEPT_MS: Final = 7 * 86_400_000
ROWS_MAX: Final = 5000


def find_css_schema(con: Connection, key: str, at_ms: int) -> dict[str, Any] | None:
    """The selectors of this key, until they expire."""
    row = con.execute(
        "SELECT css_schema FROM scrape_css_schemas WHERE key = ? AND expires_at_ms > ?",
        [key, at_ms],
    ).fetchone()
    return None if row is None else orjson.loads(row[0])


def store_css_schema(
    con: Connection, key: str, owner: str, schema: dict[str, Any], at_ms: int
) -> None:
    """Stores selectors in place of earlier ones, in the writer."""
    forget_css_schema(con, key)
    con.execute(
        "INSERT INTO scrape_css_schemas (key, owner, css_schema, stored_at_ms, expires_at_ms) "
        "VALUES (?, ?, ?, ?, ?)",
        [key, owner, orjson.dumps(schema).decode(), at_ms, at_ms + KEPT_MS],
    )


def forget_css_schema(con: Connection, key: str) -> None:
    """Drops the selectors of this key, in the writer."""
    con.execute("DELETE FROM scrape_css_schemas WHERE key = ?", [key])


def sweep_css_schemas(con: Connection, at_ms: int) -> None:
    """Drops expired selectors, and the oldest beyond `ROWS_MAX`, in the writer."""
    con.execute("DELETE FROM scrape_css_schemas WHERE expires_at_ms < ?", [at_ms])
    con.execute(
        "DELETE FROM scrape_css_schemas WHERE key IN "
        "(SELECT key FROM scrape_css_schemas ORDER BY stored_at_ms DESC OFFSET ?)",
        [ROWS_MAX],
    )
