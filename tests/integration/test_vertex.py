"""Vertex AI: one connection serves Gemini, Claude and the open models, each by the API that it has there. The paths and
bodies are those of Google's and Anthropic's own clients.
"""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import openai
import pytest
from google import genai
from google.genai import types
from google.oauth2.credentials import Credentials

from tests.support.clouds import connect, host
from tests.support.processes import Gateway
from tests.support.upstream import Seen, Upstream, completion, event, reply, stream

TOKEN = "ya29.canary-of-vertex"
CLAUDE = "claude-opus-4-8"
SAY = [{"role": "user", "content": "hello"}]
MESSAGE = {
    "id": "msg_vrtx_1",
    "type": "message",
    "role": "assistant",
    "model": CLAUDE,
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 4},
}
GENERATED = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "hi"}]},
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 2, "totalTokenCount": 11},
    "modelVersion": "gemini-3.5-flash",
}


@pytest.fixture
def vertex(gateway: Gateway, up: Upstream) -> Gateway:
    connect(gateway, "vertex", host(up), apiKey=TOKEN, region="europe-west1", project="my-project")
    return gateway


def claude_directly(up: Upstream) -> anthropic.AnthropicVertex:
    return anthropic.AnthropicVertex(
        region="europe-west1",
        project_id="my-project",
        access_token=TOKEN,
        base_url=f"{host(up)}/v1",
        max_retries=0,
    )


def gemini_directly(up: Upstream) -> genai.Client:
    return genai.Client(
        vertexai=True,
        project="my-project",
        location="europe-west1",
        credentials=Credentials(TOKEN),
        http_options=types.HttpOptions(base_url=host(up), api_version="v1"),
    )


def events_of_claude() -> list[bytes]:
    return [
        b"event: " + each["type"].encode() + b"\n" + event(each)
        for each in (
            {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            },
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {"type": "text_delta", "text": "hi"},
            },
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn", "stop_sequence": None},
                "usage": {"output_tokens": 2},
            },
            {"type": "message_stop"},
        )
    ]


def same_call(one: Seen, other: Seen) -> None:
    """Both calls have the same address, credential and body. The clients send a newer version of the API, which only
    the newest models have.
    """
    assert one.target == other.target
    assert one.bearer == other.bearer == TOKEN
    bodies = [{**each.json(), "anthropic_version": None} for each in (one, other)]
    assert bodies[0] == bodies[1]


