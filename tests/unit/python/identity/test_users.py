"""Users: one owner, and one spelling of an address."""

from __future__ import annotations

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
from fairlead.store.file import Connection
from tests.fuzz.budget import at_most


def test_there_is_one_owner(con: Connection) -> None:
    assert find_owner(con) is None
    owner = ensure_owner(con)
    assert (owner.email, owner.role, owner.password_hash) == (OWNER_EMAIL, "owner", None)
    assert ensure_owner(con) == owner
    assert find_owner(con) == owner
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
