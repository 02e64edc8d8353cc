"""Live pages: read once for all tabs, when something has changed, and not otherwise."""

from __future__ import annotations

import asyncio
import re
import zlib

import orjson
import pytest

from fairlead.dashboard.api import Api
from fairlead.dashboard.live import SPACING_S, LivePages, compressed, stream
from fairlead.errors import Overloaded
from fairlead.store.arrivals import Arrivals
from tests.contract.test_console import addresses, fill_log, make_delivery, make_key, make_webhook
from tests.contract.test_console import admin as admin  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.anyio

WITHIN_S = 10.0


async def settled(pages: LivePages) -> int:
    """The version when nothing has changed for longer than changes are gathered."""
    version = pages.version
    while (later := await pages.change(version, 2 * SPACING_S)) != version:
        version = later
    return version


async def test_a_change_of_state_usage_or_a_worker_wakes_open_pages(control) -> None:
    services = control.app.state.services
    pages = services.singleton(LivePages, LivePages)
    pages.open()
    try:
        version = await settled(pages)
        await make_key(control, "wakes")
        assert await pages.change(version, WITHIN_S) > version
        version = await settled(pages)
        await fill_log(control)
        assert await pages.change(version, WITHIN_S) > version
        version = await settled(pages)
        services.singleton(Arrivals, Arrivals).announce()
        assert await pages.change(version, WITHIN_S) > version
    finally:
        pages.close()
    running = {each.name: each.running for each in services.tasks()}
    assert running["dashboard.live"] is True


async def test_tabs_share_what_is_read_and_nothing_is_read_without_a_change() -> None:
    pages, reads = LivePages(), 0

    async def make() -> dict[str, str]:
        nonlocal reads
        reads += 1
        return {"now": f"<p>{reads}</p>", "same": "<p>as ever</p>"}

    async def read() -> dict[str, bytes]:
        return await pages.events(("home",), make)

    tabs = []
    for _ in range(10):
        pages.open()
        tabs.append(stream(pages, read))
    for tab in tabs:
        assert await anext(tab) == b"retry: 2000\n\n"
        chunk = await anext(tab)
        assert b'"id":"now","html":"<p>1</p>"' in chunk
        assert b'"id":"same"' in chunk, "one chunk has all that changed"
    assert reads == 1
    first, second = await read(), await read()
    assert first["now"] is second["now"], "serialised once for all tabs"
    waiting = [asyncio.ensure_future(anext(tab)) for tab in tabs]
    done, _ = await asyncio.wait(waiting, timeout=0.1)
    assert not done, "nothing changed, so nothing is said"
    pages.announce()
    for event in await asyncio.gather(*waiting):
        assert event == b'event: part\ndata: {"id":"now","html":"<p>2</p>"}\n\n', (
            "only the part that has changed"
        )
    assert reads == 2
    for tab in tabs:
        await tab.aclose()
    assert pages.streams == 0


async def test_a_compressed_stream_is_read_event_by_event() -> None:
    pages, reads = LivePages(), 0

    async def make() -> dict[str, str]:
        nonlocal reads
        reads += 1
        return {"now": f"<p>{reads}</p>" + "<td>a cell that stays</td>" * 500}

    async def read() -> dict[str, bytes]:
        return await pages.events(("home",), make)

    pages.open()
    tab, unpacked = compressed(stream(pages, read)), zlib.decompressobj(wbits=31)
    assert unpacked.decompress(await anext(tab)) == b"retry: 2000\n\n"
    first = await anext(tab)
    assert unpacked.decompress(first).endswith(b'"}\n\n'), "the whole event, before the next one"
    pages.announce()
    second = await anext(tab)
    event = unpacked.decompress(second)
    assert event.startswith(b'event: part\ndata: {"id":"now","html":"<p>2</p>')
    assert len(second) < len(event) / 20
    await tab.aclose()
    assert pages.streams == 0, "the stream below has ended, too"


