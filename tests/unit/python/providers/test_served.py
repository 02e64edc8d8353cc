"""Which models of the catalogue are listed: those that the provider's address serves by a route of the gateway."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from fairlead import _core
from fairlead.gateway.providers.catalogue import PATHS, catalogue
from fairlead.gateway.providers.endpoint import endpoint_of, serves_type
from fairlead.gateway.providers.models import catalogue_models, known_models, typed
from fairlead.gateway.providers.table import Connection

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
# Types that the engine asks for in other dialects than OpenAI's (`rust/engine/src/call/choose/endpoints.rs`).
SPOKEN = {
    "anthropic": {"chat"},
    "gemini": {"chat", "embedding", "video"},
    "openai": set(ROUTES),
    "openai-responses": {"chat", "embedding"},
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
        api = provider.api_of(name)
        dialect = provider.dialect if api is None else api.dialect
        assert mode in SPOKEN[dialect], f"{provider_id}/{name} is {mode}"


@pytest.mark.parametrize(
    ("provider_id", "there", "not_there"),
    [
        (
            "bedrock",
            {
                "openai.gpt-oss-120b-1:0",
                "qwen.qwen3-32b-v1:0",
                "deepseek.v3-v1:0",
                "us.anthropic.claude-opus-4-7",
                "amazon.nova-pro-v1:0",
                "meta.llama3-3-70b-instruct-v1:0",
                "amazon.titan-embed-text-v2:0",
                "cohere.embed-v4:0",
                "cohere.rerank-v3-5:0",
                "amazon.titan-image-generator-v1",
                "stability.sd3-5-large-v1:0",
            },
            {
                "anthropic.claude-opus-4-7",
                "us-gov-east-1/anthropic.claude-opus-5",
                "us.twelvelabs.pegasus-1-2-v1:0",
                "amazon.titan-embed-image-v1",
                "stability.stable-outpaint-v1:0",
            },
        ),
        (
            "vertex",
            {
                "google/gemini-2.5-flash",
                "google/gemini-2.5-pro",
                "meta/llama-3.3-70b-instruct-maas",
                "claude-sonnet-4-5",
                "text-embedding-005",
            },
            {
                "google/deep-research-pro-preview-12-2025",
                "gemini-2.5-flash-image",
                "gemini-3.8-live",
                "multimodalembedding",
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


@pytest.mark.parametrize(
    ("provider_id", "model", "protocol"),
    [
        ("bedrock", "eu.anthropic.claude-opus-5-5", "bedrock-invoke"),
        ("bedrock", "arn:aws:bedrock:eu-west-1:1:inference-profile/x", "bedrock-converse"),
        ("bedrock", "amazon.nova-pro-v1:0", "bedrock-converse"),
        ("bedrock", "openai.gpt-6-sol", "openai-responses"),
        ("bedrock", "openai.gpt-oss-120b-1:0", "openai"),
        ("vertex", "claude-opus-5-5", "vertex-raw-predict"),
        ("bedrock", "us.cohere.embed-v4:0", "bedrock-cohere-embed"),
        ("bedrock", "amazon.titan-embed-text-v2:0", "bedrock-titan-embed"),
        ("vertex", "gemini-embedding-001", "vertex-predict-embed"),
        ("cohere", "command-a-03-2025", "cohere-chat"),
        ("cohere", "embed-v4.0", "openai"),
        ("vertex", "gemini-2.5-pro", "gemini"),
        ("vertex", "google/gemini-2.5-pro", "gemini"),
        ("vertex", "meta/llama-3.3-70b-instruct-maas", "openai"),
    ],
)
def test_a_model_has_one_api(provider_id: str, model: str, protocol: str) -> None:
    provider = catalogue()[provider_id]
    api = provider.api_of(model)
    assert (provider.dialect if api is None else api.protocol or api.dialect) == protocol


def test_the_models_of_other_parts_of_the_world_are_not_listed() -> None:
    bedrock = catalogue()["bedrock"]
    for region, here, elsewhere in [
        ("us-east-1", "us.", ("eu.", "apac.", "us-gov.")),
        ("eu-west-1", "eu.", ("us.", "jp.")),
        ("ap-northeast-1", "jp.", ("us.", "au.")),
        ("us-gov-west-1", "us-gov.", ("us.", "eu.")),
    ]:
        names = [model.id for model in bedrock.models if bedrock.is_in_region(model.id, region)]
        assert any(name.startswith(here) for name in names), region
        assert any(name.startswith("global.") for name in names), region
        assert not [name for name in names if name.startswith(elsewhere)], region


def test_a_list_without_inference_profiles_gets_them_from_the_catalogue() -> None:
    bedrock = catalogue()["bedrock"]
    listed = [{"id": "anthropic.claude-opus-5-5"}, {"id": "amazon.nova-pro-v1:0"}]
    nothing: dict[str, Any] = dict.fromkeys(field.name for field in fields(Connection))
    connection = Connection(
        **nothing
        | {"provider": "bedrock", "provider_specific": {"region": "eu-west-1"}, "models": listed}
    )
    names = {model["id"] for model in known_models(bedrock, connection)}
    assert names == {
        "eu.anthropic.claude-opus-5-5",
        "global.anthropic.claude-opus-5-5",
        "amazon.nova-pro-v1:0",
        "eu.amazon.nova-pro-v1:0",
    }


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-central1", "us-central1-aiplatform.googleapis.com"),
        ("global", "aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_the_host_of_vertex_depends_on_its_location(region: str, host: str) -> None:
    endpoint = endpoint_of(catalogue()["vertex"], "apikey", {"region": region, "project": "p"})
    start = f"https://{host}/v1/projects/p/locations/{region}"
    assert endpoint.base_url == f"{start}/endpoints/openapi"
    assert [api.base_url for api in endpoint.apis] == [
        f"{start}/publishers/anthropic/models",
        f"{start}/publishers/google/models",
        f"{start}/publishers/google",
    ]


def test_an_address_without_a_path_replaces_the_host_of_every_api() -> None:
    own = {"base_url": "https://vpce-1.example", "region": "eu-west-1"}
    endpoint = endpoint_of(catalogue()["bedrock"], "aws", own)
    assert endpoint.base_url == "https://vpce-1.example/openai/v1"
    assert {api.base_url for api in endpoint.apis} == {
        "https://vpce-1.example",
        "https://vpce-1.example/openai/v1",
    }
    assert endpoint.apis[1].aws == {"region": "eu-west-1", "service": "bedrock-mantle"}
    # An address with a path is another service, in the provider's dialect.
    own["base_url"] = "https://other.example/v1"
    assert endpoint_of(catalogue()["bedrock"], "aws", own).apis == ()


def test_a_credential_goes_to_the_hosts_of_all_apis() -> None:
    hosts = {url.split("/")[2] for url in endpoint_of(catalogue()["bedrock"], "aws", {}).addresses}
    assert hosts == {
        "bedrock-runtime.us-east-1.amazonaws.com",
        "bedrock-mantle.us-east-1.api.aws",
        "bedrock.us-east-1.amazonaws.com",
    }


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
