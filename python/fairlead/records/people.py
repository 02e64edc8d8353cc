"""Users as other packages see them; `identity` stores them."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.store.file import Connection
from fairlead.store.table import read_number

MANAGING_ROLES: frozenset[str] = frozenset({"owner", "admin"})

_SELECT = "SELECT id, name, email, role FROM users WHERE is_active"


@dataclass(frozen=True, slots=True)
class Person:
    """A user who may sign in. `manages` says whether they may manage the gateway."""

    id: str
    name: str
    email: str
    manages: bool


def find_person(con: Connection, user_id: str) -> Person | None:
    """The person with this id; None for an unknown one or one who may not sign in."""
    row = con.execute(f"{_SELECT} AND id = ?", [user_id]).fetchone()
    return None if row is None else _person(row)


def find_owner_person(con: Connection) -> Person | None:
    """The owner, or None before there is one."""
    row = con.execute(f"{_SELECT} AND role = 'owner'").fetchone()
    return None if row is None else _person(row)


def list_people(con: Connection, limit: int, offset: int) -> list[Person]:
    """Everybody who may sign in, by name."""
    rows = con.execute(
        f"{_SELECT} ORDER BY lower(name), id LIMIT ? OFFSET ?", [limit, offset]
    ).fetchall()
    return [_person(row) for row in rows]


def count_people(con: Connection) -> int:
    """The number of people who may sign in."""
    return read_number(con, "SELECT count(*) FROM users WHERE is_active")


def _person(row: tuple[str, str, str, str]) -> Person:
    user_id, name, email, role = row
    return Person(user_id, name, email, role in MANAGING_ROLES)
