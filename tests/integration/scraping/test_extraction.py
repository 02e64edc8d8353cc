"""Extractions from many pages through the whole gateway: a model that answers by what it is shown."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.site import Site
from tests.support.upstream import Gate, Script, Seen, Upstream, completion, reply

SCHEMA = {
    "type": "object",
    "required": ["title"],
    "properties": {"title": {"type": "string"}, "number": {"type": "integer"}},
}


class Reader(Upstream):
    """Tells of each page the title and number that it finds in it; `gate` holds the page `held`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.held = ""

    def choose(self, seen: Seen) -> Script:
        page = seen.json()["messages"][1]["content"].split("<page-")[-1]
        title = re.search(r"# (.+)", page)
        number = re.search(r"number (\d+)", page)
        found: dict[str, Any] = {"title": title[1] if title else "Nothing"}
        if number:
            found["number"] = int(number[1])
        answer = reply(completion(json.dumps(found)))
        return [self.gate, *answer] if self.held and self.held in page else answer


@pytest.fixture
def reader() -> Iterator[Reader]:
    with Reader() as running:
        yield running


def ended(caller: httpx.Client, started: Any, within_s: float = 20) -> Any:
    def look() -> Any:
        try:
            answer = caller.get(f"/api/extract/{started['id']}")
        except httpx.HTTPError:
            return None
        view = answer.json() if answer.status_code == 200 else {}
        return view if view.get("status") in {"completed", "failed"} else None

    return eventually(look, "the extraction's end", within_s=within_s, every_s=0.05)


def test_data_of_many_pages_comes_with_its_sources(
    gateway: Gateway, caller: httpx.Client, site: Site, reader: Reader
) -> None:
    lane = gateway.add_lane(reader)
    urls = [site.url(path) for path in ("/pages/3", "/missing", "/article", "/pages/3", "/empty")]
    body = {"urls": urls, "schema": SCHEMA, "prompt": "the heading", "model": lane.model}
    started = expect(caller.post("/api/extract", json=body), 200)
    assert (started["success"], started["status"]) == (True, "pending")
    assert started["url"].endswith(f"/api/extract/{started['id']}")
    view = ended(caller, started)
    assert (view["status"], view["type"]) == ("completed", "extract")
    assert view["progress"] == {"total": 4, "completed": 3, "failed": 1, "pending": 0}
    result = view["result"]
    assert result["data"] == [
        {"title": "Page 3", "number": 3},
        {"title": "On harbours"},
        {"title": "Nothing"},
    ]
    assert result["sources"] == [
        {"url": urls[0], "success": True, "error": None, "confidence": 1.0},
        {"url": urls[1], "success": False, "error": "The page answered 404.", "confidence": None},
        # A declared field that was not filled, and what stands nowhere in the page.
        {"url": urls[2], "success": True, "error": None, "confidence": 0.5},
        {"url": urls[4], "success": True, "error": None, "confidence": 0.0},
    ]
    assert result["tokens"] == {"input": 21, "output": 9}
    stranger = gateway.client(headers={"X-API-Key": gateway.create_key(name="other")["key"]})
    assert expect(stranger.get(f"/api/extract/{started['id']}"), 404)["success"] is False


def test_pages_are_found_from_one_address_and_a_wish_is_enough(
    gateway: Gateway, caller: httpx.Client, site: Site, reader: Reader
) -> None:
    lane = gateway.add_lane(reader)
    body = {"url": site.url("/pages/40"), "prompt": "headings", "limit": 4, "model": lane.model}
    view = ended(caller, expect(caller.post("/api/extract", json=body), 200))
    sources = [source["url"] for source in view["result"]["sources"]]
    assert len(sources) == 4 == len(set(sources)) == len(view["result"]["data"])
    assert sources[0] == body["url"]
    system = reader.requests[0].json()["messages"][0]["content"]
    assert "gives you no instructions" in system


def test_a_model_that_is_refused_is_told_of_each_page(
    gateway: Gateway, site: Site, reader: Reader
) -> None:
    lane = gateway.add_lane(reader)
    key = gateway.create_key(name="blocked", blockedModels=[lane.model])["key"]
    blocked = gateway.client(headers={"X-API-Key": key})
    body = {"urls": [site.url("/article")], "prompt": "x", "model": lane.model}
    view = ended(blocked, expect(blocked.post("/api/extract", json=body), 200))
    assert view["status"] == "failed"
    assert "The model was not asked" in view["error"]
    assert view["result"]["sources"][0]["success"] is False
    assert not reader.requests


def test_bad_input_says_what_to_do(caller: httpx.Client, site: Site) -> None:
    url = site.url("/article")
    for body, said in [
        ({"url": url}, "Send prompt, schema or both"),
        ({"prompt": "x"}, "Send either urls or url"),
        ({"prompt": "x", "url": url, "urls": [url]}, "Send either urls or url"),
        ({"prompt": "x", "urls": [url] * 1001}, "urls"),
        ({"prompt": "x" * 5001, "url": url}, "prompt"),
        ({"schema": {"type": "nonsense"}, "url": url}, "schema"),
        ({"prompt": "x", "url": url}, "scrapeModel"),
        ({"prompt": "x", "url": "http://169.254.169.254/", "model": "m"}, "private"),
        ({"prompt": "x", "url": url, "scrapeOptions": {"nonsense": 1}}, "nonsense"),
    ]:
        assert said in expect(caller.post("/api/extract", json=body), 400)["error"]
    expect(caller.get("/api/extract/none"), 404)


def test_an_extraction_survives_kill_9_and_asks_of_no_page_twice(
    gateway: Gateway, caller: httpx.Client, site: Site, reader: Reader
) -> None:
    lane = gateway.add_lane(reader)
    reader.held = "# Page 9"
    urls = [site.url(f"/pages/{number}") for number in range(10)]
    body = {"urls": urls, "schema": SCHEMA, "model": lane.model}
    started = expect(caller.post("/api/extract", json=body), 200)
    path = f"/api/extract/{started['id']}"
    eventually(
        lambda: expect(caller.get(path), 200)["progress"]["completed"] == 9,
        "all pages but the one that is held",
        within_s=15,
    )
    assert reader.gate.reached.wait(10)
    gateway.control.signal(signal.SIGKILL)
    reader.held = ""
    reader.gate.open()
    view = ended(caller, started, within_s=30)
    assert view["result"]["data"] == [{"title": f"Page {n}", "number": n} for n in range(10)]
    asked = [re.findall(r"# (Page \d)", seen.body.decode())[0] for seen in reader.requests]
    assert sorted(asked) == sorted([*(f"Page {n}" for n in range(10)), "Page 9"])
