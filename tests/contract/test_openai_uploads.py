"""The official `openai` client uploads files in parts; what it may ask for beside is refused with a sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.processes import Gateway
from tests.support.sdk_clients import openai_client
from tests.support.sdks import openai


@pytest.fixture
def client(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai_client(gateway, gateway.create_key(name="uploads")["key"]) as made:
        yield made


@pytest.fixture
def stranger(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai_client(gateway, gateway.create_key(name="stranger")["key"]) as made:
        yield made


def begun(client: openai.OpenAI, size: int, **more: Any) -> Any:
    fields: Any = {"filename": "a.txt", "mime_type": "text/plain", "purpose": "user_data", **more}
    return client.uploads.create(bytes=size, **fields)


def test_a_file_in_parts(client: openai.OpenAI, stranger: openai.OpenAI) -> None:
    """Put together in the order that the caller says, whatever the order in which they came."""
    upload = begun(client, 9)
    assert (upload.object, upload.status, upload.bytes) == ("upload", "pending", 9)
    assert upload.expires_at - upload.created_at == 3600
    last = client.uploads.parts.create(upload.id, data=b"last")
    first = client.uploads.parts.create(upload.id, data=b"first")
    assert (first.object, first.upload_id) == ("upload.part", upload.id)
    with pytest.raises(openai.NotFoundError):
        stranger.uploads.parts.create(upload.id, data=b"x")
    with pytest.raises(openai.NotFoundError):
        stranger.uploads.complete(upload.id, part_ids=[first.id, last.id])
    md5 = hashlib.md5(b"firstlast", usedforsecurity=False).hexdigest()
    done = client.uploads.complete(upload.id, part_ids=[first.id, last.id], md5=md5)
    assert done.status == "completed"
    assert done.file is not None
    assert (done.file.filename, done.file.bytes, done.file.purpose) == ("a.txt", 9, "user_data")
    assert client.files.content(done.file.id).read() == b"firstlast"
    # It has ended: nothing is added, and cancelling shows it as it is.
    with pytest.raises(openai.ConflictError, match="completed"):
        client.uploads.parts.create(upload.id, data=b"x")
    assert client.uploads.cancel(upload.id).status == "completed"


def test_the_helper_of_the_client(client: openai.OpenAI) -> None:
    content = bytes(range(256)) * 1024
    done = client.uploads.upload_file_chunked(
        file=content,
        filename="b.bin",
        bytes=len(content),
        mime_type="application/octet-stream",
        purpose="user_data",
        part_size=100_000,
    )
    assert done.file is not None
    assert client.files.content(done.file.id).read() == content


def test_an_upload_is_cancelled(client: openai.OpenAI) -> None:
    upload = begun(client, 4)
    part = client.uploads.parts.create(upload.id, data=b"four")
    assert client.uploads.cancel(upload.id).status == "cancelled"
    with pytest.raises(openai.ConflictError, match="cancelled"):
        client.uploads.complete(upload.id, part_ids=[part.id])


def test_what_is_no_whole_file_is_refused(client: openai.OpenAI) -> None:
    """And may be corrected."""
    upload = begun(client, 4)
    part = client.uploads.parts.create(upload.id, data=b"fo")
    rest = client.uploads.parts.create(upload.id, data=b"ur")
    wrong: list[tuple[Any, str]] = [
        ({"part_ids": [part.id]}, "have 2 bytes"),
        ({"part_ids": [part.id, part.id]}, "names a part twice"),
        ({"part_ids": [part.id, "part_no"]}, "part_ids\\[1\\] is not a part"),
        ({"part_ids": [part.id, rest.id], "md5": "0" * 32}, "md5 is not"),
    ]
    for fields, said in wrong:
        with pytest.raises(openai.BadRequestError, match=said):
            client.uploads.complete(upload.id, **fields)
    assert client.uploads.complete(upload.id, part_ids=[part.id, rest.id]).status == "completed"


def test_stored_chat_completions_are_none(client: openai.OpenAI) -> None:
    assert list(client.chat.completions.list(limit=5)) == []


def test_what_is_not_served_says_what_is(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="POST /v1/embeddings"):
        client.vector_stores.create()
    with pytest.raises(openai.NotFoundError, match="Fine-tuning is not served"):
        client.fine_tuning.jobs.list()
