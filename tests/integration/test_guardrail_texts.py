"""Guardrails read documents, citations, code, and names and numbers in what tools are called with, both ways;
and text that is disguised or in base64.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.processes import Gateway, expect
from tests.support.upstream import DONE, Upstream, event, reply, stream

MAIL: Final = "ada.quirk@example.org"
CARD: Final = 4111111111111111
BASES: Final = {"gemini": "/v1beta"}


@pytest.fixture(autouse=True)
def redacting(gateway: Gateway) -> Iterator[None]:
    both = ("guardrailPiiMasker", "guardrailAnswerPiiMasker")
    expect(gateway.admin.patch("/api/settings", json=dict.fromkeys(both, "redact")), 200)
    yield
    back = dict(zip(both, ("warn", "off"), strict=True))
    expect(gateway.admin.patch("/api/settings", json=back), 200)


def model_of(gateway: Gateway, upstream: Upstream, dialect: str) -> str:
    base_url = f"{upstream.url}{BASES.get(dialect, '')}"
    return gateway.add_lane(upstream, base_url=base_url, dialect=dialect).model


DOCUMENT: Final = {
    "type": "document",
    "title": f"from {MAIL}",
    "context": f"of {MAIL}",
    "source": {"type": "text", "media_type": "text/plain", "data": f"write to {MAIL}"},
}
CALL: Final = {"type": "tool_use", "id": "t1", "name": "pay", "input": {"card": CARD, MAIL: 1}}


@pytest.mark.parametrize("dialect", ["anthropic", "openai", "openai-responses", "gemini"])
def test_documents_and_calls_of_tools_reach_no_provider_unread(
    gateway: Gateway, upstream: Upstream, dialect: str
) -> None:
    model = model_of(gateway, upstream, dialect)
    upstream.script(reply({"error": {"message": "enough"}}, 400))
    # Other dialects have no place for a document's context.
    document = {name: value for name, value in DOCUMENT.items() if name != "context"}
    document = DOCUMENT if dialect == "anthropic" else document
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [document]}
    messages = [
        {"role": "user", "content": [document, {"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [CALL]},
        {"role": "user", "content": [result]},
    ]
    answer = gateway.caller.post(
        "/v1/messages", json={"model": model, "max_tokens": 9, "messages": messages}
    )
    assert upstream.requests, answer.text
    sent = upstream.last.body.decode()
    assert MAIL not in sent
    assert str(CARD) not in sent
    assert "[REDACTED:email]" in sent
    assert "[REDACTED:card]" in sent


def test_functions_of_gemini_are_read(gateway: Gateway, upstream: Upstream) -> None:
    model = model_of(gateway, upstream, "gemini")
    parts = [
        {"functionCall": {"name": "pay", "args": {"card": CARD, MAIL: True}}},
        {"executableCode": {"language": "PYTHON", "code": f"mail('{MAIL}')"}},
    ]
    said = {"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}
    upstream.script(reply(said))
    back = {"functionResponse": {"name": "pay", "response": {"card": CARD, "id": MAIL}}}
    contents = [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": parts[:1]},
        {"role": "user", "parts": [back]},
    ]
    path = f"/v1beta/models/{model}:generateContent"
    answer = gateway.caller.post(path, json={"contents": contents})
    assert answer.status_code == 200, answer.text
    for text in (upstream.last.body.decode(), answer.text):
        assert MAIL not in text
        assert str(CARD) not in text
    kept = answer.json()["candidates"][0]["content"]["parts"]
    assert kept[0]["functionCall"]["args"] == {"card": "[REDACTED:card]", "[REDACTED:email]": True}


@pytest.mark.parametrize("streamed", [False, True])
def test_answers_with_citations_and_tools_are_read(
    gateway: Gateway, upstream: Upstream, streamed: bool
) -> None:
    model = model_of(gateway, upstream, "anthropic")
    citation = {
        "type": "char_location",
        "cited_text": f"see {MAIL}",
        "document_title": MAIL,
        "document_index": 0,
        "start_char_index": 0,
        "end_char_index": 5,
    }
    text = {"type": "text", "text": "as told", "citations": [citation]}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    if streamed:
        events = [
            {"type": "message_start", "message": {**message, "content": [], "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {**text, "citations": []}},
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "citations_delta", "citation": citation},
            },
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {**CALL, "input": {}}},
            *(
                {
                    "type": "content_block_delta",
                    "index": 1,
                    "delta": {"type": "input_json_delta", "partial_json": piece},
                }
                for piece in (json.dumps(CALL["input"])[:20], json.dumps(CALL["input"])[20:])
            ),
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": end, "usage": usage},
            {"type": "message_stop"},
        ]
        told = [f"event: {one['type']}\n".encode() + event(one) for one in events]
        upstream.script(stream(*told))
    else:
        upstream.script(reply({**message, **end, "content": [text, CALL], "usage": usage}))
    asked = {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    answer = gateway.caller.post("/v1/messages", json={**asked, "stream": streamed})
    assert answer.status_code == 200, answer.text
    assert MAIL not in answer.text
    assert str(CARD) not in answer.text
    assert answer.text.count("[REDACTED:email]") == 3
    assert "[REDACTED:card]" in answer.text


def test_other_surfaces_are_read(gateway: Gateway, upstream: Upstream) -> None:
    model = model_of(gateway, upstream, "openai")
    asked: dict[str, dict[str, Any]] = {
        "/v1/completions": {"prompt": "a", "suffix": MAIL},
        "/v1/rerank": {"query": "a", "documents": [{"id": MAIL, "card": CARD}, MAIL]},
        "/v1/embeddings": {"input": [MAIL]},
        "/v1/responses": {
            "input": [
                {"type": "code_interpreter_call", "id": "c", "code": MAIL, "container_id": "x"},
                {"role": "user", "content": MAIL},
            ],
            "store": False,
        },
    }
    for path, body in asked.items():
        upstream.script(reply({"error": {"message": "enough"}}, 400))
        before = len(upstream.requests)
        answer = gateway.caller.post(path, json={"model": model, **body})
        if path == "/v1/responses" and len(upstream.requests) == before:
            # The container is not the caller's, so the call is refused before a provider is called.
            assert answer.status_code == 403
            continue
        sent = upstream.last.body.decode()
        assert len(upstream.requests) == before + 1, path
        assert MAIL not in sent, path
        assert str(CARD) not in sent, path


def test_a_stream_of_chat_is_read_to_its_annotations(gateway: Gateway, upstream: Upstream) -> None:
    model = model_of(gateway, upstream, "openai")
    link = {"type": "url_citation", "url_citation": {"url": "https://a.example", "title": MAIL}}
    choice = {"index": 0, "delta": {"content": "hi", "annotations": [link]}, "finish_reason": None}
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunks = [event({"id": "c", "choices": [each]}) for each in (choice, end)]
    upstream.script(stream(*chunks, DONE))
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    answer = gateway.caller.post("/v1/chat/completions", json=body)
    assert MAIL not in answer.text
    assert "[REDACTED:email]" in answer.text


TEXT_FILE: Final = base64.b64encode(f"write to {MAIL}".encode()).decode()
DISGUISED: Final = {
    "full-width digits": "\uff14\uff11\uff11\uff11 1111 1111 1111",
    "digits of another script": "\u0664" + "\u0661" * 15,
    "invisible characters": "4111\u200b1111\u200b1111\u200b1111",
    "a percent escape": MAIL.replace("@", "%40"),
    "a JSON escape": MAIL.replace("@", "\\u0040"),
    "letters of another script": MAIL.replace("@example", "@\u0435\u0445\u0430mple"),
    "a full-width sign": MAIL.replace("@", "\uff20"),
}


def bodies(dialect: str, text: str) -> tuple[str, dict[str, Any]]:
    """A request of a caller of the dialect, with the text and a text file."""
    url = f"data:text/plain;base64,{TEXT_FILE}"
    match dialect:
        case "openai":
            file = {"type": "file", "file": {"filename": "a.txt", "file_data": url}}
            parts = [{"type": "text", "text": text}, file]
            return "/v1/chat/completions", {"messages": [{"role": "user", "content": parts}]}
        case "openai-responses":
            file = {"type": "input_file", "filename": "a.txt", "file_data": url}
            parts = [{"type": "input_text", "text": text}, file]
            return "/v1/responses", {"input": [{"role": "user", "content": parts}]}
        case "anthropic":
            source = {"type": "base64", "media_type": "text/plain", "data": TEXT_FILE}
            parts = [{"type": "text", "text": text}, {"type": "document", "source": source}]
            return "/v1/messages", {
                "max_tokens": 9,
                "messages": [{"role": "user", "content": parts}],
            }
        case _:
            file = {"inlineData": {"mimeType": "text/plain", "data": TEXT_FILE}}
            return "", {"contents": [{"role": "user", "parts": [{"text": text}, file]}]}


@pytest.mark.parametrize("name", DISGUISED)
@pytest.mark.parametrize("dialect", ["openai", "openai-responses", "anthropic", "gemini"])
def test_disguised_text_and_text_files_reach_no_provider(
    gateway: Gateway, upstream: Upstream, dialect: str, name: str
) -> None:
    model = model_of(gateway, upstream, dialect)
    upstream.script(reply({"error": {"message": "enough"}}, 400))
    path, body = bodies(dialect, f"see {DISGUISED[name]} and go")
    path = path or f"/v1beta/models/{model}:generateContent"
    answer = gateway.caller.post(path, json={"model": model, **body})
    assert upstream.requests, answer.text
    sent = json.dumps(json.loads(upstream.last.body), ensure_ascii=False)
    assert DISGUISED[name] not in sent
    assert TEXT_FILE not in sent
    assert "see [REDACTED:" in sent
    redacted = base64.b64encode(b"write to [REDACTED:email]").decode()
    assert redacted in sent, sent
