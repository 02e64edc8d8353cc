"""Embeddings, images and reranking at clouds, in the vendors' own forms, with OpenAI's and Google's clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from google import genai

from tests.support.clouds import connect
from tests.support.processes import Gateway
from tests.support.sdk_clients import genai_client, openai_client
from tests.support.upstream import Upstream, reply

TITAN = "bedrock/amazon.titan-embed-text-v2:0"
COHERE = "bedrock/cohere.embed-english-v3"
CANVAS = "bedrock/amazon.titan-image-generator-v1"
STABLE = "bedrock/stability.stable-image-core-v1:1"
RERANK = "bedrock/cohere.rerank-v3-5:0"
VERTEX = "vertex/text-embedding-005"


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


@pytest.fixture(autouse=True)
def cloud(gateway: Gateway, up: Upstream) -> None:
    host = f"http://127.0.0.1:{up.port}"
    connect(gateway, "bedrock", host, apiKey="bedrock-key-canary", region="us-east-1")
    connect(gateway, "vertex", host, apiKey="ya29.canary", region="us-central1", project="mine")


@pytest.fixture
def openais(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai_client(gateway) as made:
        yield made


def test_titan_embeds_one_text(up: Upstream, openais: openai.OpenAI) -> None:
    up.script(reply({"embedding": [0.5, 1.5], "inputTextTokenCount": 3}))
    # The client asks for base64 and decodes it.
    answer = openais.embeddings.create(model=TITAN, input="hello", dimensions=256)
    assert up.last.target == "/model/amazon.titan-embed-text-v2%3A0/invoke"
    assert up.last.json() == {"inputText": "hello", "dimensions": 256}
    assert (answer.data[0].embedding, answer.usage.prompt_tokens) == ([0.5, 1.5], 3)
    with pytest.raises(openai.BadRequestError, match="must be one text"):
        openais.embeddings.create(model=TITAN, input=["a", "b"])


def test_cohere_embeds_many_texts(up: Upstream, openais: openai.OpenAI) -> None:
    counted = [("X-Amzn-Bedrock-Input-Token-Count", "5")]
    up.script(reply({"embeddings": {"float": [[0.5], [1.5]]}}, 200, counted))
    answer = openais.embeddings.create(model=COHERE, input=["a", "b"], encoding_format="float")
    assert up.last.json()["texts"] == ["a", "b"]
    assert [each.embedding for each in answer.data] == [[0.5], [1.5]]
    assert (answer.model, answer.usage.prompt_tokens) == (COHERE, 5)


def test_vertex_embeds_for_both_dialects(
    up: Upstream, gateway: Gateway, openais: openai.OpenAI
) -> None:
    prediction = {"embeddings": {"values": [0.5], "statistics": {"token_count": 2}}}
    up.script(reply({"predictions": [prediction]}))
    answer = openais.embeddings.create(model=VERTEX, input="hello")
    assert up.last.target == (
        "/v1/projects/mine/locations/us-central1/publishers/google/models/text-embedding-005:predict"
    )
    assert up.last.json() == {"instances": [{"content": "hello"}]}
    assert (answer.data[0].embedding, answer.usage.prompt_tokens) == ([0.5], 2)

    gemini: genai.Client = genai_client(gateway)
    found = gemini.models.embed_content(model=f"models/{VERTEX}", contents="hello")
    gemini.close()
    assert found.embeddings is not None
    assert found.embeddings[0].values == [0.5]


def test_images(up: Upstream, openais: openai.OpenAI) -> None:
    up.script(reply({"images": ["aaaa", "bbbb"], "error": None}))
    drawn = openais.images.generate(model=CANVAS, prompt="a dog", n=2, size="1024x1024")
    assert [each.b64_json for each in drawn.data or ()] == ["aaaa", "bbbb"]
    assert up.last.json()["imageGenerationConfig"] == {
        "numberOfImages": 2,
        "width": 1024,
        "height": 1024,
    }
    up.script(reply({"images": ["cccc"], "seeds": [1], "finish_reasons": [None]}))
    drawn = openais.images.generate(model=STABLE, prompt="a dog", size="1792x1024")
    assert [each.b64_json for each in drawn.data or ()] == ["cccc"]
    assert up.last.json() == {"prompt": "a dog", "aspect_ratio": "16:9"}


def test_images_are_paid_by_number(up: Upstream, gateway: Gateway) -> None:
    up.script(reply({"images": ["aaaa", "bbbb"]}))
    asked = {"model": CANVAS, "prompt": "a dog", "n": 2}
    answer = gateway.caller.post("/v1/images/generations", json=asked)
    assert answer.status_code == 200, answer.text
    assert float(answer.headers["x-gateway-response-cost"]) == pytest.approx(0.016)


def test_a_filtered_image_is_an_error(up: Upstream, openais: openai.OpenAI) -> None:
    up.script(reply({"finish_reasons": ["Filter reason: prompt"], "seeds": [1], "images": []}))
    with pytest.raises(openai.APIStatusError) as raised:
        openais.images.generate(model=STABLE, prompt="a dog")
    assert raised.value.status_code == 502


def test_reranking(up: Upstream, gateway: Gateway) -> None:
    up.script(reply({"results": [{"index": 1, "relevance_score": 0.9}]}))
    asked: dict[str, Any] = {
        "model": RERANK,
        "query": "q",
        "documents": ["a", {"text": "b"}],
        "top_n": 1,
        "return_documents": True,
    }
    answer = gateway.caller.post("/v1/rerank", json=asked)
    assert answer.status_code == 200, answer.text
    assert up.last.target == "/model/cohere.rerank-v3-5%3A0/invoke"
    assert up.last.json() == {
        "query": "q",
        "documents": ["a", "b"],
        "top_n": 1,
        "api_version": 2,
    }
    assert answer.json()["results"] == [
        {"index": 1, "relevance_score": 0.9, "document": {"text": "b"}}
    ]
    assert float(answer.headers["x-gateway-response-cost"]) == pytest.approx(0.002)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"model": COHERE, "input": "a"}),
        ("/v1/images/generations", {"model": CANVAS, "prompt": "a dog"}),
        ("/v1/rerank", {"model": RERANK, "query": "q", "documents": ["a"]}),
        ("/v1/embeddings", {"model": VERTEX, "input": "a"}),
    ],
)
def test_an_answer_without_content_is_an_error(
    up: Upstream, gateway: Gateway, path: str, body: dict[str, Any]
) -> None:
    up.script(reply({"message": "strange"}))
    answer = gateway.caller.post(path, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_invalid")


def test_a_conversation_with_such_a_model_is_refused(up: Upstream, gateway: Gateway) -> None:
    body = {"model": TITAN, "messages": [{"role": "user", "content": "hello"}]}
    answer = gateway.caller.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert "not a model of conversations" in answer.json()["error"]["message"]
    assert up.requests == []


def test_they_are_listed(gateway: Gateway) -> None:
    listed = {one["id"] for one in gateway.caller.get("/v1/models").json()["data"]}
    assert {TITAN, COHERE, CANVAS, STABLE, RERANK, VERTEX} <= listed
    assert "bedrock/amazon.titan-embed-image-v1" not in listed
