"""Which models of the catalogue are listed: those that the provider's address serves by a route of the gateway."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead import _core
from fairlead.gateway.providers.catalogue import PATHS, catalogue
from fairlead.gateway.providers.endpoint import endpoint_of, serves_type
from fairlead.gateway.providers.models import catalogue_models, typed

# The route of each type, by the dialect of the provider; None: by whichever dialect.
ROUTES = {
    "chat": "/v1/chat/completions",
    "completion": "/v1/completions",
    "embedding": "/v1/embeddings",
    "image": "/v1/images/generations",
    "speech": "/v1/audio/speech",
    "transcription": "/v1/audio/transcriptions",
    "rerank": "/v1/rerank",
    "moderation": "/v1/moderations",
    "ocr": "/v1/ocr",
    "video": "/v1/videos",
    "realtime": "/v1/realtime",
}
# Types that the engine asks for in other dialects than OpenAI's (`rust/engine/src/call/endpoints.rs`).
SPOKEN = {
    "anthropic": {"chat"},
    "gemini": {"chat", "embedding", "video"},
    "openai": set(ROUTES),
}
VALUES = {
    "resource": "r",
    "project": "p",
    "account": "a",
    "workspace": "w",
    "region": "us-east-1",
}


def served(provider_id: str) -> dict[str, str]:
    """The models of a provider's list, with their types."""
    provider = catalogue()[provider_id]
    models = [typed(provider, model) for model in catalogue_models(provider)]
    kinds = {model["id"]: model.get("mode") or "chat" for model in models}
    return {name: mode for name, mode in kinds.items() if serves_type(provider, VALUES, name, mode)}


@pytest.mark.parametrize("provider_id", sorted(catalogue()))
def test_every_listed_model_has_a_route(provider_id: str) -> None:
    provider = catalogue()[provider_id]
    paths = {route["path"] for route in _core.routes() if route["method"] in ("POST", "GET")}
    for name, mode in served(provider_id).items():
        assert ROUTES[mode] in paths
        assert mode in SPOKEN[provider.dialect], f"{provider_id}/{name} is {mode}"


@pytest.mark.parametrize(
    ("provider_id", "there", "not_there"),
    [
        (
            "bedrock",
            {"openai.gpt-oss-120b-1:0", "qwen.qwen3-32b-v1:0", "deepseek.v3-v1:0"},
            {
                "anthropic.claude-opus-4-7",
                "amazon.nova-pro-v1:0",
                "meta.llama3-3-70b-instruct-v1:0",
                "cohere.embed-v4:0",
            },
        ),
        (
            "vertex",
            {
                "google/gemini-2.5-flash",
                "google/gemini-2.5-pro",
                "meta/llama-3.3-70b-instruct-maas",
            },
            {
                "gemini-2.5-flash",
                "claude-sonnet-4-5",
                "text-embedding-005",
                "chirp_2",
                "mistral-medium-3",
            },
        ),
        (
            "gemini",
            {"gemini-2.5-pro", "gemini-embedding-001"},
            {"imagen-3.0-generate-001", "gemini-3.8-live"},
        ),
        ("cohere", {"rerank-v3.5", "embed-v4.0"}, {"parse-v5.0"}),
        ("minimax", {"MiniMax-M2"}, {"speech-02-hd", "MiniMax-H3"}),
        (
            "mistral",
            {"mistral-ocr-latest", "voxtral-mini-latest"},
            {"voxtral-mini-realtime-latest"},
        ),
        ("ollama", {"mistral", "codellama"}, set()),
    ],
)
def test_models_that_an_address_does_not_serve_are_in_no_list(
    provider_id: str, there: set[str], not_there: set[str]
) -> None:
    provider = catalogue()[provider_id]
    # Of a retired one, too, the address is known.
    known = {
        model.id: typed(provider, {"id": model.id, "mode": model.mode}) for model in provider.models
    }
    names = {name for name, model in known.items() if provider.is_served(name, model["mode"])}
    assert there <= names, there - names
    assert not not_there & names


def test_no_model_of_a_family_that_the_clouds_do_not_serve_here_is_listed() -> None:
    bedrock, vertex = served("bedrock"), served("vertex")
    for family in ("claude", "nova", "titan", "jamba", "command"):
        assert not [name for name in (*bedrock, *vertex) if family in name], family
    assert not [name for name in bedrock if "llama" in name]
    assert all("/" in name for name in served("vertex"))


def test_what_is_unlisted_keeps_its_price() -> None:
    claude = next(m for m in catalogue()["bedrock"].models if m.id == "anthropic.claude-opus-4-7")
    assert claude.price is not None


def test_an_address_of_the_operators_own_may_serve_anything() -> None:
    bedrock = catalogue()["bedrock"]
    own = {"base_url": "http://127.0.0.1:1/v1"}
    assert serves_type(bedrock, own, "anthropic.claude-opus-4-7", "chat")


def test_calls_that_a_provider_has_elsewhere_go_there() -> None:
    cohere = endpoint_of(catalogue()["cohere"], "apikey", {})
    assert cohere.paths == {"/rerank": "/v2/rerank"}
    assert endpoint_of(catalogue()["perplexity"], "apikey", {}).paths == {
        "/embeddings": "/v1/embeddings"
    }
    own: dict[str, Any] = {"base_url": "http://127.0.0.1:1/v1"}
    assert endpoint_of(catalogue()["cohere"], "apikey", own).paths == {}


@pytest.mark.parametrize("provider_id", sorted(catalogue()))
def test_the_data_speaks_of_types_and_models_that_there_are(provider_id: str) -> None:
    provider = catalogue()[provider_id]
    for mode, rule in (provider.serves or {}).items():
        assert rule.path is None or mode in PATHS
        for pattern in (*rule.only, *rule.no):
            assert "*" in pattern or any(model.id == pattern for model in provider.models)
