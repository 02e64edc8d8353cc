"""`/api/providers/bulk` and `/api/providers/import`: each row for itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.management import Management
from tests.support.upstream import Upstream, reply

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        running.script(reply({"data": []}), key="good")
        running.script(reply({}, 401), key="bad")
        yield running


async def names(management: Management) -> list[str]:
    return [each["name"] for each in (await management.ask("GET", "/api/providers"))["connections"]]


async def test_keys_of_one_provider(management: Management) -> None:
    entries: list[dict[str, Any]] = [
        {"name": "one", "apiKey": "sk-1", "priority": 3},
        {"name": "two"},
        {"name": "three", "apiKey": "sk-3", "prioriti": 3},
        {"name": "four", "apiKey": "sk-4", "accountId": "acc"},
    ]
    told = await management.ask(
        "POST", "/api/providers/bulk", {"provider": "openai", "entries": entries}
    )

    assert (told["success"], told["failed"], told["total"]) == (2, 2, 4)
    assert [(row["index"], row["name"]) for row in told["created"]] == [(0, "one"), (3, "four")]
    assert [(row["index"], row["param"]) for row in told["errors"]] == [
        (1, "apiKey"),
        (2, "prioriti"),
    ]
    assert await names(management) == ["one", "four"]
    assert "sk-" not in str(told)


async def test_a_list_of_many_providers(management: Management) -> None:
    entries = [
        {"provider": "openai", "name": "a", "apiKey": "k", "baseUrl": "https://proxy.example/v1"},
        {"provider": "nobody", "name": "b", "apiKey": "k"},
        {"provider": "azure", "name": "c", "apiKey": "k"},
        {"provider": "groq", "name": "", "apiKey": "k"},
        {"provider": "ollama", "name": "e", "apiKey": ""},
    ]
    told = await management.ask("POST", "/api/providers/import", {"entries": entries})

    assert [row["name"] for row in told["created"]] == ["a", "e"]
    assert [(row["index"], row["param"]) for row in told["errors"]] == [
        (1, "provider"),
        (2, "providerSpecificData.resource"),
        (3, "name"),
    ]


async def test_keys_that_do_not_count_are_refused_when_asked(
    management: Management, up: Upstream
) -> None:
    node = {"type": "openai-compatible", "name": "Lab", "prefix": "lab", "baseUrl": up.url}
    await management.ask("POST", "/api/provider-nodes", node, expect=201)
    entries = [{"name": name, "apiKey": name} for name in ("good", "bad")] * 5
    body = {"provider": "lab", "entries": entries, "validateKeys": True}

    told = await management.ask("POST", "/api/providers/bulk", body)

    assert (told["success"], told["failed"]) == (5, 5)
    assert {row["param"] for row in told["errors"]} == {"apiKey"}
    assert set(await names(management)) == {"good"}


@pytest.mark.parametrize("entries", [[], [{"name": "n"}] * 201, "x"])
async def test_a_list_that_is_none_is_refused_whole(management: Management, entries: Any) -> None:
    body = {"provider": "openai", "entries": entries}
    _, param = await management.refused("POST", "/api/providers/bulk", body)
    assert param is not None
    assert param.startswith("entries")


@pytest.mark.parametrize("route", ["bulk", "import"])
async def test_a_row_that_is_no_object_fails_alone(management: Management, route: str) -> None:
    good = {"provider": "openai", "name": "good", "apiKey": "k"}
    odd = {**good, "providerSpecificData": "x"}
    entries = [5, None, good, "x", [good], odd]
    body: Any = (
        {"provider": "openai", "entries": entries} if route == "bulk" else {"entries": entries}
    )
    if route == "bulk":
        good.pop("provider")
    told = await management.ask("POST", f"/api/providers/{route}", body)
    assert (told["success"], told["failed"], told["total"]) == (1, 5, 6)
    assert [row["index"] for row in told["created"]] == [2]
    assert [row["index"] for row in told["errors"]] == [0, 1, 3, 4, 5]
    assert (
        told["errors"][0]["error"] == "entries.0 must be an object with the fields of a connection."
    )
    assert told["errors"][4]["param"] == "providerSpecificData"
