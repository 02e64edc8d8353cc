"""A PostgreSQL connection as the tables' functions use it (`fairlead.store.connection.Connection`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg.abc import AdaptContext
from psycopg.adapt import Buffer, Loader
from psycopg.conninfo import make_conninfo

from fairlead.errors import InvalidRequest
from fairlead.store.postgresql.statements import numbered

SCHEMA: Final = "fairlead"
CONNECT_WITHIN_S: Final = 5
STATEMENT_DEADLINE_MS: Final = 10_000
# A transaction in which a process stands still must not hold the locks of others for ever.
IDLE_DEADLINE_MS: Final = 30_000

Raw = psycopg.Connection[tuple[Any, ...]]


class _Integral(Loader):
    """`numeric` as DuckDB gives it: an integer where it is one."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text or "N" in text else int(text)


class PostgresqlResult:
    """The rows of a statement, all of them read."""

    __slots__ = ("_at", "_rows", "description")

    def __init__(self, rows: list[tuple[Any, ...]], description: Any = None) -> None:
        self._rows = rows
        self.description = description
        self._at = 0

    def fetchone(self) -> tuple[Any, ...] | None:
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        at, self._at = self._at, self._at + size
        return self._rows[at : self._at]

    def fetchall(self) -> list[tuple[Any, ...]]:
        at, self._at = self._at, len(self._rows)
        return self._rows[at:] if at else self._rows


class PostgresqlConnection:
    """A transaction of a pooled connection. The statements are those of DuckDB."""

    __slots__ = ("raw",)

    def __init__(self, raw: Raw) -> None:
        self.raw = raw

    def execute(self, query: str, parameters: object = None) -> PostgresqlResult:
        text, names = numbered(query)
        with self.raw.cursor() as cursor:
            try:
                cursor.execute(text, _bound(names, parameters))
            except psycopg.DataError as error:
                raise _refused(error) from error
            if cursor.description is None:
                return PostgresqlResult([(cursor.rowcount,)])
            return PostgresqlResult(cursor.fetchall(), cursor.description)

    def executemany(self, query: str, parameters: object = None) -> PostgresqlResult:
        text, names = numbered(query)
        rows: Iterable[Any] = parameters  # type: ignore[assignment]
        with self.raw.cursor() as cursor:
            try:
                cursor.executemany(text, [_bound(names, row) or () for row in rows])
            except psycopg.DataError as error:
                raise _refused(error) from error
            return PostgresqlResult([(cursor.rowcount,)])


def connection_info(url: str, purpose: str) -> str:
    """The URL as libpq takes it, with bounds for a server that does not answer; `purpose` is shown in
    `pg_stat_activity`.
    """
    given = psycopg.conninfo.conninfo_to_dict(url)
    usual: dict[str, str | int] = {
        "connect_timeout": CONNECT_WITHIN_S,
        "application_name": f"fairlead {purpose}",
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
    }
    return make_conninfo(url, **{name: value for name, value in usual.items() if name not in given})


# A client whose machine is gone says nothing: without these the server keeps its locks for hours.
KEEPALIVE: Final = (
    "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; "
    "SET tcp_user_timeout = 15000"
)


def set_up(raw: Raw) -> None:
    """Prepares a new connection for fairlead's statements."""
    adapt(raw)
    raw.execute(
        f"SET search_path = {SCHEMA}, pg_catalog; SET timezone = 'UTC'; "
        f"SET statement_timeout = {STATEMENT_DEADLINE_MS}; "
        f"SET idle_in_transaction_session_timeout = {IDLE_DEADLINE_MS}; {KEEPALIVE}"
    )
    raw.commit()


def adapt(context: AdaptContext) -> None:
    """Values as DuckDB gives them."""
    adapters = context.adapters
    if adapters is not None:
        adapters.register_loader("numeric", _Integral)


def _bound(names: tuple[str, ...], parameters: object) -> Sequence[Any] | None:
    if isinstance(parameters, Mapping):
        return [parameters[name] for name in names]
    return parameters  # type: ignore[return-value]


def _refused(error: psycopg.DataError) -> Exception:
    # PostgreSQL's texts hold every character but this one, which callers can send.
    if "NUL" in str(error):
        return InvalidRequest("A text has the character NUL (U+0000), which cannot be stored.")
    return error
