"""Settings as a document: what was exported is what is imported, all of it or nothing."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

EXPORT, IMPORT = "/api/settings/export-json", "/api/settings/import-json"


async def test_an_exported_document_brings_the_settings_back(management) -> None:
    await management.ask("PATCH", "/api/settings", {"usageRetentionDays": 7})
    document = await management.ask("GET", EXPORT)
    assert document["format"] == "fairlead-settings-1"
    assert document["settings"]["usageRetentionDays"] == 7
    changed = {"usageRetentionDays": 8, "scrapeRobots": False}
    await management.ask("PATCH", "/api/settings", changed)
    back = await management.ask("POST", IMPORT, document)
    assert (back["usageRetentionDays"], back["scrapeRobots"]) == (7, True)


async def test_a_document_that_is_wrong_changes_nothing(management) -> None:
    document = await management.ask("GET", EXPORT)
    right = document["settings"]
    for settings, param in (
        (right | {"usageRetentionDays": 0}, "settings.usageRetentionDays"),
        (right | {"usageRetentionDays": "7"}, "settings.usageRetentionDays"),
        (right | {"unknown": 1}, "settings.unknown"),
        (right | {"newPassword": "words of a stranger"}, "settings.newPassword"),
        (right | {"currentPassword": "x"}, "settings.currentPassword"),
        ({}, "settings.settings"),
    ):
        _, found = await management.refused("POST", IMPORT, document | {"settings": settings})
        assert found == param
    await management.refused("POST", IMPORT, document | {"format": "other"})
    await management.refused("POST", IMPORT, {"format": "fairlead-settings-1"})
    assert (await management.ask("GET", EXPORT))["settings"] == right


async def test_security_settings_need_their_operator(management) -> None:
    document = await management.ask("GET", EXPORT)
    document["settings"]["requireLogin"] = False
    session = '{"kind": "session", "id": "nobody", "scopes": ["manage"]}'
    answer = await management.client.post(
        IMPORT, json=document, headers={"x-fairlead-principal": session}
    )
    assert answer.status_code == 401
    assert (await management.ask("GET", EXPORT))["settings"]["requireLogin"] is True
