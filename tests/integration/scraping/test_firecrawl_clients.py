"""Firecrawl's clients for Python and npm, unchanged, through the whole gateway."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.site import Site
from tests.support.upstream import Script, Seen, Upstream, completion, reply

ROOT = Path(__file__).parents[3]
PYTHON = ROOT / ".venv" / "clients" / "bin" / "python"
"""The environment that `make .venv/.stamp-clients` makes."""
NODE = ROOT / "tests" / "support" / "node"
DATA = {"title": "On harbours"}


class DataModel(Upstream):
    """A model that answers everything with the same data."""

    def choose(self, seen: Seen) -> Script:
        return reply(completion(json.dumps(DATA)))


@pytest.fixture
def client_call(
    gateway: Gateway, site: Site, change_settings: Callable[..., None]
) -> Iterator[Callable[[list[str]], dict[str, Any]]]:
    """Runs a program of a client; what it printed."""
    with DataModel() as upstream:
        lane = gateway.add_lane(upstream)
        change_settings(scrapeModel=lane.model, scrapeSearchUrl=site.base)
        key = gateway.create_key(name="firecrawl")["key"]
        given = json.dumps({"url": gateway.url, "key": key, "site": site.base})

        def call(command: list[str]) -> dict[str, Any]:
            done = subprocess.run(
                [*command, given],
                capture_output=True,
                text=True,
                timeout=100,
                check=False,
                cwd=NODE,
            )
            assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
            returned: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
            return returned

        yield call


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="needs `make .venv/.stamp-clients`")
def test_the_python_client_gets_everything(
    gateway: Gateway, site: Site, client_call: Callable[[list[str]], dict[str, Any]]
) -> None:
    returned = client_call([str(PYTHON), str(ROOT / "tests/support/firecrawl_calls.py")])
    scraped = returned["scrape"]
    assert scraped["raw_html"].startswith("<!doctype html>")
    assert scraped["change_tracking"]["changeStatus"] == "new"
    assert scraped["metadata"]["source_url"] == site.url("/article")
    assert scraped["metadata"]["status_code"] == 200
    assert "proxy" in scraped["warning"]
    assert returned["missing"]["kind"] == "BadRequestError"
    assert "The page answered 404." in returned["missing"]["message"]
    assert returned["unknown"] == {
        "kind": "FirecrawlError",
        "status": 404,
        "message": returned["unknown"]["message"],
    }
    assert returned["begun"]["invalid_urls"] == ["http://10.0.0.1/"]
    assert returned["active"]["crawls"][0]["url"].startswith(site.url("/slow/1"))
    assert returned["crawl"]["credits_used"] == 7
    assert returned["extract"]["tokens_used"] == 10
    check_common(returned, site)
    check_settled(gateway)


@pytest.mark.skipif(
    shutil.which("node") is None or not (NODE / "node_modules/@mendable/firecrawl-js").is_dir(),
    reason="needs node and `npm ci` in tests/support/node",
)
def test_the_npm_client_gets_everything(
    gateway: Gateway, site: Site, client_call: Callable[[list[str]], dict[str, Any]]
) -> None:
    returned = client_call(["node", str(NODE / "firecrawl.mjs")])
    scraped = returned["scrape"]
    assert scraped["rawHtml"].startswith("<!doctype html>")
    assert scraped["changeTracking"]["changeStatus"] == "new"
    assert scraped["metadata"]["sourceURL"] == site.url("/article")
    assert scraped["metadata"]["statusCode"] == 200
    assert "lockdown" in scraped["warning"]
    assert returned["missing"]["status"] == 400
    assert returned["missing"]["message"] == "The page answered 404."
    assert returned["unknown"] == {"status": 404, "message": "Crawl not found"}
    assert returned["batch"]["id"]
    assert returned["active"]["crawls"][0]["url"].startswith(site.url("/slow/1"))
    assert returned["crawl"]["creditsUsed"] == 7
    assert returned["extract"]["tokensUsed"] == 10
    check_common(returned, site)
    check_settled(gateway)


def check_common(returned: dict[str, Any], site: Site) -> None:
    """What both clients return under the same names."""
    scraped = returned["scrape"]
    assert scraped["markdown"].startswith("# On harbours")
    assert scraped["html"].startswith("<")
    assert site.url("/about") in scraped["links"]
    assert scraped["images"] == [site.url("/harbour.png")]
    assert scraped["json"] == DATA
    assert scraped["summary"] == json.dumps(DATA)
    assert scraped["metadata"]["title"] == "On harbours"
    assert returned["plain"]["markdown"] == scraped["markdown"]
    assert returned["plain"].get("html") is None
    assert returned["plain"].get("warning") is None
    links = [link["url"] for link in returned["map"]["links"]]
    assert site.url("/article") in links
    assert len(links) <= 10
    first, second = returned["search"]["web"]
    assert first["markdown"].startswith("# On harbours")
    assert second["url"] == site.url("/missing")
    crawl = returned["crawl"]
    assert (crawl["status"], crawl["completed"], crawl["total"]) == ("completed", 7, 7)
    assert len({page["metadata"]["title"] for page in crawl["data"]}) == 7
    assert all(page["markdown"].startswith("# Page ") and page["links"] for page in crawl["data"])
    assert returned["cancelled"] is True
    assert returned["status"]["status"] == "cancelled"
    assert returned["batch"]["status"] == "completed"
    assert len(returned["batch"]["data"]) == 2
    (failed,) = returned["errors"]["errors"]
    assert (failed["url"], failed["error"]) == (site.url("/missing"), "The page answered 404.")
    assert (returned["extract"]["status"], returned["extract"]["data"]) == ("completed", DATA)
    assert returned["parse"]["markdown"] == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert returned["agent"]["status"] == 404
    assert "Firecrawl's agent is not served" in returned["agent"]["message"]


def check_settled(gateway: Gateway) -> None:
    """No job of the client is left."""
    eventually(
        lambda: all(crawl["status"] != "scraping" for crawl in _crawls(gateway)),
        "the cancelled crawl has ended",
    )


def _crawls(gateway: Gateway) -> list[dict[str, Any]]:
    crawls: list[dict[str, Any]] = (
        gateway.client(headers={"X-API-Key": gateway.key}).get("/api/crawl").json()["crawls"]
    )
    return crawls
