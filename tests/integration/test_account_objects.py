"""A caller names no object of the operator's account at a provider, nor one of another key, unless its key may."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any, Final

import httpx
import pytest

from tests.integration.test_realtime import Provider, heard, opened, prefix, provider
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, reply

__all__ = ["prefix", "provider"]

PATHS: Final = {
    "openai": ("openai", "/v1/chat/completions"),
    "responses": ("openai-responses", "/v1/responses"),
    "anthropic": ("anthropic", "/v1/messages"),
    "gemini": ("gemini", "/v1beta/models/{model}:generateContent"),
    "images": ("openai", "/v1/images/generations"),
    "speech": ("openai", "/v1/audio/speech"),
    "ocr": ("openai", "/v1/ocr"),
    "count": ("anthropic", "/v1/messages/count_tokens"),
    "compact": ("openai-responses", "/v1/responses/compact"),
}


def said(*parts: dict[str, Any], role: str = "user") -> list[dict[str, Any]]:
    return [{"role": role, "content": list(parts)}]


def chat(**members: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "hi"}]} | members


def message(*parts: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"max_tokens": 5, "messages": said({"type": "text", "text": "hi"}, *parts)} | members


def tool(**members: Any) -> dict[str, Any]:
    return {"input": "hi", "tools": [members]}


def google(part: dict[str, Any] | None = None, **members: Any) -> dict[str, Any]:
    return {
        "contents": [{"role": "user", "parts": [{"text": "hi"}, *([part] if part else [])]}]
    } | members


FILE: Final = {"type": "file", "file_id": "file-x"}
# The surface, the body, and the id in it.
NAMED: Final[list[tuple[str, dict[str, Any], str]]] = [
    ("responses", tool(type="file_search", vector_store_ids=["vs_x"]), "vs_x"),
    ("responses", tool(type="code_interpreter", container="cntr_x"), "cntr_x"),
    (
        "responses",
        tool(type="code_interpreter", container={"type": "auto", "file_ids": ["file-x"]}),
        "file-x",
    ),
    (
        "responses",
        tool(type="shell", environment={"type": "container_reference", "container_id": "cntr_x"}),
        "cntr_x",
    ),
    ("responses", tool(type="mcp", server_label="a", tunnel_id="tun_x"), "tun_x"),
    (
        "responses",
        tool(type="mcp", server_label="a", connector_id="connector_gmail"),
        "connector_gmail",
    ),
    ("responses", {"input": "hi", "prompt": {"id": "pmpt_x", "version": "2"}}, "pmpt_x"),
    ("responses", {"input": [{"type": "item_reference", "id": "msg_x"}]}, "msg_x"),
    ("responses", {"input": [*said({"type": "input_text", "text": "hi"}), {"id": "rs_x"}]}, "rs_x"),
    ("responses", {"input": said({"type": "input_file", "file_id": "file-x"})}, "file-x"),
    ("responses", {"input": said({"type": "input_image", "file_id": "file-x"})}, "file-x"),
    (
        "responses",
        {"input": said({"type": "input_image", "image_url": "gs://bucket/x.png"})},
        "gs://bucket/x.png",
    ),
    ("compact", {"input": said({"type": "input_file", "file_id": "file-x"})}, "file-x"),
    ("compact", {"input": [{"type": "item_reference", "id": "msg_x"}]}, "msg_x"),
    ("openai", {"messages": said({"type": "file", "file": {"file_id": "file-x"}})}, "file-x"),
    (
        "openai",
        {"messages": [*chat()["messages"], {"role": "assistant", "audio": {"id": "audio_x"}}]},
        "audio_x",
    ),
    ("openai", chat(audio={"format": "wav", "voice": {"id": "voice_x"}}), "voice_x"),
    (
        "openai",
        chat(data_sources=[{"type": "azure_search", "parameters": {"index_name": "x"}}]),
        "data_sources",
    ),
    (
        "openai",
        {"messages": said({"type": "image_url", "image_url": {"url": "file:///etc/passwd"}})},
        "file:///etc/passwd",
    ),
    ("anthropic", message(container="container_x"), "container_x"),
    ("anthropic", message(container={"id": "container_x"}), "container_x"),
    (
        "anthropic",
        message(container={"skills": [{"type": "custom", "skill_id": "skill_x", "version": "1"}]}),
        "skill_x",
    ),
    ("anthropic", message({"type": "container_upload", "file_id": "file-x"}), "file-x"),
    ("anthropic", message({"type": "document", "source": FILE}), "file-x"),
    ("anthropic", message({"type": "image", "source": FILE}), "file-x"),
    ("count", message({"type": "document", "source": FILE}), "file-x"),
    ("gemini", google(cachedContent="cachedContents/x"), "cachedContents/x"),
    ("gemini", google({"fileData": {"fileUri": "files/x", "mimeType": "text/plain"}}), "files/x"),
    (
        "gemini",
        google({"file_data": {"file_uri": "gs://bucket/x", "mime_type": "text/plain"}}),
        "gs://bucket/x",
    ),
    (
        "gemini",
        google(tools=[{"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/x"]}}]),
        "fileSearchStores/x",
    ),
    (
        "gemini",
        google(tools=[{"retrieval": {"vertexAiSearch": {"datastore": "projects/x"}}}]),
        "projects/x",
    ),
    ("images", {"prompt": "a cat", "image": {"file_id": "file-x"}}, "file-x"),
    ("speech", {"input": "hi", "voice": {"id": "voice_x"}}, "voice_x"),
    ("ocr", {"document": {"type": "file", "file_id": "file-x"}}, "file-x"),
]


@pytest.fixture
def lane_of(gateway: Gateway, upstream: Upstream) -> Callable[[str], Lane]:
    upstream.script(reply({"error": {"message": "asked"}}, 400))
    return lambda surface: gateway.add_lane(upstream, dialect=PATHS[surface][0])


def ask(client: httpx.Client, lane: Lane, surface: str, body: dict[str, Any]) -> httpx.Response:
    path = PATHS[surface][1].format(model=lane.model)
    return client.post(path, json=body if surface == "gemini" else {"model": lane.model} | body)


def caller(gateway: Gateway, **fields: Any) -> httpx.Client:
    return gateway.client(
        headers={"Authorization": f"Bearer {gateway.create_key(**fields)['key']}"}
    )


@pytest.mark.parametrize(("surface", "body", "named"), NAMED)
def test_a_key_names_no_object_of_the_account(
    gateway: Gateway,
    lane_of: Callable[[str], Lane],
    surface: str,
    body: dict[str, Any],
    named: str,
) -> None:
    lane = lane_of(surface)
    refused = ask(gateway.caller, lane, surface, body)
    assert refused.status_code == 403, refused.text
    for word in (named, "allowedProviderObjects"):
        assert word in refused.text
    assert lane.upstream.requests == []
    # Another id is no permission.
    other = caller(gateway, allowedProviderObjects=["other", f"{named}-other"])
    assert ask(other, lane, surface, body).status_code == 403
    assert lane.upstream.requests == []
    allowed = caller(gateway, allowedProviderObjects=[f"{named[:-1]}*"])
    answer = ask(allowed, lane, surface, body)
    if surface != "count":
        assert lane.upstream.requests, answer.text
        assert named in lane.upstream.last.body.decode()


def test_a_file_is_for_the_key_that_stored_it(
    gateway: Gateway, lane_of: Callable[[str], Lane]
) -> None:
    lane = lane_of("responses")
    owner, stranger = caller(gateway), caller(gateway)
    form = {"file": ("a.txt", b"a secret of the owner", "text/plain")}
    file_id = expect(owner.post("/v1/files", data={"purpose": "user_data"}, files=form), 200)["id"]
    body = {"input": said({"type": "input_file", "file_id": file_id})}
    assert ask(stranger, lane, "responses", body).status_code == 403
    assert lane.upstream.requests == []
    ask(owner, lane, "responses", body)
    sent = lane.upstream.last.body.decode()
    assert ("file_data" in sent, file_id in sent) == (True, False)
    expect(owner.delete(f"/v1/files/{file_id}"), 200)
    assert ask(owner, lane, "responses", body).status_code == 403


def test_an_item_is_for_the_key_whose_response_has_it(
    gateway: Gateway, lane_of: Callable[[str], Lane]
) -> None:
    """Clients that rely on `store` name the items of earlier answers by their ids."""
    lane = lane_of("responses")
    item_id = f"msg_{secrets.token_hex(12)}"
    text = {"type": "output_text", "text": "The secret is 7.", "annotations": []}
    output = {
        "type": "message",
        "id": item_id,
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    response = {
        "id": f"resp_{secrets.token_hex(12)}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "output": [output],
        "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    }
    lane.upstream.script(reply(response))
    owner, stranger = caller(gateway), caller(gateway)
    expect(ask(owner, lane, "responses", {"input": "Tell me."}), 200)
    asked = len(lane.upstream.requests)
    for reference in ({"type": "item_reference", "id": item_id}, {"id": item_id}):
        body = {
            "input": [reference, *said({"type": "input_text", "text": "Again."})],
            "store": False,
        }
        refused = ask(stranger, lane, "responses", body)
        assert (refused.status_code, item_id in refused.text) == (403, True), refused.text
        assert len(lane.upstream.requests) == asked
        expect(ask(owner, lane, "responses", body), 200)
        asked += 1
        sent = json.loads(lane.upstream.last.body)["input"]
        assert (sent[0]["type"], sent[0]["content"][0]["text"]) == ("message", "The secret is 7.")


def test_who_manages_may_name_every_object(
    gateway: Gateway, lane_of: Callable[[str], Lane]
) -> None:
    lane = lane_of("responses")
    ask(gateway.admin, lane, "responses", tool(type="file_search", vector_store_ids=["vs_x"]))
    assert "vs_x" in lane.upstream.last.body.decode()


def test_reports_of_earlier_answers_are_sent_back(
    gateway: Gateway, lane_of: Callable[[str], Lane]
) -> None:
    lane = lane_of("responses")
    citation = {
        "type": "container_file_citation",
        "container_id": "cntr_x",
        "file_id": "cfile_x",
        "filename": "a",
    }
    text = {"type": "output_text", "text": "Done.", "annotations": [citation]}
    call = {
        "type": "function_call",
        "call_id": "c",
        "name": "f",
        "arguments": '{"file_id": "file-x"}',
    }
    history = [{"type": "message", "id": "msg_x", "role": "assistant", "content": [text]}, call]
    function = {
        "type": "function",
        "name": "f",
        "parameters": {"properties": {"file_id": {"type": "string"}}},
    }
    ask(gateway.caller, lane, "responses", {"input": history, "tools": [function]})
    assert "cfile_x" in lane.upstream.last.body.decode()


def test_a_background_response_is_no_way_round(
    gateway: Gateway, lane_of: Callable[[str], Lane]
) -> None:
    lane = lane_of("responses")
    body = {"model": lane.model, "background": True} | tool(
        type="file_search", vector_store_ids=["vs_x"]
    )
    begun = gateway.caller.post("/v1/responses", json=body)
    if begun.status_code == 200:
        path = f"/v1/responses/{begun.json()['id']}"

        def ended() -> dict[str, Any] | None:
            found = expect(gateway.caller.get(path), 200)
            return found if found["status"] in ("failed", "completed") else None

        assert (
            "allowedProviderObjects" in eventually(ended, "the response ends")["error"]["message"]
        )
    else:
        assert (begun.status_code, "vs_x" in begun.text) == (403, True)
    assert lane.upstream.requests == []


def test_an_interaction_is_no_way_round(gateway: Gateway, lane_of: Callable[[str], Lane]) -> None:
    lane = lane_of("responses")
    content = {"type": "image", "uri": "gs://bucket/x.png", "mime_type": "image/png"}
    answer = gateway.caller.post(
        "/v1beta/interactions", json={"model": lane.model, "input": [content]}
    )
    (error,) = expect(answer, 200)["errors"]
    assert (error["code"], "gs://bucket/x.png" in error["message"]) == ("forbidden", True)
    assert lane.upstream.requests == []


def test_a_line_of_a_batch_is_no_way_round(
    gateway: Gateway, lane_of: Callable[[str], Lane]
) -> None:
    lane = lane_of("responses")
    body = {"model": lane.model} | tool(type="file_search", vector_store_ids=["vs_x"])
    line = {"custom_id": "a", "method": "POST", "url": "/v1/responses", "body": body}
    form = {"file": ("in.jsonl", json.dumps(line).encode(), "application/jsonl")}
    uploaded = expect(gateway.caller.post("/v1/files", data={"purpose": "batch"}, files=form), 200)
    order = {
        "input_file_id": uploaded["id"],
        "endpoint": "/v1/responses",
        "completion_window": "24h",
    }
    begun = expect(gateway.caller.post("/v1/batches", json=order), 200)

    def errors() -> str | None:
        found = expect(gateway.caller.get(f"/v1/batches/{begun['id']}"), 200)
        return found["error_file_id"] if found["status"] == "completed" else None

    failed = eventually(errors, "the batch ends", within_s=30)
    assert "allowedProviderObjects" in gateway.caller.get(f"/v1/files/{failed}/content").text
    assert lane.upstream.requests == []


def test_items_of_a_conversation_name_no_container(gateway: Gateway) -> None:
    item = {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_x", "code": "1"}
    refused = gateway.caller.post("/v1/conversations", json={"items": [item]})
    assert (refused.status_code, "container" in refused.text) == (400, True)


@pytest.mark.parametrize(
    "session",
    [
        {"prompt": {"id": "pmpt_x"}},
        {"tools": [{"type": "mcp", "server_label": "a", "connector_id": "connector_gmail"}]},
        {"audio": {"output": {"voice": {"id": "voice_x"}}}},
    ],
)
def test_an_event_of_a_conversation_is_no_way_round(
    gateway: Gateway, provider: Provider, prefix: str, session: dict[str, Any]
) -> None:
    with opened(gateway, f"{prefix}/gpt-realtime") as socket:
        assert heard(socket) == {"type": "session.created"}
        socket.send(json.dumps({"type": "session.update", "session": session}))
        refused = heard(socket)
        assert (refused["type"], refused["error"]["code"]) == ("error", "forbidden")
        item = {"type": "item_reference", "id": "item_1"}
        event = {"type": "response.create", "response": {"input": [item]}}
        socket.send(json.dumps(event))
        assert heard(socket) == {"type": "echo", "event": event}


def test_no_member_of_a_group_gives_that_permission(gateway: Gateway) -> None:
    key = gateway.create_key(allowedProviderObjects=["vs_1", "gs://bucket/*"])
    shown = expect(gateway.admin.get(f"/api/keys/{key['id']}"), 200)
    assert shown["allowedProviderObjects"] == ["vs_1", "gs://bucket/*"]
