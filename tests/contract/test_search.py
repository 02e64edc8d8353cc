"""`/v1/search` over engines of several kinds, each a scripted server; `/api/search` uses the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.upstream import Gate, Upstream, reply


@pytest.fixture(autouse=True)
def nothing_left(gateway: Gateway) -> Iterator[None]:
    """Search providers are for everybody: each test begins without, and leaves none."""
    assert gateway.admin.get("/api/search-providers").json()["providers"] == []
    yield
    for one in gateway.admin.get("/api/search-providers").json()["providers"]:
        assert gateway.admin.delete(f"/api/search-providers/{one['id']}").status_code == 204
    expect(gateway.admin.patch("/api/settings", json={"scrapeSearchUrl": None}), 200)


def added(gateway: Gateway, name: str, kind: str, base_url: str, **fields: Any) -> dict[str, Any]:
    body = {"name": name, "kind": kind, "baseUrl": base_url, **fields}
    made: dict[str, Any] = expect(gateway.admin.post("/api/search-providers", json=body), 201)
    return made["provider"]


def test_an_instance_of_searxng_needs_no_key(gateway: Gateway, standin_url: str) -> None:
    added(gateway, "own", "searxng", standin_url)
    asked = {"query": "fairlead", "max_results": 3}
    answer = expect(gateway.caller.post("/v1/search", json=asked), 200)
    assert (answer["provider"], answer["count"]) == ("own", 3)
    first = answer["results"][0]
    assert first["title"] == "fairlead, page 1"
    assert (first["position"], first["citation"]["rank"]) == (1, 1)
    assert expect(gateway.caller.get("/v1/search"), 200)["data"] == [
        {"id": "own", "object": "search_provider", "kind": "searxng"}
    ]


def test_the_setting_is_a_provider_and_scraping_searches_with_all(
    gateway: Gateway, standin_url: str
) -> None:
    expect(gateway.admin.patch("/api/settings", json={"scrapeSearchUrl": standin_url}), 200)
    answer = expect(gateway.caller.post("/v1/search", json={"query": "a"}), 200)
    assert answer["provider"] == "searxng"
    added(gateway, "first", "searxng", standin_url)
    found = expect(gateway.caller.post("/api/search", json={"query": "a", "limit": 2}), 200)
    assert (found["provider"], found["count"]) == ("first", 2)


ROW = {"title": "T", "url": "https://a.example/"}
KINDS: dict[str, tuple[dict[str, Any], str]] = {
    "brave": ({"web": {"results": [ROW | {"description": "S"}]}}, "x-subscription-token"),
    "serper": ({"organic": [ROW | {"link": ROW["url"], "snippet": "S"}]}, "x-api-key"),
    "tavily": ({"results": [ROW | {"content": "S", "score": 0.5}]}, "authorization"),
    "exa": ({"results": [ROW | {"text": "S"}]}, "x-api-key"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_engine_of_each_kind(gateway: Gateway, upstream: Upstream, kind: str) -> None:
    """Its key goes where it wants it and stands nowhere else; what it finds has one shape."""
    document, header = KINDS[kind]
    upstream.script(reply(json.dumps(document).encode()))
    key = f"sk-search-canary-{kind}"
    gateway.canaries.append(key)
    made = added(gateway, kind, kind, upstream.url, apiKey=key)
    assert made["hasKey"]
    assert key not in json.dumps(gateway.admin.get("/api/search-providers").json())
    answer = expect(gateway.caller.post("/v1/search", json={"query": "x"}), 200)
    found = answer["results"][0]
    assert (found["title"], found["url"], found["snippet"]) == ("T", "https://a.example/", "S")
    assert key in (upstream.requests[-1].header(header) or "")


def test_the_next_provider_answers_when_one_fails(
    gateway: Gateway, upstream: Upstream, standin_url: str
) -> None:
    upstream.script(reply(b"{}", status=500))
    added(gateway, "broken", "searxng", upstream.url, priority=1)
    added(gateway, "sound", "searxng", standin_url, priority=2)
    answer = expect(gateway.caller.post("/v1/search", json={"query": "x"}), 200)
    assert answer["provider"] == "sound"
    upstream.script(reply(b"{}", status=500))
    named = gateway.caller.post("/v1/search", json={"query": "x", "provider": "broken"})
    assert (named.status_code, named.json()["error"]["code"]) == (502, "upstream_status")


def test_what_is_wrong_is_named(gateway: Gateway) -> None:
    for body, param in (
        ({"query": ""}, "query"),
        ({"query": "x", "max_results": 101}, "max_results"),
        ({"query": "x", "provider": "nobody"}, "provider"),
        ({"query": "x", "other": 1}, "other"),
        ({"query": "x", "filters": {"include_domains": ["a b"]}}, "filters.include_domains[0]"),
    ):
        answer = gateway.caller.post("/v1/search", json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text
    for body, param in (
        ({"name": "a", "kind": "searxng"}, "baseUrl"),
        ({"name": "a", "kind": "brave"}, "apiKey"),
        ({"name": "a", "kind": "searxng", "baseUrl": "http://169.254.169.254/"}, "baseUrl"),
        ({"name": "a", "kind": "searxng", "baseUrl": "ftp://a.example"}, "baseUrl"),
    ):
        answer = gateway.admin.post("/api/search-providers", json=body)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text


def test_nothing_is_set(gateway: Gateway) -> None:
    answer = gateway.caller.post("/v1/search", json={"query": "x"})
    assert answer.status_code == 400
    assert "No search engine is set" in answer.json()["error"]["message"]
    with gateway.client() as nobody:
        assert nobody.post("/v1/search", json={"query": "x"}).status_code == 401


def test_fifty_at_once_spend_no_more_than_is_left(gateway: Gateway, upstream: Upstream) -> None:
    """A dollar is left, and a search costs forty cents: two are made, however many are asked for."""
    gate = Gate()
    upstream.script([gate, *reply(json.dumps({"results": [ROW]}).encode())])
    added(gateway, "dear", "searxng", upstream.url, perQuery=0.4)
    key = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=1)
    headers = {"Authorization": f"Bearer {key['key']}"}

    def ask(number: int) -> int:
        with httpx.Client(base_url=gateway.url, trust_env=False, timeout=30) as client:
            body = {"query": f"number {number}"}
            return client.post("/v1/search", json=body, headers=headers).status_code

    with ThreadPoolExecutor(50) as pool:
        asked = [pool.submit(ask, number) for number in range(50)]
        assert gate.reached.wait(20)
        eventually(lambda: sum(each.done() for each in asked) == 48, "the others", within_s=30)
        gate.open()
        statuses = Counter(each.result() for each in asked)
    assert statuses == {200: 2, 429: 48}
    spent = [one for one in gateway.records() if one["keyId"] == key["id"] and one["status"] == 200]
    assert sum(one["costUsdMicros"] for one in spent) == 800_000
