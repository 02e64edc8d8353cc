"""Webhooks of crawls through the whole gateway: signed, told once, and whole after `kill -9`."""

from __future__ import annotations

import os
import signal
from collections import Counter
from typing import Any

import httpx
import pytest
import standardwebhooks

from tests.support.listener import Listener, Received
from tests.support.polling import eventually, holds_for
from tests.support.processes import Gateway, expect
from tests.support.site import Site


def crawl(gateway: Gateway, caller: httpx.Client, url: str, webhook: str, **fields: Any) -> Any:
    body = {"url": url, "webhook": webhook, "crawlEntireDomain": True, **fields}
    started = expect(caller.post("/api/crawl", json=body), 200)
    gateway.canaries.append(started["webhookSecret"])
    return started


def types(got: list[Received]) -> Counter[str]:
    return Counter(one.event["type"] for one in got)


def verify(got: list[Received], secret: str) -> None:
    for one in got:
        standardwebhooks.Webhook(secret).verify(one.body, one.headers)


def test_a_crawl_delivers_signed_events(
    gateway: Gateway, caller: httpx.Client, site: Site, listener: Listener
) -> None:
    started = crawl(gateway, caller, site.url("/pages/0"), f"{listener.url}/flaky/0", limit=6)
    other = crawl(gateway, caller, site.url("/empty"), f"{listener.url}/ok")
    eventually(lambda: len(listener.received()) == 8 + 3, "all events of both", within_s=30)
    got = listener.received("/flaky/0")
    verify(got, started["webhookSecret"])
    assert types(got) == {"crawl.started": 1, "crawl.page": 6, "crawl.completed": 1}
    assert {one.event["data"]["crawlId"] for one in got} == {started["id"]}
    shown = expect(caller.get(f"/api/crawl/{started['id']}"), 200)
    assert {one.event["data"]["url"] for one in got if one.event["type"] == "crawl.page"} == {
        page["url"] for page in shown["jobs"]
    }
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        verify(got, other["webhookSecret"])
    # A crawl's listener is nobody's subscription.
    assert expect(gateway.admin.get("/api/webhooks"), 200)["total"] == 0
    gateway.assert_keeps_secrets()


def test_a_cancelled_crawl_tells_it_once(
    gateway: Gateway, caller: httpx.Client, site: Site, listener: Listener
) -> None:
    started = crawl(
        gateway,
        caller,
        site.url("/slow/1?s=0.4"),
        f"{listener.url}/ok",
        limit=30,
        crawlOptions={"maxConcurrentCrawlers": 1},
    )
    eventually(lambda: types(listener.received())["crawl.page"], "a page", within_s=20)
    path = f"/api/crawl/{started['id']}"
    for _ in range(3):
        assert expect(caller.delete(path), 200)["status"] == "cancelled"
    pages = expect(caller.get(path), 200)["progress"]["completed"]
    expected = {"crawl.started": 1, "crawl.page": pages, "crawl.cancelled": 1}
    eventually(lambda: types(listener.received()) == expected, "it is told", within_s=20)
    holds_for(lambda: types(listener.received()) == expected, "and no more", for_s=1.5)
    got = listener.received()
    verify(got, started["webhookSecret"])
    (end,) = (one.event["data"] for one in got if one.event["type"] == "crawl.cancelled")
    assert end == {
        "crawlId": started["id"],
        "url": site.url("/slow/1?s=0.4"),
        "status": "cancelled",
        "total": pages,
        "completed": pages,
        "failed": 0,
    }


def test_kill_in_the_middle_of_a_crawl_loses_no_event(
    gateway: Gateway, caller: httpx.Client, site: Site, listener: Listener
) -> None:
    """Control dies while pages are read and while deliveries are on their way."""
    listener.answer("stall")
    started = crawl(
        gateway,
        caller,
        site.url("/slow/1?s=0.31"),
        f"{listener.url}/switch",
        limit=16,
        crawlOptions={"maxConcurrentCrawlers": 2},
    )
    path = f"/api/crawl/{started['id']}"
    eventually(
        lambda: expect(caller.get(path), 200)["progress"]["completed"] >= 4,
        "some pages are read",
        within_s=30,
    )
    eventually(listener.received, "the first try", within_s=10)
    os.kill(gateway.control.pid, signal.SIGKILL)
    listener.answer("204")
    eventually(gateway.manages, "control is back", within_s=30, every_s=0.1)
    gateway.remember_processes()
    wanted = 1 + 16 + 1

    def told() -> bool:
        return len({one.message_id for one in listener.received()}) >= wanted

    eventually(told, "everything is told", within_s=60, every_s=0.1)
    got = listener.received()
    verify(got, started["webhookSecret"])
    bodies: dict[str, set[bytes]] = {}
    for one in got:
        bodies.setdefault(one.message_id, set()).add(one.body)
    # A repetition has the id and the bytes of the first.
    assert all(len(each) == 1 for each in bodies.values())
    by_id = {one.message_id: one for one in got}
    assert types(list(by_id.values())) == {
        "crawl.started": 1,
        "crawl.page": 16,
        "crawl.completed": 1,
    }
    assert len(got) > len(by_id), "what was on its way came again"
    shown = expect(caller.get(path), 200)
    assert Counter(page["url"] for page in shown["jobs"]) == Counter(
        one.event["data"]["url"] for one in by_id.values() if one.event["type"] == "crawl.page"
    )
