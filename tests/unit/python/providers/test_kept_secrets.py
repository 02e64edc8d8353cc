"""Stored keys and headers do not follow an address that somebody changes: they are asked for again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.net.secret_origin import new_origin, origin_of
from tests.support.management import Management
from tests.support.upstream import Upstream, reply

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

KEY = "sk-canary-0123456789"
HEADER = "canary-of-a-header"
ELSEWHERE = "https://attacker.example/v1"
PROVIDERS, NODES = "/api/providers", "/api/provider-nodes"


@pytest.fixture
def thief() -> Iterator[Upstream]:
    with Upstream() as running:
        running.script(*[reply({"data": [{"id": "m"}]})] * 4)
        yield running


async def node(management: Management, **fields: Any) -> Any:
    body = {
        "type": "openai-compatible",
        "name": "Lab",
        "prefix": "lab",
        "baseUrl": "https://lab.example/v1",
        **fields,
    }
    return (await management.ask("POST", NODES, body, expect=201))["node"]


async def connection(management: Management, **fields: Any) -> Any:
    body = {"provider": "openai", "name": "main", "apiKey": KEY, **fields}
    return (await management.ask("POST", PROVIDERS, body, expect=201))["connection"]


async def refused(management: Management, method: str, path: str, body: Any, param: str) -> str:
    error = (await management.ask(method, path, body, expect=400))["error"]
    assert error["param"] == param, error
    assert KEY not in str(error)
    assert HEADER not in str(error)
    return str(error["message"])


async def test_a_connections_key_stays_with_its_host(management: Management) -> None:
    path = f"{PROVIDERS}/{(await connection(management))['id']}"
    moved = {"providerSpecificData": {"baseUrl": ELSEWHERE}}
    said = await refused(management, "PUT", path, moved, "apiKey")
    assert "https://attacker.example" in said
    # A mask is not the key.
    await refused(management, "PUT", path, moved | {"apiKey": "***6789"}, "apiKey")
    await management.ask("PUT", path, moved | {"apiKey": "sk-of-the-new-host-1"})
    # Another path of the same host is no move; back again is one.
    same = {"providerSpecificData": {"baseUrl": "https://ATTACKER.example:443/v2"}}
    await management.ask("PUT", path, same)
    back = {"providerSpecificData": {"baseUrl": None}}
    await refused(management, "PUT", path, back, "apiKey")
    for scheme_or_port in ("http://attacker.example/v2", "https://attacker.example:8443/v2"):
        other = {"providerSpecificData": {"baseUrl": scheme_or_port}}
        await refused(management, "PUT", path, other, "apiKey")


@pytest.mark.parametrize(
    ("provider", "credential", "first", "then", "param"),
    [
        (
            "bedrock",
            {"awsKeys": {"accessKeyId": "AKIAEXAMPLE", "secretAccessKey": "s" * 40}},
            {"region": "eu-west-1"},
            {"region": "us-east-1"},
            "awsKeys",
        ),
        (
            "azure",
            {"apiKey": KEY},
            {"resource": "mine"},
            {"resource": "theirs"},
            "apiKey",
        ),
    ],
)
async def test_a_part_of_an_address_moves_it_too(
    management: Management,
    provider: str,
    credential: dict[str, Any],
    first: dict[str, str],
    then: dict[str, str],
    param: str,
) -> None:
    made = await connection(
        management, **{"apiKey": None} | credential, provider=provider, providerSpecificData=first
    )
    path = f"{PROVIDERS}/{made['id']}"
    await refused(management, "PUT", path, {"providerSpecificData": then}, param)
    await management.ask("PUT", path, {"providerSpecificData": then, **credential})


async def test_a_nodes_new_address_gets_neither_headers_nor_keys(management: Management) -> None:
    made = await node(management, customHeaders={"x-secret": HEADER})
    path = f"{NODES}/{made['id']}"
    await refused(management, "PUT", path, {"baseUrl": ELSEWHERE}, "customHeaders")
    masked = {"baseUrl": ELSEWHERE, "customHeaders": {"x-secret": "***"}}
    await refused(management, "PUT", path, masked, "customHeaders.x-secret")
    again = {"baseUrl": ELSEWHERE, "customHeaders": {"x-secret": "other"}}
    keyed = await connection(management, provider="lab")
    said = await refused(management, "PUT", path, again, "baseUrl")
    assert keyed["id"] in said
    await management.ask("PUT", path, {"baseUrl": "https://lab.example/v2"})

    of_key = f"{PROVIDERS}/{keyed['id']}"
    await management.ask("PUT", of_key, {"authType": "none"})
    await management.ask("PUT", path, again)
    await management.ask("PUT", of_key, {"apiKey": KEY})


async def test_a_nodes_headers_go_to_no_host_that_a_connection_names(
    management: Management, thief: Upstream
) -> None:
    await node(management, customHeaders={"x-secret": HEADER})
    candidate = {
        "provider": "lab",
        "name": "c",
        "apiKey": "x",
        "providerSpecificData": {"baseUrl": thief.url},
    }
    param = "providerSpecificData.baseUrl"
    await refused(management, "POST", f"{PROVIDERS}/validate", candidate, param)
    await refused(management, "POST", PROVIDERS, candidate, param)
    for body in (
        {"provider": "lab", "entries": [{**candidate, "provider": "lab"}]},
        {"entries": [{"provider": "lab", "name": "c", "apiKey": "x", "baseUrl": thief.url}]},
    ):
        where = "bulk" if "provider" in body else "import"
        if where == "bulk":
            body["entries"][0].pop("provider")
        told = await management.ask("POST", f"{PROVIDERS}/{where}", body)
        assert (told["success"], told["errors"][0]["param"]) == (0, param), where

    own = await connection(management, provider="lab")
    moved = {"apiKey": "y", "providerSpecificData": {"baseUrl": thief.url}}
    await refused(management, "PUT", f"{PROVIDERS}/{own['id']}", moved, param)
    assert thief.requests == []


async def test_headers_that_come_later_do_not_go_there_either(
    management: Management, thief: Upstream
) -> None:
    made = await node(management)
    own = await connection(management, provider="lab", providerSpecificData={"baseUrl": thief.url})
    await management.ask("PUT", f"{NODES}/{made['id']}", {"customHeaders": {"x-secret": HEADER}})
    await management.ask("POST", f"{PROVIDERS}/{own['id']}/test")
    [asked] = thief.requests
    assert HEADER not in str(asked.headers)


async def test_a_search_providers_key_stays_with_its_host(management: Management) -> None:
    body = {"name": "s", "kind": "searxng", "baseUrl": "https://one.example", "apiKey": KEY}
    made = (await management.ask("POST", "/api/search-providers", body, expect=201))["provider"]
    path = f"/api/search-providers/{made['id']}"
    await refused(management, "PATCH", path, {"baseUrl": ELSEWHERE}, "apiKey")
    await management.ask("PATCH", path, {"baseUrl": "https://one.example/s"})
    await management.ask("PATCH", path, {"baseUrl": ELSEWHERE, "apiKey": None})


def test_an_origin_is_scheme_host_and_port() -> None:
    assert origin_of("https://A.example:443/v1") == "https://a.example"
    assert origin_of("http://[::1]:80/") == "http://[::1]"
    assert origin_of("http://[::1]:8080/") == "http://[::1]:8080"
    assert new_origin([], []) is None
    assert new_origin([], ["http://a"]) == "http://a"
    assert new_origin(["http://a/x", "http://b"], ["http://b/y", "http://a"]) is None
