"""A file that lasts as long as its answer reaches the caller whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.background import BackgroundTask
from starlette.types import Message

from fairlead.file_answer import FileAnswer


@pytest.mark.anyio
async def test_a_file_is_read_before_it_may_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "part"
    path.write_bytes(b"all of it")
    answer = FileAnswer(path, background=BackgroundTask(path.unlink))
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("nobody asked")

    async def send(message: Message) -> None:
        sent.append(message)

    extensions: dict[str, dict[str, object]] = {"http.response.pathsend": {}}
    await answer(
        {
            "type": "http",
            "method": "GET",
            "headers": [],
            "asgi": {"spec_version": "2.4"},
            "extensions": extensions,
        },
        receive,
        send,
    )
    assert b"".join(message.get("body", b"") for message in sent) == b"all of it"
    assert not path.exists()
