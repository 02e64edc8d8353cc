"""A chat request, and the messages for a tool.

A tool keeps its conversation. A session that received the beginning of the messages gets only the new ones; a
new session gets all of them, in one prompt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from fairlead.coding_tools.acp.fault import AcpFault, bad_request

Block = dict[str, Any]
"""A content block of the protocol."""
_IMAGE: Final = re.compile(r"data:(image/[a-z0-9.+-]{1,60});base64,([A-Za-z0-9+/=]+)")
_NAMES: Final = {
    "system": "Instructions",
    "user": "User",
    "assistant": "You",
    "tool": "Result of a tool",
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One message: its text, and its pictures as blocks."""

    role: str
    text: str
    images: tuple[Block, ...] = ()

    def digest(self) -> str:
        """Tells whether two turns say the same. A client may cut spaces at the ends of what it sends back."""
        parts = [self.role, self.text.strip(), *(each["data"] for each in self.images)]
        return hashlib.sha256(orjson.dumps(parts)).hexdigest()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The fields of a chat completion's request that are read. `wants_usage`: a stream shall end with its usage."""

    model: str
    turns: tuple[Turn, ...]
    is_stream: bool
    wants_usage: bool


@dataclass(slots=True)
class History:
    """The conversation of a session so far, by digests of its turns."""

    digests: list[str] = field(default_factory=list)

    def news(self, turns: Sequence[Turn]) -> Sequence[Turn] | None:
        """The turns after those that were heard; None where the messages begin differently."""
        count = len(self.digests)
        if count >= len(turns) or [each.digest() for each in turns[:count]] != self.digests:
            return None
        return turns[count:]

    def add(self, turns: Sequence[Turn], answer: str) -> None:
        """Notes a prompt and its answer."""
        reply = Turn("assistant", answer)
        self.digests += [each.digest() for each in (*turns, reply)]


def read_request(body: bytes) -> ChatRequest:
    """The request. `AcpFault` names the field that is wrong."""
    try:
        document = orjson.loads(body)
    except ValueError:
        raise AcpFault(400, "invalid_request", "The body is not JSON.") from None
    if not isinstance(document, dict) or not isinstance(document.get("model"), str):
        raise bad_request("model must be text.", "model")
    if document.get("tools") or document.get("functions"):
        raise bad_request("A coding tool uses its built-in tools: send no tools.", "tools")
    if document.get("n") not in (None, 1):
        raise bad_request("n must be 1: a coding tool gives one answer.", "n")
    messages = document.get("messages")
    if not isinstance(messages, list) or not messages:
        raise bad_request("messages must be a list with one message at least.", "messages")
    turns = tuple(_turn(each, at) for at, each in enumerate(messages))
    if turns[-1].role != "user":
        raise bad_request("The last message must be the user's.", "messages")
    options = document.get("stream_options")
    return ChatRequest(
        model=document["model"],
        turns=turns,
        is_stream=document.get("stream") is True,
        wants_usage=isinstance(options, dict) and options.get("include_usage") is True,
    )


def prompt_of(turns: Sequence[Turn]) -> list[Block]:
    """The blocks of a prompt: one message as it is, several with who said each."""
    text = turns[0].text if len(turns) == 1 else "\n\n".join(_quoted(each) for each in turns)
    blocks: list[Block] = [{"type": "text", "text": text}]
    return blocks + [image for each in turns for image in each.images]


def _quoted(turn: Turn) -> str:
    return f"{_NAMES[turn.role]}:\n{turn.text}"


def _turn(message: Any, at: int) -> Turn:
    where = f"messages[{at}]"
    role = message.get("role") if isinstance(message, dict) else None
    role = "system" if role == "developer" else role
    if role not in _NAMES:
        raise bad_request(f"{where}.role must be one of {', '.join(_NAMES)}.", f"{where}.role")
    content = message.get("content")
    if content is None or isinstance(content, str):
        return Turn(role, content or "")
    if not isinstance(content, list):
        raise bad_request(f"{where}.content must be text or a list.", f"{where}.content")
    texts: list[str] = []
    images: list[Block] = []
    for number, part in enumerate(content):
        _add_part(part, f"{where}.content[{number}]", texts, images)
    return Turn(role, "\n".join(texts), tuple(images))


def _add_part(part: Any, where: str, texts: list[str], images: list[Block]) -> None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        texts.append(part["text"])
        return
    if kind == "image_url":
        holder = part.get("image_url")
        url = holder.get("url") if isinstance(holder, dict) else None
        found = _IMAGE.fullmatch(url) if isinstance(url, str) else None
        if found is None:
            raise bad_request(f"{where}.image_url.url must be a data: address with base64.", where)
        images.append({"type": "image", "mimeType": found[1], "data": found[2]})
        return
    raise bad_request(
        f"{where}.type must be text or image_url: a coding tool reads no other.", where
    )
