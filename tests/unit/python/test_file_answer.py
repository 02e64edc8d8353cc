"""A file that lasts as long as its answer reaches the caller whole, and no longer."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.background import BackgroundTask
from starlette.types import Message

from fairlead.process.file_answer import FileAnswer

pytestmark = pytest.mark.anyio


async def answered(
    path: Path, asked_range: str | None = None, *, gone: bool = False
) -> list[Message]:
    """What is sent of a file that is removed with its answer; with `gone` the caller has left by the first byte."""
    sent: list[Message] = []

    async def receive() -> Message:
        raise AssertionError("nobody asked")

    async def send(message: Message) -> None:
        if gone and message["type"] == "http.response.body":
            raise OSError
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "headers": [] if asked_range is None else [(b"range", asked_range.encode())],
        "asgi": {"spec_version": "2.4"},
        "extensions": {"http.response.pathsend": {}},
    }
    await FileAnswer(path, background=BackgroundTask(path.unlink))(scope, receive, send)
    return sent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "part"
    path.write_bytes(b"all of it")
    return path


def body_of(sent: list[Message]) -> bytes:
    return b"".join(message.get("body", b"") for message in sent)


async def test_a_file_is_read_before_it_may_be_removed(path: Path) -> None:
    assert body_of(await answered(path)) == b"all of it"
    assert not path.exists()


@pytest.mark.parametrize(
    ("asked_range", "status", "body"),
    [
        ("bytes=4-5", 206, b"of"),
        ("bytes=-2", 206, b"it"),
        ("Bytes=7-", 206, b"it"),
        ("bytes=900-", 416, b""),
        ("bytes=9-2", 200, b"all of it"),
        ("bytes=", 200, b"all of it"),
        ("bytes=-", 200, b"all of it"),
        ("bytes=\u0663-5", 200, b"all of it"),
        ("items=0-1", 200, b"all of it"),
        ("0-1", 200, b"all of it"),
    ],
)
async def test_a_range_that_is_none_is_ignored_and_the_file_goes_with_any_answer(
    path: Path, asked_range: str, status: int, body: bytes
) -> None:
    sent = await answered(path, asked_range)
    assert (sent[0]["status"], body_of(sent)) == (status, body)
    assert not path.exists()


async def test_a_caller_who_leaves_leaves_no_file(path: Path) -> None:
    with pytest.raises(OSError):
        await answered(path, gone=True)
    assert not path.exists()
