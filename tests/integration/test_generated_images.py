"""Images that a model generates: with the vendors' clients, in stored responses, and without a cache."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from tests.support.processes import Gateway, Lane
from tests.support.upstream import Upstream, event, reply, stream

PIXELS = base64.b64encode(b"\x89PNG\r\n\x1a\npixels").decode()
IMAGE = {"inlineData": {"mimeType": "image/png", "data": PIXELS}, "thoughtSignature": "c2lnbmVk"}


def answer(*parts: Any, reason: str | None = "STOP") -> dict[str, Any]:
    """An answer of Google's, or a chunk of one."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    return {
        "responseId": "r1",
        "modelVersion": "m",
        "candidates": [candidate],
        "usageMetadata": {
            "promptTokenCount": 7,
            "candidatesTokenCount": 1290,
            "totalTokenCount": 1297,
        },
    }


WHOLE = answer({"text": "Here."}, IMAGE)
CHUNKS = [
    event(answer({"text": "Here."}, reason=None)),
    event(answer(IMAGE, reason=None)),
    event(answer()),
]


@pytest.fixture
def lane(gateway: Gateway, upstream: Upstream) -> Lane:
    return gateway.add_lane(upstream, dialect="gemini")


@pytest.fixture
def client(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as client:
        yield client


@pytest.fixture
def claude(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=gateway.url, api_key=gateway.key, max_retries=0) as client:
        yield client


def test_openais_client_gets_images_of_chat_and_of_responses(
    client: openai.OpenAI, lane: Lane
) -> None:
    lane.upstream.script(reply(WHOLE), stream(*CHUNKS), reply(WHOLE), stream(*CHUNKS))
    ask: Any = {"model": lane.model, "messages": [{"role": "user", "content": "Draw."}]}
    message: Any = client.chat.completions.create(**ask).choices[0].message
    assert message.content == "Here."
    assert message.images[0]["image_url"]["url"] == f"data:image/png;base64,{PIXELS}"
    found: list[Any] = []
    for piece in client.chat.completions.create(**ask, stream=True):
        found += getattr(piece.choices[0].delta, "images", None) or []
    assert found == message.images

    whole = client.responses.create(model=lane.model, input="Draw.")
    calls = [item for item in whole.output if item.type == "image_generation_call"]
    assert [call.result for call in calls] == [PIXELS]
    with client.responses.stream(model=lane.model, input="Draw.") as events:
        kinds = [each.type for each in events]
        final = events.get_final_response()
    assert "response.image_generation_call.completed" in kinds
    results = [item.result for item in final.output if item.type == "image_generation_call"]
    assert results == [PIXELS]
    assert len(lane.upstream.requests) == 4, "an image is paid for again, and not cached"


def test_a_stored_response_takes_its_image_back_to_the_model(
    client: openai.OpenAI, lane: Lane
) -> None:
    lane.upstream.script(reply(WHOLE), reply(WHOLE))
    first = client.responses.create(model=lane.model, input="Draw.", store=True)
    client.responses.create(model=lane.model, input="Bluer.", previous_response_id=first.id)
    turns = lane.upstream.last.json()["contents"]
    assert [turn["role"] for turn in turns] == ["user", "model", "user"]
    assert IMAGE in turns[1]["parts"], turns[1]


def test_anthropics_client_gets_an_image_block(claude: anthropic.Anthropic, lane: Lane) -> None:
    lane.upstream.script(reply(WHOLE), stream(*CHUNKS), reply(WHOLE))
    ask: Any = {
        "model": lane.model,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Draw."}],
    }
    source = {"type": "base64", "media_type": "image/png", "data": PIXELS}
    blocks = claude.messages.create(**ask).to_dict(warnings=False)["content"]
    assert isinstance(blocks, list)
    assert {"type": "image", "source": source} in blocks
    with claude.messages.stream(**ask) as events:
        streamed = events.get_final_message().to_dict(warnings=False)["content"]
    assert isinstance(streamed, list)
    assert {"type": "image", "source": source} in streamed
    ask["messages"] += [
        {"role": "assistant", "content": streamed},
        {"role": "user", "content": "Bluer."},
    ]
    claude.messages.create(**ask)
    assert IMAGE in lane.upstream.last.json()["contents"][1]["parts"]


def test_ollamas_clients_get_images_too(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(WHOLE))
    body = {
        "model": lane.model,
        "messages": [{"role": "user", "content": "Draw."}],
        "stream": False,
    }
    told = gateway.caller.post("/ollama/api/chat", json=body).json()
    assert told["message"]["images"] == [PIXELS]


def test_their_tokens_are_counted(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(WHOLE))
    told = gateway.caller.post("/v1/chat/completions", json=lane.body())
    record = gateway.record(told.headers["x-gateway-request-id"])
    assert record["tokensOutput"] == 1290
