"""`/api/model-combo-mappings`: patterns of models that a combo serves in their place."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from uuid import uuid4

from fastapi import APIRouter

from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.gateway.combos.mapping_table import (
    MappingChange,
    NewMapping,
    StoredMapping,
    all_mappings,
    delete_mapping,
    find_mapping,
    insert_mapping,
)
from fairlead.gateway.combos.table import find_combo
from fairlead.moment import Time, moment_of, now_ms
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.wire import Success, Wire

router = APIRouter(prefix="/api/model-combo-mappings", tags=["combos"])

MAX_MAPPINGS: Final = 500


class MappingView(NewMapping):
    """A mapping as it is shown."""

    id: str
    created_at: Time


class MappingList(Wire):
    mappings: list[MappingView]
    total: int


@router.get("", summary="List mappings of models to combos")
async def list_all(services: ServicesDep) -> MappingList:
    """Every mapping, in order of precedence."""
    found = [_view(one) for one in await services.state.read(all_mappings)]
    return MappingList.model_construct(mappings=found, total=len(found))


@router.post("", status_code=201, summary="Map a pattern of models to a combo")
async def create(new: NewMapping, services: ServicesDep) -> MappingView:
    """In force when this returns."""
    mapping = StoredMapping(str(uuid4()), new, now_ms())

    def insert(con: Connection) -> None:
        if len(all_mappings(con)) >= MAX_MAPPINGS:
            raise Conflict(f"There are {MAX_MAPPINGS} mappings, which is the limit.")
        _check(con, mapping)
        insert_mapping(con, mapping)

    await services.state.commit(insert)
    return _view(mapping)


@router.get("/{mapping_id}", summary="One mapping")
async def read(mapping_id: str, services: ServicesDep) -> MappingView:
    """The mapping's record."""
    return _view(await services.state.read(lambda con: _found(con, mapping_id)))


@router.put("/{mapping_id}", summary="Change a mapping; other fields keep their value")
async def change(mapping_id: str, change: MappingChange, services: ServicesDep) -> MappingView:
    """In force when this returns."""

    def update(con: Connection) -> StoredMapping:
        before = _found(con, mapping_id)
        after = replace(before, fields=before.fields.model_copy(update=change.sent()))
        _check(con, after)
        delete_mapping(con, mapping_id)
        insert_mapping(con, after)
        return after

    return _view(await services.state.commit(update))


@router.delete("/{mapping_id}", summary="Delete a mapping")
async def delete(mapping_id: str, services: ServicesDep) -> Success:
    """When this returns, the models are no longer served by the combo."""

    def delete_row(con: Connection) -> None:
        _found(con, mapping_id)
        delete_mapping(con, mapping_id)

    await services.state.commit(delete_row)
    return Success()


def _check(con: Connection, mapping: StoredMapping) -> None:
    if find_combo(con, mapping.fields.combo_id) is None:
        raise InvalidRequest(
            "comboId: there is no combo with this id; `GET /api/combos` lists them.",
            param="comboId",
        )
    for other in all_mappings(con):
        if other.fields.pattern == mapping.fields.pattern and other.id != mapping.id:
            raise Conflict(
                f"pattern `{mapping.fields.pattern}` is mapped already: change that mapping.",
                param="pattern",
            )


def _found(con: Connection, mapping_id: str) -> StoredMapping:
    mapping = find_mapping(con, mapping_id)
    if mapping is None:
        raise NotFound("There is no mapping with this id.", param="id")
    return mapping


def _view(mapping: StoredMapping) -> MappingView:
    return MappingView.model_construct(
        id=mapping.id, created_at=moment_of(mapping.created_at_ms), **dict(mapping.fields)
    )
