"""The catalogue: a file is a provider."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fairlead.errors import InvalidRequest
from fairlead.gateway.nodes.address import normalise_base_url
from fairlead.gateway.providers.catalogue import FOLDER, catalogue, read_catalogue
from fairlead.gateway.providers.endpoint import filled

FILE = {
    "id": "newcomer",
    "name": "Newcomer",
    "dialect": "openai",
    "base_url": "https://api.newcomer.example/v1",
    "auth": "bearer",
    "as_of": "2026-11-21",
    "source": "its price list",
    "models": [{"id": "large", "context_length": 8192, "input": 1_000_000, "output": 2_000_000}],
}


def test_adding_a_provider_is_adding_a_file(tmp_path: Path) -> None:
    for file in FOLDER.glob("*.json"):
        shutil.copy(file, tmp_path)
    (tmp_path / "newcomer.json").write_text(json.dumps(FILE))

    found = read_catalogue(tmp_path)

    assert found.keys() == {*catalogue(), "newcomer"}
    assert found["newcomer"].models[0].output == 2_000_000


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "another"},
        {"dialect": "morse"},
        {"as_of": "lately"},
        {"base_url": None},
        {"models": [{"id": "large", "input": 0.5, "output": 1}]},
        {"models": [{"id": "large", "input": -1, "output": 1}]},
        {"more": 1},
    ],
)
def test_a_file_that_is_wrong_is_an_error(tmp_path: Path, wrong: dict[str, object]) -> None:
    (tmp_path / "newcomer.json").write_text(json.dumps({**FILE, **wrong}))

    with pytest.raises(ValueError):
        read_catalogue(tmp_path)


MOST_USED = {
    "openai",
    "anthropic",
    "gemini",
    "vertex",
    "bedrock",
    "azure",
    "mistral",
    "groq",
    "deepseek",
    "xai",
    "together",
    "fireworks",
    "openrouter",
    "cerebras",
    "cohere",
    "perplexity",
    "ollama",
    "vllm",
    "sglang",
    "llama-cpp",
    "lm-studio",
}


def test_the_most_used_providers_are_there() -> None:
    assert catalogue().keys() >= MOST_USED
    assert len(catalogue()) >= 40


@pytest.mark.parametrize("provider_id", sorted(catalogue()))
def test_what_ships_is_plausible(provider_id: str) -> None:
    provider = catalogue()[provider_id]
    parts = {name: usual or "mine" for name, usual in provider.variables.items()}

    for template in filter(None, (provider.base_url, provider.models_url)):
        address = filled(provider, template, parts)
        assert normalise_base_url(address) == address
        # What one runs oneself is on one's own machine; a key goes nowhere without TLS.
        assert address.startswith("http://127.0.0.1:" if provider.auth == "none" else "https://")
        assert all(f"{{{name}}}" in provider.base_url for name in parts)
    assert (provider.aws_service is not None) == (provider.auth == "aws-sigv4")
    ids = [model.id for model in provider.models]
    assert ids == sorted(set(ids))
    assert len(ids) <= 40
    for model in provider.models:
        assert model.context_length is None or 100 <= model.context_length <= 20_000_000
        assert model.max_output_tokens is None or model.context_length is not None
        assert (model.max_output_tokens or 1) <= (model.context_length or 1)
        assert (model.input is None) == (model.output is None)
        if model.input is not None and model.output is not None and model.mode == "chat":
            assert model.input <= model.output <= 1_000_000_000
        assert model.cached_input is None or model.cached_input <= (model.input or 0)
        assert model.cache_write is None or model.cache_write >= (model.input or 0)


def test_a_part_of_the_address_that_is_missing_is_named() -> None:
    azure = catalogue()["azure"]

    with pytest.raises(InvalidRequest) as caught:
        filled(azure, azure.base_url, {})

    assert caught.value.param == "providerSpecificData.resource"
    assert filled(azure, azure.base_url, {"resource": "mine"}).startswith("https://mine.openai.")
