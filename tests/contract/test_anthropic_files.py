"""The official `anthropic` client stores files, and messages name them, whichever dialect the provider speaks."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.processes import Gateway
from tests.support.sdk_clients import anthropic_client, openai_client
from tests.support.sdks import anthropic, openai
from tests.support.upstream import Upstream, completion, reply

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "seen"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 3, "output_tokens": 1},
}


@pytest.fixture
def client(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    """With a key of its own: lists have nothing but this test's files."""
    key = gateway.create_key(name="files", allowedProviderObjects=["file_of_the_provider"])
    with anthropic_client(gateway, key["key"]) as made:
        yield made


@pytest.fixture
def same_key(gateway: Gateway, client: anthropic.Anthropic) -> Iterator[openai.OpenAI]:
    """OpenAI's client with the same key."""
    with openai_client(gateway, client.api_key) as made:
        yield made


@pytest.fixture
def stranger(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic_client(gateway, gateway.create_key(name="stranger")["key"]) as made:
        yield made


def test_a_file_from_upload_to_deletion(
    client: anthropic.Anthropic, stranger: anthropic.Anthropic, same_key: openai.OpenAI
) -> None:
    made = client.files.upload(file=("folder/notes.txt", b"some notes", "text/plain"))
    assert (made.filename, made.mime_type, made.size_bytes) == ("notes.txt", "text/plain", 10)
    assert (made.type, made.downloadable, made.expires_at) == ("file", True, None)
    assert client.files.retrieve_metadata(made.id) == made
    assert client.files.download(made.id).read() == b"some notes"
    seen = same_key.files.retrieve(made.id)
    assert (seen.filename, seen.bytes, seen.purpose) == ("notes.txt", 10, "user_data")
    for read in (stranger.files.retrieve_metadata, stranger.files.download, stranger.files.delete):
        with pytest.raises(anthropic.NotFoundError) as unknown:
            read(made.id)
        body: Any = unknown.value.body
        assert (body["type"], body["error"]["type"]) == ("error", "not_found_error")
    gone = client.files.delete(made.id)
    assert (gone.id, gone.type) == (made.id, "file_deleted")
    with pytest.raises(anthropic.NotFoundError):
        client.files.retrieve_metadata(made.id)


def test_the_beta_client(client: anthropic.Anthropic) -> None:
    made = client.beta.files.upload(file=("a.pdf", b"%PDF-1.4", "application/pdf"))
    assert client.beta.files.retrieve_metadata(made.id).mime_type == "application/pdf"
    assert [file.id for file in client.beta.files.list()] == [made.id]
    assert client.beta.files.delete(made.id).type == "file_deleted"


def test_files_are_listed_page_by_page(
    client: anthropic.Anthropic, gateway: Gateway, same_key: openai.OpenAI
) -> None:
    ids = [client.files.upload(file=(f"{at}.txt", b"x", "text/plain")).id for at in range(5)]
    newest_first = ids[::-1]
    assert [file.id for file in client.files.list(limit=2)] == newest_first
    some = client.files.list(ids=[ids[0], ids[3], "file_no"])
    assert [file.id for file in some] == [ids[3], ids[0]]
    assert sorted(file.id for file in same_key.files.list()) == sorted(ids)
    # Older clients page by ids.
    headers = {"x-api-key": client.api_key or "", "anthropic-version": "2023-06-01"}
    with gateway.client(headers=headers) as plain:
        back = plain.get("/v1/files", params={"before_id": newest_first[3], "limit": 2}).json()
        assert [file["id"] for file in back["data"]] == newest_first[1:3]
        assert back["has_more"] is True
        after = plain.get("/v1/files", params={"after_id": newest_first[3]}).json()
        assert [file["id"] for file in after["data"]] == newest_first[4:]
        assert (after["has_more"], after["next_page"]) == (False, None)
        both = plain.get("/v1/files", params={"after_id": ids[0], "before_id": ids[0]})
        assert both.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"expires_in_seconds": 60}, "expires_in_seconds must be a whole number from 3600"),
        ({"extra_body": {"purpose": "batch"}}, "purpose is not a field"),
    ],
)
def test_a_bad_upload_names_its_field(client: anthropic.Anthropic, more: Any, said: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        client.files.upload(file=("a.txt", b"x", "text/plain"), **more)
    body: Any = refused.value.body
    assert body["type"] == "error"
    assert said in body["error"]["message"]


def test_a_form_without_a_file_is_refused_in_anthropics_form(
    client: anthropic.Anthropic, gateway: Gateway
) -> None:
    headers = {"x-api-key": client.api_key or "", "anthropic-version": "2023-06-01"}
    with gateway.client(headers=headers) as plain:
        refused = plain.post("/v1/files", files={"data": ("a.txt", b"x")})
    assert refused.status_code == 400
    assert refused.json()["type"] == "error"


def test_a_file_may_expire(client: anthropic.Anthropic) -> None:
    made = client.files.upload(file=("a.txt", b"x", "text/plain"), expires_in_seconds=7200)
    assert made.expires_at is not None
    assert (made.expires_at - made.created_at).total_seconds() == 7200


def test_messages_name_files_for_a_provider_of_the_same_dialect(
    client: anthropic.Anthropic, gateway: Gateway, upstream: Upstream
) -> None:
    """The provider, which does not have them, gets their contents."""
    lane = gateway.add_lane(upstream, dialect="anthropic")
    upstream.script(reply(MESSAGE))
    picture = client.files.upload(file=("a.png", PNG, "image/png"))
    text = client.files.upload(file=("a.txt", "größer".encode(), "text/plain"))
    paper = client.files.upload(file=("a.pdf", b"%PDF-1.4", "application/pdf"))
    content: Any = [
        {"type": "image", "source": {"type": "file", "file_id": picture.id}},
        {"type": "document", "source": {"type": "file", "file_id": text.id}, "title": "T"},
        {"type": "document", "source": {"type": "file", "file_id": paper.id}},
        {"type": "image", "source": {"type": "file", "file_id": "file_of_the_provider"}},
    ]
    client.beta.messages.create(
        model=f"{lane.prefix}/m",
        max_tokens=10,
        messages=[{"role": "user", "content": content}],
        betas=["files-api-2025-04-14"],
    )
    sent = upstream.last.json()["messages"][0]["content"]
    assert [block.get("source") for block in sent] == [
        {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()},
        {"type": "text", "media_type": "text/plain", "data": "größer"},
        {
            "type": "base64",
            "media_type": "application/pdf",
            "data": base64.b64encode(b"%PDF-1.4").decode(),
        },
        {"type": "file", "file_id": "file_of_the_provider"},
    ]


def test_messages_name_files_for_a_provider_of_another_dialect(
    client: anthropic.Anthropic,
    stranger: anthropic.Anthropic,
    gateway: Gateway,
    upstream: Upstream,
) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(reply(completion()))
    picture = client.files.upload(file=("a.png", PNG, "image/png"))
    block: Any = {"type": "image", "source": {"type": "file", "file_id": picture.id}}
    asked: Any = {
        "model": f"{lane.prefix}/m",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": [block, {"type": "text", "text": "What is it?"}]}],
    }
    client.messages.create(**asked)
    sent = upstream.last.json()["messages"][0]["content"]
    assert sent[0]["image_url"]["url"].endswith(base64.b64encode(PNG).decode())
    # A file of another key is not read.
    with pytest.raises(anthropic.PermissionDeniedError, match="source"):
        stranger.messages.create(**asked)


def test_an_image_must_be_one(
    client: anthropic.Anthropic, gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream)
    text = client.files.upload(file=("a.txt", b"x", "text/plain"))
    block: Any = {"type": "image", "source": {"type": "file", "file_id": text.id}}
    with pytest.raises(anthropic.BadRequestError, match="an image must be one of"):
        client.messages.create(
            model=f"{lane.prefix}/m", max_tokens=1, messages=[{"role": "user", "content": [block]}]
        )


def test_openais_calls_name_files(
    same_key: openai.OpenAI, gateway: Gateway, upstream: Upstream
) -> None:
    """Chat completions and responses, for a provider that speaks chat completions."""
    lane = gateway.add_lane(upstream)
    paper = same_key.files.create(
        file=("a.pdf", b"%PDF-1.4", "application/pdf"), purpose="user_data"
    )
    data = f"data:application/pdf;base64,{base64.b64encode(b'%PDF-1.4').decode()}"
    upstream.script(reply(completion()))
    part: Any = {"type": "file", "file": {"file_id": paper.id}}
    same_key.chat.completions.create(
        model=f"{lane.prefix}/m", messages=[{"role": "user", "content": [part]}]
    )
    (sent,) = upstream.last.json()["messages"][0]["content"]
    assert sent == {"type": "file", "file": {"filename": "a.pdf", "file_data": data}}
    upstream.script(reply(completion()))
    given: Any = [{"type": "input_file", "file_id": paper.id}]
    same_key.responses.create(
        model=f"{lane.prefix}/m", input=[{"role": "user", "content": given}], store=False
    )
    (sent,) = upstream.last.json()["messages"][0]["content"]
    assert sent["file"]["file_data"] == data
