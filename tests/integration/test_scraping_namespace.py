"""In a network of our own, where every forbidden address has a listener: pages, robots.txt, sitemaps,
redirects and what a browser's page asks for. None may get a single byte.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.test_webhook_namespace import HOSTS
from tests.support.chromium import needs_chromium
from tests.support.namespace import needs_namespace, run_in_namespace

PROGRAM = """
import asyncio, json, socket, sys, tempfile
from pathlib import Path

from fairlead.net.egress import Egress
from fairlead.scrape.browser.process import Browser
from fairlead.scrape.browser.reader import Renderer
from fairlead.scrape.fetch.fetcher import Fetcher, FetchFailed
from fairlead.scrape.fetch.politeness import Politeness
from fairlead.scrape.requests.page import ScrapeOptions
from fairlead.scrape.browser.proxy import GuardedProxy
from fairlead.scrape.map.sitemap import sitemap_urls

# 203.0.113.9 is the site; every other address is forbidden ground.
SITE = "203.0.113.9"
turns = {}
NAMES = {
    "site.test": [[SITE]], "loop.test": [["127.0.0.1"]], "private.test": [["10.0.0.5"]],
    "meta.test": [["169.254.169.254"]], "mixed.test": [[SITE, "10.0.0.5"]], "six.test": [["::1"]],
    "mapped.test": [["::ffff:10.0.0.5"]], "moving.test": [[SITE], ["10.0.0.5"]],
}
real = socket.getaddrinfo
def look_up(host, port, *rest, **more):
    if host in NAMES:
        answers = NAMES[host]
        turn = turns[host] = turns.get(host, -1) + 1
        chosen = answers[min(turn, len(answers) - 1)]
        return [found for one in chosen for found in real(one, port, *rest, **more)]
    if isinstance(host, str) and host.endswith(".test"):
        raise socket.gaierror
    return real(host, port, *rest, **more)
socket.getaddrinfo = look_up

FORBIDDEN = json.loads(sys.argv[1])
seen, asked = [], []

def body_of(path):
    if path == "/robots.txt":
        lines = "".join(f"Sitemap: http://{host}/sitemap.xml\\n" for host in FORBIDDEN)
        return "text/plain", "User-agent: *\\nAllow: /\\n" + lines
    if path == "/page":
        tags = "".join(f"<img src='http://{h}/i'><iframe src='http://{h}/f'></iframe><script src='http://{h}/s'></script>"
                       for h in FORBIDDEN)
        calls = "".join(f"fetch('http://{h}/c', {{mode: 'no-cors'}}).catch(() => 0);new WebSocket('ws://{h}/w');"
                        "navigator.sendBeacon('http://%s/b', 'x');" % h for h in FORBIDDEN)
        return "text/html", f"<title>Page</title><p id=here>here</p>{tags}<script>{calls}</script>"
    return "text/html", "<title>Site</title>ok"

async def serve(reader, writer):
    address = writer.get_extra_info("sockname")[0]
    try:
        head = await reader.readuntil(b"\\r\\n\\r\\n")
    except asyncio.IncompleteReadError:
        head = b""
    if address != SITE:
        seen.append([address, head[:60].decode("latin-1")])
    else:
        path = head.split(b" ")[1].decode()
        asked.append(path)
        if path.startswith("/to?"):
            writer.write(f"HTTP/1.1 302 Found\\r\\nlocation: {path[4:]}\\r\\ncontent-length: 0\\r\\n\\r\\n".encode())
        else:
            kind, body = body_of(path)
            writer.write(f"HTTP/1.1 200 OK\\r\\ncontent-type: {kind}\\r\\ncontent-length: {len(body)}\\r\\n"
                         f"connection: close\\r\\n\\r\\n{body}".encode())
    await writer.drain()
    writer.close()

async def outcome(work):
    try:
        await work
        return "read"
    except FetchFailed as failure:
        return failure.code

