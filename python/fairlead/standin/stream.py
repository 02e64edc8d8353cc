"""A streamed answer: its frames in three parts, sent with the delays and faults that the directives ask for."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.standin import openai
from fairlead.standin.directives import Directives
from fairlead.standin.failure import FAULT_MESSAGE

DONE: Final = b"data: [DONE]\n\n"
STALL_S: Final = 330.0
"""Longer than any caller's patience that is likely; bounded, since Robyn does not tell when the caller
has gone, and the silent stream would hold its thread for ever."""


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of one stream: `content` is what the directives count, delay and cut."""

    head: list[bytes]
    content: Iterable[bytes]
    tail: Iterable[bytes]
    failure: bytes | None = None
    """The error event, where it is not that of OpenAI."""


def frame(payload: dict[str, Any]) -> bytes:
    """One server-sent event with `payload` as its data."""
    return b"data: " + orjson.dumps(payload) + b"\n\n"


def event(name: str, /, **fields: Any) -> bytes:
    """One server-sent event with a name, which its data repeat as `type`."""
    return b"event: " + name.encode() + b"\n" + frame({"type": name, **fields})


async def paced(frames: Frames, directives: Directives) -> AsyncGenerator[bytes, None]:
    """The frames in order, held back and broken off as the directives ask."""
    await _pause(directives.first_ms)
    for head in frames.head:
        yield head
    for sent, content in enumerate(frames.content):
        if sent == directives.cut_after:
            return
        if sent == directives.error_after:
            yield frames.failure or _error_event()
            return
        if sent == directives.stall_after:
            await asyncio.sleep(STALL_S)
        if sent:
            await _pause(directives.gap_ms)
        yield (
            content[: len(content) // 2] + b"\n\n" if directives.malformed and not sent else content
        )
    # A fault that was asked for after the last content chunk, or later, falls on the end.
    if directives.cut_after is not None:
        return
    if directives.error_after is not None:
        yield frames.failure or _error_event()
        return
    if directives.stall_after is not None:
        await asyncio.sleep(STALL_S)
    for tail in frames.tail:
        yield tail


def _error_event() -> bytes:
    return frame(openai.error(500, FAULT_MESSAGE, code="standin_error"))


async def _pause(delay_ms: int) -> None:
    if delay_ms:
        await asyncio.sleep(delay_ms / 1000)
