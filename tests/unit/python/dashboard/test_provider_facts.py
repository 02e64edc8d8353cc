"""The form of a new connection asks for what the catalogue says that a provider needs, and for nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit

import fairlead
from fairlead.dashboard.connection_form import new_groups
from fairlead.dashboard.provider_facts import (
    CLOUDS,
    KEY_PAGES,
    ON_YOUR_MACHINE,
    OPTIONAL_PARTS,
    PARTS,
    POPULAR,
    SECTIONS,
    section_of,
)

CATALOGUE = {
    path.stem: json.loads(path.read_text())
    for path in (Path(fairlead.__file__).parent / "data" / "catalogue").glob("*.json")
}


def names_of(provider: str) -> set[str]:
    return {field.name for group in new_groups(provider) for field in group.fields}


def test_each_provider_is_asked_for_the_variables_of_its_address_alone() -> None:
    for id_, entry in CATALOGUE.items():
        variables = set(entry.get("variables", ()))
        asked = {
            name.removeprefix("providerSpecificData.")
            for name in names_of(id_)
            if name.startswith("providerSpecificData.")
        }
        optional = {*OPTIONAL_PARTS.get(id_, ()), "inexpressible", "refuses"}
        if entry["auth"] == "aws-sigv4":
            optional |= {"awsProfile", "roleArn"}
        assert asked == {"baseUrl", *variables, *optional}, id_
        assert set(PARTS.get(id_, ())) == variables, id_


def test_each_provider_is_asked_for_its_credential_alone() -> None:
    for id_, entry in CATALOGUE.items():
        names = names_of(id_)
        assert ("awsKeys.accessKeyId" in names) == (entry["auth"] == "aws-sigv4")
        assert ("serviceAccount" in names) == (entry["auth"] == "google-service-account")
        assert ("entraApp.tenantId" in names) == (id_ == "azure")
        assert (id_ in ON_YOUR_MACHINE) == (entry["auth"] == "none")
        assert "apiKey" in names, "a server of one's own may want one, and a cloud may take one"


def test_an_endpoint_of_ones_own_is_asked_for_a_key_and_an_address() -> None:
    names = names_of("openai-compatible-7")
    assert {"apiKey", "providerSpecificData.baseUrl"} <= names
    assert not {"awsKeys.accessKeyId", "serviceAccount", "providerSpecificData.region"} & names


def test_every_fact_is_about_a_provider_of_the_catalogue() -> None:
    for id_ in (*KEY_PAGES, *PARTS, *POPULAR, *CLOUDS, *ON_YOUR_MACHINE):
        assert id_ in CATALOGUE, id_
    for page in KEY_PAGES.values():
        assert urlsplit(page).scheme == "https"
    assert {section_of(id_, is_own=False) for id_ in CATALOGUE} <= set(SECTIONS)
