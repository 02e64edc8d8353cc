"""The table `combos`: one row per combo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
import structlog
from pydantic import ValidationError

from fairlead.gateway.combos.fields import NewCombo
from fairlead.store.file import Connection
from fairlead.store.table import read_number

log = structlog.get_logger("fairlead.gateway")

_COLUMNS = (
    "id",
    "name",
    "description",
    "strategy",
    "steps",
    "config",
    "is_active",
    "created_at_ms",
    "updated_at_ms",
    "rules",
    "sort_order",
)
# The fields of the column `rules`, by their names in JSON.
_RULES = (
    "systemMessage",
    "toolFilterRegex",
    "allowedProviders",
    "allowedModelFamilies",
    "contextLength",
    "contextCacheProtection",
)
_ORDER = "sort_order, created_at_ms, id"

# Built from the constants above: nothing that a caller sends becomes part of the statement.
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM combos"
_INSERT = f"INSERT INTO combos ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
_UPDATE = f"UPDATE combos SET {', '.join(f'{c} = ?' for c in _COLUMNS[1:])} WHERE id = ?"


@dataclass(frozen=True, slots=True)
class StoredCombo:
    """A row of the table."""

    id: str
    fields: NewCombo
    created_at_ms: int
    updated_at_ms: int
    sort_order: int = 0
    """Its position in lists; combos with the same position are in the order of their creation."""


def insert_combo(con: Connection, combo: StoredCombo) -> None:
    """Adds a combo, in the writer."""
    con.execute(_INSERT, _written(combo))


def update_combo(con: Connection, combo: StoredCombo) -> None:
    """Replaces a combo's row, in the writer."""
    con.execute(_UPDATE, [*_written(combo)[1:], combo.id])


def delete_combo(con: Connection, combo_id: str) -> None:
    """Removes a combo, in the writer."""
    con.execute("DELETE FROM combos WHERE id = ?", [combo_id])


def find_combo(con: Connection, combo_id: str) -> StoredCombo | None:
    """The combo with this id."""
    row = con.execute(f"{_SELECT} WHERE id = ?", [combo_id]).fetchone()
    return None if row is None else _read(row)


def find_combo_by_name(con: Connection, name: str) -> StoredCombo | None:
    """The combo with this name."""
    row = con.execute(f"{_SELECT} WHERE name = ?", [name]).fetchone()
    return None if row is None else _read(row)


def list_combos(con: Connection, limit: int, offset: int) -> list[StoredCombo]:
    """A page of combos, in their order."""
    rows = con.execute(f"{_SELECT} ORDER BY {_ORDER} LIMIT ? OFFSET ?", [limit, offset]).fetchall()
    return [_read(row) for row in rows]


def all_combos(con: Connection) -> list[StoredCombo]:
    """Every combo that can be read, in their order; one that cannot is logged."""
    combos: list[StoredCombo] = []
    for row in con.execute(f"{_SELECT} ORDER BY {_ORDER}").fetchall():
        try:
            combos.append(_read(row))
        except (ValidationError, ValueError, TypeError) as error:
            # One damaged record must not block every later snapshot.
            log.error("a combo cannot be read", id=row[0], error=type(error).__name__)
    return combos


def set_order(con: Connection, combo_ids: list[str]) -> None:
    """Puts combos in this order, in the writer."""
    con.executemany(
        "UPDATE combos SET sort_order = ? WHERE id = ?",
        [[place, combo_id] for place, combo_id in enumerate(combo_ids, 1)],
    )


def last_place(con: Connection) -> int:
    """The place of the last combo in the order; 0 without any."""
    return read_number(con, "SELECT coalesce(max(sort_order), 0) FROM combos")


def count_combos(con: Connection) -> int:
    """How many combos there are."""
    return read_number(con, "SELECT count(*) FROM combos")


def _written(combo: StoredCombo) -> list[Any]:
    body = combo.fields.model_dump(by_alias=True, mode="json", exclude_none=True)
    return [
        combo.id,
        combo.fields.name,
        combo.fields.description,
        combo.fields.strategy,
        orjson.dumps(body["models"]).decode(),
        orjson.dumps(body["config"]).decode(),
        combo.fields.is_active,
        combo.created_at_ms,
        combo.updated_at_ms,
        orjson.dumps({name: body[name] for name in _RULES if body.get(name)}).decode(),
        combo.sort_order,
    ]


def _read(row: tuple[Any, ...]) -> StoredCombo:
    values = dict(zip(_COLUMNS, row, strict=True))
    fields = NewCombo.model_validate(
        {
            "name": values["name"],
            "description": values["description"],
            "strategy": values["strategy"],
            "models": orjson.loads(values["steps"]),
            "config": orjson.loads(values["config"]),
            "isActive": values["is_active"],
            **orjson.loads(values["rules"]),
        }
    )
    return StoredCombo(
        values["id"],
        fields,
        values["created_at_ms"],
        values["updated_at_ms"],
        values["sort_order"],
    )
