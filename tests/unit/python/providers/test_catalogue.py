"""The catalogue: a file is a provider."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from fairlead.gateway.nodes.address import normalise_base_url
from fairlead.gateway.providers.catalogue import FOLDER, catalogue, read_catalogue

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
    assert found["newcomer"].models[0].price.output == 2_000_000


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


@pytest.mark.parametrize("provider_id", sorted(catalogue()))
def test_what_ships_is_plausible(provider_id: str) -> None:
    provider = catalogue()[provider_id]

    assert normalise_base_url(provider.base_url) == provider.base_url
    assert provider.base_url.startswith("https://")
    ids = [model.id for model in provider.models]
    assert ids == sorted(set(ids))
    assert len(ids) <= 40
    for model in provider.models:
        assert model.context_length is None or 4_000 <= model.context_length <= 20_000_000
        assert model.max_output_tokens is None or model.context_length is not None
        assert (model.max_output_tokens or 1) <= (model.context_length or 1)
        assert model.input <= model.output <= 1_000_000_000
        assert model.cached_input is None or model.cached_input <= model.input
        assert model.cache_write is None or model.cache_write >= model.input
