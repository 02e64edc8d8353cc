"""What a page calls while a browser shows it, through the whole gateway."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.support.chromium import needs_chromium
from tests.support.processes import expect
from tests.support.site import Site

pytest.importorskip("playwright")
pytestmark = needs_chromium


def test_the_calls_of_a_page_are_told_by_their_shape(caller: httpx.Client, site: Site) -> None:
    body: dict[str, Any] = {
        "url": site.url("/app"),
        "options": {"actions": [{"type": "click", "selector": "#more"}]},
    }
    answer = expect(caller.post("/api/discover-apis", json=body), 200)
    assert (answer["url"], answer["status"], answer["more"]) == (body["url"], 200, 0)
    assert answer["count"] == len(answer["apis"]) == 4
    calls = {(call["method"], call["url"], call["resourceType"]): call for call in answer["apis"]}
    tides = calls["GET", site.url("/tides.json?day=1"), "fetch"]
    assert (tides["state"], tides["status"]) == ("done", 200)
    assert tides["contentType"] == "application/json"
    assert tides["request"] is None
    assert tides["response"]["shape"] == {
        "port": "string",
        "tides": [{"hour": "number", "metres": "number", "high": "boolean", "note": "null"}],
    }
    assert tides["response"]["sample"].startswith('{"port": "Silt"')
    assert len(tides["response"]["sample"]) == 2000 < tides["response"]["bytes"]
    sent = calls["POST", site.url("/door"), "xhr"]
    assert (sent["status"], sent["request"]["shape"]) == (
        403,
        {"user": "string", "marks": ["number"]},
    )
    assert "That is not the password" in sent["response"]["sample"]
    form = calls["POST", site.url("/door"), "fetch"]
    assert form["request"]["shape"] == {"user": "string", "password": "string"}
    # The guard stands before what scripts call, too.
    refused = calls["GET", "http://169.254.169.254/latest/", "fetch"]
    assert refused["status"] in {None, 403}


def test_a_page_without_calls_has_none_and_bad_input_says_why(
    caller: httpx.Client, site: Site
) -> None:
    body = {"url": site.url("/article")}
    answer = expect(caller.post("/api/discover-apis", json=body), 200)
    assert (answer["count"], answer["apis"]) == (0, [])
    for fields, said in [
        ({"url": "http://169.254.169.254/"}, "private"),
        ({"url": site.url("/secret/x")}, "robots.txt"),
        ({"url": site.url("/inward?to=/secret/x")}, "robots.txt"),
        ({"url": site.url("/app"), "options": {"extractorFormat": "text"}}, "extractorFormat"),
        (
            {
                "url": site.url("/app"),
                "options": {"actions": [{"type": "click", "selector": "#no", "timeout": 50}]},
            },
            "actions[0] (click) failed",
        ),
    ]:
        refused = expect(caller.post("/api/discover-apis", json=fields), 400)
        assert refused["success"] is False
        assert said in refused["error"]


def test_a_browser_reads_shadow_roots_and_frames_of_the_same_origin(
    caller: httpx.Client, site: Site
) -> None:
    options = {"useBrowser": True, "extractorFormat": "text"}
    answer = expect(
        caller.post("/api/scrape", json={"url": site.url("/shadows"), "options": options}), 200
    )
    assert answer["content"].split("\n") == [
        "Parts",
        "In the page.",
        "In a shadow.",
        "In both.",
        "In a frame.",
    ]
