"""Firecrawl's API over HTTP: its refusals, what it passes over, ids of every spelling, and keys."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.office_documents import report
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.site import Site

pytestmark = pytest.mark.both_fronts


def bearer(gateway: Gateway, **fields: Any) -> httpx.Client:
    key = gateway.create_key(name="firecrawl", **fields)["key"]
    return gateway.client(headers={"Authorization": f"Bearer {key}"}, timeout=60.0)


def test_every_refusal_has_the_envelope(gateway: Gateway, site: Site) -> None:
    caller, bare = bearer(gateway), gateway.client()
    page = {"url": site.url("/article")}
    for answer, status in [
        (bare.post("/v2/scrape", json=page), 401),
        (caller.post("/v2/scrape", json={}), 400),
        (caller.post("/v2/scrape", json={"url": "ftp://x"}), 400),
        (caller.post("/v2/scrape", json={**page, "formats": [{}]}), 400),
        (caller.post("/v2/scrape", json={**page, "formats": [{"type": "json"}]}), 400),
        (caller.post("/v2/scrape", json={**page, "formats": ["summary"]}), 400),
        (caller.post("/v2/crawl", json={**page, "includePaths": ["("]}), 400),
        (caller.post("/v2/extract", json={"urls": [site.url("/article")]}), 400),
        (caller.post("/v2/batch/scrape", json={"urls": ["ftp://x"]}), 400),
        (caller.get("/v2/crawl/none"), 404),
        (caller.get("/v2/crawl/none/errors"), 404),
        (caller.delete("/v2/crawl/none"), 404),
        (caller.get("/v2/batch/scrape/none"), 404),
        (caller.get("/v2/extract/none"), 404),
        (caller.get("/v2/crawl/none?skip=-1"), 400),
        (caller.get("/v2/scrape"), 405),
        (caller.post("/v2/parse", json={}), 415),
    ]:
        assert answer.status_code == status, answer.text
        refusal = answer.json()
        assert refusal["success"] is False
        assert refusal["error"]
        assert isinstance(refusal["error"], str)


@pytest.mark.parametrize(
    "path",
    [
        *("/v2/crawl/a%00b", "/v2/crawl/a%2fb", "/v2/crawl/caf%C3%A9", "/v2/batch/scrape/%20"),
        *("/api/crawl/a%00b", "/api/crawl/a%2fb/errors", "/api/batch/scrape/caf%C3%A9"),
        *("/api/scrape/job/%ff", "/api/sites/%20", "/api/browser/sessions/a%0ab", "/api/agent/%2e"),
        *("/v2/extract/%00", "/api/endpoints/a%2Fb", "/api/llmstxt/a%25"),
    ],
)
def test_an_id_of_any_spelling_answers_in_the_envelope(gateway: Gateway, path: str) -> None:
    answer = bearer(gateway).get(path)
    assert answer.status_code in {400, 404}
    assert answer.json()["success"] is False
    assert isinstance(answer.json()["error"], str)


@pytest.mark.parametrize(
    "path", ["/v2/agent", "/v2/agent/x", "/v2/monitor", "/v2/search/research/papers", "/v2/browser"]
)
def test_a_route_that_is_not_served_says_so(gateway: Gateway, path: str) -> None:
    answer = expect(bearer(gateway).post(path, json={"prompt": "x"}), 404)
    assert answer["success"] is False
    assert "not served" in answer["error"]


def test_options_that_are_not_served_are_passed_over_and_named(
    gateway: Gateway, site: Site
) -> None:
    caller = bearer(gateway)
    body = {
        "url": site.url("/article"),
        "origin": "python-sdk@9.9.9",
        "integration": "x",
        "blockAds": True,
        "lockdown": True,
        "newest": {"of": "options"},
        "formats": [
            "markdown",
            "branding",
            {"type": "changeTracking", "modes": ["git-diff"]},
        ],
        "actions": [],
    }
    page = expect(caller.post("/v2/scrape", json=body), 200)["data"]
    assert page["warning"] == (
        "Not served here, and passed over: lockdown, newest, formats[1] (branding), formats[2].modes."
    )
    assert page["changeTracking"] == {
        "changeStatus": "new",
        "previousScrapeAt": None,
        "visibility": "visible",
    }
    crawl = {
        "url": site.url("/pages/0"),
        "limit": 1,
        "prompt": "only the first",
        "scrapeOptions": {"formats": ["markdown", "video"]},
    }
    started = expect(caller.post("/v2/crawl", json=crawl), 200)
    assert "prompt" in started["warning"]
    assert "scrapeOptions.formats[1] (video)" in started["warning"]


def test_a_cached_copy_is_no_older_than_asked(gateway: Gateway, site: Site) -> None:
    caller = bearer(gateway)
    clock = {"url": site.url("/clock")}

    def state(**more: Any) -> str:
        answer = expect(caller.post("/v2/scrape", json={**clock, **more}), 200)
        return str(answer["data"]["metadata"]["cacheState"])

    assert state() == "miss"
    assert state() == "hit"
    assert state(maxAge=600_000) == "hit"
    assert state(maxAge=1) == "miss"
    assert state(maxAge=0) == "miss"
    assert state(storeInCache=False) == "miss"


def test_pages_come_in_pieces_of_the_size_that_is_asked(gateway: Gateway, site: Site) -> None:
    caller = bearer(gateway)
    body = {
        "url": site.url("/pages/0"),
        "limit": 12,
        "sitemap": "skip",
        "crawlEntireDomain": True,
    }
    started = expect(caller.post("/v2/crawl", json=body), 200)

    def ended() -> dict[str, Any] | None:
        view = expect(caller.get(f"/v2/crawl/{started['id']}?limit=5"), 200)
        return view if view["status"] == "completed" else None

    view = eventually(ended, "the crawl has ended")
    titles = [page["metadata"]["title"] for page in view["data"]]
    while view["next"]:
        view = expect(caller.get(view["next"]), 200)
        titles += [page["metadata"]["title"] for page in view["data"]]
    assert len(titles) == len(set(titles)) == 12


def test_a_document_is_parsed_from_a_form(gateway: Gateway) -> None:
    caller = bearer(gateway)
    files = {"file": ("report.docx", report(), "application/octet-stream")}
    options = {"options": '{"formats": ["markdown", "links"], "origin": "x"}'}
    page = expect(caller.post("/v2/parse", files=files, data=options), 200)["data"]
    assert page["markdown"].startswith("# The harbour\n")
    assert page["metadata"]["sourceURL"] == "report.docx"
    assert page["warning"].endswith("formats (links).")
    pdf = {"file": ("x.png", b"\x89PNG", "image/png")}
    assert expect(caller.post("/v2/parse", files=pdf), 400)["success"] is False
    broken = {"options": "{"}
    assert expect(caller.post("/v2/parse", files=files, data=broken), 400)["success"] is False
    assert expect(caller.post("/v2/parse", data=options, files={"x": b"1"}), 400)["error"]
