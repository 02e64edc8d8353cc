"""Slices of the authorization server's tables: the current records of one decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlead.identity.oauth.records import AccessToken, Client, Code, Grant, RefreshToken
from fairlead.identity.oauth.table import CLIENT, CODE, GRANT, TOKEN, StoredRecords, sweep
from fairlead.store.file import Connection

Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows of the four tables. Two are equal where nothing has changed between."""

    clients: tuple[Row, ...] = ()
    grants: tuple[Row, ...] = ()
    codes: tuple[Row, ...] = ()
    tokens: tuple[Row, ...] = ()

    def records(self) -> StoredRecords:
        """New records of these rows."""
        return StoredRecords(
            clients=[Client(*row) for row in self.clients],
            grants=[Grant(*row) for row in self.grants],
            codes=[Code(*row) for row in self.codes],
            access=[
                AccessToken(row[0], row[1], row[3], row[4]) for row in self.tokens if row[2] is None
            ],
            refresh=[RefreshToken(*row) for row in self.tokens if row[2] is not None],
        )


Read = Callable[[Connection], Slice]


def about_client(client_id: str) -> Read:
    """The client."""
    return lambda con: Slice(clients=_clients(con, "id = ?", client_id))


def about_code(digest: str) -> Read:
    """The code, and its user's approvals."""

    def read(con: Connection) -> Slice:
        codes = _rows(con, CODE, "oauth_codes WHERE hash = ?", digest)
        if not codes:
            return Slice()
        return Slice(codes=codes, grants=_grants(con, "user_id = ?", codes[0][3]))

    return read


def about_token(digest: str, at_ms: int) -> Read:
    """The token's approval with all of its tokens that have not expired by then."""

    def read(con: Connection) -> Slice:
        found = _rows(con, TOKEN, "oauth_tokens WHERE hash = ?", digest)
        if not found:
            return Slice()
        grant_id = found[0][1]
        tokens = _rows(
            con,
            TOKEN,
            "oauth_tokens WHERE grant_id = ? AND expires_at_ms > ? "
            "ORDER BY generation, created_at_ms, hash",
            grant_id,
            at_ms,
        )
        return Slice(grants=_grants(con, "id = ?", grant_id), tokens=tokens)

    return read


def about_token_alone(digest: str) -> Read:
    """The token and its approval."""

    def read(con: Connection) -> Slice:
        tokens = _rows(con, TOKEN, "oauth_tokens WHERE hash = ?", digest)
        grants = _grants(con, "id = ?", tokens[0][1]) if tokens else ()
        return Slice(grants=grants, tokens=tokens)

    return read


def about_user(user_id: str) -> Read:
    """The user's approvals, and their clients."""

    def read(con: Connection) -> Slice:
        grants = _grants(con, "user_id = ?", user_id)
        clients = _clients(con, "id IN (SELECT unnest(?::VARCHAR[]))", [row[1] for row in grants])
        return Slice(grants=grants, clients=clients)

    return read


def about_grant(grant_id: str) -> Read:
    """The approval."""
    return lambda con: Slice(grants=_grants(con, "id = ?", grant_id))


def sweep_all(con: Connection, at_ms: int, codes_before_ms: int, clients_before_ms: int) -> None:
    """Deletes what has expired, approvals without tokens or of users that are gone, and clients that nobody approved,
    in the writer.
    """
    sweep(con, at_ms, codes_before_ms)
    con.execute("DELETE FROM oauth_grants WHERE id NOT IN (SELECT grant_id FROM oauth_tokens)")
    con.execute("DELETE FROM oauth_grants WHERE user_id NOT IN (SELECT id FROM users)")
    for table in ("oauth_tokens", "oauth_codes"):
        ended = f"DELETE FROM {table} WHERE grant_id NOT IN (SELECT id FROM oauth_grants)"
        # A code that is not spent has no approval yet.
        con.execute(ended if table == "oauth_tokens" else f"{ended} AND is_spent")
    con.execute(
        "DELETE FROM oauth_clients WHERE approved_at_ms IS NULL AND created_at_ms <= ?",
        [clients_before_ms],
    )


def _clients(con: Connection, where: str, value: object) -> tuple[Row, ...]:
    return _rows(con, CLIENT, f"oauth_clients WHERE {where} ORDER BY created_at_ms, id", value)


def _grants(con: Connection, where: str, value: object) -> tuple[Row, ...]:
    return _rows(con, GRANT, f"oauth_grants WHERE {where} ORDER BY created_at_ms, id", value)


def _rows(con: Connection, columns: tuple[str, ...], rest: str, *values: object) -> tuple[Row, ...]:
    return tuple(con.execute(f"SELECT {', '.join(columns)} FROM {rest}", [*values]).fetchall())