async def main():
    for family, host in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        listener = socket.socket(family)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, 80))
        await asyncio.start_server(serve, sock=listener)
    # The site's own network is documentation space, so it is opened; what it leads to is not.
    egress = Egress("203.0.113.0/24")
    fetcher = Fetcher(egress)
    told = {}
    told["open"] = await outcome(fetcher.fetch("http://site.test/"))
    names = [name for name in NAMES if name not in ("site.test", "moving.test")]
    for host in [h for h in FORBIDDEN if "@" not in h and "\\\\" not in h] + names:
        told[f"page {host}"] = await outcome(fetcher.fetch(f"http://{host}/"))
    for host in FORBIDDEN + names:
        told[f"redirect {host}"] = await outcome(fetcher.fetch(f"http://site.test/to?http://{host}/"))
    first = await outcome(fetcher.fetch("http://moving.test/"))
    await fetcher.close()
    told["rebound"] = [first, await outcome(fetcher.fetch("http://moving.test/"))]
    politeness = Politeness(fetcher)
    for host in names:
        rules = await politeness.rules(f"http://{host}/")
        told[f"robots {host}"] = "refused" if rules.unread else "read"
    class Reading:
        pass
    reading = Reading()
    reading.fetcher, reading.politeness = fetcher, politeness
    told["sitemaps"] = await sitemap_urls(reading, "http://site.test/", 100)
    if sys.argv[2] == "browser":
        browser = Browser(egress)
        renderer = Renderer(browser)
        options = ScrapeOptions.model_validate(
            {"actions": [{"type": "wait", "timeout": 1500}], "waitForSelector": "#here"}
        )
        told["browser"] = await outcome(renderer.fetch("http://site.test/page", options))
        for host in ("10.0.0.5", "169.254.169.254", "[::1]", "private.test"):
            told[f"browser redirect {host}"] = await outcome(
                renderer.fetch(f"http://site.test/to?http://{host}/", options)
            )
        await browser.close()
    before = list(seen)
    # The listeners are there.
    reader, writer = await asyncio.open_connection("10.0.0.5", 80)
    writer.write(b"GET /proof HTTP/1.1\\r\\n\\r\\n")
    await reader.read()
    writer.close()
    await politeness.close()
    await fetcher.close()
    print(json.dumps({"told": told, "before": before, "seen": seen, "asked": asked}))

asyncio.run(main())
"""


def run(mode: str) -> Any:
    addresses = ("10.0.0.5", "203.0.113.9", "169.254.169.254")
    return run_in_namespace(addresses, PROGRAM, json.dumps(HOSTS), mode, timeout_s=180)


def check(report: Any) -> None:
    told = report["told"]
    assert told["open"] == "read"
    # What is no name and no address, such as `127.0.0.1.`, leads nowhere.
    pages = {name.removeprefix("page "): told[name] for name in told if name.startswith("page ")}
    assert set(pages.values()) <= {"forbidden_address", "unreachable"}
    assert {code for name, code in pages.items() if name.endswith(".test")} == {"forbidden_address"}
    redirected = {told[name] for name in told if name.startswith("redirect ")}
    assert redirected <= {"forbidden_address", "redirects"}
    assert told["rebound"] == ["read", "forbidden_address"]
    assert {told[name] for name in told if name.startswith("robots ")} == {"refused"}
    assert told["sitemaps"] == []
    assert report["before"] == []
    assert [address for address, _ in report["seen"]] == ["10.0.0.5"]


@needs_namespace
def test_no_forbidden_listener_sees_a_byte_of_a_fetch() -> None:
    check(run("fetch"))


@needs_namespace
@needs_chromium
def test_no_forbidden_listener_sees_a_byte_of_what_a_browsers_page_asks_for() -> None:
    pytest.importorskip("playwright")
    report = run("browser")
    check(report)
    assert report["told"]["browser"] == "read"
    redirects = {value for name, value in report["told"].items() if "browser redirect" in name}
    assert "read" not in redirects
    assert "/page" in report["asked"]
