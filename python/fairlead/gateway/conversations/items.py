"""The items of a conversation: as callers send them, as they are stored and shown, and as a request has them."""

from __future__ import annotations

from typing import Any, Final

from fairlead.errors import InvalidRequest
from fairlead.gateway.files.contents import new_id
from fairlead.gateway.responses.items import as_input

_PREFIXES: Final = {
    "message": "msg_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "reasoning": "rs_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "ctco_",
}
# The ids of these items mean nothing to a provider, which did not make all of them.
_OWN_IDS: Final = frozenset({"message", "function_call_output", "custom_tool_call_output"})


def stored_item(item: dict[str, Any], param: str) -> dict[str, Any]:
    """An item as it is stored and shown: with its type, its id, its status and its content in parts.
    `InvalidRequest` names `param`.
    """
    kind = item.get("type", "message")
    if not isinstance(kind, str) or (kind == "message" and not isinstance(item.get("role"), str)):
        raise InvalidRequest(f"{param} must have a `type`, and a message a `role`.", param=param)
    if kind == "item_reference":
        raise InvalidRequest(
            f"{param} refers to another item: send the item itself.", param=f"{param}.type"
        )
    own_id = item.get("id")
    shown = {
        **item,
        "id": own_id
        if isinstance(own_id, str) and 0 < len(own_id) <= 300
        else new_id(_PREFIXES.get(kind, "item_")),
        "type": kind,
    }
    if kind == "message":
        shown["status"] = item.get("status") or "completed"
        shown["content"] = _parts(item)
    return shown


def refuse_container(item: dict[str, Any], param: str) -> None:
    """Refuses an item of a caller that names a container in the account at the provider. The relay checks such ids in
    requests, but not in stored items, which have the containers of the caller's own calls.
    """
    environment = item.get("environment")
    for at, holder in ((param, item), (f"{param}.environment", environment)):
        if isinstance(holder, dict) and holder.get("container_id") is not None:
            raise InvalidRequest(
                f"{at} names a container in the account at the provider: send such an item in `input` of a request.",
                param=f"{at}.container_id",
            )


def request_item(item: dict[str, Any]) -> dict[str, Any]:
    """A stored item as the input of a request."""
    sent = as_input(item)
    if sent.get("type") in _OWN_IDS:
        sent.pop("id", None)
    return sent


def _parts(item: dict[str, Any]) -> Any:
    content = item.get("content")
    if not isinstance(content, str):
        return content if content is not None else []
    if item.get("role") == "assistant":
        return [{"type": "output_text", "text": content, "annotations": []}]
    return [{"type": "input_text", "text": content}]
