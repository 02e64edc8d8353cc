"""What decides who may come in is for people: the route table says so, and every route that it names is asked."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead import _core
from fairlead.store.operator_settings import PEOPLES_SETTINGS, OperatorSettings
from tests.contract.conftest import Control

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

ROUTES: list[dict[str, Any]] = list(_core.routes())
# Paths whose writing routes let people, addresses or secrets of sign-in in, or send what operators watch elsewhere.
WHO_MAY_COME_IN = (
    *("/api/settings/ip-filter", "/api/settings/require-login", "/api/settings/mail"),
    *("/api/settings/mail/test", "/api/settings/proxy/test"),
    *("/api/users", "/api/users/{id}", "/api/auth/tokens", "/api/auth/tokens/{id}"),
)
PROGRAMS = (("key", ["manage"]), ("key", ["admin"]), ("token", ["admin"]))


def writing(path: str) -> list[dict[str, Any]]:
    return [each for each in ROUTES if each["path"] == path and each["method"] != "GET"]


@pytest.mark.parametrize("path", WHO_MAY_COME_IN)
def test_no_key_or_token_comes_as_far_as_these_routes(path: str) -> None:
    routes = writing(path)
    assert routes
    assert {route["tier"] for route in routes} == {"session"}


def test_the_table_and_the_settings_name_the_same_fields() -> None:
    """A setting that is for people is guarded by the table, and what the table guards is a setting or a beginning
    of some."""
    (names,) = {tuple(each["peoples_fields"]) for each in writing("/api/settings")}
    aliases = {
        str(field.alias): name
        for name, field in OperatorSettings.model_fields.items()
        if field.alias
    }
    guarded = {
        name
        for alias, name in aliases.items()
        if any(
            alias.startswith(each[:-1]) if each.endswith("*") else alias == each for each in names
        )
    }
    assert guarded == set(PEOPLES_SETTINGS)


@pytest.mark.parametrize(("kind", "scopes"), PROGRAMS)
async def test_every_guarded_field_of_the_table_is_refused_to_programs(
    control: Control, kind: str, scopes: list[str]
) -> None:
    headers = control.as_principal(kind, "a-program", scopes)
    asked = 0
    for route in ROUTES:
        for field in route["peoples_fields"]:
            for name in (field.replace("*", ""), field.replace("*", "OfTomorrow")):
                body = {name: None, "scrapeRobots": True}
                answer = await control.client.request(
                    route["method"], route["path"], json=body, headers=headers
                )
                assert answer.status_code == 403, (route["path"], name, answer.text)
                asked += 1
    assert asked >= 20
    # Everything else of these routes is a program's, too.
    answer = await control.client.patch(
        "/api/settings", json={"scrapeRobots": True}, headers=headers
    )
    assert answer.status_code == 200, answer.text


async def test_a_program_that_replaces_the_settings_resets_none_of_people(control: Control) -> None:
    told = await control.client.patch("/api/settings", json={"captureBodies": True})
    assert told.status_code == 200, told.text
    headers = control.as_principal("key", "a-program", ["manage"])
    answer = await control.client.put(
        "/api/settings", json={"scrapeRobots": False}, headers=headers
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["captureBodies"] is True
    assert answer.json()["scrapeRobots"] is False
