"""Embeddings between OpenAI's words and Google's: what is sent, what comes back, what is refused, what is paid."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from tests.support.processes import Gateway, expect
from tests.support.upstream import Upstream, reply

GOOGLE: dict[str, Any] = {"embedding": {"values": [0.5, -1]}}


@pytest.fixture
def google(gateway: Gateway, upstream: Upstream) -> str:
    """A node that speaks Gemini's dialect, with a price: its prefix."""
    base_url = upstream.url.replace("/v1", "/v1beta")
    node = gateway.add_node(f"embed-{upstream.port}", base_url, dialect="gemini")
    gateway.add_connection(node["id"], "sk-embedding-canary")
    expect(
        gateway.admin.put("/api/pricing", json={node["id"]: {"e1": {"input": 10, "output": 0}}}),
        200,
    )
    upstream.script(reply(GOOGLE))
    return str(node["prefix"])


def test_one_text_goes_to_a_google_upstream(
    gateway: Gateway, upstream: Upstream, google: str
) -> None:
    body = {"model": f"{google}/e1", "input": "héllo", "dimensions": 2, "user": "u"}
    answer = gateway.caller.post("/v1/embeddings", json=body)
    assert answer.status_code == 200, answer.text
    assert upstream.last.target == "/v1beta/models/e1:embedContent"
    assert upstream.last.json() == {
        "content": {"parts": [{"text": "héllo"}]},
        "outputDimensionality": 2,
    }
    told = answer.json()
    assert told["data"] == [{"object": "embedding", "index": 0, "embedding": [0.5, -1]}]
    assert (told["object"], told["model"]) == ("list", f"{google}/e1")
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert record["tokensInput"] == told["usage"]["prompt_tokens"] > 0
    assert record["costUsdMicros"] == record["tokensInput"] * 10


def test_the_official_client_reads_numbers_of_a_google_upstream(
    gateway: Gateway, upstream: Upstream, google: str
) -> None:
    """It asks for base64 where the caller does not say."""
    upstream.script(
        reply(
            {
                "embeddings": [{"values": [0.5]}, {"values": [2]}],
                "usageMetadata": {"promptTokenCount": 7},
            }
        )
    )
    import openai

    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key=gateway.key, max_retries=0) as client:
        answer = client.embeddings.create(model=f"{google}/e1", input=["a", "b"])
        packed = client.embeddings.create(
            model=f"{google}/e1", input=["a", "b"], encoding_format="base64"
        )
    assert upstream.last.target == "/v1beta/models/e1:batchEmbedContents"
    assert [one["model"] for one in upstream.last.json()["requests"]] == ["models/e1"] * 2
    assert [one.embedding for one in answer.data] == [[0.5], [2.0]]
    assert answer.usage.prompt_tokens == 7
    coded: Any = packed.data[1].embedding
    assert struct.unpack("<f", base64.b64decode(coded)) == (2.0,)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": [1, 2]}, "input[0]"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format"),
        ({"input": "a", "brand_new": 1}, "brand_new"),
    ],
)
def test_what_google_has_no_word_for_is_named(
    gateway: Gateway, upstream: Upstream, google: str, fields: dict[str, Any], param: str
) -> None:
    answer = gateway.caller.post("/v1/embeddings", json={"model": f"{google}/e1", **fields})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert upstream.requests == []


def test_an_upstream_that_answers_something_else_is_a_failure(
    gateway: Gateway, upstream: Upstream, google: str
) -> None:
    upstream.script(reply({"candidates": []}))
    answer = gateway.caller.post("/v1/embeddings", json={"model": f"{google}/e1", "input": "a"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "upstream_invalid")


def test_a_gemini_caller_at_an_openai_upstream(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(
        reply({"data": [{"index": 0, "embedding": [0.25]}], "usage": {"prompt_tokens": 3}})
    )
    path = f"/v1beta/models/{lane.model}:embedContent"
    body = {"content": {"parts": [{"text": "a"}]}, "outputDimensionality": 1}
    told = expect(gateway.caller.post(path, json=body), 200)
    assert upstream.last.target == "/v1/embeddings"
    assert upstream.last.json() == {
        "model": "m",
        "input": ["a"],
        "encoding_format": "float",
        "dimensions": 1,
    }
    assert told == {"embedding": {"values": [0.25]}, "usageMetadata": {"promptTokenCount": 3}}
    refused = gateway.caller.post(path, json={"content": {"parts": [{"inlineData": {}}]}})
    assert refused.status_code == 400
    assert refused.json()["error"]["status"] == "INVALID_ARGUMENT"
