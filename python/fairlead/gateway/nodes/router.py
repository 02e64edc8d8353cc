"""`/api/provider-nodes`: make, list, read, change and delete nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

from fastapi import APIRouter

from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.gateway.nodes.fields import NewNode, NodeChange, NodeFields
from fairlead.gateway.nodes.headers import MASK, unmask
from fairlead.gateway.nodes.table import (
    Node,
    count_nodes,
    delete_node,
    find_node,
    find_node_by_name,
    insert_node,
    list_nodes,
    update_node,
)
from fairlead.gateway.nodes.timeouts import Timeouts
from fairlead.gateway.outbound.table import drop_proxy
from fairlead.gateway.providers.catalogue import catalogue
from fairlead.gateway.providers.credentials import open_headers, reseal_connections, seal_headers
from fairlead.gateway.providers.endpoint import addresses_of
from fairlead.gateway.providers.stated_facts import StatedFacts, merge_stated, show_facts
from fairlead.gateway.providers.table import Connection as ProviderConnection
from fairlead.gateway.providers.table import connections_of, forget_tests
from fairlead.gateway.unused_fields import ineffective, refuse_unused
from fairlead.moment import Time, moment_of, now_ms
from fairlead.net.secret_origin import check_secret_origin, new_origin
from fairlead.store.file import Connection
from fairlead.store.outbox import Event, emit
from fairlead.store.sealer import Sealer
from fairlead.store.services import ServicesDep
from fairlead.wire import Limit, Message, Offset, Wire, changed_names

router = APIRouter(prefix="/api/provider-nodes", tags=["provider nodes"])

NAMED_AT_MOST = 10

# Fields of the body with a column of the same name.
# Models of this prefix are coding tools that the gateway starts.
_CODING_TOOLS = "acp"
_PLAIN = ("type", "name", "prefix", "api_type", "base_url", "chat_path", "models_path", "icon_url")


class NodeView(StatedFacts):
    """A node as it is shown: header values masked; `ineffective` names stored fields that have no
    effect.
    """

    id: str
    type: str
    name: str
    prefix: str
    api_type: str
    base_url: str
    chat_path: str | None
    models_path: str | None
    icon_url: str | None
    ineffective: list[str]
    custom_headers: dict[str, str] | None
    timeouts: Timeouts | None
    created_at: Time
    updated_at: Time


class OneNode(Wire):
    node: NodeView


class NodeList(Wire):
    nodes: list[NodeView]
    total: int
    limit: int
    offset: int


@router.get("", summary="List provider nodes")
async def list_all(
    services: ServicesDep,
    limit: Limit = 50,
    offset: Offset = 0,
) -> NodeList:
    def read_page(con: Connection) -> tuple[list[Node], int]:
        return list_nodes(con, limit, offset), count_nodes(con)

    nodes, total = await services.state.read(read_page)
    return NodeList.model_construct(
        nodes=[_view(node) for node in nodes], total=total, limit=limit, offset=offset
    )


@router.post("", status_code=201, summary="Make a provider node")
async def create(new: NewNode, services: ServicesDep) -> OneNode:
    node_id = str(uuid4())
    made_at_ms = now_ms()

    _check_unused(new, None)

    def insert(con: Connection) -> Node:
        _check_prefix(con, new.prefix, node_id)
        node = Node(
            id=node_id,
            **{name: getattr(new, name) for name in _PLAIN},
            **_sealed_headers(services.state.sealer, node_id, new.custom_headers, {}),
            timeouts=_stored_timeouts(new.timeouts),
            created_at_ms=made_at_ms,
            updated_at_ms=made_at_ms,
            stated=merge_stated({}, new),
        )
        insert_node(con, node)
        emit(con, Event("node.created", _event_data(node)))
        return node

    return _shown(await services.state.commit(insert))


@router.get("/{node_id}", summary="One provider node")
async def read(node_id: str, services: ServicesDep) -> OneNode:
    return _shown(await services.state.read(lambda con: _found(con, node_id)))


@router.put("/{node_id}", summary="Change a node; other fields keep their value")
async def change(node_id: str, change: NodeChange, services: ServicesDep) -> OneNode:
    sealer = services.state.sealer

    def update(con: Connection) -> Node:
        before = _found(con, node_id)
        _check_unused(change, before)
        sent = change.model_fields_set
        columns: dict[str, Any] = {name: getattr(change, name) for name in _PLAIN if name in sent}
        if change.prefix is not None:
            _check_prefix(con, change.prefix, node_id)
        if "timeouts" in sent:
            columns["timeouts"] = _stored_timeouts(change.timeouts)
        columns["stated"] = merge_stated(before.stated, change)
        if "custom_headers" in sent:
            stored = open_headers(sealer, before)
            _check_headers_kept(change.custom_headers or {}, before, change.base_url)
            columns |= _sealed_headers(sealer, node_id, change.custom_headers, stored)
        elif before.headers_sealed is not None and change.base_url is not None:
            check_secret_origin("customHeaders", [before.base_url], [change.base_url])
        at_ms = max(now_ms(), before.updated_at_ms + 1)
        after = replace(before, **columns, updated_at_ms=at_ms)
        _check_keys_kept(con, before, after)
        update_node(con, after)
        if "custom_headers" in sent:
            reseal_connections(con, sealer, after, open_headers(sealer, after))
        if (after.type, after.base_url, after.models_path) != (
            before.type,
            before.base_url,
            before.models_path,
        ):
            forget_tests(con, node_id)
        emit(con, Event("node.updated", {**_event_data(after), "changed": changed_names(change)}))
        return after

    return _shown(await services.state.commit(update))


@router.delete("/{node_id}", summary="Delete a node that has no connections")
async def delete(node_id: str, services: ServicesDep) -> Message:
    def delete_row(con: Connection) -> None:
        node = _found(con, node_id)
        users = connections_of(con, node_id)
        if users:
            raise Conflict(f"The node has connections; delete them first: {_named(users)}.")
        delete_node(con, node_id)
        drop_proxy(con, "provider", node_id)
        emit(con, Event("node.deleted", _event_data(node)))

    await services.state.commit(delete_row)
    return Message(message="The node is deleted.")


def _event_data(node: Node) -> dict[str, Any]:
    return {"id": node.id, "name": node.name, "prefix": node.prefix}


def _check_unused(fields: NodeFields, before: Node | None) -> None:
    stored = {} if before is None else {"iconUrl": before.icon_url}
    refuse_unused({"iconUrl": fields.icon_url}, stored)


def _check_prefix(con: Connection, prefix: str, node_id: str) -> None:
    if prefix == _CODING_TOOLS:
        raise Conflict(
            f"prefix `{prefix}` is that of coding tools: choose another.", param="prefix"
        )
    if prefix in catalogue():
        raise Conflict(
            f"prefix `{prefix}` is the id of a built-in provider: choose another.", param="prefix"
        )
    taken = find_node_by_name(con, prefix)
    if taken is not None and taken.id != node_id:
        raise Conflict(
            f"prefix `{prefix}` is taken by the node `{taken.name}`: choose another.",
            param="prefix",
        )


def _sealed_headers(
    sealer: Sealer, node_id: str, sent: dict[str, str] | None, stored: dict[str, str]
) -> dict[str, Any]:
    try:
        headers = unmask(sent or {}, stored)
    except KeyError as error:
        raise InvalidRequest(
            f"customHeaders.{error.args[0]} has no stored value that `{MASK}` could stand for: "
            "send the value.",
            param=f"customHeaders.{error.args[0]}",
        ) from None
    return {
        "headers_sealed": seal_headers(sealer, node_id, headers),
        "header_names": tuple(sorted(headers)),
    }


def _check_headers_kept(sent: dict[str, str], before: Node, base_url: str | None) -> None:
    """Refuses masked header values when the node's host changes: the stored values are for the old
    host.
    """
    for name, value in sent.items():
        if value == MASK and base_url is not None:
            check_secret_origin(f"customHeaders.{name}", [before.base_url], [base_url])


def _check_keys_kept(con: Connection, before: Node, after: Node) -> None:
    """`InvalidRequest` when the node's new address would send stored keys to a host that they were
    not given for.
    """
    moved = [
        each
        for each in connections_of(con, before.id)
        if each.auth_type != "none"
        and new_origin(
            addresses_of(before, each.auth_type, each.provider_specific),
            addresses_of(after, each.auth_type, each.provider_specific),
        )
    ]
    if moved:
        raise InvalidRequest(
            f"baseUrl leads to another host than the keys of {_named(moved)} were given for: switch "
            "each of them to authType `none` first (PUT /api/providers/<id>), and send its apiKey "
            "again once the address is changed.",
            param="baseUrl",
        )


def _named(connections: list[ProviderConnection]) -> str:
    names = ", ".join(f"`{each.name}` ({each.id})" for each in connections[:NAMED_AT_MOST])
    more = len(connections) - NAMED_AT_MOST
    return f"{names} and {more} more" if more > 0 else names


def _stored_timeouts(timeouts: Timeouts | None) -> dict[str, int]:
    return {} if timeouts is None else timeouts.model_dump(exclude_none=True)


def _found(con: Connection, node_id: str) -> Node:
    node = find_node(con, node_id)
    if node is None:
        raise NotFound("There is no provider node with this id.", param="id")
    return node


def _shown(node: Node) -> OneNode:
    return OneNode.model_construct(node=_view(node))


def _view(node: Node) -> NodeView:
    return NodeView.model_construct(
        id=node.id,
        **{name: getattr(node, name) for name in _PLAIN},
        ineffective=ineffective({"iconUrl": node.icon_url}),
        custom_headers=dict.fromkeys(node.header_names, MASK) or None,
        timeouts=Timeouts.model_validate(node.timeouts, by_name=True) if node.timeouts else None,
        created_at=moment_of(node.created_at_ms),
        updated_at=moment_of(node.updated_at_ms),
        **{**node.stated, "facts": show_facts(node.stated.get("facts"))},
    )
