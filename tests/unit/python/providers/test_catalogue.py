"""The catalogue: a file is a provider."""

from __future__ import annotations

import json
import shutil
from datetime import date
from pathlib import Path

import pytest

from fairlead.errors import InvalidRequest
from fairlead.gateway.nodes.address import normalise_base_url
from fairlead.gateway.providers.catalogue import FOLDER, Catalogue, catalogue
from fairlead.gateway.providers.endpoint import filled
from fairlead.gateway.providers.models import catalogue_models
from fairlead.gateway.providers.price import TOKEN_KINDS

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

    found = Catalogue(tmp_path)

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

    with pytest.raises(ValueError, match=r"newcomer\.json"):
        Catalogue(tmp_path)["newcomer"]


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


READERS = {"@cf/meta/llama-guard-3-8b", "Meta-Llama-3-70B-Instruct"}

# One of each kind that people look for, and that an earlier cut left out.
LOOKED_FOR = {
    "openai": {"o3", "o4-mini", "gpt-5-codex", "gpt-realtime", "whisper-1", "sora-2", "tts-1"},
    "gemini": {"gemini-2.5-flash-image"},
    "bedrock": {"amazon.nova-pro-v1:0", "cohere.embed-v4:0"},
    "fireworks": {"accounts/fireworks/models/code-llama-34b"},
    "voyage": {"voyage-3.5"},
}


@pytest.mark.parametrize("provider_id", sorted(LOOKED_FOR))
def test_models_of_every_kind_are_there(provider_id: str) -> None:
    assert {model.id for model in catalogue()[provider_id].models} >= LOOKED_FOR[provider_id]


def test_a_retired_model_has_a_price_and_is_in_no_list() -> None:
    openai = catalogue()["openai"]
    retired = next(model for model in openai.models if model.id == "gpt-5-codex")
    assert retired.retires_on == date(2026, 7, 23)
    assert retired.price is not None
    listed = {model["id"] for model in catalogue_models(openai)}
    assert "o3" in listed
    assert "gpt-5-codex" not in listed


def test_tiers_of_well_known_models_are_there() -> None:
    gemini = {model.id: model for model in catalogue()["gemini"].models}["gemini-2.5-pro"]
    tiers = {(tier.service, tier.above): tier for tier in gemini.tiers}
    assert tiers[None, 200_000].input == 2_500_000
    assert tiers[None, 200_000].output == 15_000_000
    assert tiers["batch", None].input == 625_000
    assert tiers["priority", 200_000].output == 27_000_000
    assert tiers["priority", None].output == 18_000_000
    claude = {model.id: model for model in catalogue()["anthropic"].models}["claude-sonnet-4-5"]
    assert claude.cache_write_hour == 6_000_000
    assert claude.price is not None
    assert claude.price.tiers == claude.tiers


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
    for model in provider.models:
        assert model.context_length is None or 100 <= model.context_length <= 20_000_000
        assert model.max_output_tokens is None or model.context_length is not None
        assert (model.max_output_tokens or 1) <= (model.context_length or 1)
        assert (model.input is None) == (model.output is None)
        if model.input is not None and model.output is not None and model.mode == "chat":
            # Models that judge a text answer in a word, and are priced by what they read.
            assert model.input <= model.output or model.id in READERS
            assert model.output <= 1_000_000_000
        assert model.cached_input is None or model.cached_input <= (model.input or 0)
        assert model.cache_write is None or model.cache_write >= (model.input or 0)
        assert (model.cache_write_hour or model.cache_write or 0) >= (model.cache_write or 0)
        conditions = [(tier.service, tier.above) for tier in model.tiers]
        assert len(set(conditions)) == len(conditions)
        assert (None, None) not in conditions
        for tier in model.tiers:
            prices = {name: getattr(tier, name) for name in TOKEN_KINDS}
            assert any(price is not None for price in prices.values())
            for name, price in prices.items():
                base = getattr(model, name)
                if price is None or base is None:
                    continue
                # Long inputs and hurry cost more, what may wait costs less.
                if tier.service in (None, "priority", "ultrafast"):
                    assert price >= base
                elif tier.above is None:
                    assert price <= base


def test_a_part_of_the_address_that_is_missing_is_named() -> None:
    azure = catalogue()["azure"]

    with pytest.raises(InvalidRequest) as caught:
        filled(azure, azure.base_url, {})

    assert caught.value.param == "providerSpecificData.resource"
    assert filled(azure, azure.base_url, {"resource": "mine"}).startswith("https://mine.openai.")
