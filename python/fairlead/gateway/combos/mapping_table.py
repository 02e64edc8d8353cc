"""The table `model_combo_mappings`: one row per pattern of models that leads to a combo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, StrictBool, StrictInt

from fairlead.gateway.fields import Spelled, Text
from fairlead.store.file import Connection
from fairlead.wire import ChangeWire, Wire

_COLUMNS = (
    "id",
    "pattern",
    "combo_id",
    "priority",
    "is_enabled",
    "description",
    "created_at_ms",
)
# Built from the constants above: nothing that a caller sends becomes part of the statement.
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM model_combo_mappings"
_INSERT = (
    f"INSERT INTO model_combo_mappings ({', '.join(_COLUMNS)}) "
    f"VALUES ({', '.join('?' * len(_COLUMNS))})"
)

ModelPattern = Annotated[
    Text,
    Field(min_length=1, max_length=300),
    Spelled(
        r"(?!combo/)(?!auto(/|$))(?!\*+$)[^\x00-\x20\x7f]+",
        "must be a model or a pattern of models with `*`, without blanks, and neither of combos nor "
        "of `auto`",
    ),
]
ComboId = Annotated[Text, Field(min_length=1, max_length=100)]


class NewMapping(Wire):
    """Models that a pattern matches are served by the combo."""

    pattern: ModelPattern
    combo_id: ComboId
    priority: StrictInt = Field(
        0, ge=0, le=1_000_000, description="If several patterns match, the greatest priority wins."
    )
    enabled: StrictBool = True
    description: Annotated[Text, Field(max_length=2_000)] | None = None


class MappingChange(NewMapping, ChangeWire):
    """Any of the fields, at least one."""

    pattern: ModelPattern = ""
    combo_id: ComboId = ""


@dataclass(frozen=True, slots=True)
class StoredMapping:
    """A row of the table."""

    id: str
    fields: NewMapping
    created_at_ms: int


def insert_mapping(con: Connection, mapping: StoredMapping) -> None:
    """Adds a mapping, in the writer."""
    fields = mapping.fields
    con.execute(
        _INSERT,
        [
            mapping.id,
            fields.pattern,
            fields.combo_id,
            fields.priority,
            fields.enabled,
            fields.description,
            mapping.created_at_ms,
        ],
    )


def delete_mapping(con: Connection, mapping_id: str) -> None:
    """Removes a mapping, in the writer."""
    con.execute("DELETE FROM model_combo_mappings WHERE id = ?", [mapping_id])


def find_mapping(con: Connection, mapping_id: str) -> StoredMapping | None:
    """The mapping with this id."""
    row = con.execute(f"{_SELECT} WHERE id = ?", [mapping_id]).fetchone()
    return None if row is None else _read(row)


def all_mappings(con: Connection) -> list[StoredMapping]:
    """Every mapping, the one that holds first."""
    rows = con.execute(f"{_SELECT} ORDER BY priority DESC, created_at_ms, id").fetchall()
    return [_read(row) for row in rows]


def mappings_of(con: Connection, combo_id: str) -> list[str]:
    """The patterns that lead to this combo."""
    rows = con.execute(
        "SELECT pattern FROM model_combo_mappings WHERE combo_id = ? ORDER BY pattern", [combo_id]
    ).fetchall()
    return [str(row[0]) for row in rows]


def _read(row: tuple[Any, ...]) -> StoredMapping:
    values = dict(zip(_COLUMNS, row, strict=True))
    fields = NewMapping.model_construct(
        pattern=values["pattern"],
        combo_id=values["combo_id"],
        priority=values["priority"],
        enabled=values["is_enabled"],
        description=values["description"],
    )
    return StoredMapping(values["id"], fields, values["created_at_ms"])
