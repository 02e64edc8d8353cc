"""Options of a page: headers and cookies, elements, phones, time, pictures, languages."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator

import pytest

from tests.support.chromium import needs_chromium
from tests.support.site import Site
from tests.unit.python.scrape.test_jobs import ended

pytestmark = pytest.mark.anyio

SECRET = {
    "headers": {"Authorization": "Bearer s3cret", "X-Team": "port"},
    "cookies": {"sid": "c00kie"},
}


@pytest.fixture(scope="module")
def other() -> Iterator[Site]:
    """A site at another origin."""
    with Site() as running:
        yield running


def private_of(received: dict[str, str]) -> tuple[str | None, str | None, str | None]:
    return received.get("authorization"), received.get("x-team"), received.get("cookie")


# ---------------------------------------------------------------------------- headers and cookies


async def test_headers_and_cookies_are_sent_to_the_page_and_never_to_another_origin(
    scraping, site, other
) -> None:
    await scraping.scrape(site.url("/article"), **SECRET)
    assert private_of(site.received("/article")[-1]) == ("Bearer s3cret", "port", "sid=c00kie")
    for header in site.received("/robots.txt"):
        assert private_of(header) == (None, None, None)
    # A redirect to another port of the same host is another origin.
    await scraping.scrape(site.url(f"/inward?to={other.url('/article')}"), **SECRET)
    assert private_of(site.received("/inward")[-1])[0] == "Bearer s3cret"
    assert private_of(other.received("/article")[-1]) == (None, None, None)
    # And back again: the page that was asked for gets them.
    back = other.url(f"/inward?to={site.url('/latin')}")
    await scraping.scrape(site.url(f"/inward?to={back}"), **SECRET)
    assert private_of(other.received("/inward")[-1]) == (None, None, None)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"headers": {"Host": "x"}}, "must not have host"),
        ({"headers": {"connection": "close"}}, "must not have connection"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "must not have transfer-encoding"),
        ({"headers": {"a b": "x"}}, "name with characters"),
        ({"headers": {"a": "x\r\nb: c"}}, "characters that headers do not have"),
        ({"headers": {"a": "1", "A": "2"}}, "a name twice"),
        ({"headers": {f"x-{n}": "1" for n in range(21)}}, "more than 20"),
        ({"headers": {"a": "x" * 8192}}, "larger than 8192"),
        ({"cookies": {"a": "b; c=d"}}, "characters that cookies do not have"),
        ({"cookies": {"a=b": "c"}}, "name with characters"),
        ({"timeout": 999}, "options.timeout"),
        ({"timeout": 300_001}, "options.timeout"),
        ({"timeout": 55_001}, "background job"),
        ({"includeTags": ["p"] * 21}, "options.includeTags"),
        ({"includeTags": ["p["]}, "not a supported CSS selector"),
        ({"screenshot": {"quality": 0}}, "quality"),
        ({"location": {"country": "Austria"}}, "country"),
    ],
)
async def test_options_have_bounds(scraping, site, options, reason) -> None:
    refused = await scraping.scrape(site.url("/article"), expect=400, **options)
    assert reason in refused["error"]
    assert "s3cret" not in refused["error"]


async def test_a_copy_is_for_the_headers_that_it_was_read_with(scraping, site) -> None:
    page = site.url("/clock")
    first = await scraping.scrape(page, headers={"x-as": "one"})
    assert not first["metadata"]["fromCache"]
    assert (await scraping.scrape(page, headers={"x-as": "one"}))["metadata"]["fromCache"]
    assert not (await scraping.scrape(page, headers={"x-as": "two"}))["metadata"]["fromCache"]
    assert not (await scraping.scrape(page, cookies={"as": "one"}))["metadata"]["fromCache"]
    assert not (await scraping.scrape(page))["metadata"]["fromCache"]


async def test_a_job_seals_its_headers_until_it_ends(scraping, site, other) -> None:
    body = {
        "url": site.url("/slow/1?s=0.3"),
        "crawlEntireDomain": True,
        "limit": 3,
        "scrapeOptions": SECRET,
        "crawlOptions": {"maxConcurrentCrawlers": 1},
    }
    job_id = (await scraping.ask("POST", "/api/crawl", body))["id"]
    query = "SELECT options, secrets_sealed FROM scrape_jobs WHERE id = ?"

    async def stored() -> tuple[str, bytes | None]:
        return await scraping.services.state.read(
            lambda con: con.execute(query, [job_id]).fetchone()
        )

    options, sealed = await stored()
    assert "s3cret" not in options
    assert "c00kie" not in options
    assert sealed is not None
    assert b"s3cret" not in bytes(sealed)

    view = await ended(scraping, f"/api/crawl/{job_id}")
    assert view["crawl"]["scrapeOptions"]["headers"] == {"Authorization": "***", "X-Team": "***"}
    assert view["progress"]["completed"] == 3
    for number in (1, 2, 3):
        assert private_of(site.received(f"/slow/{number}")[-1])[0] == "Bearer s3cret"
    assert (await stored())[1] is None


async def test_a_saved_endpoint_stores_no_headers(scraping, site) -> None:
    body = {"slug": "kept", "url": site.url("/article"), "options": SECRET}
    refused = await scraping.ask("POST", "/api/endpoints", body, expect=400)
    assert "headers or cookies" in refused["error"]


# ---------------------------------------------------------------------------- elements


async def test_the_content_is_of_the_elements_that_are_chosen(scraping, site) -> None:
    page = site.url("/chosen")
    chosen = await scraping.scrape(
        page,
        extractorFormat="markdown",
        includeTags=[".part"],
        excludeTags=[".ad"],
        formats=["rawHtml", "links"],
    )
    assert "First part. **Inside.**" in chosen["content"]
    assert chosen["content"].count("Inside.") == 1
    assert "Second part." in chosen["content"]
    assert "Between" not in chosen["content"]
    assert "Buy!" not in chosen["content"]
    assert "Buy!" in chosen["formats"]["rawHtml"]
    assert (chosen["title"], chosen["metadata"]["language"]) == ("Chosen", "de")
    left_out = await scraping.scrape(
        page, extractorFormat="text", excludeTags=["#a"], onlyMainContent=False
    )
    assert "Between the parts." in left_out["content"]
    assert "First part." not in left_out["content"]
    nothing = await scraping.scrape(page, extractorFormat="text", includeTags=["#none"])
    assert nothing["content"] == ""


async def test_a_crawl_follows_links_outside_the_chosen_elements(scraping, site) -> None:
    body = {
        "url": site.url("/chosen"),
        "crawlEntireDomain": True,
        "limit": 2,
        "scrapeOptions": {"includeTags": [".part"], "extractorFormat": "text"},
    }
    job_id = (await scraping.ask("POST", "/api/crawl", body))["id"]

    view = await ended(scraping, f"/api/crawl/{job_id}")
    assert [page["url"] for page in view["jobs"]][1] == site.url("/pages/0")


async def test_pictures_in_the_page_itself_can_be_left_out(scraping, site) -> None:
    options = {"extractorFormat": "html", "onlyMainContent": False}
    whole = await scraping.scrape(site.url("/chosen"), **options)
    assert "R0lGOD" in whole["content"]
    without = await scraping.scrape(site.url("/chosen"), removeBase64Images=True, **options)
    assert "R0lGOD" not in without["content"]
    assert "/pier.png" in without["content"]


# ---------------------------------------------------------------------------- phones, languages, time


async def test_a_page_is_asked_for_as_by_a_phone_and_in_languages(scraping, site) -> None:
    location = {"country": "at", "languages": ["de", "en-GB"]}
    await scraping.scrape(site.url("/latin"), mobile=True, location=location)
    headers = site.received("/latin")[-1]
    assert "Mobile" in headers["user-agent"]
    assert headers["accept-language"] == "de-AT, de;q=0.9, en-GB;q=0.8, en;q=0.7"


async def test_a_page_has_the_time_that_its_caller_gives_it(scraping, site) -> None:
    late = await scraping.scrape(site.url("/slow/9?s=3"), timeout=1000, expect=400)
    assert late["error"] == "The page was not done within 1000 ms."
    assert late["metadata"]["reason"] == "timeout"


# ---------------------------------------------------------------------------- with a browser


@needs_chromium
async def test_a_browser_sends_headers_and_cookies_to_the_page_alone(scraping, site, other) -> None:
    pytest.importorskip("playwright")
    await scraping.scrape(
        site.url(f"/parts?other={other.base}"),
        useBrowser=True,
        waitForSelector="#done",
        **SECRET,
    )
    for path in ("/parts", "/dot.png", "/data.json"):
        authorization, team, cookie = private_of(site.received(path)[-1])
        assert (authorization, team) == ("Bearer s3cret", "port"), path
        assert "sid=c00kie" in (cookie or ""), path
    # The site's own cookie is not lost.
    assert "own=1" in site.received("/data.json")[-1]["cookie"]
    for path in ("/dot.png", "/data.json"):
        authorization, team, cookie = private_of(other.received(path)[-1])
        assert (authorization, team) == (None, None), path
        assert "c00kie" not in (cookie or ""), path
    await scraping.scrape(
        site.url(f"/inward?to={other.url('/contact')}"), useBrowser=True, **SECRET
    )
    assert private_of(site.received("/inward")[-1])[0] == "Bearer s3cret"
    authorization, team, cookie = private_of(other.received("/contact")[-1])
    assert (authorization, team) == (None, None)
    assert "c00kie" not in (cookie or "")


@needs_chromium
async def test_a_session_sends_its_headers_to_its_first_origin(scraping, site, other) -> None:
    pytest.importorskip("playwright")
    refused = await scraping.ask("POST", "/api/browser/sessions", SECRET, expect=400)
    assert "initialUrl" in refused["error"]
    body = {"initialUrl": site.url("/latin"), "mobile": True, **SECRET}
    session = (await scraping.ask("POST", "/api/browser/sessions", body, expect=201))["session"]
    try:
        received = site.received("/latin")[-1]
        assert private_of(received) == ("Bearer s3cret", "port", "sid=c00kie")
        assert "Mobile" in received["user-agent"]
        action = {"type": "navigate", "url": other.url("/latin")}
        await scraping.ask("POST", f"/api/browser/sessions/{session['id']}/action", action)
        assert private_of(other.received("/latin")[-1])[:2] == (None, None)
    finally:
        await scraping.ask("DELETE", f"/api/browser/sessions/{session['id']}")


@needs_chromium
async def test_a_screenshot_has_the_size_and_the_form_that_is_asked(scraping, site) -> None:
    pytest.importorskip("playwright")
    picture = {"fullPage": False, "quality": 40, "viewport": {"width": 320, "height": 240}}
    answer = await scraping.scrape(site.url("/article"), screenshot=picture)
    kind, _, data = answer["formats"]["screenshot"].partition(",")
    assert kind == "data:image/jpeg;base64"
    assert base64.b64decode(data).startswith(b"\xff\xd8\xff")
    whole = await scraping.scrape(
        site.url("/article"), screenshot={"fullPage": True, "viewport": picture["viewport"]}
    )
    png = base64.b64decode(whole["formats"]["screenshot"].partition(",")[2])
    width, height = struct.unpack(">II", png[16:24])
    assert width == 320
    assert height > 240
