"""Anthropic's turns: roles, pairs of calls and results, texts, media and signed thinking."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.support.referees.ledger import Ledger
from tests.support.referees.refusal import anthropic as refuse

VENDOR: Final = "anthropic"
ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
# Members of the block types in the SDK anthropic 2.14.0. Blocks of server tools are not judged.
BLOCKS: Final = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control"},
    "document": {"type", "source", "title", "context", "citations", "cache_control"},
    "tool_use": {"type", "id", "name", "input", "cache_control", "caller"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"type", "thinking", "signature"},
    "redacted_thinking": {"type", "data"},
}


def check(model: str, body: dict[str, Any], family: dict[str, Any], ledger: Ledger) -> None:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise refuse("messages: at least one message is required")
    if messages[0].get("role") != "user":
        raise refuse('messages: first message must use the "user" role')
    for block in _blocks(body.get("system") or []):
        _check_block(block, "system")
    for at, message in enumerate(messages):
        for member in message.keys() - {"role", "content"}:
            raise refuse(f"messages.{at}.{member}: Extra inputs are not permitted")
        _check_role(at, messages, family)
        if message.get("content") in ("", []) and at < len(messages) - 1:
            raise refuse(f"messages.{at}: all messages must have non-empty content")
        for number, block in enumerate(_blocks(message.get("content"))):
            _check_block(block, f"messages.{at}.content.{number}")
    turns = merged(messages)
    _check_pairs(turns)
    _check_end(turns, family)
    _check_signatures(body, turns, family, ledger)


def merged(messages: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The turns: messages of one role in a row are one turn."""
    turns: list[tuple[str, list[dict[str, Any]]]] = []
    for message in messages:
        blocks = _blocks(message["content"])
        if turns and turns[-1][0] == message["role"]:
            turns[-1][1].extend(blocks)
        else:
            turns.append((message["role"], list(blocks)))
    return turns


def prefix_of(body: dict[str, Any], turns: list[Any]) -> Any:
    """What a thinking block is bound to: everything before it, without cache marks."""
    return _plain([_blocks(body.get("system") or []), body.get("tools"), turns])


def prefix_of_answer(body: dict[str, Any]) -> Any:
    """The prefix of the answer to this request."""
    return prefix_of(body, merged(body["messages"]))


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if name != "cache_control"}
    return value


def _blocks(content: Any) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise refuse("messages: Input should be a valid list")
    return content


def _check_role(at: int, messages: list[dict[str, Any]], family: dict[str, Any]) -> None:
    role = messages[at].get("role")
    if role in ("user", "assistant"):
        return
    if role != "system" or not family["system_turns"]:
        raise refuse(f"messages.{at}.role: Input should be 'user' or 'assistant'")
    after = messages[at + 1]["role"] if at + 1 < len(messages) else "assistant"
    if messages[at - 1]["role"] != "user" or after != "assistant":
        raise refuse(f"messages.{at}.role: a system message must follow a user message")


def _check_block(block: dict[str, Any], where: str) -> None:
    kind = block.get("type", "")
    for member in block.keys() - BLOCKS.get(kind, block.keys()):
        raise refuse(f"{where}.{kind}.{member}: Extra inputs are not permitted")
    match kind:
        case "text":
            if block["text"] == "":
                raise refuse("messages: text content blocks must be non-empty")
            if not block["text"].strip():
                raise refuse("messages: text content blocks must contain non-whitespace text")
        case "image" | "document":
            _check_source(kind, block["source"], where)
        case "tool_use":
            if not ID.fullmatch(block["id"]):
                raise refuse(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
            if not isinstance(block["input"], dict):
                raise refuse(f"{where}.tool_use.input: Input should be a valid dictionary")
        case "tool_result":
            content = block.get("content")
            for number, part in enumerate(content if isinstance(content, list) else []):
                _check_block(part, f"{where}.tool_result.content.{number}")
        case "thinking":
            if "signature" not in block:
                raise refuse(f"{where}.thinking.signature: Field required")
        case "":
            raise refuse(f"{where}.type: Field required")


def _check_source(kind: str, source: dict[str, Any], where: str) -> None:
    if source["type"] != "base64":
        return
    known = IMAGES if kind == "image" else ("application/pdf",)
    if source.get("media_type") not in known:
        raise refuse(
            f"{where}.{kind}.source.base64.media_type: Input should be {' or '.join(known)}"
        )


def _check_pairs(turns: list[tuple[str, list[dict[str, Any]]]]) -> None:
    seen: set[str] = set()
    for at, (role, blocks) in enumerate(turns):
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        before = turns[at - 1][1] if at else []
        offered = {block["id"] for block in before if block["type"] == "tool_use"}
        if len(calls) != len(set(calls)) or seen & set(calls):
            raise refuse("messages: `tool_use` ids must be unique")
        seen |= set(calls)
        for one in results:
            if role != "user" or one not in offered:
                raise refuse(
                    f"messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {one}"
                )
        if len(results) != len(set(results)):
            raise refuse(f"messages.{at}: each tool_use must have a single result")
        if missing := offered - set(results):
            raise refuse(
                f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks"
                f" immediately after: {', '.join(sorted(missing))}"
            )
        kinds = [block["type"] for block in blocks]
        if results and any(kind != "tool_result" for kind in kinds[: len(results)]):
            raise refuse(f"messages.{at}: tool_result blocks must come first in the content")
    if any(block["type"] == "tool_use" for block in turns[-1][1]):
        raise refuse("messages: `tool_use` ids were found without `tool_result` blocks")


def _check_end(turns: list[tuple[str, list[dict[str, Any]]]], family: dict[str, Any]) -> None:
    role, blocks = turns[-1]
    if role != "assistant":
        return
    if not family["prefill"]:
        raise refuse(
            "This model does not support assistant message prefill."
            " The conversation must end with a user message."
        )
    if blocks[-1]["type"] == "text" and blocks[-1]["text"] != blocks[-1]["text"].rstrip():
        raise refuse("messages: final assistant content cannot end with trailing whitespace")


def _check_signatures(
    body: dict[str, Any],
    turns: list[tuple[str, list[dict[str, Any]]]],
    family: dict[str, Any],
    ledger: Ledger,
) -> None:
    for at, (_, blocks) in enumerate(turns):
        for number, block in enumerate(blocks):
            if block["type"] != "thinking":
                continue
            where, signature = f"messages.{at}.content.{number}", block["signature"]
            if not block["thinking"] and not signature:
                raise refuse(f"{where}.thinking: each thinking block must contain thinking")
            if not ledger.has_issued(VENDOR, signature):
                raise refuse(f"{where}: Invalid `signature` in `thinking` block")
            before = prefix_of(body, turns[:at])
            if family["binds"] and not ledger.is_bound_to(VENDOR, signature, before):
                raise refuse(
                    f"{where}: Invalid `signature` in `thinking` block."
                    " The block is bound to a different conversation."
                )
