"""`POST /v1/web/fetch`: pages for whoever calls models, with the guards and quotas of scraping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.site import Site

FETCH = "/v1/web/fetch"


def test_a_page(caller: httpx.Client, site: Site) -> None:
    url = site.url("/article")
    told = expect(caller.post(FETCH, json={"url": url}), 200)
    assert (told["object"], told["url"], told["format"]) == ("web.page", url, "markdown")
    assert told["title"] == "On harbours"
    assert "# On harbours" in told["content"]
    assert told["metadata"]["description"] == "Why harbours silt up."
    html = expect(caller.post(FETCH, json={"url": url, "format": "html"}), 200)
    assert "<h1>" in html["content"]
    bare = {"url": url, "format": "links", "include_metadata": False}
    links = expect(caller.post(FETCH, json=bare), 200)
    assert "metadata" not in links
    assert "content" not in links
    assert site.url("/about") in [link["url"] for link in links["links"]]


def test_pages_behind_it(
    caller: httpx.Client, site: Site, change_settings: Callable[..., None]
) -> None:
    change_settings(scrapeHostDelayMs=0, scrapeHostConcurrency=32)
    near = expect(caller.post(FETCH, json={"url": site.url("/pages/0"), "depth": 1}), 200)
    far = expect(caller.post(FETCH, json={"url": site.url("/pages/0"), "depth": 2}), 200)
    assert 0 < len(near["pages"]) <= len(far["pages"]) <= 9
    assert all(page["url"].startswith(site.url("/")) for page in far["pages"])
    assert len({page["url"] for page in far["pages"]}) == len(far["pages"])


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "url"),
        ({"url": 5}, "url"),
        ({"url": "https://x.example/", "form": "html"}, "form"),
        ({"url": "https://x.example/", "format": "pdf"}, "format"),
        ({"url": "https://x.example/", "depth": 3}, "depth"),
        ({"url": "https://x.example/", "depth": "1"}, "depth"),
        ({"url": "https://x.example/", "include_metadata": 1}, "include_metadata"),
    ],
)
def test_bad_input(caller: httpx.Client, body: dict[str, Any], param: str) -> None:
    answer = caller.post(FETCH, json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"] == param


def test_guards_and_quotas(
    gateway: Gateway, caller: httpx.Client, site: Site, change_settings: Callable[..., None]
) -> None:
    """Private addresses, `allowedEndpoints` and the day's calls; a page that fails says why."""
    for url in ("http://10.0.0.1/", "http://169.254.169.254/", "file:///etc/passwd"):
        assert caller.post(FETCH, json={"url": url}).status_code == 400
    missing = caller.post(FETCH, json={"url": site.url("/no-such-page")})
    assert missing.status_code == 400
    assert "404" in missing.json()["error"]["message"]
    chats = gateway.create_key(allowedEndpoints=["chat"])["key"]
    refused = gateway.client(headers={"X-API-Key": chats}).post(FETCH, json={"url": site.url("/")})
    assert refused.status_code == 403
    reads = gateway.create_key(allowedEndpoints=["web-fetch"])
    assert not [one for one in reads["ineffective"] if "web-fetch" in one]
    reader = gateway.client(headers={"X-API-Key": reads["key"]}, timeout=60)
    expect(reader.post(FETCH, json={"url": site.url("/article")}), 200)
    change_settings(scrapeRequestsPerDay=1)
    # Settings are read anew within some seconds.
    full = {"url": site.url("/article")}
    eventually(lambda: reader.post(FETCH, json=full).status_code == 429, "the day is used up")
    assert gateway.client().post(FETCH, json={"url": site.url("/")}).status_code == 401


def test_fifty_at_once_get_what_is_left_of_the_day(
    gateway: Gateway, site: Site, change_settings: Callable[..., None]
) -> None:
    """A page costs no money; what its reader has is a day's calls, and each takes one before it is read."""
    change_settings(scrapeRequestsPerDay=1, scrapeHostDelayMs=0)
    probe, key = (gateway.create_key(allowedEndpoints=["web-fetch"])["key"] for _ in range(2))
    full = {"url": site.url("/article")}
    first = gateway.client(headers={"X-API-Key": probe}, timeout=60)
    eventually(lambda: first.post(FETCH, json=full).status_code == 429, "the limit is in force")

    def ask(number: int) -> int:
        with gateway.client(headers={"X-API-Key": key}, timeout=60) as client:
            url = site.url(f"/article?number={number}")
            return client.post(FETCH, json={"url": url}).status_code

    with ThreadPoolExecutor(50) as pool:
        statuses = Counter(pool.map(ask, range(50)))
    assert statuses == {200: 1, 429: 49}
