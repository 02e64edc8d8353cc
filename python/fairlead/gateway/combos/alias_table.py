"""The table `model_aliases`: one row per alias."""

from __future__ import annotations

from fairlead.gateway.combos.fields import PREFIX
from fairlead.store.file import Connection


def set_alias(con: Connection, alias: str, target: str, at_ms: int) -> None:
    """Adds an alias or points it elsewhere, in the writer."""
    delete_alias(con, alias)
    con.execute("INSERT INTO model_aliases VALUES (?, ?, ?)", [alias, target, at_ms])


def delete_alias(con: Connection, alias: str) -> bool:
    """Removes an alias, in the writer; False when there is none."""
    row = con.execute("DELETE FROM model_aliases WHERE alias = ? RETURNING 1", [alias]).fetchone()
    return row is not None


def find_alias(con: Connection, alias: str) -> str | None:
    """The model or combo that the alias stands for."""
    row = con.execute("SELECT target FROM model_aliases WHERE alias = ?", [alias]).fetchone()
    return None if row is None else str(row[0])


def all_aliases(con: Connection) -> dict[str, str]:
    """Every alias, by name, with the model or combo that it stands for."""
    rows = con.execute("SELECT alias, target FROM model_aliases ORDER BY alias").fetchall()
    return {str(alias): str(target) for alias, target in rows}


def aliases_of(con: Connection, combo: str) -> list[str]:
    """The aliases that stand for this combo."""
    rows = con.execute(
        "SELECT alias FROM model_aliases WHERE target IN (?, ?) ORDER BY alias",
        [combo, PREFIX + combo],
    ).fetchall()
    return [str(row[0]) for row in rows]
