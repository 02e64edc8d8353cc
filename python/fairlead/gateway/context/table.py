"""The tables `context_pipelines`, `context_assignments` and `output_filters`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from fairlead.gateway.context.fields import PipelineStage
from fairlead.store.file import Connection

_COLUMNS = "id, name, description, stages, created_at_ms, updated_at_ms"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A row of `context_pipelines`."""

    id: str
    name: str
    description: str
    stages: list[PipelineStage]
    created_at_ms: int
    updated_at_ms: int


def list_pipelines(con: Connection) -> list[Pipeline]:
    """Every pipeline, oldest first."""
    rows = con.execute(f"SELECT {_COLUMNS} FROM context_pipelines ORDER BY created_at_ms, id")
    return [_read(row) for row in rows.fetchall()]


def find_pipeline(con: Connection, pipeline_id: str) -> Pipeline | None:
    """The pipeline with this id."""
    row = con.execute(
        f"SELECT {_COLUMNS} FROM context_pipelines WHERE id = ?", [pipeline_id]
    ).fetchone()
    return None if row is None else _read(row)


def find_pipeline_by_name(con: Connection, name: str) -> Pipeline | None:
    """The pipeline with this name."""
    row = con.execute(f"SELECT {_COLUMNS} FROM context_pipelines WHERE name = ?", [name]).fetchone()
    return None if row is None else _read(row)


def put_pipeline(con: Connection, pipeline: Pipeline) -> None:
    """Stores a pipeline over what has its id, in the writer."""
    con.execute("DELETE FROM context_pipelines WHERE id = ?", [pipeline.id])
    stages = orjson.dumps([stage.model_dump() for stage in pipeline.stages]).decode()
    con.execute(
        "INSERT INTO context_pipelines VALUES (?, ?, ?, ?, ?, ?)",
        [
            pipeline.id,
            pipeline.name,
            pipeline.description,
            stages,
            pipeline.created_at_ms,
            pipeline.updated_at_ms,
        ],
    )


def delete_pipeline(con: Connection, pipeline_id: str) -> None:
    """Removes a pipeline with its assignments, in the writer."""
    con.execute("DELETE FROM context_assignments WHERE pipeline_id = ?", [pipeline_id])
    con.execute("DELETE FROM context_pipelines WHERE id = ?", [pipeline_id])


def assignments_of(con: Connection, pipeline_id: str) -> list[tuple[str, str]]:
    """Ids and names of the routing combos that a pipeline is for, by name."""
    rows = con.execute(
        "SELECT c.id, c.name FROM context_assignments a JOIN combos c ON c.id = a.combo_id "
        "WHERE a.pipeline_id = ? ORDER BY c.name",
        [pipeline_id],
    )
    return [(str(row[0]), str(row[1])) for row in rows.fetchall()]


def replace_assignments(con: Connection, pipeline_id: str, combo_ids: list[str]) -> None:
    """Gives a pipeline these routing combos, taking them from others, in the writer."""
    con.execute("DELETE FROM context_assignments WHERE pipeline_id = ?", [pipeline_id])
    for combo_id in combo_ids:
        con.execute("DELETE FROM context_assignments WHERE combo_id = ?", [combo_id])
        con.execute("INSERT INTO context_assignments VALUES (?, ?)", [combo_id, pipeline_id])


def all_assignments(con: Connection) -> dict[str, str]:
    """Names of pipelines by the names of the routing combos that they are for."""
    rows = con.execute(
        "SELECT c.name, p.name FROM context_assignments a JOIN combos c ON c.id = a.combo_id "
        "JOIN context_pipelines p ON p.id = a.pipeline_id"
    )
    return {str(row[0]): str(row[1]) for row in rows.fetchall()}


def own_filters(con: Connection) -> list[tuple[str, str]]:
    """SHA-256 and TOML of the operator's filters, in their order."""
    rows = con.execute("SELECT sha256, toml FROM output_filters ORDER BY position")
    return [(str(row[0]), str(row[1])) for row in rows.fetchall()]


def replace_own_filters(con: Connection, filters: list[tuple[str, str]]) -> None:
    """Stores the operator's filters in this order, in the writer."""
    con.execute("DELETE FROM output_filters")
    for position, (sha256, toml) in enumerate(filters):
        con.execute("INSERT INTO output_filters VALUES (?, ?, ?)", [sha256, toml, position])


def _read(row: tuple[Any, ...]) -> Pipeline:
    stages = [PipelineStage.model_validate(stage) for stage in orjson.loads(row[3])]
    return Pipeline(row[0], row[1], row[2], stages, row[4], row[5])
