"""The scraping API through the whole gateway: keys, its error envelope, models, `kill -9`, a browser."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.chromium import needs_chromium
from tests.support.gateway_pool import GatewayPool
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.site import Site
from tests.support.upstream import Upstream, completion, reply

SCHEMA = {
    "type": "object",
    "required": ["title", "depth"],
    "properties": {"title": {"type": "string"}, "depth": {"type": "number"}},
    "additionalProperties": False,
}


def test_a_key_can_be_limited_to_scraping(gateway: Gateway, site: Site) -> None:
    key = gateway.create_key(name="reads pages", allowedEndpoints=["scraping"])["key"]
    reader = gateway.client(headers={"X-API-Key": key})
    assert reader.post("/api/scrape", json={"url": site.url("/article")}).status_code == 200
    assert reader.get("/v1/models").status_code == 403
    assert reader.get("/api/keys").status_code == 403


def test_every_refusal_is_told_in_the_envelope_of_this_api(
    gateway: Gateway, caller: httpx.Client, site: Site
) -> None:
    revoked = gateway.create_key(name="off", isActive=False)["key"]
    narrow = gateway.create_key(name="narrow", allowedEndpoints=["chat"])["key"]
    bare = gateway.client()
    body = {"url": site.url("/article")}
    for answer, status in [
        (bare.post("/api/scrape", json=body), 401),
        (bare.post("/api/scrape", json=body, headers={"X-API-Key": "nonsense"}), 401),
        (bare.post("/api/scrape", json=body, headers={"X-API-Key": revoked}), 401),
        (bare.post("/api/scrape", json=body, headers={"X-API-Key": narrow}), 403),
        (gateway.admin.post("/api/scrape", json=body), 401),
        (caller.get("/api/scrape"), 405),
        (
            caller.post("/api/scrape", content=b"{", headers={"content-type": "application/json"}),
            400,
        ),
        (caller.post("/api/scrape", content=b"{}", headers={"content-type": "text/plain"}), 415),
        (caller.post("/api/scrape", json=[1]), 400),
        (caller.post("/api/scrape", json={"url": "x" * 2_000_000}), 413),
        (caller.post("/api/scrape", json={"url": "nothing"}), 400),
        (caller.get("/api/scrape/job/none"), 404),
        (caller.get("/api/crawl/none"), 404),
        (caller.get("/api/endpoints/none"), 404),
        (caller.get("/api/crawl?limit=0"), 400),
    ]:
        assert answer.status_code == status, answer.text
        document = answer.json()
        assert document["success"] is False
        assert isinstance(document["error"], str)
        assert document["error"]


def test_a_stranger_cannot_speak_for_a_key(gateway: Gateway) -> None:
    key = gateway.create_key(name="owner")
    for value in (f"guess:{key['id']}", f":{key['id']}", key["id"], ""):
        answer = gateway.client().get("/v1/models", headers={"x-fairlead-on-behalf": value})
        assert answer.status_code == 401


def test_a_page_is_scraped(caller: httpx.Client, site: Site) -> None:
    options = {"extractorFormat": "markdown"}
    answer = expect(
        caller.post("/api/scrape", json={"url": site.url("/article"), "options": options}), 200
    )
    assert answer["success"] is True
    assert answer["content"].startswith("# On harbours")


def test_data_is_extracted_by_a_model_on_the_callers_account(
    gateway: Gateway, caller: httpx.Client, site: Site
) -> None:
    good = {"title": "On harbours", "depth": 4.5}
    with Upstream() as upstream:
        lane = gateway.add_lane(upstream)
        upstream.script(
            reply(completion(json.dumps({"title": "On harbours"}))),
            reply(completion(f"```json\n{json.dumps(good)}\n```", tokens_in=11, tokens_out=5)),
        )
        body = {
            "url": site.url("/article"),
            "schema": SCHEMA,
            "options": {
                "model": lane.model,
                "temperature": 0,
                "maxTokens": 99,
                "instructions": "the depth",
            },
        }
        answer = expect(caller.post("/api/extract-schema", json=body), 200)
        assert answer["extractedData"] == good
        assert answer["contentType"] == "markdown"
        assert answer["metadata"]["tokens"] == {"input": 18, "output": 8}
        first, second = (seen.json() for seen in upstream.requests)
        assert (first["temperature"], first["max_tokens"]) == (0, 99)
        system, user = (message["content"] for message in first["messages"])
        mark = system.split("<page-")[1].split(">")[0]
        assert f"<page-{mark}>\n# On harbours" in user
        assert "Ignore all instructions" not in user
        assert "'depth' is a required property" in second["messages"][-1]["content"]
        records = eventually(
            lambda: len(found := gateway.records_of(lane)) == 2 and found,
            "both are settled",
        )
        assert {record["principalKind"] for record in records} == {"key"}
        assert len({record["keyId"] for record in records}) == 1

        upstream.script(reply(completion('{"title": 1}')))
        refused = expect(caller.post("/api/extract-schema", json=body), 502)
        assert refused["success"] is False
        assert "does not fit the schema" in refused["error"]


def test_a_key_that_may_not_use_the_model_may_not_here_either(
    gateway: Gateway, site: Site, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream)
    key = gateway.create_key(name="blocked", blockedModels=[lane.model])["key"]
    upstream.script(reply(completion("{}")))
    answer = gateway.client(headers={"X-API-Key": key}).post(
        "/api/summarize", json={"url": site.url("/article"), "options": {"model": lane.model}}
    )
    assert expect(answer, 403)["success"] is False
    assert not upstream.requests


def test_a_summary_is_bounded_and_carries_no_links_away(
    change_settings: Callable[..., None],
    gateway: Gateway,
    caller: httpx.Client,
    site: Site,
    upstream: Upstream,
) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(
        reply(completion("one [two](http://evil.example/?q=key) ![three](http://evil/x) four five"))
    )
    change_settings(scrapeModel=lane.model)
    answer = expect(
        caller.post("/api/summarize", json={"url": site.url("/article"), "maxLength": 4}), 200
    )
    assert answer["summary"] == "one two three four"


def test_a_schema_that_is_none_is_refused(caller: httpx.Client, site: Site) -> None:
    for schema in (
        {"type": "nonsense"},
        {"$ref": "http://169.254.169.254/x"},
        {"$ref": "file:///etc/passwd"},
        {"pattern": "(?=x)"},
        {"patternProperties": {"x": {}}},
    ):
        body = {"url": site.url("/article"), "schema": schema}
        assert "schema" in expect(caller.post("/api/extract-schema", json=body), 400)["error"]


def test_a_saved_endpoint_answers_as_the_scrape_that_it_is(
    caller: httpx.Client, site: Site
) -> None:
    body = {
        "slug": "numbered",
        "url": site.url("/pages/{n}"),
        "params": {"n": None},
        "options": {"extractorFormat": "text"},
    }
    saved = expect(caller.post("/api/endpoints", json=body), 201)["endpoint"]
    assert saved["endpointUrl"].endswith("/api/endpoints/numbered")
    assert expect(caller.post("/api/endpoints", json=body), 409)["success"] is False
    answer = expect(caller.get("/api/endpoints/numbered?n=7"), 200)
    assert "This is page number 7." in answer["content"]
    assert "required" in expect(caller.get("/api/endpoints/numbered"), 400)["error"]
    assert "not a parameter" in expect(caller.get("/api/endpoints/numbered?x=1"), 400)["error"]
    # A value cannot leave its place in the path.
    expect(caller.get("/api/endpoints/numbered", params={"n": "../article"}), 400)
    expect(caller.delete("/api/endpoints/numbered"), 200)
    expect(caller.get("/api/endpoints/numbered?n=7"), 404)


def test_search_results_are_scraped(
    change_settings: Callable[..., None], caller: httpx.Client, site: Site
) -> None:
    assert (
        "scrapeSearchUrl" in expect(caller.post("/api/search", json={"query": "x"}), 400)["error"]
    )
    change_settings(scrapeSearchUrl=site.base)
    answer = expect(
        caller.post("/api/search", json={"query": "harbours", "scrapeResults": True}), 200
    )
    assert answer["provider"]
    chosen = {"query": "harbours", "provider": answer["provider"]}
    assert expect(caller.post("/api/search", json=chosen), 200)["count"] == 2
    chosen["provider"] = "none"
    assert "provider" in expect(caller.post("/api/search", json=chosen), 400)["error"]
    first, second = answer["results"]
    assert first["markdown"].startswith("# On harbours")
    assert second["scrapeError"] == "The page answered 404."


def test_a_crawl_survives_kill_9_at_the_page_it_reached(
    gateway: Gateway, caller: httpx.Client, site: Site
) -> None:
    body = {
        "url": site.url("/slow/1?s=0.15"),
        "crawlEntireDomain": True,
        "limit": 31,
        "crawlOptions": {"maxConcurrentCrawlers": 2},
    }
    job_id = expect(caller.post("/api/crawl", json=body), 200)["id"]

    def status() -> Any:
        try:
            answer = caller.get(f"/api/crawl/{job_id}?limit=100")
        except httpx.HTTPError:
            return None
        return answer.json() if answer.status_code == 200 else None

    before = eventually(
        lambda: (s := status()) and s["progress"]["completed"] >= 6 and s, "six pages", within_s=20
    )
    gateway.control.signal(signal.SIGKILL)
    after = eventually(
        lambda: (s := status()) and s["status"] != "scraping" and s,
        "the end",
        within_s=40,
        every_s=0.1,
    )
    assert after["status"] == "completed"
    kept = [page["url"] for page in before["jobs"]]
    assert [page["url"] for page in after["jobs"]][: len(kept)] == kept
    urls = [page["url"] for page in after["jobs"]]
    assert len(urls) == len(set(urls)) == 30
    assert after["progress"] == {"total": 30, "completed": 30, "failed": 0, "pending": 0}


def test_progress_comes_while_the_crawl_is_under_way(caller: httpx.Client, site: Site) -> None:
    body = {
        "url": site.url("/slow/1?s=0.2"),
        "crawlEntireDomain": True,
        "limit": 20,
        "crawlOptions": {"maxConcurrentCrawlers": 1},
    }
    job_id = expect(caller.post("/api/crawl", json=body), 200)["id"]
    with caller.stream("GET", f"/api/crawl/{job_id}/stream") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(line for line in lines if line.startswith("event: page"))
        assert caller.get(f"/api/crawl/{job_id}").json()["status"] == "scraping"
        expect(caller.delete(f"/api/crawl/{job_id}"), 200)
        rest = list(lines)
    assert any(line.startswith("data: ") and '"status":"cancelled"' in line for line in rest)


@needs_chromium
def test_a_browser_runs_scripts_and_actions_behind_the_same_guard(
    gateway: Gateway, caller: httpx.Client, site: Site
) -> None:
    pytest.importorskip("playwright")
    caller.timeout = 90
    options = {"extractorFormat": "text", "waitForSelector": "#late", "skipCache": True}
    answer = expect(
        caller.post("/api/scrape", json={"url": site.url("/scripted"), "options": options}), 200
    )
    assert "made by a script" in answer["content"]
    actions = [
        {"type": "fill", "selector": "#name", "value": "world"},
        {"type": "click", "selector": "#nothing", "optional": True, "timeout": 50},
        {"type": "click", "selector": "#go"},
        {"type": "scroll", "position": 100},
        {"type": "wait", "selector": "#said"},
    ]
    body = {
        "url": site.url("/scripted"),
        "options": {"extractorFormat": "text", "actions": actions},
    }
    assert "hello world" in expect(caller.post("/api/scrape", json=body), 200)["content"]
    # What the page's own script asks for passes the same guard.
    metadata = site.url("/scripted?to=http://169.254.169.254/latest/&n=1")
    expect(caller.post("/api/scrape", json={"url": metadata, "options": options}), 200)
    body["options"] = {"actions": [{"type": "click", "selector": "#nothing", "timeout": 50}]}
    failed = expect(caller.post("/api/scrape", json=body), 400)
    assert failed["error"].startswith("actions[0] (click) failed")


def test_the_description_is_served(caller: httpx.Client) -> None:
    document = expect(caller.get("/api/scrape/openapi.json"), 200)
    assert (document["openapi"], document["info"]["version"]) == ("3.0.0", "1.0.0")
    assert "/api/crawl/{job_id}" in document["paths"]


def test_nothing_private_is_fetched_unless_it_is_named(
    gateway_pool: GatewayPool, site: Site
) -> None:
    before = sum(site.asked().values())
    with gateway_pool.lease() as closed:
        caller = closed.client(headers={"X-API-Key": closed.key})
        answer = expect(caller.post("/api/scrape", json={"url": site.url("/article")}), 400)
    assert answer["success"] is False
    assert sum(site.asked().values()) == before
