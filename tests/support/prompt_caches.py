"""A scripted provider with a prompt cache in each dialect. It computes from the bytes that it receives what a real one
would read from its cache, and reports that as usage.

Chat, responses and Gemini cache every prompt: the longest beginning that an earlier prompt of the same credential
has is read. Messages, and chat with the credential in `marked_keys`, cache up to `cache_control` marks only, look
back over 20 blocks from each mark, and refuse a fifth mark.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from tests.support.upstream import Script, Seen, Upstream, reply

LEAST_TOKENS: Final = 1_024
BLOCK_TOKENS: Final = 128
LOOK_BACK: Final = 20
BYTES_PER_TOKEN: Final = 4
BILLING: Final = "x-anthropic-billing-header:"


class Block(NamedTuple):
    """A part of a prompt in the provider's order, without marks."""

    text: bytes
    is_marked: bool


@dataclass
class Metered:
    """What one request cost."""

    form: str
    body: dict[str, Any]
    tokens: int
    cached: int


@dataclass
class _Cache:
    prompts: list[bytes] = field(default_factory=list)
    prefixes: set[bytes] = field(default_factory=set)


class CachingUpstream(Upstream):
    """See the module's page. Every second answer calls the tool `weather`."""

    def __init__(self) -> None:
        super().__init__()
        self.metered: list[Metered] = []
        self.marked_keys: set[str] = set()
        self._caches: dict[str, _Cache] = {}
        self._numbers = itertools.count(1)

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def choose(self, seen: Seen) -> Script:
        body = json.loads(seen.body)
        form = form_of(seen.target)
        key = seen.bearer or seen.header("x-api-key") or seen.header("x-goog-api-key") or ""
        blocks = list(blocks_of(form, body))
        cache = self._caches.setdefault(key, _Cache())
        tokens = sum(len(block.text) for block in blocks) // BYTES_PER_TOKEN
        if form == "messages" or key in self.marked_keys:
            if sum(block.is_marked for block in blocks) > 4:
                message = "A maximum of 4 blocks with cache_control may be provided. Found 5."
                return reply({"error": {"message": message}}, status=400)
            cached = _read_marked(cache, blocks)
        else:
            cached = _read_longest(cache, b"".join(block.text for block in blocks))
        self.metered.append(Metered(form, body, tokens, cached))
        return reply(_answer(form, next(self._numbers), tokens, cached))


def share(metered: list[Metered]) -> float:
    """The part of all prompts that was read from the cache."""
    return sum(one.cached for one in metered) / sum(one.tokens for one in metered)


def form_of(target: str) -> str:
    for end, form in (
        ("/messages", "messages"),
        ("/responses", "responses"),
        ("/chat/completions", "chat"),
    ):
        if target.partition("?")[0].endswith(end):
            return form
    assert ":generateContent" in target, target
    return "gemini"


# ----------------------------------------------------------------------------------- the prompt


def blocks_of(form: str, body: dict[str, Any]) -> Iterator[Block]:
    """The blocks in the order in which providers read them: tools, instructions, turns."""
    for tool in body.get("tools", []):
        yield _block("tool", tool)
    if form == "gemini":
        for part in body.get("systemInstruction", {}).get("parts", []):
            yield _block("system", part)
        for content in body["contents"]:
            for part in content["parts"]:
                yield _block(content["role"], part)
        return
    for part in _parts(body.get("system" if form == "messages" else "instructions", [])):
        if not part.get("text", "").startswith(BILLING):
            yield _block("system", part)
    turns = body["input" if form == "responses" else "messages"]
    for turn in [{"role": "user", "content": turns}] if isinstance(turns, str) else turns:
        rest = {
            name: value for name, value in turn.items() if name not in ("content", "id", "status")
        }
        if form != "messages" and rest.keys() != {"role"}:
            yield _block("turn", rest)
        for part in _parts(turn.get("content") or []):
            yield _block(turn.get("role", ""), part)


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _block(role: str, part: dict[str, Any]) -> Block:
    plain = {name: value for name, value in part.items() if name != "cache_control"}
    return Block(json.dumps([role, plain], sort_keys=True).encode(), "cache_control" in part)


# ----------------------------------------------------------------------------------- the caches


def _read_longest(cache: _Cache, prompt: bytes) -> int:
    same = max((_same(prompt, one) for one in cache.prompts), default=0)
    cache.prompts.append(prompt)
    tokens = same // BYTES_PER_TOKEN // BLOCK_TOKENS * BLOCK_TOKENS
    return tokens if tokens >= LEAST_TOKENS else 0


def _same(one: bytes, other: bytes) -> int:
    """The bytes at the beginning that both have."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[:middle] == other[:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _read_marked(cache: _Cache, blocks: list[Block]) -> int:
    digest, sizes, names = hashlib.sha256(), [0], []
    for block in blocks:
        digest.update(block.text)
        names.append(digest.digest())
        sizes.append(sizes[-1] + len(block.text))
    marks = [at for at, block in enumerate(blocks) if block.is_marked]
    seen = [
        at
        for mark in marks
        for at in range(max(0, mark - LOOK_BACK), mark + 1)
        if names[at] in cache.prefixes
    ]
    cache.prefixes |= {
        names[at] for at in marks if sizes[at + 1] // BYTES_PER_TOKEN >= LEAST_TOKENS
    }
    return sizes[max(seen) + 1] // BYTES_PER_TOKEN if seen else 0


# ----------------------------------------------------------------------------------- the answers


def _answer(form: str, number: int, tokens: int, cached: int) -> dict[str, Any]:
    is_call, text = number % 2 == 1, f"Report {number}: " + "wind and rain. " * 20
    city = {"city": f"City {number}"}
    if form == "messages":
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "weather", "input": city}
        return {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [call] if is_call else [{"type": "text", "text": text}],
            "stop_reason": "tool_use" if is_call else "end_turn",
            "stop_sequence": None,
            "usage": {
                "input_tokens": tokens - cached,
                "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": 0,
                "output_tokens": 9,
            },
        }
    if form == "gemini":
        part = {"functionCall": {"name": "weather", "args": city}} if is_call else {"text": text}
        usage: dict[str, Any] = {"promptTokenCount": tokens, "cachedContentTokenCount": cached}
        return {
            "candidates": [
                {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
            ],
            "usageMetadata": usage | {"candidatesTokenCount": 9, "totalTokenCount": tokens + 9},
        }
    arguments = json.dumps(city)
    if form == "responses":
        said = {"type": "output_text", "text": text, "annotations": []}
        item: dict[str, Any] = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
        item |= {"status": "completed", "content": [said]}
        if is_call:
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
            item |= {"name": "weather", "arguments": arguments, "status": "completed"}
        usage = {"input_tokens": tokens, "input_tokens_details": {"cached_tokens": cached}}
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": "m",
            "output": [item],
            "usage": usage | {"output_tokens": 9, "total_tokens": tokens + 9},
        }
    message: dict[str, Any] = {"role": "assistant", "content": None if is_call else text}
    if is_call:
        function = {"name": "weather", "arguments": arguments}
        message["tool_calls"] = [{"id": f"call_{number}", "type": "function", "function": function}]
    usage = {"prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": cached}}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if is_call else "stop"}
        ],
        "usage": usage | {"completion_tokens": 9, "total_tokens": tokens + 9},
    }
