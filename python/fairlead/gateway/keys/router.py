"""`/api/keys`: make, list, read, change, regenerate and revoke API keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Query
from pydantic import Field

from fairlead import _core
from fairlead.calls.caller import CallerDep, refuse_over_managing_keys
from fairlead.errors import NotFound
from fairlead.gateway.keys.fields import (
    KeyChange,
    KeyFields,
    NewKey,
    check_rules,
    ineffective,
)
from fairlead.gateway.keys.table import (
    StoredKey,
    count_keys,
    delete_key,
    find_key,
    insert_key,
    list_keys,
    replace_key_text,
    update_key,
)
from fairlead.gateway.outbound.table import drop_proxy
from fairlead.moment import Time, moment_of, now_ms
from fairlead.records.group_tree import check_group
from fairlead.records.key_uses import read_last_uses
from fairlead.records.webhook_endpoints import delete_owned_endpoints
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Limit, Offset, Success, Wire, changed_names

router = APIRouter(prefix="/api/keys", tags=["keys"])

# A preview shows the prefix and the last characters, which belong to the checksum.
PREVIEW_HEAD = 10
PREVIEW_TAIL = 4


class KeyView(KeyFields):
    """A key as it is shown: everything but its text."""

    id: str
    name: str
    key_preview: str
    ineffective: list[str] = Field(
        description="Stored values without effect: fields, and values of lists as "
        "`scopes:<scope>` and `allowedEndpoints:<category>`."
    )
    last_used_at: Time | None = Field(
        description="When its newest settled request was admitted; null: never, or that is not "
        "known now."
    )
    made_by: str | None = Field(
        description="The user who made it as a member of its group; null: an operator did."
    )
    created_at: Time
    updated_at: Time


class CreatedKey(KeyView):
    """A key with its text, which is shown this once."""

    key: str


class KeyList(Wire):
    keys: list[KeyView]
    total: int
    limit: int
    offset: int


GroupFilter = Annotated[
    str | None, Query(alias="groupId", max_length=64, description="Keys of this group alone.")
]


@router.get("", summary="List API keys")
async def list_all(
    services: ServicesDep,
    limit: Limit = 50,
    offset: Offset = 0,
    group_id: GroupFilter = None,
) -> KeyList:
    """A page of keys, oldest first."""
    group_ids = None if group_id is None else [group_id]

    def read_page(con: Connection) -> tuple[list[StoredKey], int]:
        return list_keys(con, limit, offset, group_ids), count_keys(con, group_ids)

    keys, total = await services.state.read(read_page)
    uses = await read_last_uses(services.usage, [key.id for key in keys])
    return KeyList.model_construct(
        keys=[view_key(key, uses.get(key.id)) for key in keys],
        total=total,
        limit=limit,
        offset=offset,
    )


@router.post("", status_code=201, summary="Make an API key; its text is shown only in this answer")
async def create(new: NewKey, services: ServicesDep, caller: CallerDep) -> CreatedKey:
    """Makes a key; only its hash is kept."""
    check_rules(new)
    refuse_over_managing_keys(caller.principal, new.scopes)
    text, digest = _core.new_key()
    made_at_ms = now_ms()
    key = StoredKey(
        id=str(uuid4()),
        hash=digest,
        preview=preview_of(text),
        created_at_ms=made_at_ms,
        updated_at_ms=made_at_ms,
        fields=new,
    )

    def insert(con: Connection) -> StoredKey:
        check_group(con, new.group_id)
        insert_key(con, key)
        emit(con, Event("key.created", {"id": key.id, "name": new.name}))
        return _found(con, key.id)

    stored = await services.state.commit(insert)
    return CreatedKey.model_construct(**dict(view_key(stored)), key=text)


@router.get("/{key_id}", summary="One API key")
async def read(key_id: str, services: ServicesDep) -> KeyView:
    """The key's record."""
    return await _shown(services, await services.state.read(lambda con: _found(con, key_id)))


@router.patch("/{key_id}", summary="Change an API key; other fields keep their value")
async def change(
    key_id: str, change: KeyChange, services: ServicesDep, caller: CallerDep
) -> KeyView:
    """Changes what was sent, if the record as a whole keeps its rules."""

    def update(con: Connection) -> StoredKey:
        key = _found(con, key_id)
        fields = key.fields.changed(change)
        check_rules(fields, key.fields)
        check_group(con, fields.group_id)
        refuse_over_managing_keys(caller.principal, fields.scopes, key.fields.scopes)
        at_ms = max(now_ms(), key.updated_at_ms)
        update_key(con, replace(key, updated_at_ms=at_ms, fields=fields))
        changed = changed_names(change)
        emit(
            con,
            Event("key.updated", {"id": key_id, "name": fields.name, "changed": changed}),
        )
        return _found(con, key_id)

    return await _shown(services, await services.state.commit(update))


@router.post(
    "/{key_id}/regenerate", summary="Give an API key a new text, which is shown only in this answer"
)
async def regenerate(key_id: str, services: ServicesDep, caller: CallerDep) -> CreatedKey:
    """Gives the key a new text; the old one is refused everywhere when this returns. All else stays: its fields, its
    usage, and what is spent of its limits.
    """
    text, digest = _core.new_key()

    def replace_text(con: Connection) -> StoredKey:
        key = _found(con, key_id)
        refuse_over_managing_keys(caller.principal, key.fields.scopes)
        at_ms = max(now_ms(), key.updated_at_ms)
        renewed = replace(key, hash=digest, preview=preview_of(text), updated_at_ms=at_ms)
        replace_key_text(con, renewed)
        emit(
            con,
            Event("key.updated", {"id": key_id, "name": key.fields.name, "changed": ["key"]}),
        )
        return renewed

    stored = await _shown(services, await services.state.commit(replace_text))
    return CreatedKey.model_construct(**dict(stored), key=text)


@router.delete("/{key_id}", summary="Revoke an API key permanently")
async def delete(key_id: str, services: ServicesDep, caller: CallerDep) -> Success:
    """Deletes the key; it is refused everywhere when this returns."""

    def delete_row(con: Connection) -> None:
        key = _found(con, key_id)
        refuse_over_managing_keys(caller.principal, key.fields.scopes)
        delete_key(con, key_id)
        drop_proxy(con, "key", key_id)
        delete_owned_endpoints(con, "service", key_id)
        emit(con, Event("key.deleted", {"id": key_id, "name": key.fields.name}))

    await services.state.commit(delete_row)
    return Success()


def _found(con: Connection, key_id: str) -> StoredKey:
    key = find_key(con, key_id)
    if key is None:
        raise NotFound("There is no API key with this id.", param="id")
    return key


def preview_of(text: str) -> str:
    """The part of a key's text that may be shown."""
    return f"{text[:PREVIEW_HEAD]}...{text[-PREVIEW_TAIL:]}"


async def _shown(services: Services, key: StoredKey) -> KeyView:
    uses = await read_last_uses(services.usage, [key.id])
    return view_key(key, uses.get(key.id))


def view_key(key: StoredKey, last_used_ms: int | None = None) -> KeyView:
    """A key as it is shown."""
    return KeyView.model_construct(
        id=key.id,
        key_preview=key.preview,
        ineffective=ineffective(key.fields),
        last_used_at=None if last_used_ms is None else moment_of(last_used_ms),
        made_by=key.made_by,
        created_at=moment_of(key.created_at_ms),
        updated_at=moment_of(key.updated_at_ms),
        **dict(key.fields),
    )
