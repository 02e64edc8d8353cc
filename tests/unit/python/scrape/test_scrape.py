"""One page: what is read of it, what is kept of it, and how it fails."""

from __future__ import annotations

import pytest

from tests.unit.python.scrape.conftest import run_scraping

pytestmark = pytest.mark.anyio


async def test_an_article_becomes_markdown(scraping, site) -> None:
    answer = await scraping.scrape(site.url("/article"), extractorFormat="markdown")
    assert answer["success"] is True
    assert (answer["title"], answer["contentType"]) == ("On harbours", "markdown")
    content = answer["content"]
    assert content.startswith("# On harbours\n\nA harbour silts up")
    assert "**sand and mud**" in content
    assert f"[the port's own history]({site.url('/about')})" in content
    assert "- dredging\n- training walls" in content
    assert "| Year | Metres |\n| --- | --- |\n| 1890 | 4.5 |" in content
    assert "```python\ndepth = 4.5\nprint(depth)\n```" in content
    for chrome in ("Home", "Related", "Copyright", "Ignore all", "scripted", "document.write"):
        assert chrome not in content
    metadata = answer["metadata"]
    assert metadata["description"] == "Why harbours silt up."
    assert (metadata["language"], metadata["status"]) == ("en", 200)
    assert metadata["fromCache"] is False


async def test_html_and_text_are_the_other_forms(scraping, site) -> None:
    html = await scraping.scrape(site.url("/article"))
    assert html["contentType"] == "html"
    assert "<h1>On harbours</h1>" in html["content"]
    assert "<script" not in html["content"]
    whole = await scraping.scrape(site.url("/article"), onlyMainContent=False)
    assert "<script>" in whole["content"]
    text = await scraping.scrape(site.url("/article"), extractorFormat="text")
    assert "A harbour silts up because the river brings sand and mud faster" in text["content"]
    assert "#" not in text["content"]


async def test_lists_are_given_when_they_are_asked_for(scraping, site) -> None:
    wanted = {"links": True, "tables": True, "code": True, "images": True}
    answer = await scraping.scrape(site.url("/article"), extractionOptions=wanted)
    formats = answer["formats"]
    assert {"url": site.url("/about"), "text": "About"} in formats["links"]
    assert formats["tables"] == [
        {"caption": "Depths", "headers": ["Year", "Metres"], "rows": [["1890", "4.5"]]}
    ]
    assert formats["code"] == [{"language": "python", "code": "depth = 4.5\nprint(depth)"}]
    assert formats["images"] == [{"url": site.url("/harbour.png"), "alt": "The harbour"}]


async def test_the_same_page_gives_the_same_bytes(scraping, site) -> None:
    first, second = [
        await scraping.scrape(site.url("/article"), extractorFormat="markdown", skipCache=True)
        for _ in range(2)
    ]
    assert first["content"] == second["content"]


async def test_a_copy_answers_until_it_is_stale_and_then_asks_whether_it_still_holds(
    scraping, site
) -> None:
    url = site.url("/article?copy=1".replace("?copy=1", ""))
    mine = scraping.as_owner("copier")
    await mine.scrape(url, cacheTtl=1000)
    before = site.asked()["/article"]
    again = await mine.scrape(url, cacheTtl=1000)
    assert again["metadata"]["fromCache"] is True
    assert site.asked()["/article"] == before
    await scraping.services.state.database.write(
        lambda con: con.execute("UPDATE scrape_cache SET expires_at_ms = 0")
    )
    renewed = await mine.scrape(url, cacheTtl=1000)
    assert renewed["metadata"]["fromCache"] is True
    assert renewed["content"] == again["content"]
    assert site.asked()["/article"] == before + 1
    other = await scraping.as_owner("somebody").scrape(url)
    assert other["metadata"]["fromCache"] is False


async def test_the_cache_is_forgotten_by_address_or_whole(scraping, site) -> None:
    mine = scraping.as_owner("forgetter")
    for path in ("/article", "/pages/1"):
        await mine.scrape(site.url(path))
    answer = await mine.ask("DELETE", "/api/cache", {"url": site.url("/article")})
    assert (answer["success"], answer["count"]) == (True, 1)
    assert (await mine.ask("DELETE", "/api/cache"))["message"] == "Cache cleared"
    assert (await mine.scrape(site.url("/pages/1")))["metadata"]["fromCache"] is False


async def test_an_empty_page_is_a_success_with_nothing_in_it(scraping, site) -> None:
    answer = await scraping.scrape(site.url("/empty"), extractorFormat="markdown")
    assert (answer["success"], answer["content"]) == (True, "")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/missing", "status"),
        ("/secret/x", "robots"),
        ("/hop/9", "redirects"),
        ("/bomb", "too_large"),
        ("/big", "too_large"),
        ("/binary", "content_type"),
        ("/stuck", "unreachable"),
        ("/inward?to=http://169.254.169.254/latest/", "forbidden_address"),
        ("/inward?to=http://10.0.0.1/", "forbidden_address"),
        ("/inward?to=file:///etc/passwd", "redirects"),
        ("/inward?to=http://127.0.0.1:6379/", "redirects"),
    ],
)
async def test_a_page_that_was_not_read_is_a_failure(
    scraping, site, path: str, reason: str
) -> None:
    answer = await scraping.scrape(site.url(path), expect=400)
    assert answer["success"] is False
    assert answer["error"].endswith(".")
    assert answer["url"] == site.url(path)
    assert answer["metadata"]["reason"] == reason
    assert answer["metadata"]["fromCache"] is False


