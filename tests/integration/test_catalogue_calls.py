"""Every row of the catalogue that is listed can be called: each is asked for by the route of its type, at a referee
that knows the paths and bodies of each provider, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from fairlead.gateway.providers.catalogue import CatalogueProvider, catalogue
from fairlead.gateway.providers.endpoint import endpoint_of, serves_type
from fairlead.gateway.providers.models import catalogue_models, typed
from tests.support.clouds import connect
from tests.support.processes import Gateway
from tests.support.upstream import Script, Seen, Upstream, completion, reply

# Parts of addresses that the catalogue leaves open.
PARTS = {
    "resource": "r",
    "project": "p",
    "account": "a",
    "workspace": "w",
    "region": "us-east-1",
}
SAY = [{"role": "user", "content": "hello"}]
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 2},
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "m",
    "output": [
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "hi", "annotations": []}],
        }
    ],
    "usage": {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11},
}
CANDIDATE = {"content": {"role": "model", "parts": [{"text": "hi"}]}, "finishReason": "STOP"}
CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 9, "outputTokens": 2, "totalTokens": 11},
}
COHERES = {
    "id": "1",
    "finish_reason": "COMPLETE",
    "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]},
    "usage": {"tokens": {"input_tokens": 9, "output_tokens": 2}},
}
VECTOR = {"object": "embedding", "index": 0, "embedding": [0.5]}


def has(*wanted: str, not_: str = "") -> Callable[[dict[str, Any], str], bool]:
    """A body with these members, and without the other one."""
    return lambda body, _: all(name in body for name in wanted) and not_ not in body


def of_model(*wanted: str) -> Callable[[dict[str, Any], str], bool]:
    """A body with these members that names the model."""
    return lambda body, model: body.get("model") == model and all(name in body for name in wanted)


def of_claude(version: str) -> Callable[[dict[str, Any], str], bool]:
    """A message as a cloud takes it."""
    return lambda body, _: (
        body.get("anthropic_version") == version
        and {"messages", "max_tokens"} <= body.keys()
        and "model" not in body
    )


# What the end of a path means (`{model}` is the row's name), what its body must be, and the answer.
Rule = tuple[str, Callable[[dict[str, Any], str], bool] | None, dict[str, Any] | bytes]
RULES: list[Rule] = [
    ("/chat/completions", of_model("messages"), completion("hi")),
    ("/responses", of_model("input"), RESPONSE),
    ("/messages", of_model("messages", "max_tokens"), MESSAGE),
    ("/completions", of_model("prompt"), {"choices": [{"index": 0, "text": "hi"}]}),
    ("/models/{model}:generateContent", has("contents", not_="model"), {"candidates": [CANDIDATE]}),
    ("/{model}:rawPredict", of_claude("vertex-2023-10-16"), MESSAGE),
    ("/model/{model}/invoke", of_claude("bedrock-2023-05-31"), MESSAGE),
    ("/model/{model}/converse", has("messages", not_="model"), CONVERSED),
    ("/chat", of_model("messages"), COHERES),
    ("/models/{model}:embedContent", has("content"), {"embedding": {"values": [0.5]}}),
    ("/models/{model}:batchEmbedContents", has("requests"), {"embeddings": [{"values": [0.5]}]}),
    (
        "/model/{model}/invoke",
        has("inputText", not_="model"),
        {"embedding": [0.5], "inputTextTokenCount": 1},
    ),
    (
        "/model/{model}/invoke",
        has("texts", "input_type", not_="model"),
        {"embeddings": {"float": [[0.5]]}},
    ),
    (
        "/model/{model}/invoke",
        has("query", "documents", not_="model"),
        {"results": [{"index": 0, "relevance_score": 0.5}]},
    ),
    ("/model/{model}/invoke", has("taskType", not_="model"), {"images": ["aaaa"]}),
    (
        "/model/{model}/invoke",
        has("prompt", not_="model"),
        {"images": ["aaaa"], "finish_reasons": [None]},
    ),
    (
        "/{model}:predict",
        has("instances", not_="model"),
        {"predictions": [{"embeddings": {"values": [0.5]}}]},
    ),
    ("/embeddings", of_model("input"), {"object": "list", "data": [VECTOR], "model": "m"}),
    ("/images/generations", of_model("prompt"), {"created": 1, "data": [{"b64_json": "aaaa"}]}),
    ("/audio/speech", of_model("input"), b"sound"),
    ("/audio/transcriptions", None, {"text": "hi"}),
    (
        "/rerank",
        of_model("query", "documents"),
        {"results": [{"index": 0, "relevance_score": 0.5}]},
    ),
    ("/moderations", of_model("input"), {"id": "m", "model": "m", "results": [{"flagged": False}]}),
    (
        "/ocr",
        of_model("document"),
        {"pages": [], "model": "m", "usage_info": {"pages_processed": 1}},
    ),
]


class Referee(Upstream):
    """Answers calls of `model` below the addresses of one provider; 404 for every other path, 400 for a body that is
    not what the path takes.
    """

    model: str = ""
    bases: frozenset[str] = frozenset()

    def choose(self, seen: Seen) -> Script:
        path = unquote(urlsplit(seen.target).path)
        wrong = None
        for ending, judge, answer in RULES:
            end = ending.replace("{model}", self.model)
            if not any(path == base + end for base in self.bases):
                continue
            if judge is not None and not judge(seen.json(), self.model):
                wrong = ending
                continue
            kind = "audio/mpeg" if isinstance(answer, bytes) else "application/json"
            return reply(answer, content_type=kind)
        if wrong is not None:
            return reply({"error": {"message": f"this is no body for {wrong}"}}, 400)
        return reply({"error": {"message": f"there is no {path}"}}, 404)


def ask(caller: httpx.Client, name: str, mode: str) -> httpx.Response:
    """One call of a model by the route of its type."""
    bodies: dict[str, tuple[str, dict[str, Any]]] = {
        "chat": ("/v1/chat/completions", {"messages": SAY}),
        "completion": ("/v1/completions", {"prompt": "hello"}),
        "embedding": ("/v1/embeddings", {"input": "hello"}),
        "image": ("/v1/images/generations", {"prompt": "a dog"}),
        "speech": ("/v1/audio/speech", {"input": "hello", "voice": "alloy"}),
        "rerank": ("/v1/rerank", {"query": "q", "documents": ["a"]}),
        "moderation": ("/v1/moderations", {"input": "hello"}),
        "ocr": (
            "/v1/ocr",
            {"document": {"type": "document_url", "document_url": "https://example.com/a.pdf"}},
        ),
    }
    if mode == "transcription":
        form = {"file": ("a.wav", b"RIFF", "audio/wav")}
        return caller.post("/v1/audio/transcriptions", data={"model": name}, files=form)
    path, body = bodies[mode]
    return caller.post(path, json={"model": name, **body})


def listed(provider: CatalogueProvider) -> dict[str, str]:
    """The rows that are listed at the provider's own address, with their types. Videos and realtime conversations
    have tests of their own: they are not one request and one answer.
    """
    models = (typed(provider, model) for model in catalogue_models(provider))
    kinds = {model["id"]: model.get("mode") or "chat" for model in models}
    return {
        name: mode
        for name, mode in kinds.items()
        if serves_type(provider, PARTS, name, mode) and mode not in ("video", "realtime")
    }


@pytest.fixture
def referee() -> Iterator[Referee]:
    with Referee() as running:
        yield running


@pytest.mark.parametrize(
    "provider_id", sorted(name for name in catalogue() if catalogue()[name].models)
)
def test_every_listed_model_can_be_called(
    gateway: Gateway, referee: Referee, provider_id: str
) -> None:
    provider = catalogue()[provider_id]
    rows = listed(provider)
    endpoint = endpoint_of(provider, "apikey", PARTS)
    host = f"http://127.0.0.1:{referee.port}"
    # The provider's own paths, on the referee's host.
    base = urlsplit(endpoint.base_url).path
    parts = {"region": PARTS["region"], "project": PARTS["project"]} if provider.apis else {}
    own_url = host if provider.apis else host + base
    connect(gateway, provider_id, own_url, apiKey="sk-canary-of-the-catalogue", **parts)
    referee.bases = frozenset(
        [base, *(urlsplit(api.base_url).path.rstrip("/") for api in endpoint.apis)]
    )
    uncalled = {}
    for name, mode in rows.items():
        api = provider.api_of(name)
        referee.model = name.removeprefix((api and api.strip) or "")
        answer = ask(gateway.caller, f"{provider_id}/{name}", mode)
        if answer.status_code != 200:
            uncalled[name] = (mode, answer.status_code, re.sub(r"\s+", " ", answer.text)[:300])
    assert not uncalled
    assert rows or provider_id in {"nvidia", "jina"}
