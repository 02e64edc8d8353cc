"""`/api/combos`: make, list, read, change and delete combos."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter
from pydantic import Field, StrictBool, StrictStr

from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.gateway.combos.alias_table import aliases_of, find_alias
from fairlead.gateway.combos.fields import (
    ComboChange,
    ComboFields,
    ComboName,
    ModelStep,
    NewCombo,
    check_rules,
    references,
)
from fairlead.gateway.combos.graph import check_graph
from fairlead.gateway.combos.mapping_table import mappings_of
from fairlead.gateway.combos.table import (
    StoredCombo,
    all_combos,
    count_combos,
    delete_combo,
    find_combo,
    find_combo_by_name,
    insert_combo,
    last_place,
    list_combos,
    set_order,
    update_combo,
)
from fairlead.gateway.outbound.table import drop_proxy
from fairlead.gateway.providers.table import find_connection
from fairlead.moment import Time, moment_of, now_ms
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.wire import Limit, Offset, Success, Wire

router = APIRouter(prefix="/api/combos", tags=["combos"])

MAX_COMBOS = 1_000
NAMED_AT_MOST = 10

Id = Annotated[StrictStr, Field(min_length=1, max_length=100)]


class ComboView(ComboFields):
    """A combo as it is shown."""

    id: str
    name: str
    created_at: Time
    updated_at: Time


class ComboList(Wire):
    combos: list[ComboView]
    total: int
    limit: int
    offset: int


class ComboDeleted(Wire):
    success: bool = True


class ComboOrder(Wire):
    """The order of combos in lists, by their ids."""

    combo_ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_COMBOS)]


class ComboCopy(Wire):
    """Without a name the copy is called `<name> copy`."""

    name: ComboName | None = None
    is_active: StrictBool = False


@router.get("", summary="List combos")
async def list_all(services: ServicesDep, limit: Limit = 50, offset: Offset = 0) -> ComboList:
    """A page of combos, in their order."""

    def read_page(con: Connection) -> tuple[list[StoredCombo], int]:
        return list_combos(con, limit, offset), count_combos(con)

    combos, total = await services.state.read(read_page)
    return ComboList.model_construct(
        combos=[_view(combo) for combo in combos], total=total, limit=limit, offset=offset
    )


@router.post("", status_code=201, summary="Make a combo")
async def create(new: NewCombo, services: ServicesDep) -> ComboView:
    """Makes a combo; it can be called when this returns."""
    check_rules(new)
    made_at_ms = now_ms()
    combo = StoredCombo(str(uuid4()), new, made_at_ms, made_at_ms)

    def insert(con: Connection) -> StoredCombo:
        if count_combos(con) >= MAX_COMBOS:
            raise Conflict(f"There are {MAX_COMBOS} combos, which is the limit: delete one first.")
        _check_place(con, combo, before=None)
        insert_combo(con, replace(combo, sort_order=last_place(con)))
        return _found(con, combo.id)

    return _view(await services.state.commit(insert))


@router.post("/reorder", summary="Put combos in an order")
async def reorder(body: ComboOrder, services: ServicesDep) -> Success:
    """Lists show combos in this order when this returns; combos that you do not name follow."""

    def put(con: Connection) -> None:
        ids = [combo.id for combo in all_combos(con)]
        for at, combo_id in enumerate(body.combo_ids):
            if combo_id not in ids:
                raise InvalidRequest(
                    f"comboIds.{at}: there is no combo with this id.", param=f"comboIds.{at}"
                )
        if len(set(body.combo_ids)) < len(body.combo_ids):
            raise InvalidRequest("comboIds: each combo has one place.", param="comboIds")
        others = [combo_id for combo_id in ids if combo_id not in body.combo_ids]
        set_order(con, [*body.combo_ids, *others])

    await services.state.commit(put)
    return Success()


@router.post("/{combo_id}/duplicate", status_code=201, summary="Make a combo like another")
async def duplicate(combo_id: str, body: ComboCopy, services: ServicesDep) -> ComboView:
    """A copy under another name, inactive unless the request activates it."""
    made_at_ms = now_ms()

    def insert(con: Connection) -> StoredCombo:
        if count_combos(con) >= MAX_COMBOS:
            raise Conflict(f"There are {MAX_COMBOS} combos, which is the limit: delete one first.")
        before = _found(con, combo_id)
        name = body.name or _free_name(con, before.fields.name)
        fields = before.fields.model_copy(update={"name": name, "is_active": body.is_active})
        copy = StoredCombo(str(uuid4()), fields, made_at_ms, made_at_ms, last_place(con))
        _check_place(con, copy, before=None)
        insert_combo(con, copy)
        return _found(con, copy.id)

    return _view(await services.state.commit(insert))


@router.get("/{combo_id}", summary="One combo")
async def read(combo_id: str, services: ServicesDep) -> ComboView:
    """The combo's record."""
    return _view(await services.state.read(lambda con: _found(con, combo_id)))


