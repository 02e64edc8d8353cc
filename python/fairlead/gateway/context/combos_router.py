"""`/api/context/combos`: pipelines of an operator's own, and the routing combos that they are for."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from fastapi import APIRouter
from pydantic import Field, StrictStr

from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.gateway.combos.table import find_combo
from fairlead.gateway.context.fields import NewPipeline, PipelineChange, PipelineStage
from fairlead.gateway.context.table import (
    Pipeline,
    assignments_of,
    delete_pipeline,
    find_pipeline,
    find_pipeline_by_name,
    list_pipelines,
    put_pipeline,
    replace_assignments,
)
from fairlead.moment import Time, moment_of, now_ms
from fairlead.store.file import Connection
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.services import ServicesDep
from fairlead.wire import Success, Wire

router = APIRouter(prefix="/api/context/combos", tags=["context"])

PIPELINES_MAX = 100


class PipelineView(Wire):
    """A pipeline as it is shown."""

    id: str
    name: str
    description: str
    stages: list[PipelineStage]
    created_at: Time
    updated_at: Time


class PipelineList(Wire):
    combos: list[PipelineView]


class AssignedCombo(Wire):
    """A routing combo that a pipeline is for."""

    id: str
    name: str


class Assignments(Wire):
    assignments: list[AssignedCombo]


class AssignmentsChange(Wire):
    """Ids of routing combos. A combo that another pipeline is for leaves that one."""

    combo_ids: list[StrictStr] = Field(max_length=1000)


@router.get("", summary="List your pipelines")
async def list_all(services: ServicesDep) -> PipelineList:
    """Every pipeline, oldest first."""
    pipelines = await services.state.read(list_pipelines)
    return PipelineList.model_construct(combos=[_view(each) for each in pipelines])


@router.post("", status_code=201, summary="Create a pipeline")
async def create(new: NewPipeline, services: ServicesDep) -> PipelineView:
    """Makes a pipeline; callers may name it when this returns."""
    at_ms = now_ms()
    made = Pipeline(str(uuid4()), new.name, new.description, new.stages, at_ms, at_ms)

    def store(con: Connection) -> None:
        if len(list_pipelines(con)) >= PIPELINES_MAX:
            raise Conflict(
                f"There are {PIPELINES_MAX} pipelines, which is the limit: delete one first."
            )
        _check_name(con, made)
        put_pipeline(con, made)

    await services.state.commit(store)
    return _view(made)


@router.get("/{pipeline_id}", summary="One pipeline")
async def read(pipeline_id: str, services: ServicesDep) -> PipelineView:
    """The pipeline's record."""
    return _view(await services.state.read(lambda con: _found(con, pipeline_id)))


@router.put("/{pipeline_id}", summary="Change a pipeline; other fields keep their value")
async def change(pipeline_id: str, change: PipelineChange, services: ServicesDep) -> PipelineView:
    """Changes the sent fields."""

    def store(con: Connection) -> Pipeline:
        before = _found(con, pipeline_id)
        after = replace(
            before,
            name=before.name if change.name is None else change.name,
            description=before.description if change.description is None else change.description,
            stages=before.stages if change.stages is None else change.stages,
            updated_at_ms=max(now_ms(), before.updated_at_ms + 1),
        )
        if after.name != before.name:
            _refuse_in_use(con, before.name)
        _check_name(con, after)
        put_pipeline(con, after)
        return after

    return _view(await services.state.commit(store))


@router.delete("/{pipeline_id}", summary="Delete a pipeline that no setting names")
async def delete(pipeline_id: str, services: ServicesDep) -> Success:
    """Deletes the pipeline with its assignments."""

    def remove(con: Connection) -> None:
        _refuse_in_use(con, _found(con, pipeline_id).name)
        delete_pipeline(con, pipeline_id)

    await services.state.commit(remove)
    return Success()


@router.get("/{pipeline_id}/assignments", summary="The routing combos that a pipeline is for")
async def read_assignments(pipeline_id: str, services: ServicesDep) -> Assignments:
    """Routing combos by name."""

    def find(con: Connection) -> list[tuple[str, str]]:
        _found(con, pipeline_id)
        return assignments_of(con, pipeline_id)

    return _assignments(await services.state.read(find))


@router.put("/{pipeline_id}/assignments", summary="Set the routing combos that a pipeline is for")
async def change_assignments(
    pipeline_id: str, change: AssignmentsChange, services: ServicesDep
) -> Assignments:
    """Takes the place of the assignments of before."""
    combo_ids = list(dict.fromkeys(change.combo_ids))

    def store(con: Connection) -> list[tuple[str, str]]:
        _found(con, pipeline_id)
        for combo_id in combo_ids:
            if find_combo(con, combo_id) is None:
                raise InvalidRequest(
                    f"comboIds names `{combo_id}`, which is no combo: take ids of /api/combos.",
                    param="comboIds",
                )
        replace_assignments(con, pipeline_id, combo_ids)
        return assignments_of(con, pipeline_id)

    return _assignments(await services.state.commit(store))


def _check_name(con: Connection, pipeline: Pipeline) -> None:
    taken = find_pipeline_by_name(con, pipeline.name)
    if taken is not None and taken.id != pipeline.id:
        raise Conflict(
            f"name `{pipeline.name}` is taken by another pipeline: choose another.", param="name"
        )


def _refuse_in_use(con: Connection, name: str) -> None:
    settings = read_operator_settings(con)
    for setting in ("compression_mode", "compression_automatic_mode"):
        if getattr(settings, setting) == name:
            raise Conflict(
                f"`{name}` is in force: choose another under /api/settings/compression first.",
                param="name",
            )


def _found(con: Connection, pipeline_id: str) -> Pipeline:
    pipeline = find_pipeline(con, pipeline_id)
    if pipeline is None:
        raise NotFound(f"There is no pipeline with the id `{pipeline_id}`.")
    return pipeline


def _view(pipeline: Pipeline) -> PipelineView:
    return PipelineView.model_construct(
        id=pipeline.id,
        name=pipeline.name,
        description=pipeline.description,
        stages=pipeline.stages,
        created_at=moment_of(pipeline.created_at_ms),
        updated_at=moment_of(pipeline.updated_at_ms),
    )


def _assignments(combos: list[tuple[str, str]]) -> Assignments:
    return Assignments.model_construct(
        assignments=[AssignedCombo.model_construct(id=id_, name=name) for id_, name in combos]
    )
