"""The official `google-genai` client uploads files and caches contents, whatever the provider of the model speaks."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.sdk_clients import GenaiCaller
from tests.support.sdks import genai
from tests.support.upstream import Upstream, completion, reply

VERSIONS = pytest.mark.parametrize("version", ["v1", "v1beta"])


def uploaded(caller: GenaiCaller, content: bytes = b"%PDF-1.4", **config: Any) -> Any:
    config = {"mime_type": "application/pdf", **config}
    return caller.genai.files.upload(file=io.BytesIO(content), config=config)


@VERSIONS
def test_a_file_from_upload_to_deletion(callers: Callable[..., GenaiCaller], version: str) -> None:
    caller, stranger = callers(version), callers(version)
    made = uploaded(caller, display_name="a paper")
    assert made.name.startswith("files/file-")
    assert (made.display_name, made.mime_type, made.size_bytes) == ("a paper", "application/pdf", 8)
    assert made.state == genai.types.FileState.ACTIVE
    assert (made.expiration_time - made.create_time).total_seconds() == 48 * 3600
    assert caller.genai.files.get(name=made.name).uri == made.uri
    assert [file.name for file in caller.genai.files.list()] == [made.name]
    assert caller.openai.files.content(made.name.removeprefix("files/")).read() == b"%PDF-1.4"
    for call in (stranger.genai.files.get, stranger.genai.files.delete):
        with pytest.raises(genai.errors.ClientError) as unknown:
            call(name=made.name)
        assert unknown.value.code == 404
    caller.genai.files.delete(name=made.name)
    assert list(caller.genai.files.list()) == []


def test_a_large_file_comes_in_pieces(callers: Callable[..., GenaiCaller]) -> None:
    """The client sends eight MiB at a time."""
    caller = callers()
    content = bytes(range(256)) * 4096 * 9
    made = uploaded(caller, content, mime_type="application/octet-stream")
    assert made.size_bytes == len(content)
    assert caller.openai.files.content(made.name.removeprefix("files/")).read() == content


def test_files_are_listed_page_by_page(callers: Callable[..., GenaiCaller]) -> None:
    caller = callers()
    names = [uploaded(caller).name for _ in range(3)]
    found = [file.name for file in caller.genai.files.list(config={"page_size": 2})]
    assert found == names[::-1]


def test_the_address_of_pieces_is_a_secret(
    callers: Callable[..., GenaiCaller],
) -> None:
    """It takes no key, is of one upload, and counts offsets."""
    caller = callers()
    headers = {
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-length": "4",
        "x-goog-upload-header-content-type": "text/plain",
    }
    begun = caller.plain.post("/upload/v1beta/files", headers=headers, json={})
    assert begun.headers["x-goog-upload-status"] == "active"
    path = begun.headers["x-goog-upload-url"].removeprefix(caller.gateway.url)
    with caller.gateway.client() as nobody:
        assert nobody.post("/upload/v1beta/files", headers=headers, json={}).status_code == 401
        other = f"{path[:-4]}0000"
        send = {"x-goog-upload-command": "upload, finalize", "x-goog-upload-offset": "0"}
        assert nobody.post(other, headers=send, content=b"four").status_code == 404
        late = {**send, "x-goog-upload-offset": "2"}
        assert "must be 0" in nobody.post(path, headers=late, content=b"ur").text
        assert "has more" in nobody.post(path, headers=send, content=b"fourfour").text
        part = {**send, "x-goog-upload-command": "upload"}
        assert nobody.post(path, headers=part, content=b"fo").status_code == 200
        early = nobody.post(path, headers={"x-goog-upload-command": "finalize"})
        assert "2 were received" in early.json()["error"]["message"]
        asked = nobody.post(path, headers={"x-goog-upload-command": "query"})
        assert asked.headers["x-goog-upload-size-received"] == "2"
        done = nobody.post(path, headers={**send, "x-goog-upload-offset": "2"}, content=b"ur")
        assert done.json()["file"]["sizeBytes"] == "4"
        assert nobody.post(path, headers=send, content=b"four").status_code == 404


@pytest.mark.parametrize("dialect", ["gemini", "openai"])
def test_a_request_names_a_file(
    callers: Callable[..., GenaiCaller], upstream: Upstream, dialect: str
) -> None:
    caller = callers()
    lane = caller.gateway.add_lane(upstream, dialect=dialect)
    made = uploaded(caller)
    text = {"candidates": [{"content": {"role": "model", "parts": [{"text": "seen"}]}}]}
    upstream.script(reply(text if dialect == "gemini" else completion("seen")))
    answer = caller.genai.models.generate_content(
        model=f"models/{lane.prefix}/m", contents=[made, "What is it?"]
    )
    assert answer.text == "seen"
    data = base64.b64encode(b"%PDF-1.4").decode()
    assert data in upstream.last.body.decode()


@VERSIONS
def test_a_cached_content_from_creation_to_deletion(
    callers: Callable[..., GenaiCaller], version: str
) -> None:
    caller, stranger = callers(version), callers(version)
    config: Any = {"contents": ["A long text."], "display_name": "text", "ttl": "300s"}
    made = caller.genai.caches.create(model="models/a/b", config=config)
    assert made.name.startswith("cachedContents/")
    assert (made.display_name, made.model) == ("text", "models/a/b")
    assert (made.expire_time - made.create_time).total_seconds() == 300
    assert made.usage_metadata.total_token_count > 0
    assert caller.genai.caches.get(name=made.name) == made
    assert [each.name for each in caller.genai.caches.list()] == [made.name]
    later = caller.genai.caches.update(name=made.name, config={"ttl": "7200s"})
    assert later.expire_time > made.expire_time
    with pytest.raises(genai.errors.ClientError, match="within 30 days"):
        caller.genai.caches.update(name=made.name, config={"ttl": "9999999s"})
    for call in (stranger.genai.caches.get, stranger.genai.caches.delete):
        with pytest.raises(genai.errors.ClientError) as unknown:
            call(name=made.name)
        assert unknown.value.code == 404
    caller.genai.caches.delete(name=made.name)
    with pytest.raises(genai.errors.ClientError, match="No such cached content"):
        caller.genai.caches.get(name=made.name)


def test_a_request_begins_with_a_cached_content(
    callers: Callable[..., GenaiCaller], upstream: Upstream
) -> None:
    """For a provider that has no such thing. What is stored is not said again."""
    caller = callers()
    lane = caller.gateway.add_lane(upstream)
    model = f"models/{lane.prefix}/m"
    made = caller.genai.caches.create(
        model=model,
        config={"contents": ["The text."], "system_instruction": "Be brief.", "ttl": "300s"},
    )
    upstream.script(reply(completion("short")))
    answer = caller.genai.models.generate_content(
        model=model, contents="Sum it up.", config={"cached_content": made.name}
    )
    assert answer.text == "short"
    sent = upstream.last.json()["messages"]
    assert [(turn["role"], turn["content"]) for turn in sent] == [
        ("system", "Be brief."),
        ("user", "The text."),
        ("user", "Sum it up."),
    ]
    with pytest.raises(genai.errors.ClientError, match="systemInstruction must be left out"):
        caller.genai.models.generate_content(
            model=model,
            contents="x",
            config={"cached_content": made.name, "system_instruction": "Be long."},
        )
    with pytest.raises(genai.errors.ClientError, match="cachedContent"):
        callers().genai.models.generate_content(
            model=model, contents="x", config={"cached_content": made.name}
        )