@router.put("/{combo_id}", summary="Change a combo; other fields keep their value")
async def change(combo_id: str, change: ComboChange, services: ServicesDep) -> ComboView:
    """Changes what was sent, if the record as a whole keeps its rules."""

    def update(con: Connection) -> StoredCombo:
        before = _found(con, combo_id)
        fields = before.fields.changed(change)
        check_rules(fields)
        at_ms = max(now_ms(), before.updated_at_ms + 1)
        after = replace(before, fields=fields, updated_at_ms=at_ms)
        _check_place(con, after, before=before)
        update_combo(con, after)
        return _found(con, combo_id)

    return _view(await services.state.commit(update))


@router.delete("/{combo_id}", summary="Delete a combo that no other combo and no alias names")
async def delete(combo_id: str, services: ServicesDep) -> ComboDeleted:
    """Deletes the combo; its name is refused when this returns."""

    def delete_row(con: Connection) -> None:
        _refuse_in_use(con, _found(con, combo_id).fields.name, "deleted")
        delete_combo(con, combo_id)
        drop_proxy(con, "combo", combo_id)

    await services.state.commit(delete_row)
    return ComboDeleted()


def _free_name(con: Connection, name: str) -> str:
    """`<name> copy`, with the first number that makes it free."""
    taken = {combo.fields.name for combo in all_combos(con)}
    stem = f"{name[:90]} copy"
    names = [stem, *(f"{stem} {number}" for number in range(2, MAX_COMBOS + 2))]
    return next(each for each in names if each not in taken and find_alias(con, each) is None)


def _check_place(con: Connection, combo: StoredCombo, before: StoredCombo | None) -> None:
    """Checks a record against the other combos and aliases, in the writer."""
    name = combo.fields.name
    taken = find_combo_by_name(con, name)
    if taken is not None and taken.id != combo.id:
        raise Conflict(f"name `{name}` is taken by another combo: choose another.", param="name")
    if find_alias(con, name) is not None:
        raise Conflict(f"name `{name}` is an alias: choose another, or delete it.", param="name")
    if before is not None and before.fields.name != name:
        _refuse_in_use(con, before.fields.name, "renamed")
    nested = {one.fields.name: _nested(one.fields) for one in all_combos(con) if one.id != combo.id}
    for at, wanted in references(combo.fields):
        if wanted != name and wanted not in nested:
            raise InvalidRequest(
                f"models.{at}.comboName: there is no combo `{wanted}`; make it first.",
                param=f"models.{at}.comboName",
            )
    nested[name] = _nested(combo.fields)
    check_graph(nested, name)
    # A connection that the record named before may have been deleted since; it may stay.
    known = _connections(before.fields) if before is not None else set()
    for at, step in enumerate(combo.fields.models):
        wanted_id = step.connection_id if isinstance(step, ModelStep) else None
        if wanted_id is None or wanted_id in known:
            continue
        if find_connection(con, wanted_id) is None:
            raise InvalidRequest(
                f"models.{at}.connectionId: there is no connection with this id.",
                param=f"models.{at}.connectionId",
            )


def _nested(fields: NewCombo) -> list[str]:
    return [wanted for _, wanted in references(fields)]


def _connections(fields: NewCombo) -> set[str]:
    steps = (step for step in fields.models if isinstance(step, ModelStep))
    return {step.connection_id for step in steps if step.connection_id is not None}


def _refuse_in_use(con: Connection, name: str, what: str) -> None:
    users = [
        f"the combo `{one.fields.name}`" for one in all_combos(con) if name in _nested(one.fields)
    ]
    users += [f"the alias `{alias}`" for alias in aliases_of(con, name)]
    if what == "deleted":
        combo = find_combo_by_name(con, name)
        patterns = [] if combo is None else mappings_of(con, combo.id)
        users += [f"the mapping of `{pattern}`" for pattern in patterns]
    if users:
        more = f" and {len(users) - NAMED_AT_MOST} more" if len(users) > NAMED_AT_MOST else ""
        raise Conflict(
            f"The combo `{name}` cannot be {what}: {', '.join(users[:NAMED_AT_MOST])}{more} "
            "would lead nowhere; change them first."
        )


def _found(con: Connection, combo_id: str) -> StoredCombo:
    combo = find_combo(con, combo_id)
    if combo is None:
        raise NotFound("There is no combo with this id.", param="id")
    return combo


def _view(combo: StoredCombo) -> ComboView:
    return ComboView.model_construct(
        id=combo.id,
        created_at=moment_of(combo.created_at_ms),
        updated_at=moment_of(combo.updated_at_ms),
        **dict(combo.fields),
    )
