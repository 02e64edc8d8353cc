"""The Responses API of OpenAI: members, items, ids and encrypted reasoning."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.support.referees.families import family_of, members_of
from tests.support.referees.ledger import Ledger
from tests.support.referees.openai import check_common, check_effort, check_function, check_samplers
from tests.support.referees.refusal import openai as refuse
from tests.support.referees.schema import check_strict

VENDOR: Final = "openai"
MEMBERS: Final = members_of("openai responses")
ITEMS: Final = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "function_call": {
        "type",
        "id",
        "call_id",
        "name",
        "arguments",
        "status",
        "namespace",
        "caller",
    },
    "function_call_output": {"type", "id", "call_id", "output", "status", "caller"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
}
PARTS: Final = {
    "input_text": {"type", "text", "prompt_cache_breakpoint"},
    "input_image": {"type", "image_url", "file_id", "detail", "prompt_cache_breakpoint"},
    "input_file": {
        "type",
        "file_id",
        "file_url",
        "file_data",
        "filename",
        "detail",
        "prompt_cache_breakpoint",
    },
    "output_text": {"type", "text", "annotations", "logprobs"},
    "refusal": {"type", "refusal"},
}
ID_STARTS: Final = {"function_call": "fc", "reasoning": "rs", "message": "msg"}
ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check(model: str, body: dict[str, Any], ledger: Ledger) -> None:
    """Raises `Refusal` for what OpenAI refuses."""
    family = family_of("openai", model)
    check_common(body, MEMBERS)
    most = body.get("max_output_tokens")
    if most is not None and most < 16:
        raise refuse(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.",
            "integer_below_min_value",
            "max_output_tokens",
        )
    effort = (body.get("reasoning") or {}).get("effort")
    check_samplers(body, check_effort(effort, model, family, "reasoning.effort"))
    _check_tools(model, body)
    _check_format(body)
    given = body.get("input")
    if given in (None, "", []):
        raise refuse("Missing required parameter: 'input'.", "missing_required_parameter", "input")
    if isinstance(given, list):
        for at, item in enumerate(given):
            _check_item(item, f"input[{at}]")
        _check_pairs(given)
        _check_reasoning(given, ledger)


def thinks(model: str, body: dict[str, Any]) -> bool:
    effort = (body.get("reasoning") or {}).get("effort")
    return check_effort(effort, model, family_of("openai", model), "reasoning.effort")


def _check_tools(model: str, body: dict[str, Any]) -> None:
    tools = body.get("tools") or []
    if body.get("tool_choice") not in (None, "auto", "none") and not tools:
        raise refuse("Tool choice is only allowed when 'tools' are specified.", None, "tool_choice")
    has_top_rules = re.search(r"gpt-4|gpt-3\.5|^o[134]", model) is not None
    for at, tool in enumerate(tools):
        if tool.get("type") == "function":
            known = {"type", "name", "description", "parameters", "strict", "defer_loading"}
            for member in tool.keys() - known:
                raise refuse(
                    f"Unknown parameter: 'tools[{at}].{member}'.",
                    "unknown_parameter",
                    f"tools[{at}].{member}",
                )
            # Without `strict` the API makes a function strict if its schema can be.
            check_function(tool, f"tools[{at}]", has_top_rules)


def _check_format(body: dict[str, Any]) -> None:
    wanted = (body.get("text") or {}).get("format") or {}
    if wanted.get("type") == "json_schema" and wanted.get("strict"):
        check_strict(
            wanted["schema"],
            lambda text: refuse(text, "invalid_json_schema", "text.format.schema"),
            f"response_format '{wanted['name']}'",
        )


def _check_item(item: dict[str, Any], where: str) -> None:
    kind = item.get("type", "message")
    for member in item.keys() - ITEMS.get(kind, item.keys()):
        raise refuse(
            f"Unknown parameter: '{where}.{member}'.", "unknown_parameter", f"{where}.{member}"
        )
    if (own := item.get("id")) is not None:
        start = ID_STARTS.get(kind, "")
        if not ID.fullmatch(own) or not own.startswith(start):
            raise refuse(
                f"Invalid '{where}.id': '{own}'. Expected an ID that begins with '{start}'.",
                "invalid_value",
                f"{where}.id",
            )
    if len(item.get("call_id") or "") > 64:
        raise refuse(
            f"Invalid '{where}.call_id': string too long. Expected a string with maximum length 64",
            "string_above_max_length",
            f"{where}.call_id",
        )
    if kind == "reasoning":
        if not isinstance(item.get("summary"), list):
            raise refuse(f"Missing required parameter: '{where}.summary'.", None, where)
        if "status" in item and item["status"] is None:
            raise refuse(f"Invalid value: '{where}.status'.", "invalid_value", where)
    if kind == "message":
        _check_parts(item, where)


def _check_parts(item: dict[str, Any], where: str) -> None:
    content = item.get("content")
    if isinstance(content, str):
        return
    if not content:
        raise refuse(f"Invalid '{where}.content': empty array.", "empty_array", where)
    is_answer = item["role"] == "assistant"
    allowed = (
        ("output_text", "refusal") if is_answer else ("input_text", "input_image", "input_file")
    )
    for number, part in enumerate(content):
        place = f"{where}.content[{number}]"
        if part.get("type") not in allowed:
            names = " and ".join(f"'{name}'" for name in allowed)
            raise refuse(
                f"Invalid value: '{part.get('type')}'. Supported values are: {names}.",
                "invalid_value",
                place,
            )
        for member in part.keys() - PARTS[part["type"]]:
            raise refuse(
                f"Unknown parameter: '{place}.{member}'.", "unknown_parameter", f"{place}.{member}"
            )


def _check_pairs(items: list[dict[str, Any]]) -> None:
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    for one in calls:
        if one not in results:
            raise refuse(f"No tool output found for function call {one}.", None, "input")
    for one in results:
        if one not in calls:
            raise refuse(
                f"No tool call found for function call output with call_id {one}.", None, "input"
            )
    if len(calls) != len(set(calls)) or len(results) != len(set(results)):
        raise refuse("Duplicate call_id in input.", "invalid_value", "input")


def _check_reasoning(items: list[dict[str, Any]], ledger: Ledger) -> None:
    for at, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        follower = items[at + 1] if at + 1 < len(items) else {}
        is_answer = follower.get("type") in ("function_call", "reasoning") or (
            follower.get("role") == "assistant"
        )
        if item.get("id") and not is_answer:
            raise refuse(
                f"Item '{item['id']}' of type 'reasoning' was provided without its required"
                " following item.",
                None,
                "input",
            )
        sealed = item.get("encrypted_content")
        if sealed is None:
            raise refuse(
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is"
                " set to false.",
                None,
                "input",
                404,
            )
        if not ledger.has_issued(VENDOR, sealed):
            raise refuse(
                f"The encrypted content {sealed[:8]}... could not be verified."
                " Reason: Encrypted content could not be decrypted or parsed.",
                "invalid_encrypted_content",
            )
        if item.get("id") and not ledger.is_bound_to(VENDOR, sealed, item["id"]):
            raise refuse(
                "The encrypted content could not be verified."
                " Reason: Encrypted content item_id did not match the target item id.",
                "invalid_encrypted_content",
            )
