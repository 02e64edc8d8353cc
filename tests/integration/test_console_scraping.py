"""Scraping from the console, through the whole gateway: a page that is read, a crawl, a saved site; all for a key."""

from __future__ import annotations

import time

import httpx

from tests.integration.scraping.test_sites import FIELDS, OLD
from tests.support.gateway_pool import GatewayPool
from tests.support.owner import OWNER_PASSWORD
from tests.support.processes import Gateway, expect
from tests.support.site import BRISK, READS_LOOPBACK, Site


def test_the_console_reads_pages_crawls_and_runs_sites_for_a_key(
    gateway_pool: GatewayPool,
) -> None:
    with (
        gateway_pool.lease(
            settings=BRISK, INITIAL_PASSWORD=OWNER_PASSWORD, **READS_LOOPBACK
        ) as gateway,
        Site() as site,
    ):
        read_crawl_and_run(gateway, site)


def read_crawl_and_run(gateway: Gateway, site: Site) -> None:
    key = gateway.create_key(name="of the console")
    caller = gateway.client(headers={"X-API-Key": key["key"]}, timeout=90.0)
    body = {
        "name": "market",
        "url": site.url("/market/{town}"),
        "params": {"town": None},
        "fields": FIELDS,
        "cssSchema": OLD,
        "sampleParams": {"town": "york"},
    }
    saved = expect(caller.post("/api/sites", json=body), 201)["site"]

    def post(path: str, **fields: str) -> httpx.Response:
        return gateway.admin.post(
            f"/dashboard/scraping{path}",
            data={"key": key["id"], **fields},
            headers={"origin": gateway.url},
        )

    page = post("/sites", act="run", site=saved["id"])
    assert page.status_code == 200
    assert "Lamp of york" in page.text
    assert "3 records, healthy" in page.text
    asked = post("/sites", act="delete", site=saved["id"])
    assert "Delete the site market?" in asked.text
    post("/sites", act="delete", site=saved["id"], confirmed="yes")
    assert expect(caller.get("/api/sites"), 200)["count"] == 0

    read = post("", act="try", url=site.url("/market/york"), extractorFormat="text")
    assert read.status_code == 200
    assert "Lamp of york" in read.text
    assert f'value="{site.url("/market/york")}"' in read.text

    begun = post("/crawls/new", act="crawl", url=site.url("/market/york"), limit="2")
    assert begun.status_code == 303
    place = begun.headers["location"].partition("?")[0]
    until = time.monotonic() + 30
    while "completed" not in gateway.admin.get(place, params={"key": key["id"]}).text:
        assert time.monotonic() < until, "the crawl did not end"
        time.sleep(0.1)
    archive = gateway.admin.get(f"{place}/pages.zip", params={"key": key["id"]})
    assert archive.content.startswith(b"PK")
    assert archive.headers["content-disposition"].startswith("attachment")
