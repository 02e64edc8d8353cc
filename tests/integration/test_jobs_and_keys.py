"""Work that goes on after its answer: it counts under its key's limits once, and ends soon after its key."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from fairlead.moment import iso
from tests.support.polling import eventually, holds_for
from tests.support.processes import Gateway, Lane, expect
from tests.support.site import Site
from tests.support.upstream import (
    SSE_HEAD,
    STALL,
    Gate,
    Upstream,
    chunk,
    delta,
    reply,
)

HOUR = {"window": 3600}
VECTOR = {
    "object": "list",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
    "model": "m",
    "usage": {"prompt_tokens": 1, "total_tokens": 1},
}


@pytest.fixture(scope="module")
def gateway(loopback_gateway: Gateway) -> Gateway:
    return loopback_gateway


@pytest.fixture
def lane(gateway: Gateway, upstream: Upstream) -> Lane:
    return gateway.add_lane(upstream)


def caller_of(gateway: Gateway, key: dict[str, Any]) -> httpx.Client:
    return gateway.client(headers={"Authorization": f"Bearer {key['key']}"}, timeout=60)


# ---------------------------------------------------------------------------- they count once


def begin_model_work(path: str) -> Callable[[httpx.Client, Lane, Site], httpx.Response]:
    def begin(caller: httpx.Client, lane: Lane, _: Site) -> httpx.Response:
        return caller.post(path, json={"model": lane.model, "input": "hi", "background": True})

    return begin


def begin_scraping(
    path: str, **fields: Any
) -> Callable[[httpx.Client, Lane, Site], httpx.Response]:
    def begin(caller: httpx.Client, _: Lane, site: Site) -> httpx.Response:
        url = site.url("/article")
        where = {"urls": [url]} if "batch" in path else {"url": url}
        return caller.post(path, json={**where, **fields})

    return begin


def begin_model_scraping(
    path: str, **fields: Any
) -> Callable[[httpx.Client, Lane, Site], httpx.Response]:
    def begin(caller: httpx.Client, lane: Lane, site: Site) -> httpx.Response:
        return begin_scraping(path, model=lane.model, **fields)(caller, lane, site)

    return begin


JOBS: dict[str, Callable[[httpx.Client, Lane, Site], httpx.Response]] = {
    "response": begin_model_work("/v1/responses"),
    "interaction": begin_model_work("/v1beta/interactions"),
    "interaction, stable": begin_model_work("/v1/interactions"),
    "crawl": begin_scraping("/api/crawl", limit=1),
    "scrape": begin_scraping("/api/scrape/async"),
    "batch of scrapes": begin_scraping("/api/batch/scrape"),
    "llms.txt": begin_scraping("/api/llmstxt", maxUrls=1),
    "extraction": begin_model_scraping("/api/extract", prompt="the title"),
    "agent": begin_model_scraping("/api/agent", prompt="read the title", maxSteps=1),
    "Firecrawl's crawl": begin_scraping("/v2/crawl", limit=1),
    "Firecrawl's batch": begin_scraping("/v2/batch/scrape"),
}
# A start of each kind that control refuses, after the relay has counted it.
REFUSED: dict[str, Callable[[httpx.Client, Lane, Site], httpx.Response]] = {
    "response": lambda caller, lane, _: caller.post(
        "/v1/responses",
        json={"model": lane.model, "input": "hi", "background": True, "store": False},
    ),
    "interaction": lambda caller, lane, _: caller.post(
        "/v1beta/interactions", json={"model": lane.model, "input": []}
    ),
    "crawl": lambda caller, *_: caller.post("/api/crawl", json={"url": "ftp://example.com/"}),
    "scrape": lambda caller, *_: caller.post("/api/scrape/async", json={}),
    "batch of scrapes": lambda caller, *_: caller.post("/api/batch/scrape", json={"urls": []}),
    "llms.txt": lambda caller, *_: caller.post("/api/llmstxt", json={"url": 5}),
    "Firecrawl's crawl": lambda caller, *_: caller.post("/v2/crawl", json={"url": "ftp://x/"}),
    "Firecrawl's batch": lambda caller, *_: caller.post("/v2/batch/scrape", json={"urls": []}),
    "Firecrawl's extraction": lambda caller, *_: caller.post("/v2/extract", json={"urls": []}),
    "extraction": lambda caller, *_: caller.post("/api/extract", json={"urls": []}),
    "agent": lambda caller, *_: caller.post("/api/agent", json={"url": "nowhere"}),
    "browser session": lambda caller, *_: caller.post("/api/browser/sessions", json={"ttl": "no"}),
}


@pytest.mark.one_node(reason="another node's worker may hear later of what a key has used")
@pytest.mark.parametrize("kind", JOBS)
def test_a_job_counts_when_it_is_accepted(
    gateway: Gateway, lane: Lane, site: Site, kind: str
) -> None:
    gate = Gate()
    lane.upstream.script([gate, *reply({"error": {"message": "late"}}, 400)])
    # The calls of a scraping job to a model count, too, and the first job may make one meanwhile.
    limit = 1 if kind in ("extraction", "agent") else 2
    caller = caller_of(gateway, gateway.create_key(rateLimits=[{"limit": limit, **HOUR}]))
    answers = [JOBS[kind](caller, lane, site) for _ in range(limit + 1)]
    gate.open()
    accepted = [answer.is_success for answer in answers]
    assert accepted == [*(True for _ in range(limit)), False], answers[0].text
    assert answers[-1].status_code == 429, answers[-1].text
    assert answers[-1].headers["retry-after"]


@pytest.mark.one_node(reason="another node's worker may hear later of what a key has used")
@pytest.mark.parametrize("kind", REFUSED)
def test_a_job_that_is_not_begun_counts_for_nothing(
    gateway: Gateway, lane: Lane, site: Site, kind: str
) -> None:
    lane.upstream.script(reply({"error": {"message": "late"}}, 400))
    caller = caller_of(gateway, gateway.create_key(rateLimits=[{"limit": 1, **HOUR}]))
    for _ in range(3):
        refused = REFUSED[kind](caller, lane, site)
        assert 400 <= refused.status_code < 500, refused.text
        assert refused.status_code != 429, refused.text
    begun = JOBS.get(kind, JOBS["crawl"])(caller, lane, site)
    assert begun.is_success, begun.text
    assert REFUSED[kind](caller, lane, site).status_code == 429


@pytest.mark.one_node(reason="another node's worker may hear later of what a key has used")
def test_a_video_counts_when_it_is_accepted(gateway: Gateway, upstream: Upstream) -> None:
    upstream.script(reply({"name": "models/veo/operations/x"}))
    base_url = f"{upstream.url}/v1beta"
    model = f"{gateway.add_lane(upstream, base_url=base_url, dialect='gemini').prefix}/veo"
    caller = caller_of(gateway, gateway.create_key(rateLimits=[{"limit": 2, **HOUR}]))
    path = f"/v1beta/models/{model}:predictLongRunning"
    body = {"instances": [{"prompt": "a boat"}], "parameters": {"durationSeconds": 8}}
    answers = [caller.post(path, json=body) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429], answers[0].text
    assert answers[2].headers["retry-after"]


@pytest.mark.one_node(reason="another node's worker may hear later of what a key has used")
def test_each_line_of_a_batch_counts_once(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply(VECTOR))
    caller = caller_of(gateway, gateway.create_key(rateLimits=[{"limit": 3, **HOUR}]))
    batch_id = begin_batch(caller, lane, lines=2)
    ended = eventually(lambda: is_over(caller, batch_id), "the batch ends", within_s=60)
    assert (ended["status"], ended["request_counts"]["completed"]) == ("completed", 2)
    body = {"model": lane.model, "input": "x"}
    expect(caller.post("/v1/embeddings", json=body), 200)
    assert caller.post("/v1/embeddings", json=body).status_code == 429


def begin_batch(caller: httpx.Client, lane: Lane, lines: int) -> str:
    line = {"method": "POST", "url": "/v1/embeddings", "body": {"model": lane.model, "input": "x"}}
    content = "".join(json.dumps(line | {"custom_id": f"c{at}"}) + "\n" for at in range(lines))
    form = {"file": ("in.jsonl", content.encode(), "application/jsonl")}
    uploaded = expect(caller.post("/v1/files", data={"purpose": "batch"}, files=form), 200)
    body = {
        "input_file_id": uploaded["id"],
        "endpoint": "/v1/embeddings",
        "completion_window": "24h",
    }
    return str(expect(caller.post("/v1/batches", json=body), 200)["id"])


def is_over(caller: httpx.Client, batch_id: str) -> dict[str, Any] | None:
    found: dict[str, Any] = expect(caller.get(f"/v1/batches/{batch_id}"), 200)
    return found if found["status"] in {"completed", "failed", "expired", "cancelled"} else None


# -------------------------------------------------------------------------- they end with the key


def end_key(gateway: Gateway, key: dict[str, Any], how: str) -> None:
    path = f"/api/keys/{key['id']}"
    if how == "deleted":
        expect(gateway.admin.delete(path), 200)
        return
    soon = iso(datetime.now(UTC) + timedelta(seconds=1.5))
    change = {
        "banned": {"isBanned": True},
        "switched off": {"isActive": False},
        "expired": {"expiresAt": soon},
    }
    expect(gateway.admin.patch(path, json=change[how]), 200)


WAYS = ("deleted", "banned", "switched off", "expired")
WORK: dict[str, Callable[[httpx.Client, Lane], object]] = {
    "response": lambda caller, lane: JOBS["response"](caller, lane, None),  # type: ignore[arg-type]
    "interaction": lambda caller, lane: JOBS["interaction"](caller, lane, None),  # type: ignore[arg-type]
    "batch": lambda caller, lane: begin_batch(caller, lane, lines=1),
}


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("kind", WORK)
def test_a_call_that_a_job_makes_ends_with_the_key(
    gateway: Gateway, lane: Lane, kind: str, how: str
) -> None:
    gate = Gate()
    begun = [] if kind == "batch" else [SSE_HEAD, chunk(delta("a"))]
    lane.upstream.script([*begun, gate, STALL])
    key = gateway.create_key()
    caller = caller_of(gateway, key)
    WORK[kind](caller, lane)
    assert gate.reached.wait(30)
    gate.open()
    end_key(gateway, key, how)
    eventually(lambda: lane.upstream.last.gone_at, "the provider's call ends", within_s=15)
    asked = len(lane.upstream.requests)
    holds_for(lambda: len(lane.upstream.requests) == asked, "no further call is made", for_s=2.0)


@pytest.mark.parametrize("how", WAYS)
def test_a_batch_of_scrapes_ends_with_the_key(gateway: Gateway, site: Site, how: str) -> None:
    key = gateway.create_key()
    caller = caller_of(gateway, key)

    def read() -> int:
        return sum(times for path, times in site.asked().items() if path.startswith("/slow/"))

    before = read()
    urls = [site.url(f"/slow/{number}?s=0.3&way={how[:4]}") for number in range(1, 200)]
    begun = caller.post("/api/batch/scrape", json={"urls": urls})
    assert begun.is_success, begun.text
    eventually(lambda: read() >= before + 2, "some pages are read", within_s=30)
    end_key(gateway, key, how)
    gone_s = time.monotonic()
    eventually(lambda: time.monotonic() - gone_s > 4.0, "the key is gone for some seconds")
    count = read()
    holds_for(lambda: read() == count, "no further page is read", for_s=2.0)
