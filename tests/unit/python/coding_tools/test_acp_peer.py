"""JSON-RPC with a tool that may say anything."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from fairlead.coding_tools.acp.peer import Peer, ToolError, ToolGone


class Pipe:
    """Keeps what is written, as a stream's writer does."""

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def write(self, data: bytes) -> None:
        self.lines.append(orjson.loads(data))

    async def drain(self) -> None:
        return


async def nothing(method: str, params: dict[str, Any]) -> None:
    return


async def conversation(*said: bytes) -> tuple[Pipe, object]:
    """Asks once; the tool says these lines and ends."""
    reader, pipe = asyncio.StreamReader(limit=1000), Pipe()

    def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        return {"ok": True} if method == "known" else None

    peer = Peer(reader, pipe, answer, nothing)  # type: ignore[arg-type]
    running = asyncio.create_task(peer.run())
    asking = asyncio.create_task(peer.ask("initialize", {}))
    await asyncio.sleep(0)
    for line in said:
        reader.feed_data(line + b"\n")
    reader.feed_eof()
    await running
    (outcome,) = await asyncio.gather(asking, return_exceptions=True)
    with pytest.raises(ToolGone):
        await peer.ask("again", {})
    return pipe, outcome


@pytest.mark.parametrize(
    "said",
    [b"", b"no json", b"[]", b"1", b'{"id":1}garbage', b"x" * 2000],
    ids=("nothing", "words", "a list", "a number", "half", "too long"),
)
def test_what_is_no_message_ends_the_conversation(said: bytes) -> None:
    _, outcome = asyncio.run(conversation(said))
    assert isinstance(outcome, ToolGone)


def test_answers_find_their_question_and_errors_say_why() -> None:
    _, outcome = asyncio.run(conversation(b'{"id":9,"result":{}}', b'{"id":1,"result":{"a":1}}'))
    assert outcome == {"a": 1}
    _, outcome = asyncio.run(conversation(b'{"id":1,"error":{"code":-32000,"message":"who?"}}'))
    assert isinstance(outcome, ToolError)
    assert (outcome.code, outcome.message) == (-32000, "who?")


def test_questions_of_the_tool_are_answered_or_refused() -> None:
    asked = [
        b'{"id":"a","method":"known","params":{}}',
        b'{"id":2,"method":"fs/read_text_file","params":[]}',
        b'{"id":1,"result":{}}',
    ]
    pipe, _ = asyncio.run(conversation(*asked))
    told = {str(each["id"]): each for each in pipe.lines if "method" not in each}
    assert told["a"]["result"] == {"ok": True}
    assert told["2"]["error"]["code"] == -32601
