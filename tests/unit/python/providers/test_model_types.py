"""What a model is for: by its list, the catalogue, its name, its node, and the operator's word, which goes first."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.gateway.providers.model_types import type_of
from fairlead.gateway.providers.models import parse_models
from tests.support.management import Management

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

NODE = {
    "type": "openai-compatible",
    "name": "Lab",
    "prefix": "lab",
    "baseUrl": "http://127.0.0.1:8000/v1",
}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("standin-embedding", "embedding"),
        ("nomic-embed-text:latest", "embedding"),
        ("mxbai-embed-large", "embedding"),
        ("embeddinggemma:300m", "embedding"),
        ("BAAI/bge-m3", "embedding"),
        ("intfloat/e5-large-v2", "embedding"),
        ("sentence-transformers/all-MiniLM-L6-v2", "embedding"),
        ("text-embedding-3-small", "embedding"),
        ("some-lab/Qwen3-Embedding-8B-GGUF", "embedding"),
        ("BAAI/bge-reranker-v2-m3", "rerank"),
        ("jina-reranker-v2", "rerank"),
        ("whisper-1", "transcription"),
        ("openai/whisper-large-v3-turbo", "transcription"),
        ("gpt-4o-transcribe", "transcription"),
        ("tts-1-hd", "speech"),
        ("kokoro-82m", "speech"),
        ("dall-e-3", "image"),
        ("gpt-image-1", "image"),
        ("black-forest-labs/FLUX.1-dev", "image"),
        ("stable-diffusion-xl", "image"),
        ("gemini-2.5-flash-image", "image"),
        ("sora-2", "video"),
        ("omni-moderation-latest", "moderation"),
        ("deepseek-ocr", "ocr"),
        ("gpt-realtime", "realtime"),
        ("gpt-4o", None),
        ("llava", None),
        ("qwen2.5-vl", None),
        ("gemma3:27b", None),
        ("mistral", None),
        ("gpt-4o-audio-preview", None),
        ("standin", None),
        ("phi-4", None),
        ("", None),
    ],
)
def test_a_name_says_what_a_model_is_for(name: str, kind: str | None) -> None:
    assert type_of(name) == kind


def test_a_list_may_say_it() -> None:
    entries = [
        {"id": "a", "type": "embeddings"},
        {"id": "b", "type": "vlm"},
        {"id": "c", "type": "something"},
        {"id": "d", "type": 1},
    ]
    found = {model["id"]: model.get("mode") for model in parse_models({"data": entries})}
    assert found == {"a": "embedding", "b": "chat", "c": None, "d": None}


class Lab:
    """A node with one connection and some models of the operator's."""

    def __init__(self, management: Management) -> None:
        self.management = management

    async def set_up(self, **node: Any) -> None:
        made = await self.management.ask(
            "POST", "/api/provider-nodes", {**NODE, **node}, expect=201
        )
        self.node = made["node"]["id"]
        body = {"provider": "lab", "name": "one", "apiKey": "sk-lab-canary"}
        await self.management.ask("POST", "/api/providers", body, expect=201)

    async def model(self, name: str, **fields: Any) -> dict[str, Any]:
        """The model as the relay is told of it, with these fields set."""
        body = {"provider": "lab", "modelId": name, **fields}
        await self.management.ask("POST", "/api/provider-models", body, expect=201)
        return await self.told(name)

    def calls(self, name: str) -> list[str] | None:
        """The calls that the relay lets the model accept; None for all."""
        (connection,) = self.management.snapshot()["connections"]
        found: list[str] | None = connection["endpoints"].get(name, connection["usual_endpoints"])
        return found

    async def told(self, name: str) -> dict[str, Any]:
        """The model as the relay is told of it."""
        snapshot = self.management.snapshot()
        (found,) = [one for one in snapshot["models"] if one["id"] == f"lab/{name}"]
        return dict(found)


@pytest.fixture
def lab(management: Management) -> Lab:
    return Lab(management)


async def test_the_operators_word_goes_first(lab: Lab) -> None:
    await lab.set_up()
    assert (await lab.model("my-embed"))["mode"] == "embedding"
    assert (await lab.model("my-embed-2", type="chat"))["mode"] == "chat"
    seeing = await lab.model("eye", supportsVision=True)
    assert (seeing["mode"], seeing["capabilities"]) == ("", ["vision"])
    blind = await lab.model("blind", supportsVision=False)
    assert blind["capabilities"] == []
    able = await lab.model("able", capabilities=["tools", "reasoning"], supportsVision=True)
    assert able["capabilities"] == ["reasoning", "tools", "vision"]
    pinned = await lab.model("pinned", supportedEndpoints=["embeddings"])
    assert (pinned["mode"], lab.calls("pinned")) == ("embedding", ["embeddings"])
    talks = await lab.model("talks", supportedEndpoints=["embeddings", "chat"])
    assert talks["mode"] == "chat"
    body = {"provider": "lab", "modelId": "pinned", "supportedEndpoints": None}
    await lab.management.ask("PUT", "/api/provider-models", body)
    assert ((await lab.told("pinned"))["mode"], lab.calls("pinned")) == ("", None)
    rows = (await lab.management.ask("GET", "/api/provider-models"))["models"]
    assert all(row["ineffective"] == [] for row in rows)
    told = await lab.management.ask("GET", "/api/models/catalog", provider="lab")
    kinds = {
        kind: {m["id"] for m in models} for kind, models in told["providers"][0]["models"].items()
    }
    assert "lab/my-embed" in kinds["embedding"]
    assert "lab/my-embed-2" in kinds["chat"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "picture"),
        ("capabilities", ["flying"]),
        ("supportedEndpoints", []),
        ("supportedEndpoints", ["telepathy"]),
        ("supportsVision", "yes"),
    ],
)
async def test_what_is_no_type_is_refused(lab: Lab, field: str, value: Any) -> None:
    await lab.set_up()
    body = {"provider": "lab", "modelId": "m", field: value}
    _, param = await lab.management.refused("POST", "/api/provider-models", body)
    assert param is not None
    assert param.startswith(field)


@pytest.mark.parametrize(
    ("api_type", "mode"),
    [
        ("embeddings", "embedding"),
        ("audio-transcriptions", "transcription"),
        ("audio-speech", "speech"),
        ("images-generations", "image"),
        ("rerank", "rerank"),
        ("chat", ""),
        ("responses", ""),
    ],
)
async def test_a_nodes_models_are_for_what_its_operator_says(
    lab: Lab, api_type: str, mode: str
) -> None:
    await lab.set_up(apiType=api_type)
    assert (await lab.model("plain"))["mode"] == mode
    assert (lab.calls("not listed") is None) == (mode == "")
    assert (await lab.model("other", type="chat"))["mode"] == "chat"
    assert lab.calls("other") == ["chat", "completions"]
