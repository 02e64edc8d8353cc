"""The tables of the authorization server: everything is read once, and written in batches.

A batch is a few statements over lists, however many requests share it: DuckDB's cost is in the
statement and the commit, not in the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead.identity.oauth.records import AccessToken, Client, Code, Grant, RefreshToken
from fairlead.store.file import Connection
from fairlead.store.statement import parsed, unnested

CLIENT = ("id", "name", "redirect_uri", "created_at_ms", "approved_at_ms")
GRANT = ("id", "client_id", "user_id", "resource", "created_at_ms")
CODE = (
    "hash",
    "grant_id",
    "client_id",
    "user_id",
    "redirect_uri",
    "challenge",
    "resource",
    "expires_at_ms",
    "is_spent",
)
TOKEN = ("hash", "grant_id", "generation", "created_at_ms", "expires_at_ms")


@dataclass(slots=True)
class Change:
    """The changes of one request, or of many together."""

    clients: list[Client] = field(default_factory=list)
    approved: list[Client] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)
    codes: list[Code] = field(default_factory=list)
    spent: list[str] = field(default_factory=list)
    access: list[AccessToken] = field(default_factory=list)
    refresh: list[RefreshToken] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    """Tokens that expire while their grant is still valid."""
    ended: list[str] = field(default_factory=list)
    """Grants that end, with all their codes and tokens."""
    forgotten: list[str] = field(default_factory=list)
    """Clients that are deleted."""

    def add(self, other: Change) -> None:
        """Adds another change. The order of two changes does not matter: what is made has a new
        name, and what ends never comes back.
        """
        for name in self.__dataclass_fields__:
            getattr(self, name).extend(getattr(other, name))


@dataclass(slots=True)
class StoredRecords:
    """Every stored record."""

    clients: list[Client]
    grants: list[Grant]
    codes: list[Code]
    access: list[AccessToken]
    refresh: list[RefreshToken]


def read_all(con: Connection, at_ms: int) -> StoredRecords:
    """Every record that has not expired at that time; tokens oldest first."""

    def rows(columns: Sequence[str], table: str, rest: str, *values: Any) -> list[Any]:
        return con.execute(f"SELECT {', '.join(columns)} FROM {table} {rest}", [*values]).fetchall()

    tokens = rows(
        TOKEN, "oauth_tokens", "WHERE expires_at_ms > ? ORDER BY generation, created_at_ms", at_ms
    )
    return StoredRecords(
        clients=[Client(*row) for row in rows(CLIENT, "oauth_clients", "ORDER BY created_at_ms")],
        grants=[Grant(*row) for row in rows(GRANT, "oauth_grants", "ORDER BY created_at_ms")],
        codes=[Code(*row) for row in rows(CODE, "oauth_codes", "")],
        access=[AccessToken(row[0], row[1], row[3], row[4]) for row in tokens if row[2] is None],
        refresh=[RefreshToken(*row) for row in tokens if row[2] is not None],
    )


def apply(con: Connection, change: Change) -> None:
    """Writes a change, in the writer."""
    _insert(con, "oauth_clients", CLIENT, change.clients)
    _insert(con, "oauth_grants", GRANT, change.grants)
    _insert(con, "oauth_codes", CODE, change.codes)
    tokens: list[tuple[Any, ...]] = [
        (each.hash, each.grant_id, None, each.created_at_ms, each.expires_at_ms)
        for each in change.access
    ]
    tokens += [
        (each.hash, each.grant_id, each.generation, each.created_at_ms, each.expires_at_ms)
        for each in change.refresh
    ]
    _insert_rows(con, "oauth_tokens", TOKEN, tokens)
    if change.approved:
        con.execute(
            "UPDATE oauth_clients SET approved_at_ms = n.at "
            "FROM (SELECT unnest(?::VARCHAR[]) AS id, unnest(?::BIGINT[]) AS at) n WHERE oauth_clients.id = n.id",
            [
                [each.id for each in change.approved],
                [each.approved_at_ms for each in change.approved],
            ],
        )
    if change.spent:
        con.execute(
            parsed(
                con,
                "UPDATE oauth_codes SET is_spent = true WHERE hash IN (SELECT unnest(?::VARCHAR[]))",
            ),
            [change.spent],
        )
    if change.dropped:
        _delete(con, "oauth_tokens", "hash", change.dropped)
    if change.ended:
        for table in ("oauth_tokens", "oauth_codes"):
            _delete(con, table, "grant_id", change.ended)
        _delete(con, "oauth_grants", "id", change.ended)
    if change.forgotten:
        _delete(con, "oauth_clients", "id", change.forgotten)


def sweep(con: Connection, at_ms: int, codes_before_ms: int) -> None:
    """Deletes tokens that have expired by one time and codes that expired before another, in the
    writer.
    """
    con.execute("DELETE FROM oauth_tokens WHERE expires_at_ms <= ?", [at_ms])
    con.execute("DELETE FROM oauth_codes WHERE expires_at_ms <= ?", [codes_before_ms])


def _insert(con: Connection, table: str, columns: Sequence[str], records: Sequence[Any]) -> None:
    rows = [tuple(getattr(record, column) for column in columns) for record in records]
    _insert_rows(con, table, columns, rows)


def _insert_rows(
    con: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    if not rows:
        return
    values = [list(column) for column in zip(*rows, strict=True)]
    text = f"INSERT INTO {table} ({', '.join(columns)}) SELECT {unnested(columns)}"
    con.execute(parsed(con, text), values)


def _delete(con: Connection, table: str, column: str, values: list[str]) -> None:
    con.execute(
        parsed(con, f"DELETE FROM {table} WHERE {column} IN (SELECT unnest(?::VARCHAR[]))"),
        [values],
    )
