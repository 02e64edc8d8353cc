"""The guard where sockets are made: every address of a name is judged, and a judged one is dialled."""

from __future__ import annotations

import socket
from typing import Any

import httpx
import pytest

from fairlead.errors import Refusal
from fairlead.net.egress import AddressForbidden, Egress
from fairlead.scrape.browser.process import Browser
from fairlead.scrape.browser.proxy import GuardedProxy
from fairlead.scrape.browser.reader import Renderer
from fairlead.scrape.fetch.fetcher import Fetcher, FetchFailed
from fairlead.scrape.fetch.transport import GuardedTransport
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.settings.serve import ServeSettings
from tests.support.site_browser import PASSWORD

pytestmark = pytest.mark.anyio


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[list[str]]]:
    """What names resolve to, one answer after the other; the last stays."""
    table: dict[str, list[list[str]]] = {}
    real = socket.getaddrinfo

    def scripted(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        if host not in table:
            return real(host, port, *args, **options)
        answers = table[host]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in found]

    monkeypatch.setattr(socket, "getaddrinfo", scripted)
    return table


def test_networks_are_allowed_by_name_and_metadata_never() -> None:
    guard = Egress("127.0.0.0/8, 10.1.0.0/16,fc00::/7,169.254.0.0/16,fe80::/10")
    for address in (
        "127.0.0.1",
        "127.255.0.1",
        "10.1.2.3",
        "fc00::1",
        "::ffff:127.0.0.1",
        "8.8.8.8",
    ):
        assert guard.allows(address), address
    for address in (
        "10.2.0.1",
        "192.168.0.1",
        "::1",
        "169.254.169.254",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:ec2::254",
        "100.100.100.200",
        "0.0.0.0",
        "nonsense",
        "",
    ):
        assert not guard.allows(address), address
    assert not Egress().allows("127.0.0.1")


def test_a_list_of_networks_that_is_none_does_not_start() -> None:
    for wrong in ("10.0.0.1/8", "nonsense", "10.0.0.0/8;11.0.0.0/8"):
        with pytest.raises(Refusal) as refusal:
            ServeSettings.load(allow_private_fetch=wrong)
        assert "FAIRLEAD_ALLOW_PRIVATE_FETCH" in refusal.value.sentence


async def test_a_name_that_mixes_addresses_is_not_dialled(names, site) -> None:
    names["mixed.example"] = [["127.0.0.1", "10.0.0.1"]]
    before = sum(site.asked().values())
    with pytest.raises(AddressForbidden):
        await Egress("127.0.0.0/8").resolve("mixed.example", 80)
    async with httpx.AsyncClient(transport=GuardedTransport(Egress("127.0.0.0/8"))) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"http://mixed.example:{site.port}/article")
    assert sum(site.asked().values()) == before


async def test_a_name_without_an_address_is_a_host_out_of_reach(names, site) -> None:
    names["nowhere.example"] = [[]]
    fetcher = Fetcher(Egress("127.0.0.0/8"))
    with pytest.raises(FetchFailed) as failure:
        await fetcher.fetch("http://nowhere.example/")
    assert failure.value.code == "unreachable"
    await fetcher.close()


async def test_a_name_that_changes_is_judged_anew_for_each_connection(names, site) -> None:
    names["moving.example"] = [["127.0.0.1"], ["10.0.0.1"]]
    fetcher = Fetcher(Egress("127.0.0.0/8"))
    first = await fetcher.fetch(f"http://moving.example:{site.port}/article")
    assert first.status == 200
    await fetcher.close()
    with pytest.raises(FetchFailed) as failure:
        await fetcher.fetch(f"http://moving.example:{site.port}/article")
    assert failure.value.code == "forbidden_address"
    await fetcher.close()


async def test_a_redirect_is_judged_like_a_first_request(names, site) -> None:
    names["inner.example"] = [["10.0.0.1"]]
    fetcher = Fetcher(Egress("127.0.0.0/8"))
    with pytest.raises(FetchFailed) as failure:
        await fetcher.fetch(site.url("/inward?to=http://inner.example/"))
    assert failure.value.code == "forbidden_address"
    await fetcher.close()


async def test_the_browsers_proxy_dials_through_the_guard(names, site) -> None:
    names["inner.example"] = [["10.0.0.1"]]
    names["outer.example"] = [["127.0.0.1"]]
    proxy = GuardedProxy(Egress("127.0.0.0/8"))
    await proxy.start()
    address = proxy.address
    try:
        async with httpx.AsyncClient(proxy=address, timeout=10) as client:
            answer = await client.get(f"http://outer.example:{site.port}/article")
            assert "On harbours" in answer.text
            form = {"password": PASSWORD}
            sent = await client.post(f"http://outer.example:{site.port}/door", data=form)
            assert (sent.status_code, sent.headers["location"]) == (303, "/members")
            for url in (
                "http://inner.example/",
                f"http://[::1]:{site.port}/",
                "http://169.254.169.254/latest/",
                "http://outer.example:6379/",
            ):
                assert (await client.get(url)).status_code == 403, url
            with pytest.raises(httpx.ProxyError):
                await client.get("https://inner.example/")
    finally:
        await proxy.close()


async def test_a_browser_is_not_started_for_a_host_that_is_not_dialled(names) -> None:
    names["inner.example"] = [["10.0.0.1"]]
    names["nowhere.example"] = [[]]
    browser = Browser(Egress())
    for host, code in (("inner", "forbidden_address"), ("nowhere", "unreachable")):
        with pytest.raises(FetchFailed) as failure:
            await Renderer(browser).fetch(f"http://{host}.example/", ScrapeOptions())
        assert failure.value.code == code
    assert browser.processes == 0


async def test_cookies_of_a_page_are_not_kept(site) -> None:
    fetcher = Fetcher(Egress("127.0.0.0/8"))
    for _ in range(2):
        echoed = await fetcher.fetch(site.url("/cookie"))
    assert b"cookie: none" in echoed.body
    await fetcher.close()