async def test_the_live_stream_of_a_browser_is_compressed(control, admin, monkeypatch) -> None:
    monkeypatch.setattr("fairlead.dashboard.live.LASTS_S", 0.01)
    for coding, expected in (("gzip, br", "gzip"), ("identity", None)):
        answer = await control.client.get(
            "/dashboard/live",
            params={"at": "/dashboard"},
            headers=admin | {"accept-encoding": coding},
        )
        assert answer.headers.get("content-encoding") == expected
        assert answer.headers["vary"] == "accept-encoding"
        assert "event: part\n" in answer.text


async def test_there_is_a_bound_on_streams() -> None:
    pages = LivePages()
    for _ in range(64):
        pages.open()
    with pytest.raises(Overloaded):
        pages.open()
    pages.close()
    pages.open()


async def test_a_page_that_could_not_be_read_is_read_again() -> None:
    pages, answers = LivePages(), [{}, {"now": "<p>well</p>"}]

    async def make() -> dict[str, str]:
        return answers.pop(0)

    assert await pages.events(("home",), make) == {}
    assert list(await pages.events(("home",), make)) == ["now"]


async def test_days_that_are_over_are_read_once_for_all_consoles(control, monkeypatch) -> None:
    asked: list[dict[str, object]] = []
    send = Api.send

    async def counted(self, method, path, body=None, query=None):
        if path == "/api/usage/history" and query["groupBy"] == "day":
            asked.append(query)
        return await send(self, method, path, body, query)

    monkeypatch.setattr(Api, "send", counted)
    # Half a minute may end meanwhile.
    monkeypatch.setattr("fairlead.dashboard.pages.home.PAST_HOLDS_MS", 10**15)
    await fill_log(control)
    for _ in range(10):
        answer = await control.client.get("/dashboard?window=30d")
        assert answer.status_code == 200
    past = [each for each in asked if "to" in each]
    assert len(past) == 1
    assert len(asked) == 11, "today is read every time"


def without_figures(text: str) -> str:
    """The text without numbers, which move with the clock while a page is read twice."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\d.,:]*", "#", text))


async def test_every_live_part_is_the_same_on_the_page_and_over_the_stream(
    control, admin, monkeypatch
) -> None:
    monkeypatch.setattr("fairlead.dashboard.live.LASTS_S", 0.01)
    seen = 0
    for page, address in (await addresses(control)).items():
        for is_last in (False, False, True):
            shown = (await control.client.get(address, headers=admin)).text
            if "data-live-page" not in shown:
                break
            answer = await control.client.get(
                "/dashboard/live", params={"at": address}, headers=admin
            )
            assert answer.status_code == 200, page
            events = re.findall(r"^event: part\ndata: (.*)$", answer.text, re.MULTILINE)
            assert events, page
            parts = [without_figures(event["html"]) for event in map(orjson.loads, events)]
            # Something may happen between the two, as a delivery that is tried.
            if all(part in without_figures(shown) for part in parts):
                break
            assert not is_last, page
        if "data-live-page" not in shown:
            continue
        for event in map(orjson.loads, events):
            assert "/dashboard/live" not in event["html"], (page, event["id"])
            seen += 1
    assert seen > 15


async def test_a_delivery_is_opened_and_sent_again_from_the_part_that_the_stream_sent(
    control, admin, monkeypatch
) -> None:
    monkeypatch.setattr("fairlead.dashboard.live.LASTS_S", 0.01)
    webhook = await make_webhook(control)
    delivery = await make_delivery(control, webhook)
    address = f"/dashboard/webhooks/{webhook}"
    answer = await control.client.get("/dashboard/live", params={"at": address}, headers=admin)
    (event,) = re.findall(r"^event: part\ndata: (.*)$", answer.text, re.MULTILINE)
    part = orjson.loads(event)["html"]
    (href,) = set(re.findall(r'href="([^"]*/deliveries/[^"]*)"', part))
    assert href == f"{address}/deliveries/{delivery}"
    assert (await control.client.get(href, headers=admin)).status_code == 200
    for place in re.findall(r'action="([^"]*)"', part):
        assert place == address
