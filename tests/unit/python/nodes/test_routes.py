"""`/api/provider-nodes` from the outside."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.management import Management

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

PATH = "/api/provider-nodes"
NODE = {
    "type": "openai-compatible",
    "name": "Lab",
    "prefix": "lab",
    "baseUrl": "http://127.0.0.1:8000/v1/",
}


async def make(management: Management, **fields: Any) -> Any:
    return (await management.ask("POST", PATH, {**NODE, **fields}, expect=201))["node"]


async def test_a_node_is_made_listed_read_changed_and_deleted(management: Management) -> None:
    node = await make(management, timeouts={"idleMs": 1000})
    assert node["baseUrl"] == "http://127.0.0.1:8000/v1"
    assert node["apiType"] == "chat"
    assert node["timeouts"]["idleMs"] == 1000
    assert node["createdAt"] == node["updatedAt"]

    listed = await management.ask("GET", PATH)
    assert listed == {"nodes": [node], "total": 1, "limit": 50, "offset": 0}

    path = f"{PATH}/{node['id']}"
    changed = (await management.ask("PUT", path, {"name": "Lab 2", "timeouts": None}))["node"]
    assert changed == {
        **node,
        "name": "Lab 2",
        "timeouts": None,
        "updatedAt": changed["updatedAt"],
    }
    assert (await management.ask("GET", path))["node"] == changed
    assert changed["updatedAt"] > node["updatedAt"]

    assert "message" in await management.ask("DELETE", path)
    await management.ask("GET", path, expect=404)
    await management.ask("PUT", path, {"name": "x"}, expect=404)
    await management.ask("DELETE", path, expect=404)


async def test_lists_are_paged_in_the_order_of_making(management: Management) -> None:
    made = [(await make(management, prefix=f"p{n}"))["id"] for n in range(3)]

    page = await management.ask("GET", PATH, limit=2, offset=1)

    assert [node["id"] for node in page["nodes"]] == made[1:]
    assert (page["total"], page["limit"], page["offset"]) == (3, 2, 1)
    for query in ({"limit": 0}, {"limit": 501}, {"offset": -1}):
        await management.refused("GET", PATH, **query)


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"type": "other"}, "type"),
        ({"name": ""}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"prefix": "Lab"}, "prefix"),
        ({"prefix": "a/b"}, "prefix"),
        ({"prefix": "-a"}, "prefix"),
        ({"prefix": "x" * 65}, "prefix"),
        ({"baseUrl": "http://169.254.169.254/v1"}, "baseUrl"),
        ({"baseUrl": 1}, "baseUrl"),
        ({"chatPath": "chat"}, "chatPath"),
        ({"iconUrl": "javascript:alert(1)"}, "iconUrl"),
        ({"apiType": "telepathy"}, "apiType"),
        ({"customHeaders": {"Host": "x"}}, "customHeaders"),
        ({"customHeaders": {"x-a": 1}}, "customHeaders.x-a"),
        ({"timeouts": {"connectMs": 49}}, "timeouts.connectMs"),
        ({"timeouts": {"connectMs": 60001}}, "timeouts.connectMs"),
        ({"timeouts": {"idleMs": 3_600_001}}, "timeouts.idleMs"),
        ({"timeouts": {"idleMs": 1.5}}, "timeouts.idleMs"),
        ({"timeouts": {"other": 1}}, "timeouts.other"),
        ({"id": "mine"}, "id"),
        ({"createdAt": 1}, "createdAt"),
        ({"__class__": 1}, "__class__"),
        ({"base_url": "http://host"}, "base_url"),
    ],
)
async def test_bodies_that_are_refused_name_the_field(
    management: Management, fields: dict[str, Any], param: str
) -> None:
    assert (await management.refused("POST", PATH, {**NODE, **fields}))[1] == param
    assert (await management.ask("GET", PATH))["total"] == 0


async def test_both_ends_of_a_range_are_taken(management: Management) -> None:
    await make(
        management,
        timeouts={
            "connectMs": 50,
            "headerMs": 50,
            "firstTokenMs": 50,
            "idleMs": 50,
            "answerMs": 50,
        },
    )
    most = {"connectMs": 60_000, "headerMs": 3_600_000, "idleMs": 3_600_000, "answerMs": 3_600_000}
    await make(management, prefix="x" * 64, name="x" * 200, timeouts=most)


async def test_a_change_needs_a_field_and_knows_no_other(management: Management) -> None:
    path = f"{PATH}/{(await make(management))['id']}"

    assert (await management.refused("PUT", path, {}))[0] == "No valid fields to update"
    for unknown in ("id", "createdAt", "headersSealed", "__proto__"):
        assert (await management.refused("PUT", path, {unknown: 1, "name": "x"}))[1] == unknown
    for field in ("type", "name", "prefix", "baseUrl", "apiType"):
        assert (await management.refused("PUT", path, {field: None}))[1] == field
    assert (await management.ask("GET", path))["node"]["name"] == "Lab"


async def test_a_prefix_is_nobody_elses(management: Management) -> None:
    node = await make(management)
    other = await make(management, prefix="other")

    for taken in ("lab", "openai", other["id"]):
        body = {**NODE, "prefix": taken}
        assert (await management.refused("POST", PATH, body, expect=409))[1] == "prefix"
    change = {"prefix": "other"}
    await management.refused("PUT", f"{PATH}/{node['id']}", change, expect=409)
    await management.ask("PUT", f"{PATH}/{node['id']}", {"prefix": "lab"})


async def test_header_values_are_sealed_and_never_shown(management: Management) -> None:
    node = await make(management, customHeaders={"X-Team": "canary-blue", "x-b": "canary-red"})
    path = f"{PATH}/{node['id']}"
    assert node["customHeaders"] == {"x-team": "***", "x-b": "***"}

    sent_back = {"x-team": "***", "x-c": "canary-green"}
    changed = (await management.ask("PUT", path, {"customHeaders": sent_back}))["node"]
    assert changed["customHeaders"] == {"x-team": "***", "x-c": "***"}
    refused = await management.refused("PUT", path, {"customHeaders": {"x-d": "***"}})
    assert refused[1] == "customHeaders.x-d"
    assert (await management.ask("PUT", path, {"customHeaders": None}))["node"][
        "customHeaders"
    ] is None

    for file in management.services.data_dir.rglob("*"):
        assert not file.is_file() or b"canary" not in file.read_bytes(), file


async def test_a_node_with_connections_stays_and_names_them(management: Management) -> None:
    node = await make(management)
    connection = {"provider": "lab", "name": "first"}
    made = (await management.ask("POST", "/api/providers", connection, expect=201))["connection"]

    message, _ = await management.refused("DELETE", f"{PATH}/{node['id']}", expect=409)

    assert "first" in message
    assert made["id"] in message
    await management.ask("DELETE", f"/api/providers/{made['id']}")
    await management.ask("DELETE", f"{PATH}/{node['id']}")
