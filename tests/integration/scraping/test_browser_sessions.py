"""Browser sessions and what the browser does in scrapes and crawls, through the whole gateway."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.chromium import needs_chromium
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.site import Site
from tests.support.site_browser import FILE, PASSWORD

pytest.importorskip("playwright")
pytestmark = needs_chromium

SESSIONS = "/api/browser/sessions"


@pytest.fixture(autouse=True)
def _sessions_end(caller: httpx.Client) -> Iterator[None]:
    """No test leaves a browser running."""
    yield
    for session in expect(caller.get(SESSIONS), 200)["sessions"]:
        caller.delete(f"{SESSIONS}/{session['id']}")


@pytest.fixture
def caller(gateway: Gateway) -> Iterator[httpx.Client]:
    client = gateway.client(headers={"X-API-Key": gateway.key})
    client.timeout = httpx.Timeout(90)
    yield client
    for session in expect(client.get(SESSIONS), 200)["sessions"]:
        client.delete(f"{SESSIONS}/{session['id']}")


class Session:
    """One session as its owner works in it."""

    def __init__(self, caller: httpx.Client, **fields: Any) -> None:
        self.caller = caller
        self.opened = expect(caller.post(SESSIONS, json=fields), 201)["session"]
        self.path = f"{SESSIONS}/{self.opened['id']}"

    def do(self, kind: str, *, status: int = 200, **fields: Any) -> Any:
        answer = self.caller.post(f"{self.path}/action", json={"type": kind, **fields})
        return expect(answer, status)

    def log(self) -> str:
        return str(
            self.do("evaluate", script="document.getElementById('log').textContent")["result"][
                "value"
            ]
        )


def test_every_action_does_what_it_says(caller: httpx.Client, site: Site) -> None:
    session = Session(
        caller,
        initialUrl=site.url("/desk"),
        userAgent="Tide/1.0",
        viewport={"width": 600, "height": 400},
    )
    assert (session.opened["currentUrl"], session.opened["currentTitle"]) == (
        site.url("/desk"),
        "Desk",
    )
    assert session.opened["busy"] is False
    session.do("click", selector="#press")
    session.do("type", selector="#line", value="ab")
    session.do("fill", selector="#line", value="whole")
    session.do("press", selector="#line", value="Enter")
    session.do("select", selector="#tide", value="high")
    session.do("waitForSelector", selector="#late")
    session.do("wait", timeout=10)
    session.do("scroll", position=1500)
    session.do("wait", timeout=200)
    assert session.log() == "clicked;line a;line ab;line whole;enter;tide high;scrolled;"
    session.do("scroll", selector="#far")
    assert session.do("evaluate", script="[navigator.userAgent, innerWidth, 1 + 1]")["result"][
        "value"
    ] == [
        "Tide/1.0",
        600,
        2,
    ]
    picture = base64.b64decode(session.do("screenshot")["result"]["screenshot"])
    whole = base64.b64decode(session.do("screenshot", fullPage=True)["result"]["screenshot"])
    assert picture.startswith(b"\x89PNG")
    assert _height(picture) == 400
    assert _height(whole) > 3000
    assert "The far end." in session.do("content")["result"]["content"]
    there = session.do("navigate", url=site.url("/article"))
    assert there["result"] == {"url": site.url("/article"), "status": 200}
    assert there["session"]["currentTitle"] == "On harbours"
    assert session.do("back")["session"]["currentUrl"] == site.url("/desk")
    assert session.do("forward")["session"]["currentUrl"] == site.url("/article")
    session.do("reload")
    scraped = session.do(
        "scrape", options={"extractorFormat": "markdown", "extractionOptions": {"tables": True}}
    )
    assert scraped["result"]["content"].startswith("# On harbours")
    assert scraped["result"]["formats"]["tables"][0]["rows"] == [["1890", "4.5"]]
    session.do("navigate", url=site.url("/desk"))
    session.do("click", selector="#out")
    # A window that opens is told, and is not followed.
    eventually(
        lambda: (
            expect(caller.get(session.path), 200)["session"]["popups"] == [site.url("/article")]
        ),
        "the window is told",
    )
    assert session.do("content")["result"]["url"] == site.url("/desk")
    assert expect(caller.delete(session.path), 200) == {"success": True, "closed": True}
    assert expect(caller.get(session.path), 404)["success"] is False


def test_a_login_opens_what_a_scrape_then_reads_and_a_file_comes_with_it(
    caller: httpx.Client, site: Site
) -> None:
    closed = expect(caller.post("/api/scrape", json={"url": site.url("/members")}), 400)
    assert closed["metadata"]["status"] == 401
    session = Session(caller, initialUrl=site.url("/door"))
    session.do("fill", selector="#password", value=PASSWORD)
    session.do("click", selector="#enter")
    session.do("waitForSelector", selector="#report")
    # The spec's scrape, in the session's tab.
    options = {"extractorFormat": "text", "sessionId": session.opened["id"]}
    body = {"url": site.url("/members"), "options": options}
    assert "tide tables" in expect(caller.post("/api/scrape", json=body), 200)["content"]
    session.do("click", selector="#report")
    given = eventually(
        lambda: expect(caller.get(session.path), 200)["session"]["downloads"], "the file is there"
    )
    assert [(file["name"], file["size"]) for file in given] == [("report.csv", len(FILE))]
    answer = caller.get(given[0]["url"])
    assert answer.content == FILE
    assert "attachment" in answer.headers["content-disposition"]
    expect(caller.get(f"{session.path}/download?number=99"), 404)
    # Cookies of a session are nobody else's.
    other = Session(caller)
    other.do("navigate", url=site.url("/members"))
    assert "Members alone" in other.do("content")["result"]["content"]


def test_a_session_is_its_owners_and_there_are_only_so_many(
    gateway: Gateway, caller: httpx.Client, site: Site
) -> None:
    session = Session(caller)
    stranger = gateway.client(headers={"X-API-Key": gateway.create_key(name="other")["key"]})
    stranger.timeout = httpx.Timeout(60)
    for answer in (
        stranger.get(session.path),
        stranger.delete(session.path),
        stranger.post(f"{session.path}/action", json={"type": "content"}),
        stranger.get(f"{session.path}/download"),
    ):
        assert expect(answer, 404)["success"] is False
    assert expect(stranger.get(SESSIONS), 200) == {"success": True, "count": 0, "sessions": []}
    body = {"url": site.url("/article"), "options": {"sessionId": session.opened["id"]}}
    assert expect(stranger.post("/api/scrape", json=body), 404)["success"] is False
    for _ in range(4):
        Session(caller)
    refused = caller.post(SESSIONS, json={})
    assert "close one" in expect(refused, 429)["error"]
    assert refused.headers["retry-after"]
    assert expect(caller.get(SESSIONS), 200)["count"] == 5


def test_bad_input_says_what_to_do(caller: httpx.Client, site: Site) -> None:
    for fields, said in [
        ({"viewport": {"width": 1, "height": 300}}, "viewport.width"),
        ({"initialUrl": "http://169.254.169.254/"}, "private"),
        ({"initialUrl": "file:///etc/passwd"}, "http or https"),
        ({"initialUrl": site.url("/secret/x")}, "robots.txt"),
    ]:
        assert said in expect(caller.post(SESSIONS, json=fields), 400)["error"]
    assert expect(caller.get(SESSIONS), 200)["count"] == 0
    session = Session(caller, initialUrl=site.url("/desk"))
    assert "type" in session.do("dance", status=400)["error"]
    assert "needs selector" in session.do("click", status=400)["error"]
    assert "needs url" in session.do("navigate", status=400)["error"]
    assert "robots.txt" in session.do("navigate", url=site.url("/secret/x"), status=400)["error"]
    assert "private" in session.do("navigate", url="http://[::1]:8080/", status=400)["error"]
    assert "browser failed" in session.do("click", selector="#no", timeout=50, status=400)["error"]
    assert "browser failed" in session.do("evaluate", script="no.such.thing", status=400)["error"]
    assert session.do("click", selector="#press")["success"] is True


def test_a_page_cannot_leave_the_web(caller: httpx.Client, site: Site) -> None:
    session = Session(caller, initialUrl=site.url("/leave"))
    session.do("click", selector="#file")
    content = session.do("content")["result"]["content"]
    look = (
        "[...document.querySelectorAll('iframe')].map(f => "
        "{ try { return f.contentDocument.body.innerText } catch { return 'closed' } })"
    )
    frames = session.do("evaluate", script=look)["result"]["value"]
    assert "root:" not in content + str(frames)
    assert (
        session.do("evaluate", script="fetch('file:///etc/passwd').then(() => 1, () => 0)")[
            "result"
        ]["value"]
        == 0
    )


def test_a_scrape_brings_a_picture_and_the_files_that_its_actions_cause(
    caller: httpx.Client, site: Site
) -> None:
    options = {
        "extractionOptions": {"screenshot": True, "downloads": True},
        "actions": [
            {"type": "fill", "selector": "#password", "value": PASSWORD},
            {"type": "click", "selector": "#enter"},
            {"type": "wait", "selector": "#report"},
            {"type": "click", "selector": "#report"},
            {"type": "wait", "timeout": 300},
        ],
    }
    answer = expect(
        caller.post("/api/scrape", json={"url": site.url("/door"), "options": options}), 200
    )
    assert answer["url"] == site.url("/members")
    assert answer["formats"]["screenshot"].startswith("data:image/png;base64,iVBOR")
    (file,) = answer["formats"]["downloads"]
    assert (file["name"], base64.b64decode(file["content"])) == ("report.csv", FILE)
    report = {"url": site.url("/report"), "options": {"useBrowser": True, "skipCache": True}}
    assert "starts a download" in expect(caller.post("/api/scrape", json=report), 400)["error"]


def test_a_crawl_by_the_browser_follows_what_scripts_write_in_one_context(
    caller: httpx.Client, site: Site
) -> None:
    body = {
        "url": site.url("/menu"),
        "crawlEntireDomain": True,
        "crawlOptions": {"maxConcurrentCrawlers": 3, "browserPoolSize": 1},
        "scrapeOptions": {"useBrowser": True, "extractorFormat": "text", "onlyMainContent": False},
    }
    job_id = expect(caller.post("/api/crawl", json=body), 200)["id"]
    done = eventually(
        lambda: (
            (s := expect(caller.get(f"/api/crawl/{job_id}"), 200))["status"] != "scraping" and s
        ),
        "the end",
        within_s=60,
        every_s=0.2,
    )
    assert done["progress"] == {"total": 4, "completed": 4, "failed": 0, "pending": 0}
    said = sorted(page["document"]["content"].split("\n")[0][:7] for page in done["jobs"])
    # Cookies go from page to page, one at a time.
    assert said == ["visit 1", "visit 2", "visit 3", "visit 4"]


@pytest.mark.slow
def test_a_page_that_spins_is_ended_and_the_browser_goes_on(
    caller: httpx.Client, site: Site
) -> None:
    session = Session(caller, initialUrl=site.url("/spin"))
    ended = session.do("evaluate", script="for (;;);", status=400)
    assert "the session is closed" in ended["error"]
    expect(caller.get(session.path), 404)
    again = Session(caller, initialUrl=site.url("/desk"))
    assert again.do("click", selector="#press")["success"] is True


def _height(png: bytes) -> int:
    return int.from_bytes(png[20:24], "big")
