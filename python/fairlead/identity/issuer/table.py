"""The rows of `issuer.duckdb`. Every function runs inside `Database.write` or `read`."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from sys import intern
from typing import Final

import orjson

from fairlead.errors import Refusal
from fairlead.identity.issuer.client import Client, SecretHasher, stored
from fairlead.identity.issuer.token import Token
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta, write_meta
from fairlead.store.statement import parsed

KEY_CHECK: Final = "key_check"

_CLIENT = "key, client_id, secret_hash, fields, created_at_ms, updated_at_ms"

_INSERT_TOKENS = (
    "INSERT INTO tokens SELECT unnest(?::VARCHAR[]), unnest(?::VARCHAR[]), "
    "unnest(?::VARCHAR[]), unnest(?::BIGINT[]), unnest(?::BIGINT[]), unnest(?::VARCHAR[])"
)
_DELETE_TOKENS = "DELETE FROM tokens WHERE hash IN (SELECT unnest(?::VARCHAR[]))"


def check_key(con: Connection, hasher: SecretHasher) -> None:
    """`Refusal` when the clients' secrets were hashed with another key; in the writer, at start."""
    stored, ours = read_meta(con, KEY_CHECK), hasher.hash(KEY_CHECK)
    if stored is None:
        write_meta(con, KEY_CHECK, ours)
    elif not hmac.compare_digest(stored, ours):
        raise Refusal(
            "The client secrets in issuer.duckdb were hashed with another key: put the old "
            "secret.key back, or set FAIRLEAD_SECRET_KEY to the old key."
        )


def insert_client(con: Connection, client: Client) -> None:
    """Adds a client."""
    con.execute(f"INSERT INTO clients ({_CLIENT}) VALUES (?, ?, ?, ?, ?, ?)", _row(client))


def update_client(con: Connection, client: Client) -> None:
    """Replaces a client's row."""
    con.execute(
        "UPDATE clients SET secret_hash = ?, fields = ?, created_at_ms = ?, updated_at_ms = ? "
        "WHERE key = ?",
        [*_row(client)[2:], client.key],
    )


def delete_client(con: Connection, key: str) -> None:
    """Deletes a client and its tokens."""
    con.execute("DELETE FROM clients WHERE key = ?", [key])
    con.execute("DELETE FROM tokens WHERE client_key = ?", [key])


def rekey_client(con: Connection, key: str, new_key: str) -> None:
    """Gives a client a new internal key, so that its tokens no longer belong to it, and deletes
    them.
    """
    con.execute("UPDATE clients SET key = ? WHERE key = ?", [new_key, key])
    con.execute("DELETE FROM tokens WHERE client_key = ?", [key])


def all_clients(con: Connection) -> list[Client]:
    """Every client, oldest first."""
    rows = con.execute(f"SELECT {_CLIENT} FROM clients ORDER BY created_at_ms, key").fetchall()
    return [stored(row) for row in rows]


def insert_tokens(con: Connection, tokens: Sequence[Token]) -> None:
    """Adds many tokens in one statement."""
    con.execute(
        parsed(con, _INSERT_TOKENS),
        [
            [token.hash.hex() for token in tokens],
            [token.client_key for token in tokens],
            [token.scope for token in tokens],
            [token.issued_at_s for token in tokens],
            [token.expires_at_s for token in tokens],
            [token.audience for token in tokens],
        ],
    )


def delete_tokens(con: Connection, hashes: Sequence[bytes]) -> None:
    """Removes many tokens in one statement."""
    con.execute(parsed(con, _DELETE_TOKENS), [[each.hex() for each in hashes]])


def delete_expired(con: Connection, now_s: int) -> None:
    """Deletes expired tokens."""
    con.execute("DELETE FROM tokens WHERE expires_at_s <= ?", [now_s])


def live_tokens(con: Connection, now_s: int, most: int) -> list[Token]:
    """Valid tokens of existing clients, those that expire last first, at most so many."""
    rows = con.execute(
        "SELECT t.hash, t.client_key, c.client_id, t.scope, t.issued_at_s, t.expires_at_s, "
        "t.audience "
        "FROM tokens t JOIN clients c ON c.key = t.client_key WHERE t.expires_at_s > ? "
        "ORDER BY t.expires_at_s DESC LIMIT ?",
        [now_s, most],
    ).fetchall()
    # Equal texts of many tokens are kept once.
    return [
        Token(
            bytes.fromhex(digest),
            intern(key),
            intern(client_id),
            intern(scope),
            begin_s,
            end_s,
            intern(audience or ""),
        )
        for digest, key, client_id, scope, begin_s, end_s, audience in rows
    ]


def _row(client: Client) -> list[object]:
    return [
        client.key,
        client.client_id,
        client.secret_hash,
        orjson.dumps(client.fields()).decode(),
        client.created_at_ms,
        client.updated_at_ms,
    ]
