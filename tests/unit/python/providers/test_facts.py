"""Facts about what models accept: read from the catalogue, and given to the relay."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fairlead.gateway.providers.catalogue import catalogue
from fairlead.gateway.providers.facts import Facts, FactSection, FactValues, in_snapshot
from tests.support.management import Management

RELAY = Path(__file__).parents[4] / "rust" / "core" / "src" / "facts.rs"
KEY = "sk-0123456789abc"


def test_the_relay_knows_the_same_facts() -> None:
    text = RELAY.read_text(encoding="utf-8")
    struct = text.split("pub struct ModelFacts {", 1)[1].split("\n}\n", 1)[0]
    fields = set(re.findall(r"^    pub (\w+):", struct, re.MULTILINE))

    assert fields == Facts.model_fields.keys() - {"source"}
    assert Facts.model_fields.keys() - FactValues.model_fields.keys() == {
        "source",
        "api_type",
        "refused",
        "strips_refused",
    }


def test_every_group_of_facts_names_its_source() -> None:
    sections = {each.id: each.facts for each in catalogue().values() if each.facts is not None}

    assert {"anthropic", "openai", "gemini", "mistral", "groq", "nvidia"} <= sections.keys()
    for section in sections.values():
        assert section.source
        assert all(family.source for family in section.families)
        if section.like is not None:
            assert section.like in sections


def test_a_family_of_the_catalogue_is_never_hidden_by_an_earlier_one() -> None:
    for provider in catalogue().values():
        patterns = [p for family in (provider.facts or EMPTY).families for p in family.models]
        assert len(set(patterns)) == len(patterns), provider.id


def test_facts_of_another_provider_are_inherited() -> None:
    other = FactSection.model_validate(
        {"source": "a", "user_most": 64, "families": [{"source": "b", "models": ["gpt-*"]}]}
    )
    own = FactSection.model_validate({"source": "c", "like": "other", "cap_member": "max_tokens"})

    found = in_snapshot(own, {"other": other}.__getitem__)

    assert found == {
        "user_most": 64,
        "cap_member": "max_tokens",
        "families": [{"models": ["gpt-*"]}],
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": ""},
        {"user_most": 64},
        {"source": "a", "user_least": 1},
        {"source": "a", "thinking": "sometimes"},
        {"source": "a", "families": [{"models": ["*"]}]},
        {"source": "a", "families": [{"source": "b", "models": []}]},
    ],
)
def test_facts_that_are_wrong_are_an_error(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        FactSection.model_validate(wrong)


@pytest.mark.anyio
async def test_the_relay_gets_the_facts_of_its_connections(management: Management) -> None:
    for provider in ("azure", "mistral", "lm-studio"):
        fields = {"apiKey": KEY, "name": "c", "provider": provider}
        if provider == "azure":
            fields["providerSpecificData"] = {"resource": "r"}  # type: ignore[assignment]
        await management.ask("POST", "/api/providers", fields, expect=201)
    for kind, prefix in (("anthropic-compatible", "relay"), ("openai-compatible", "lab")):
        body = {"type": kind, "name": prefix, "prefix": prefix, "baseUrl": "http://127.0.0.1:9/v1"}
        node = (await management.ask("POST", "/api/provider-nodes", body, expect=201))["node"]
        fields = {"apiKey": KEY, "name": "c", "provider": node["id"]}
        await management.ask("POST", "/api/providers", fields, expect=201)

    snapshot = management.snapshot()

    names = {each["prefixes"][0]: each["facts"] for each in snapshot["connections"]}
    assert names == {
        "azure": "azure",
        "mistral": "mistral",
        "lm-studio": "",
        "relay": "anthropic",
        "lab": "",
    }
    assert snapshot["facts"].keys() == {"azure", "mistral", "anthropic"}
    assert snapshot["facts"]["azure"]["user_most"] == 64
    assert snapshot["facts"]["azure"]["families"]
    assert snapshot["facts"]["mistral"]["cap_member"] == "max_tokens"


EMPTY = FactSection(source="none")
