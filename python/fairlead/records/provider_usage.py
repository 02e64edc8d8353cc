"""The table `provider_usage`: what providers' own usage routes say of connections. The gateway's room reads
and writes it, usage shows it.

A figure that a provider does not tell is None, and nothing is made up in its place.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import orjson

from fairlead.store.file import Connection

MICROS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class UsageFigure:
    """One figure of a provider's, in millionths of its `unit` (`USD`, `points`). `since_ms` is from when on
    `used_micros` counts,
    where the gateway asked for a span.
    """

    name: str
    unit: str
    used_micros: int | None = None
    limit_micros: int | None = None
    remaining_micros: int | None = None
    since_ms: int | None = None

    @property
    def remaining_percent(self) -> float | None:
        """The part of the limit that is left, 0 to 100; None where the provider does not tell both."""
        if self.remaining_micros is None or self.limit_micros is None or self.limit_micros <= 0:
            return None
        share = self.remaining_micros * 100 / self.limit_micros
        return round(min(max(share, 0.0), 100.0), 2)


@dataclass(frozen=True, slots=True)
class ProviderUsage:
    """A row. `read_at_ms` is the time of the figures, `asked_at_ms` when the provider was last called, `failures`
    the number of failed calls in a row since.
    """

    connection_id: str
    key_sealed: bytes | None = field(default=None, repr=False)
    figures: tuple[UsageFigure, ...] = ()
    read_at_ms: int | None = None
    asked_at_ms: int | None = None
    failures: int = 0
    last_error: str | None = None


_COLUMNS: Final = (
    "connection_id, key_sealed, figures, read_at_ms, asked_at_ms, failures, last_error"
)


def find_provider_usage(con: Connection, connection_id: str) -> ProviderUsage:
    """The row of a connection; empty if nothing is known yet."""
    row = con.execute(
        f"SELECT {_COLUMNS} FROM provider_usage WHERE connection_id = ?", [connection_id]
    ).fetchone()
    return ProviderUsage(connection_id) if row is None else _read(row)


def all_provider_usage(con: Connection) -> dict[str, ProviderUsage]:
    """Every row, by connection."""
    rows = con.execute(f"SELECT {_COLUMNS} FROM provider_usage").fetchall()
    return {row[0]: _read(row) for row in rows}


def put_provider_usage(con: Connection, usage: ProviderUsage) -> None:
    """Stores a row in place of the connection's former one, in the writer."""
    drop_provider_usage(con, usage.connection_id)
    figures = orjson.dumps([asdict(figure) for figure in usage.figures]).decode()
    con.execute(
        f"INSERT INTO provider_usage ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            usage.connection_id,
            usage.key_sealed,
            figures,
            usage.read_at_ms,
            usage.asked_at_ms,
            usage.failures,
            usage.last_error,
        ],
    )


def forget_figures(con: Connection, connection_id: str) -> None:
    """Deletes the figures of a replaced credential, in the writer. The separate usage key stays."""
    known = find_provider_usage(con, connection_id)
    if known != ProviderUsage(connection_id):
        put_provider_usage(con, replace(ProviderUsage(connection_id), key_sealed=known.key_sealed))


def drop_provider_usage(con: Connection, connection_id: str) -> None:
    """Deletes the row of a connection, in the writer."""
    con.execute("DELETE FROM provider_usage WHERE connection_id = ?", [connection_id])


def _read(row: tuple[Any, ...]) -> ProviderUsage:
    figures = tuple(UsageFigure(**figure) for figure in orjson.loads(row[2]))
    return ProviderUsage(row[0], row[1], figures, *row[3:])
