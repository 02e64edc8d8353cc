"""Stored secrets from one key to another: some at a time, none forgotten."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.errors import Internal, Refusal
from fairlead.store import reseal
from fairlead.store.file import Connection
from fairlead.store.key_check import KEY_CHECK, check_key
from fairlead.store.meta import read_meta
from fairlead.store.reseal import COLUMNS, reseal_some
from fairlead.store.sealer import Sealer
from fairlead.store.sign_on import SEALED_AS
from tests.support.databases import open_fresh_file

OLD, NEW = bytes([1]) * 32, bytes([2]) * 32


@pytest.fixture
def con(tmp_path: Path) -> Connection:
    return open_fresh_file(tmp_path, "state")


def put(con: Connection, number: int, sealer: Sealer) -> None:
    for row_id, secret in ((f"s{number}", b"one"), (f"t{number}", b"two")):
        con.execute(
            "INSERT INTO webhook_secrets VALUES (?, 'e', ?, '', 0, NULL)",
            [row_id, sealer.seal(row_id, secret)],
        )


def test_every_sealed_column_is_known(con: Connection) -> None:
    """A secret that is not resealed is lost when the old key is put away."""
    rows = con.execute(
        "SELECT table_name, column_name FROM information_schema.columns "
        "WHERE column_name LIKE '%sealed' AND table_schema = 'main'"
    ).fetchall()
    assert len(rows) > 9
    known = {(each.table, each.column) for each in COLUMNS}
    assert {tuple(row) for row in rows} <= known


def test_secrets_are_sealed_anew_in_steps_that_may_be_interrupted(
    con: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reseal, "AT_ONCE", 3)
    old, both, new = Sealer(OLD), Sealer(NEW, OLD), Sealer(NEW)
    check_key(con, old)
    for number in range(4):
        put(con, number, old)
    put(con, 9, both)
    con.execute(
        "INSERT INTO outbound_proxies VALUES ('global', '', 'http', 'h', 1, ?)",
        [old.seal("global:", b"login")],
    )
    setting = base64.b64encode(old.seal(SEALED_AS, b"client secret")).decode()
    con.execute(
        "INSERT INTO operator_settings VALUES ('oidc_client_secret', ?)", [json.dumps(setting)]
    )
    with pytest.raises(Refusal, match="FAIRLEAD_OTHER_SECRET_KEY"):
        check_key(con, new)
    check_key(con, both)
    steps = []
    while True:
        step = reseal_some(con, both)
        steps.append((step.resealed, step.left))
        if not step.left:
            break
        # What is in between opens with either sealer that has both keys.
        for row_id, sealed in con.execute("SELECT id, sealed FROM webhook_secrets").fetchall():
            assert Sealer(OLD, NEW).unseal(row_id, sealed) == both.unseal(row_id, sealed)
    assert steps == [(3, 8), (3, 5), (3, 2), (2, 0)]
    assert reseal_some(con, both) == reseal.Resealed(0, 0)
    check_key(con, new)
    with pytest.raises(Refusal):
        check_key(con, old)
    for row_id, sealed in con.execute("SELECT id, sealed FROM webhook_secrets").fetchall():
        assert new.unseal(row_id, sealed) == (b"one" if row_id[0] == "s" else b"two")
        with pytest.raises(Internal):
            old.unseal(row_id, sealed)
    login: Any = con.execute("SELECT login_sealed FROM outbound_proxies").fetchone()
    assert new.unseal("global:", login[0]) == b"login"
    stored: Any = con.execute("SELECT value FROM operator_settings").fetchone()
    assert new.unseal(SEALED_AS, base64.b64decode(json.loads(stored[0]))) == b"client secret"
    assert read_meta(con, KEY_CHECK) is not None


def test_the_check_of_the_key_comes_last(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that has the old key alone still starts while secrets are left with it."""
    monkeypatch.setattr(reseal, "AT_ONCE", 1)
    old, both = Sealer(OLD), Sealer(NEW, OLD)
    check_key(con, old)
    put(con, 0, old)
    assert reseal_some(con, both).left == 2
    check_key(con, old)
    assert reseal_some(con, both).left == 1
    check_key(con, old)
    assert reseal_some(con, both).left == 0
    with pytest.raises(Refusal):
        check_key(con, old)
