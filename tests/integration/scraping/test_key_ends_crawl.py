"""A crawl ends with its key: it reads no page once the key has been gone for a second."""

from __future__ import annotations

import time

import pytest

from tests.support.polling import eventually, holds_for
from tests.support.processes import Gateway, expect
from tests.support.site import Site


@pytest.mark.parametrize("how", ["deleted", "banned"])
def test_no_page_is_read_a_second_after_the_key_is_gone(
    gateway: Gateway, site: Site, how: str
) -> None:
    made = gateway.create_key()
    body = {
        "url": site.url("/slow/1?s=0.2"),
        "crawlEntireDomain": True,
        "limit": 500,
        "crawlOptions": {"maxConcurrentCrawlers": 2},
    }
    with gateway.client(headers={"Authorization": f"Bearer {made['key']}"}) as caller:
        expect(caller.post("/api/crawl", json=body), 200)
    before = pages_read(site)
    eventually(lambda: pages_read(site) >= before + 4, "some pages are read", within_s=30)
    if how == "deleted":
        expect(gateway.admin.delete(f"/api/keys/{made['id']}"), 200)
    else:
        expect(gateway.admin.patch(f"/api/keys/{made['id']}", json={"isBanned": True}), 200)
    gone_s = time.monotonic()
    eventually(lambda: time.monotonic() - gone_s > 1.0, "a second passes")
    read = pages_read(site)
    holds_for(lambda: pages_read(site) == read, "no further page is read", for_s=2.0)


def pages_read(site: Site) -> int:
    return sum(times for path, times in site.asked().items() if path.startswith("/slow/"))