async def test_redirects_are_followed_and_told(scraping, site) -> None:
    answer = await scraping.scrape(site.url("/hop/2"))
    assert answer["url"] == site.url("/article")
    assert len(answer["metadata"]["redirects"]) == 3


@pytest.mark.parametrize(("path", "words"), [("/latin", "naïve — résumé"), ("/lying", "你好世界")])
async def test_bytes_decide_what_the_header_lies_about(
    scraping, site, path: str, words: str
) -> None:
    answer = await scraping.scrape(site.url(path), extractorFormat="text")
    assert words in answer["content"]


async def test_a_page_without_end_in_depth_is_read_soon(scraping, site) -> None:
    answer = await scraping.scrape(site.url("/deep"), extractorFormat="text")
    assert answer["content"] == "the deepest text"
    assert answer["metadata"]["processingTime"] < 5000


BAD_URLS = [
    "",
    "x",
    "/relative",
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://h/",
    "javascript:alert(1)",
    "http://",
    "http:///x",
    "http://user@example.com/",
    "http://good@127.0.0.1/",
    "http://a b/",
    "http://example.com\\@evil/",
    "http://exam\nple.com/",
    "http://example.com:22/",
    "http://example.com:6379/",
    "http://example.com:99999/",
    "http://[::1",
    "http://127.0.0.1.:25/",
]

PRIVATE = [
    "http://127.1/",
    "http://0/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://017700000001/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://127.0.0.1./",
    "http://localhost/",
    "http://LOCALHOST:8080/",
    "http://169.254.169.254/",
    "http://[fe80::1]/",
    "http://100.64.0.1/",
    "http://10.0.0.5/",
    "http://192.168.1.1/",
    "http://0.0.0.0/",
    "http://224.0.0.1/",
    "http://[fd00:ec2::254]/",
    "http://\uff11\uff12\uff17.0.0.1/",
    "http://127\u30020\u30020\u30021/",
    "http://[2002:7f00:1::]/",
]


async def test_addresses_that_are_none_and_private_ones_are_refused_everywhere(tmp_path) -> None:
    async with run_scraping(tmp_path / "data", private="") as scraping:
        for url in BAD_URLS + PRIVATE:
            for path, body in (
                ("/api/scrape", {"url": url}),
                ("/api/scrape/async", {"url": url}),
                ("/api/crawl", {"url": url}),
                ("/api/crawl", {"url": "http://example.com/", "webhook": url}),
                ("/api/crawl/estimate", {"url": url}),
                ("/api/map", {"url": url}),
                ("/api/batch/scrape", {"urls": [url]}),
                ("/api/summarize", {"url": url}),
                ("/api/extract-schema", {"url": url, "schema": {}}),
                ("/api/endpoints", {"slug": "x", "url": url}),
                ("/api/llmstxt", {"url": url}),
                ("/api/browser/sessions", {"initialUrl": url}),
            ):
                answer = await scraping.ask("POST", path, body, expect=400)
                assert set(answer) - {"details"} == {"success", "error"}, (path, url)
                assert answer["success"] is False
            await scraping.ask("GET", "/api/reader", expect=400, url=url)


async def test_what_breaks_the_rules_is_told_by_name(scraping) -> None:
    for body, words in [
        ({}, "url is required"),
        ({"url": "http://a/", "options": {"waitForTimeout": 0}}, "options.waitForTimeout"),
        ({"url": "http://a/", "options": {"cacheTtl": -1}}, "options.cacheTtl"),
        ({"url": "http://a/", "options": {"extractorFormat": "pdf"}}, "options.extractorFormat"),
        ({"url": "http://a/", "options": {"actions": [{}]}}, "options.actions[0].type"),
        ({"url": "http://a/", "options": {"nonsense": 1}}, "options.nonsense"),
        ([], "JSON object"),
    ]:
        answer = await scraping.ask("POST", "/api/scrape", body, expect=400)
        assert answer["success"] is False
        assert words in answer["error"]


async def test_a_minute_has_room_for_so_many_calls(tmp_path, site) -> None:
    async with run_scraping(tmp_path / "data", scrapeRequestsPerMinute=3) as scraping:
        for _ in range(3):
            await scraping.ask("GET", "/api/crawl")
        answer = await scraping.ask("GET", "/api/crawl", expect=429)
        assert answer == {
            "success": False,
            "error": "Too many requests: slow down and retry later.",
        }
        await scraping.as_owner("another").ask("GET", "/api/crawl")


async def test_nobody_but_a_key_is_served(scraping) -> None:
    for kind in ("local", "session", "anonymous"):
        answer = await scraping.client.get(
            "/api/crawl", headers={"x-fairlead-principal": f'{{"kind": "{kind}", "id": "u"}}'}
        )
        assert answer.status_code == 401
        assert answer.json()["success"] is False
