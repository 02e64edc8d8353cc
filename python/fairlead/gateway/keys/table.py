"""The table `keys`: one row per key, without its text."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from fairlead.gateway.keys.access_fields import RateLimit
from fairlead.gateway.keys.fields import AccessSchedule, NewKey
from fairlead.moment import moment_of, ms_of
from fairlead.money import micros_of, usd_of
from fairlead.store.file import Connection
from fairlead.store.table import read_number

# Fields whose column has another form: SQL name, then how the value is written and read.
_MOMENTS = {"expires_at": "expires_at_ms"}
_MONEY = {
    "daily_usage_limit_usd": "daily_usage_limit_usd_micros",
    "weekly_usage_limit_usd": "weekly_usage_limit_usd_micros",
    "monthly_usage_limit_usd": "monthly_usage_limit_usd_micros",
}
_JSON = frozenset({"rate_limits", "access_schedule"})

_FIELDS = tuple(NewKey.model_fields)
_COLUMNS = tuple(_MOMENTS.get(name) or _MONEY.get(name) or name for name in _FIELDS)
_OWN = ("id", "hash", "preview", "created_at_ms", "updated_at_ms", "made_by")

# Built from the constants above: nothing that a caller sends becomes part of the statement.
_ALL = ", ".join((*_OWN, *_COLUMNS))
_SELECT = f"SELECT {_ALL} FROM keys"
_IN_GROUPS = "(?::BOOLEAN OR group_id IN (SELECT unnest(?::VARCHAR[])))"
_MARKS = ", ".join("?" * (len(_OWN) + len(_COLUMNS)))
_SETS = ", ".join(f"{column} = ?" for column in _COLUMNS)
_INSERT = f"INSERT INTO keys ({_ALL}) VALUES ({_MARKS})"
_UPDATE = f"UPDATE keys SET updated_at_ms = ?, {_SETS} WHERE id = ?"


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A row of the table. `hash` is the hex SHA-256 of the key's text, `preview` the part of it
    that may be shown.
    """

    id: str
    hash: str
    preview: str
    created_at_ms: int
    updated_at_ms: int
    fields: NewKey
    made_by: str | None = None
    """The user who made it as a member of its group."""


def insert_key(con: Connection, key: StoredKey) -> None:
    """Adds a key, in the writer."""
    own = [key.id, key.hash, key.preview, key.created_at_ms, key.updated_at_ms, key.made_by]
    con.execute(_INSERT, [*own, *_written(key.fields)])


def update_key(con: Connection, key: StoredKey) -> None:
    """Replaces a key's fields, in the writer."""
    con.execute(_UPDATE, [key.updated_at_ms, *_written(key.fields), key.id])


def replace_key_text(con: Connection, key: StoredKey) -> None:
    """Replaces the hash and preview of a key, in the writer."""
    con.execute(
        "UPDATE keys SET hash = ?, preview = ?, updated_at_ms = ? WHERE id = ?",
        [key.hash, key.preview, key.updated_at_ms, key.id],
    )


def delete_key(con: Connection, key_id: str) -> bool:
    """Deletes a key and the rows that belong to it, in the writer; False when there is none."""
    con.execute("DELETE FROM token_limits WHERE key_id = ?", [key_id])
    con.execute("DELETE FROM budget_alerts WHERE owner_id = ?", [key_id])
    return con.execute("DELETE FROM keys WHERE id = ? RETURNING 1", [key_id]).fetchone() is not None


def find_key(con: Connection, key_id: str) -> StoredKey | None:
    """The key with this id."""
    row = con.execute(f"{_SELECT} WHERE id = ?", [key_id]).fetchone()
    return None if row is None else _read(row)


def list_keys(
    con: Connection, limit: int, offset: int, group_ids: Collection[str] | None = None
) -> list[StoredKey]:
    """Keys in the order of their making; with `group_ids` those of these groups."""
    rows = con.execute(
        f"{_SELECT} WHERE {_IN_GROUPS} ORDER BY created_at_ms, id LIMIT ? OFFSET ?",
        [*_groups_bound(group_ids), limit, offset],
    ).fetchall()
    return [_read(row) for row in rows]


def list_keys_made_by(con: Connection, user_id: str, group_id: str) -> list[StoredKey]:
    """The keys that a user made as a member of this group."""
    rows = con.execute(
        f"{_SELECT} WHERE made_by = ? AND group_id = ? ORDER BY created_at_ms, id",
        [user_id, group_id],
    ).fetchall()
    return [_read(row) for row in rows]


def count_keys(con: Connection, group_ids: Collection[str] | None = None) -> int:
    """How many keys there are, or in these groups."""
    return read_number(
        con, f"SELECT count(*) FROM keys WHERE {_IN_GROUPS}", _groups_bound(group_ids)
    )


def _groups_bound(group_ids: Collection[str] | None) -> list[Any]:
    return [group_ids is None, sorted(group_ids or ())]


def _written(fields: NewKey) -> list[Any]:
    values: list[Any] = []
    for name, value in fields:
        if value is None:
            values.append(None)
        elif name in _MOMENTS:
            values.append(ms_of(value))
        elif name in _MONEY:
            values.append(micros_of(value))
        elif name in _JSON:
            values.append(
                json.dumps(fields.model_dump(include={name}, by_alias=True)[_alias(name)])
            )
        else:
            values.append(value)
    return values


def _read(row: tuple[Any, ...]) -> StoredKey:
    own, rest = row[: len(_OWN)], row[len(_OWN) :]
    fields: dict[str, Any] = {}
    for name, value in zip(_FIELDS, rest, strict=True):
        if value is None:
            fields[name] = None
        elif name in _MOMENTS:
            fields[name] = moment_of(value)
        elif name in _MONEY:
            fields[name] = usd_of(value)
        elif name == "rate_limits":
            fields[name] = [RateLimit.model_construct(**rule) for rule in json.loads(value)]
        elif name == "access_schedule":
            fields[name] = AccessSchedule.model_construct(**json.loads(value))
        else:
            fields[name] = value
    # Stored fields were checked when they were sent. A rule that has changed since, or a time zone
    # that
    # this machine does not know, is no reason not to show the key.
    record_id, digest, preview, created_at_ms, updated_at_ms, made_by = own
    shown = NewKey.model_construct(**fields)
    return StoredKey(record_id, digest, preview, created_at_ms, updated_at_ms, shown, made_by)


def _alias(name: str) -> str:
    return NewKey.model_fields[name].alias or name
