"""The table `key_groups`: one row per group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.gateway.keys.access_fields import RateLimit
from fairlead.groups.fields import GroupGuardrails, NewGroup, TokenBudget
from fairlead.money import micros_of, usd_of
from fairlead.store.file import Connection

# Fields whose column has another form.
_MONEY: Final = {
    "daily_usage_limit_usd": "daily_usage_limit_usd_micros",
    "weekly_usage_limit_usd": "weekly_usage_limit_usd_micros",
    "monthly_usage_limit_usd": "monthly_usage_limit_usd_micros",
}
_JSON: Final = frozenset({"guardrails", "rate_limits", "token_limits"})

_FIELDS = tuple(NewGroup.model_fields)
_COLUMNS = tuple(_MONEY.get(name, name) for name in _FIELDS)
_OWN = ("id", "created_at_ms", "updated_at_ms")

# Built from the constants above: nothing that a caller sends becomes part of the statement.
_ALL = ", ".join((*_OWN, *_COLUMNS))
_SELECT = f"SELECT {_ALL} FROM key_groups"
_INSERT = f"INSERT INTO key_groups ({_ALL}) VALUES ({', '.join('?' * (len(_OWN) + len(_COLUMNS)))})"
_UPDATE = (
    f"UPDATE key_groups SET updated_at_ms = ?, {', '.join(f'{column} = ?' for column in _COLUMNS)} "
    "WHERE id = ?"
)


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A row of the table."""

    id: str
    created_at_ms: int
    updated_at_ms: int
    fields: NewGroup


@dataclass(frozen=True, slots=True)
class GroupContent:
    """The content of a group: its own keys, groups right below it, and members."""

    keys: int
    groups: int
    members: int


def insert_group(con: Connection, group: StoredGroup) -> None:
    """Adds a group, in the writer."""
    own = [group.id, group.created_at_ms, group.updated_at_ms]
    con.execute(_INSERT, [*own, *_written(group.fields)])


def update_group(con: Connection, group: StoredGroup) -> None:
    """Replaces a group's fields, in the writer."""
    con.execute(_UPDATE, [group.updated_at_ms, *_written(group.fields), group.id])


def delete_group(con: Connection, group_id: str) -> None:
    """Deletes a group and the rows that belong to it, in the writer; its keys are moved before."""
    con.execute("DELETE FROM key_group_members WHERE group_id = ?", [group_id])
    con.execute("DELETE FROM budget_alerts WHERE owner_id = ?", [group_id])
    con.execute("DELETE FROM key_groups WHERE id = ?", [group_id])


def find_group(con: Connection, group_id: str) -> StoredGroup | None:
    """The group with this id."""
    row = con.execute(f"{_SELECT} WHERE id = ?", [group_id]).fetchone()
    return None if row is None else _read(row)


def list_groups(con: Connection) -> list[StoredGroup]:
    """Every group in the order of their making."""
    rows = con.execute(f"{_SELECT} ORDER BY created_at_ms, id").fetchall()
    return [_read(row) for row in rows]


def content_of_groups(con: Connection) -> dict[str, GroupContent]:
    """The content of each group, by the group's id."""
    rows = con.execute(
        "SELECT g.id, "
        "(SELECT count(*) FROM keys k WHERE k.group_id = g.id), "
        "(SELECT count(*) FROM key_groups b WHERE b.parent_id = g.id), "
        "(SELECT count(*) FROM key_group_members m WHERE m.group_id = g.id) "
        "FROM key_groups g"
    ).fetchall()
    return {group_id: GroupContent(*counts) for group_id, *counts in rows}


def move_keys(con: Connection, from_id: str, to_id: str | None, at_ms: int) -> int:
    """Moves every key of a group to another, or to none, in the writer; returns how many."""
    rows = con.execute(
        "UPDATE keys SET group_id = ?, updated_at_ms = greatest(updated_at_ms, ?) "
        "WHERE group_id = ? RETURNING id",
        [to_id, at_ms, from_id],
    ).fetchall()
    return len(rows)


def _written(fields: NewGroup) -> list[Any]:
    values: list[Any] = []
    for name, value in fields:
        if value is None:
            values.append(None)
        elif name in _MONEY:
            values.append(micros_of(value))
        elif name in _JSON:
            dumped = fields.model_dump(include={name}, by_alias=False)[name]
            values.append(orjson.dumps(dumped).decode())
        else:
            values.append(value)
    return values


def _read(row: tuple[Any, ...]) -> StoredGroup:
    own, rest = row[: len(_OWN)], row[len(_OWN) :]
    fields: dict[str, Any] = {}
    for name, value in zip(_FIELDS, rest, strict=True):
        if value is None:
            fields[name] = None
        elif name in _MONEY:
            fields[name] = usd_of(value)
        elif name == "guardrails":
            fields[name] = _guardrails(orjson.loads(value))
        elif name == "rate_limits":
            fields[name] = [RateLimit.model_construct(**rule) for rule in orjson.loads(value)]
        elif name == "token_limits":
            fields[name] = [TokenBudget.model_construct(**rule) for rule in orjson.loads(value)]
        else:
            fields[name] = value
    # Stored fields were checked when they were sent; a rule that has changed since is no reason not to show them.
    group_id, created_at_ms, updated_at_ms = own
    shown = NewGroup.model_construct(**fields)
    return StoredGroup(group_id, created_at_ms, updated_at_ms, shown)


def _guardrails(stored: dict[str, Any]) -> GroupGuardrails:
    parts = {
        side: GroupGuardrails.model_fields[side].default.model_copy(update=actions)
        for side, actions in stored.items()
    }
    return GroupGuardrails.model_construct(**parts)
