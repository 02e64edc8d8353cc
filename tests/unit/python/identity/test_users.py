"""Users: one owner, one spelling of an address, and what the migration makes of a lone operator."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fairlead.errors import Conflict
from fairlead.identity.sessions import PER_USER_MAX, list_sessions, mint_session, open_session
from fairlead.identity.users import (
    OWNER_EMAIL,
    count_users,
    delete_user,
    ensure_owner,
    find_by_email,
    find_owner,
    insert_user,
    new_user,
)
from fairlead.store.file import Connection, open_file
from fairlead.store.prepare import MIGRATIONS
from tests.fuzz.budget import at_most


def test_there_is_one_owner(con: Connection) -> None:
    owner = ensure_owner(con)
    assert (owner.email, owner.role, owner.password_hash) == (OWNER_EMAIL, "owner", None)
    assert ensure_owner(con) == owner
    assert count_users(con) == 1


def test_an_address_is_one_however_it_is_typed(con: Connection) -> None:
    user = new_user(" Ada@Example.ORG", "Ada", "member", None)
    insert_user(con, user)
    assert find_by_email(con, "ada@example.org ") == user
    with pytest.raises(Conflict):
        insert_user(con, new_user("\uff21da@example.org", "Other", "admin", None))


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0300\u0316\u0334"])
def test_an_address_that_nobody_has_is_not_normalised(con: Connection, marks: str) -> None:
    with at_most(0.5):
        assert find_by_email(con, f"a{marks * 20_000}@example.org") is None


def test_what_is_a_users_goes_with_them(con: Connection) -> None:
    user = new_user("ada@example.org", "Ada", "member", None)
    insert_user(con, user)
    open_session(con, mint_session(), user.id, replaced=None)
    delete_user(con, user.id)
    assert list_sessions(con, None) == []
    assert count_users(con) == 0


def test_a_user_has_so_many_sessions_and_no_more(con: Connection) -> None:
    owner = ensure_owner(con)
    for _ in range(PER_USER_MAX + 5):
        open_session(con, mint_session(), owner.id, replaced=None)
    assert len(list_sessions(con, owner.id)) == PER_USER_MAX


@pytest.fixture
def before(tmp_path: Path) -> Path:
    """The schema of the time before there were users."""
    folder = tmp_path / "before"
    folder.mkdir()
    for path in sorted((MIGRATIONS / "state").glob("*.sql")):
        if path.stem.endswith("_users"):
            return folder
        shutil.copy(path, folder)
    raise AssertionError("no migration makes users")


def test_the_operator_becomes_the_owner_and_stays_signed_in(tmp_path: Path, before: Path) -> None:
    path = tmp_path / "old.duckdb"
    old = open_file(path, before)
    old.execute("INSERT INTO meta VALUES ('operator_id', 'the-operator'), ('password_hash', 'h')")
    old.execute("INSERT INTO sessions VALUES ('digest', 'the-operator', 1, 99999999999999)")
    old.close()
    connection = open_file(path, MIGRATIONS / "state")
    try:
        owner = find_owner(connection)
        assert owner is not None
        assert (owner.id, owner.email, owner.password_hash) == ("the-operator", OWNER_EMAIL, "h")
        [session] = list_sessions(connection, owner.id)
        assert (session.hash, session.created_at_ms) == ("digest", 1)
        assert len(session.id) == 36
        kept = connection.execute("SELECT name FROM meta WHERE name LIKE '%o%rator%'").fetchall()
        assert kept == []
    finally:
        connection.close()


def test_a_file_that_nobody_ever_signed_in_to_gets_no_owner(tmp_path: Path, before: Path) -> None:
    path = tmp_path / "old.duckdb"
    open_file(path, before).close()
    connection = open_file(path, MIGRATIONS / "state")
    try:
        assert find_owner(connection) is None
    finally:
        connection.close()
