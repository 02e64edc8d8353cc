"""Two secrets of one record are not interchangeable, whatever the key is exchanged for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead.errors import Internal
from fairlead.store.file import Connection
from fairlead.store.reseal import COLUMNS, reseal_some
from fairlead.store.seal_purposes import pending_totp_of, refresh_token_of
from fairlead.store.sealer import Sealer
from tests.support.databases import open_fresh_file

SEALER = Sealer(b"k" * 32)


@pytest.fixture
def con(tmp_path: Path) -> Connection:
    return open_fresh_file(tmp_path, "state")


def add_sign_in(con: Connection, connection_id: str, sealed: bytes) -> None:
    con.execute(
        "INSERT INTO provider_sign_ins (connection_id, provider, status, refresh_sealed, refreshed_at_ms, failures) "
        "VALUES (?, 'openai', 'active', ?, 0, 0)",
        [connection_id, sealed],
    )


def refresh_of(con: Connection, connection_id: str) -> bytes:
    row: Any = con.execute(
        "SELECT refresh_sealed FROM provider_sign_ins WHERE connection_id = ?", [connection_id]
    ).fetchone()
    return bytes(row[0])


def test_no_two_sealed_columns_of_one_record_share_their_associated_data(con: Connection) -> None:
    of_connection = {"provider_sign_ins", "provider_usage"}
    seen: dict[str, str] = {}
    for column in COLUMNS:
        expression = column.record_id
        owner = "provider_connections" if column.table in of_connection else column.table
        for name in ("connection_id", "provider", "level", "target", "id", "name"):
            # Each identifier stands for the record that it names; `'text'` stays.
            expression = " || ".join(
                f"'<{owner}>'" if part.strip() == name else part.strip()
                for part in expression.split("||")
            )
        row: Any = con.execute(f"SELECT {expression}").fetchone()
        bound = column.sealed_as or str(row[0])
        assert bound not in seen, f"{column.table}.{column.column} opens as {seen.get(bound)}"
        seen[bound] = f"{column.table}.{column.column}"


def test_another_secret_of_the_record_does_not_open_in_its_place(con: Connection) -> None:
    for purpose in (refresh_token_of("c1"), pending_totp_of("c1")):
        with pytest.raises(Internal):
            SEALER.unseal(purpose, SEALER.seal("c1", b"api key"))


def test_an_exchange_of_the_key_keeps_the_purpose(con: Connection) -> None:
    new = Sealer(b"n" * 32, b"k" * 32)
    add_sign_in(con, "c1", SEALER.seal(refresh_token_of("c1"), b"refresh"))
    assert reseal_some(con, new).resealed == 1
    assert Sealer(b"n" * 32).unseal(refresh_token_of("c1"), refresh_of(con, "c1")) == b"refresh"
