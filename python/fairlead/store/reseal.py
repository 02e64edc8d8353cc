"""Sealing stored secrets again, after the key was exchanged for another: some in each transaction, any number of times.

Values in the tables open with the present key or with the other one, so nothing waits for this, and an
interruption loses nothing: the next step finds the remaining values. Backups, and copies of settings of coding
tools, stay as they were sealed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from fairlead.store.file import Connection
from fairlead.store.key_check import KEY_CHECK
from fairlead.store.sealer import Sealer
from fairlead.store.sign_on import SEALED_AS as OIDC_SECRET

AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column of sealed secrets. `record_id` is SQL of what each is sealed with; `where` leaves other rows out."""

    table: str
    column: str
    record_id: str = "id"
    where: str = "TRUE"
    sealed_as: str | None = None
    """The associated data of all values, if the rows do not contain it."""
    decode: Callable[[Any], bytes] = bytes
    encode: Callable[[bytes], Any] = bytes


def _from_json(value: str) -> bytes:
    return base64.b64decode(json.loads(value))


def _to_json(sealed: bytes) -> str:
    return json.dumps(base64.b64encode(sealed).decode())


COLUMNS: Final = (
    SealedColumn("provider_connections", "credentials_sealed"),
    SealedColumn("provider_nodes", "headers_sealed"),
    SealedColumn("provider_clients", "secret_sealed", "'provider-client:' || provider"),
    SealedColumn("provider_sign_ins", "refresh_sealed", "'refresh-token:' || connection_id"),
    SealedColumn("provider_usage", "key_sealed", "'provider-usage:' || connection_id"),
    SealedColumn("provider_sign_in_flows", "secret_sealed"),
    SealedColumn("search_providers", "key_sealed"),
    SealedColumn("outbound_proxies", "login_sealed", "level || ':' || target"),
    SealedColumn("mail_server", "password_sealed", "'mail-server'"),
    SealedColumn("users", "totp_sealed"),
    SealedColumn("users", "totp_pending_sealed", "'pending-totp:' || id"),
    SealedColumn("scrape_jobs", "secrets_sealed", "'scrape-job:' || id"),
    SealedColumn("webhook_secrets", "sealed"),
    SealedColumn("webhook_signing_keys", "sealed"),
    SealedColumn(
        "operator_settings",
        "value",
        "name",
        "name = 'oidc_client_secret' AND value <> 'null'",
        OIDC_SECRET,
        _from_json,
        _to_json,
    ),
    # Last: from then on a node without the present key does not start.
    SealedColumn("meta", "value", "name", f"name = '{KEY_CHECK}'", None, bytes.fromhex, bytes.hex),
)


@dataclass(frozen=True, slots=True)
class Resealed:
    """The number of secrets that a step sealed again, and of those that it left."""

    resealed: int
    left: int


def reseal_some(con: Connection, sealer: Sealer) -> Resealed:
    """Seals at most `AT_ONCE` secrets again that are sealed with the other key, in the writer."""
    done = left = 0
    for column, record_id, value in _stale(con, sealer):
        if done == AT_ONCE:
            left += 1
            continue
        _reseal(con, sealer, column, record_id, value)
        done += 1
    return Resealed(done, left)


def _stale(con: Connection, sealer: Sealer) -> Iterator[tuple[SealedColumn, str, Any]]:
    for column in COLUMNS:
        rows = con.execute(
            f"SELECT {column.record_id}, {column.column} FROM {column.table} "
            f"WHERE {column.where} AND {column.column} IS NOT NULL ORDER BY 1"
        ).fetchall()
        for record_id, value in rows:
            if not sealer.is_current(column.sealed_as or record_id, column.decode(value)):
                yield column, str(record_id), value


def _reseal(
    con: Connection, sealer: Sealer, column: SealedColumn, record_id: str, value: Any
) -> None:
    sealed_as = column.sealed_as or record_id
    sealed = sealer.seal(sealed_as, sealer.unseal(sealed_as, column.decode(value)))
    con.execute(
        f"UPDATE {column.table} SET {column.column} = ? WHERE {column.record_id} = ? AND {column.where}",
        [column.encode(sealed), record_id],
    )
