"""A crawl of a whole site returns exactly what it should, also when control is killed in the middle of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.chromium import needs_chromium
from tests.support.crawl_site import BY_BROWSER, DEPTH, EXPECTED
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.site import BRISK, READS_LOOPBACK, Site

WIDTH = 4


@pytest.fixture
def site() -> Iterator[Site]:
    """One for each test: how often each page was asked for is counted."""
    with Site() as running:
        yield running


def start(caller: httpx.Client, site: Site, **fields: Any) -> str:
    body = {
        "url": site.url("/town"),
        "crawlEntireDomain": True,
        "maxDepth": DEPTH,
        "skipSitemaps": False,
        "limit": 1000,
        "includePaths": ["^/town", "^/secret/town"],
        "crawlOptions": {"maxConcurrentCrawlers": WIDTH},
        "scrapeOptions": {"extractorFormat": "text", "onlyMainContent": False},
        **fields,
    }
    return str(expect(caller.post("/api/crawl", json=body), 200)["id"])


def look(caller: httpx.Client, job_id: str) -> Any:
    """The job's status, or nothing while control is away."""
    try:
        answer = caller.get(f"/api/crawl/{job_id}?limit=1")
    except httpx.HTTPError:
        return None
    if answer.status_code != 200:
        return None
    progress = answer.json()["progress"]
    assert progress["total"] == progress["completed"] + progress["failed"] + progress["pending"]
    return answer.json()


def whole(caller: httpx.Client, job_id: str, within_s: float = 90) -> list[dict[str, Any]]:
    """Every page of the job once it has ended, by the addresses that the API names as the next."""
    ended = eventually(
        lambda: (s := look(caller, job_id)) and s["status"] != "scraping" and s,
        "the end",
        within_s=within_s,
        every_s=0.1,
    )
    assert ended["status"] == "completed"
    pages: list[dict[str, Any]] = []
    path = f"/api/crawl/{job_id}?limit=25"
    while path:
        answer = expect(caller.get(path), 200)
        pages += answer["jobs"]
        path = answer.get("next", "")
    assert [int(page["id"]) for page in pages] == list(range(1, len(pages) + 1))
    assert ended["progress"]["total"] == len(pages)
    return pages


def check(caller: httpx.Client, site: Site, job_id: str, expected: dict[str, str]) -> None:
    pages = whole(caller, job_id)
    errors = {
        error["url"]: error["code"]
        for error in expect(caller.get(f"/api/crawl/{job_id}/errors"), 200)["errors"]
    }
    found: dict[str, str] = {}
    for page in pages:
        path = page["url"].removeprefix(site.base)
        assert path not in found, f"{path} came twice"
        if page["status"] == "failed":
            found[path] = f"!{errors.pop(page['url'])}"
        else:
            word = expected.get(path, "")
            content = page["document"]["content"]
            found[path] = word if word in content and bool(word) == bool(content) else content[:200]
    assert found == expected
    assert errors == {}


def test_a_whole_site_is_crawled_exactly(caller: httpx.Client, site: Site) -> None:
    check(caller, site, start(caller, site), EXPECTED)
    asked = site.asked()
    assert not [path for path in asked if path.startswith(("/wild", "/town/map", "/secret"))]
    # Its depth is that of the shortest way, whichever page came first.
    for depth in (0, 1, 2):
        shallow = whole(caller, start(caller, site, maxDepth=depth, skipSitemaps=True))
        paths = {page["url"].removeprefix(site.base) for page in shallow}
        assert len([path for path in paths if path.startswith("/town/day")]) == (0, 1, 3)[depth]


def killed(gateway: Gateway, caller: httpx.Client, site: Site, times: int) -> int:
    """Crawls the site while control is killed as often as that; how often it was."""
    job_id = start(caller, site)
    count, reached = 0, 0
    while count < times:
        status = eventually(
            lambda least=reached + 2: (  # type: ignore[misc]
                (s := look(caller, job_id))
                and (s["status"] != "scraping" or s["progress"]["completed"] >= least)
                and s
            ),
            "more pages",
            within_s=60,
            every_s=0.02,
        )
        if status["status"] != "scraping":
            break
        reached = status["progress"]["completed"]
        os.kill(gateway.control.pid, signal.SIGKILL)
        count += 1
        eventually(gateway.manages, "control is back", within_s=60, every_s=0.05)
        gateway.remember_processes()
        kept = eventually(lambda: look(caller, job_id), "it is told", within_s=30)
        assert kept["progress"]["completed"] >= reached
    check(caller, site, job_id, EXPECTED)
    asked = site.asked()
    # A page that was stored is not asked for again; what was under way may be, and a cut one is by itself.
    again = sum(
        number - 1 for path, number in asked.items() if path.startswith("/town") and number > 1
    )
    ways = sum(
        number
        for path, number in asked.items()
        if path in {"/town/moved", "/town/round", "/town/cut"}
    )
    assert again <= count * WIDTH + ways + asked["/town/item/3"]
    return count


def test_a_whole_site_is_crawled_exactly_also_when_control_is_killed(
    change_settings: Callable[..., None], gateway: Gateway, caller: httpx.Client, site: Site
) -> None:
    change_settings(scrapeHostDelayMs=40)
    assert killed(gateway, caller, site, 2) == 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_whole_site_is_crawled_exactly_also_when_control_is_killed_twenty_times(
    gateways: Callable[..., Gateway], site: Site
) -> None:
    gateway = gateways(**READS_LOOPBACK)
    expect(gateway.admin.patch("/api/settings", json={**BRISK, "scrapeHostDelayMs": 150}), 200)
    caller = gateway.client(headers={"X-API-Key": gateway.key})
    assert killed(gateway, caller, site, 20) >= 15


@needs_chromium
def test_a_crawl_by_the_browser_sees_what_scripts_make(caller: httpx.Client, site: Site) -> None:
    pytest.importorskip("playwright")
    job_id = start(
        caller,
        site,
        url=site.url("/town/shop"),
        maxDepth=1,
        skipSitemaps=True,
        scrapeOptions={"useBrowser": True, "extractorFormat": "text"},
    )
    check(caller, site, job_id, BY_BROWSER)
