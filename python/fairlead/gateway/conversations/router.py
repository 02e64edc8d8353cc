"""`/v1/conversations`, in OpenAI's API. A conversation belongs to the caller that created it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field, StrictStr
from starlette.responses import Response

from fairlead.gateway.conversations.items import refuse_container, stored_item
from fairlead.gateway.conversations.table import (
    Conversation,
    append_items,
    change_metadata,
    delete_conversation,
    delete_item,
    find_conversation,
    find_item,
    insert_conversation,
    list_items,
)
from fairlead.gateway.files.contents import new_id
from fairlead.gateway.list_ends import list_ends
from fairlead.gateway.metadata import Metadata
from fairlead.gateway.responses.owner import OwnerDep
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.store.table import Page

router = APIRouter(prefix="/v1/conversations", tags=["conversations"])

AT_ONCE_MAX: Final = 1_000

Id = Annotated[str, Path(min_length=1, max_length=300)]
Items = Annotated[list[dict[str, Any]], Field(max_length=AT_ONCE_MAX)]
# The members that a caller wants beside an item: all that there are are shown in any case.
Include = Annotated[list[StrictStr] | None, Query(alias="include", max_length=16)]
IncludeAlias = Annotated[
    list[StrictStr] | None, Query(alias="include[]", max_length=16, include_in_schema=False)
]


class ConversationFields(BaseModel):
    """A conversation to be created."""

    model_config = ConfigDict(extra="forbid")

    items: Items | None = None
    metadata: Metadata | None = None


class ConversationChange(BaseModel):
    """The metadata that a conversation is to have."""

    model_config = ConfigDict(extra="forbid")

    metadata: Metadata | None


class NewItems(BaseModel):
    """Items to be added."""

    model_config = ConfigDict(extra="forbid")

    items: Annotated[Items, Field(min_length=1)]


@router.post("", summary="Create a conversation")
async def create(
    services: ServicesDep, owner: OwnerDep, fields: ConversationFields | None = None
) -> dict[str, Any]:
    """With `items`, which are in the form of the input of a response, and `metadata`. `POST /v1/responses` continues
    it with `conversation`, and adds its input and its output to it. It is stored until it is deleted.
    """
    fields = fields or ConversationFields()
    items = _stored(fields.items or [])
    metadata = orjson.dumps(fields.metadata or {}).decode()
    conversation = Conversation(new_id("conv_"), owner, metadata, 0, now_ms())

    def insert(con: Connection) -> None:
        insert_conversation(con, conversation)
        append_items(con, conversation.id, owner, items)

    await services.state.record(insert)
    return _view(conversation)


@router.get("/{conversation_id}", summary="One conversation")
async def read(conversation_id: Id, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """The conversation with its metadata; `/items` has its items."""
    found = await services.state.read(lambda con: find_conversation(con, conversation_id, owner))
    return _view(found)


@router.post("/{conversation_id}", summary="Change the metadata of a conversation")
async def change(
    conversation_id: Id, fields: ConversationChange, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """The metadata takes the place of all that it had."""
    metadata = orjson.dumps(fields.metadata or {}).decode()
    changed = await services.state.record(
        lambda con: change_metadata(con, conversation_id, owner, metadata)
    )
    return _view(changed)


@router.delete("/{conversation_id}", summary="Delete a conversation with its items")
async def delete(conversation_id: Id, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Responses that were added to it are stored for themselves, and stay."""
    await services.state.record(lambda con: delete_conversation(con, conversation_id, owner))
    return {"id": conversation_id, "object": "conversation.deleted", "deleted": True}


@router.get("/{conversation_id}/items", summary="The items of a conversation")
async def items(
    conversation_id: Id,
    services: ServicesDep,
    owner: OwnerDep,
    after: Annotated[str | None, Query(max_length=300)] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    order: Literal["asc", "desc"] = "desc",
    _include: Include = None,
    _include_alias: IncludeAlias = None,
) -> Response:
    """The last one first unless `order` is `asc`; `after` is the id of the last one seen."""
    page = Page(after, limit, order)
    found, has_more = await services.state.read(
        lambda con: list_items(con, conversation_id, owner, page)
    )
    return _answer(_list([orjson.Fragment(item) for item in found], _ids(found), has_more=has_more))


@router.post("/{conversation_id}/items", summary="Add items to a conversation")
async def add(
    conversation_id: Id,
    fields: NewItems,
    services: ServicesDep,
    owner: OwnerDep,
    _include: Include = None,
    _include_alias: IncludeAlias = None,
) -> Response:
    """Behind its other items; at most 1,000 at once."""
    new = _stored(fields.items)
    stored = await services.state.record(lambda con: append_items(con, conversation_id, owner, new))
    ids = [item["id"] for item in stored]
    return _answer(await asyncio.to_thread(lambda: _list(stored, ids, has_more=False)))


@router.get("/{conversation_id}/items/{item_id}", summary="One item of a conversation")
async def item(
    conversation_id: Id,
    item_id: Id,
    services: ServicesDep,
    owner: OwnerDep,
    _include: Include = None,
    _include_alias: IncludeAlias = None,
) -> Response:
    """As it is stored."""
    found = await services.state.read(lambda con: find_item(con, conversation_id, item_id, owner))
    return Response(found, media_type="application/json")


@router.delete("/{conversation_id}/items/{item_id}", summary="Delete an item of a conversation")
async def remove(
    conversation_id: Id, item_id: Id, services: ServicesDep, owner: OwnerDep
) -> dict[str, Any]:
    """Answers with the conversation."""
    return _view(
        await services.state.record(lambda con: delete_item(con, conversation_id, item_id, owner))
    )


def _stored(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for at, item in enumerate(items):
        refuse_container(item, f"items[{at}]")
    return [stored_item(item, f"items[{at}]") for at, item in enumerate(items)]


def _view(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "object": "conversation",
        "created_at": conversation.created_at_ms // 1000,
        "metadata": orjson.loads(conversation.metadata),
    }


def _ids(items: list[str]) -> list[str]:
    """The ids of the first and the last item."""
    return [orjson.loads(item)["id"] for item in (items[:1] + items[-1:])]


def _list(data: list[Any], ids: list[str], *, has_more: bool) -> bytes:
    return orjson.dumps({"object": "list", "data": data, **list_ends(ids), "has_more": has_more})


def _answer(body: bytes) -> Response:
    return Response(body, media_type="application/json")