def test_claude_is_called_as_anthropics_own_client_calls_it(
    vertex: Gateway, up: Upstream, anthropics: anthropic.Anthropic
) -> None:
    up.script(reply(MESSAGE))
    asked: dict[str, Any] = {"max_tokens": 50, "messages": SAY}
    with claude_directly(up) as client:
        client.messages.create(model=CLAUDE, **asked)
    directly = up.last

    answer = anthropics.messages.create(model=f"vertex/{CLAUDE}", **asked)

    same_call(up.last, directly)
    assert up.last.target == (
        f"/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/{CLAUDE}:rawPredict"
    )
    assert up.last.json()["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in up.last.json()
    assert up.last.header("anthropic-version") is None
    assert answer.content[0].text == "hi"
    assert answer.usage.cache_read_input_tokens == 4


def test_claude_streams_as_to_anthropics_own_client(
    vertex: Gateway, up: Upstream, anthropics: anthropic.Anthropic
) -> None:
    up.script(stream(*events_of_claude()))
    asked: dict[str, Any] = {"max_tokens": 50, "messages": SAY}
    with claude_directly(up) as client, client.messages.stream(model=CLAUDE, **asked) as own:
        own.until_done()
    directly = up.last

    with anthropics.messages.stream(model=f"vertex/{CLAUDE}", **asked) as told:
        message = told.get_final_message()

    same_call(up.last, directly)
    assert up.last.target.endswith(f"/publishers/anthropic/models/{CLAUDE}:streamRawPredict")
    assert (message.content[0].text, message.stop_reason) == ("hi", "end_turn")


def test_claudes_beta_features_are_a_header(
    vertex: Gateway, up: Upstream, anthropics: anthropic.Anthropic
) -> None:
    up.script(reply(MESSAGE))
    anthropics.messages.create(
        model=f"vertex/{CLAUDE}",
        max_tokens=5,
        messages=SAY,
        extra_headers={"anthropic-beta": "context-1m-2025-08-07"},
        service_tier="auto",
    )
    assert up.last.header("anthropic-beta") == "context-1m-2025-08-07"
    assert "service_tier" not in up.last.json()


def test_other_dialects_reach_claude(vertex: Gateway, up: Upstream, openais: openai.OpenAI) -> None:
    up.script(stream(*events_of_claude()))
    chunks = list(
        openais.chat.completions.create(model=f"vertex/{CLAUDE}", messages=SAY, stream=True)
    )
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "hi"
    assert up.last.target.endswith(":streamRawPredict")

    up.script(reply(MESSAGE))
    answer = openais.chat.completions.create(model=f"vertex/{CLAUDE}", messages=SAY)
    assert (answer.choices[0].message.content, answer.usage.prompt_tokens) == ("hi", 13)
    assert up.last.json()["messages"] == SAY


def test_gemini_is_called_as_googles_own_client_calls_it(
    vertex: Gateway, up: Upstream, gemini: genai.Client
) -> None:
    up.script(reply(GENERATED))
    client = gemini_directly(up)
    client.models.generate_content(model="gemini-3.5-flash", contents="hello")
    client.close()
    directly = up.last

    answer = gemini.models.generate_content(
        model="models/vertex/gemini-3.5-flash", contents="hello"
    )

    same_call(up.last, directly)
    path = (
        "/v1/projects/my-project/locations/europe-west1/publishers/google/models/gemini-3.5-flash"
    )
    assert up.last.target == f"{path}:generateContent"
    assert answer.text == "hi"


@pytest.mark.parametrize("model", ["gemini-3.5-flash", "google/gemini-3.5-flash"])
def test_gemini_streams_to_every_dialect(
    vertex: Gateway, up: Upstream, model: str, openais: openai.OpenAI
) -> None:
    up.script(stream(event(GENERATED)))
    chunks = list(
        openais.chat.completions.create(model=f"vertex/{model}", messages=SAY, stream=True)
    )
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "hi"
    assert up.last.target == (
        "/v1/projects/my-project/locations/europe-west1/publishers/google/models/gemini-3.5-flash"
        ":streamGenerateContent?alt=sse"
    )


def test_other_models_are_called_by_the_openai_api(
    vertex: Gateway, up: Upstream, openais: openai.OpenAI
) -> None:
    up.script(reply(completion("hi")))
    model = "meta/llama-4-scout-17b-16e-instruct-maas"
    openais.chat.completions.create(model=f"vertex/{model}", messages=SAY)
    path = "/v1/projects/my-project/locations/europe-west1/endpoints/openapi/chat/completions"
    assert (up.last.target, up.last.json()["model"]) == (path, model)


def test_the_models_are_listed_and_priced(vertex: Gateway) -> None:
    listed = {one["id"] for one in vertex.caller.get("/v1/models").json()["data"]}
    assert {f"vertex/{CLAUDE}", "vertex/google/gemini-3.5-flash"} <= listed


def test_a_price_holds_for_both_names_of_gemini(vertex: Gateway, up: Upstream) -> None:
    costs = []
    for name in ("gemini-3.5-flash", "google/gemini-3.5-flash"):
        up.script(reply(GENERATED))
        answer: httpx.Response = vertex.caller.post(
            "/v1/chat/completions", json={"model": f"vertex/{name}", "messages": SAY}
        )
        assert answer.status_code == 200, answer.text
        costs.append(answer.headers["x-gateway-response-cost"])
    assert costs[0] == costs[1] != "0"


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: 9"}},
        [{"error": {"code": 400, "message": "max_tokens: 9", "status": "INVALID_ARGUMENT"}}],
    ],
)
def test_an_error_of_the_cloud_is_told(
    vertex: Gateway, up: Upstream, error: Any, anthropics: anthropic.Anthropic
) -> None:
    up.script(reply(json.dumps(error).encode(), 400))
    with pytest.raises(anthropic.BadRequestError, match="max_tokens: 9"):
        anthropics.messages.create(model=f"vertex/{CLAUDE}", max_tokens=9, messages=SAY)
