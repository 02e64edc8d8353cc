"""Bounds of kept bodies: settings, keys, and deletions by operators."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from fairlead.store.file import Connection
from fairlead.store.meta import PURGED_BEFORE, read_meta
from fairlead.store.operator_settings import read_operator_settings

DAY_MS: Final = 86_400_000
MIB: Final = 1024 * 1024
SWEEP_EVERY_S: Final = 60.0
# Files are moved together: a busy gateway writes many in a second.
PAUSE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class BodyBounds:
    """The bounds in force. `purged_before_ms` is up to when an operator had requests deleted at all nodes (UTC
    milliseconds, 0 for never); `keys` may have bodies kept.
    """

    days: int
    limit_bytes: int
    purged_before_ms: int
    keys: frozenset[str]

    def before_ms(self, at_ms: int) -> int:
        """The moment that bodies must not be older than, at `at_ms`."""
        return max(at_ms - self.days * DAY_MS, self.purged_before_ms)


def read_bounds(con: Connection) -> BodyBounds:
    """The bounds, with all keys that may have bodies kept."""
    rows = con.execute("SELECT id FROM keys WHERE NOT no_log").fetchall()
    return _bounds(con, frozenset(str(row[0]) for row in rows))


def read_bounds_of(con: Connection, key_ids: Collection[str]) -> BodyBounds:
    """The bounds, with those of these keys that may have bodies kept."""
    rows = con.execute(
        "SELECT id FROM keys WHERE NOT no_log AND id IN (SELECT unnest(?::VARCHAR[]))",
        [list(key_ids)],
    ).fetchall()
    return _bounds(con, frozenset(str(row[0]) for row in rows))


def _bounds(con: Connection, keys: frozenset[str]) -> BodyBounds:
    settings = read_operator_settings(con)
    return BodyBounds(
        days=min(settings.capture_days, settings.usage_retention_days),
        limit_bytes=settings.capture_mb * MIB,
        purged_before_ms=int(read_meta(con, PURGED_BEFORE) or 0),
        keys=keys,
    )
