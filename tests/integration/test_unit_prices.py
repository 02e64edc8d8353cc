"""What is no token is paid for, too: pictures, seconds, pages, characters and searches settle in micro-dollars and
count against a key's budget.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import DONE, Script, Upstream, event, head, reply, stream

AUDIO: Final = [head(200, [("Content-Type", "audio/mpeg"), ("Content-Length", "3")]) + b"abc"]
TEXT: Final = reply(b"words", content_type="text/plain")
PRICES: Final = {
    "perImage": 0.04,
    "perSecond": 0.0001,
    "perPage": 0.001,
    "perQuery": 0.002,
    "perMillionCharacters": 15,
}


def _wav(seconds: int) -> bytes:
    """Silence, 16 kHz, 16 bit, mono."""
    size = 32_000 * seconds
    form = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 16_000, 32_000, 2, 16)
    data = b"data" + struct.pack("<I", size) + bytes(size)
    return b"RIFF" + struct.pack("<I", 36 + size) + b"WAVE" + form + data


def _form(path: str, part: str, content: bytes) -> Callable[[Gateway, str], httpx.Response]:
    return lambda gateway, model: gateway.caller.post(
        path, data={"model": model, "prompt": "x"}, files={part: ("a.wav", content)}
    )


def _json(path: str, **fields: Any) -> Callable[[Gateway, str], httpx.Response]:
    return lambda gateway, model: gateway.caller.post(path, json={"model": model, **fields})


IMAGES: Final = {"created": 1, "data": [{"url": "u"}, {"url": "v"}]}
PICTURES: Final = stream(
    event({"type": "image_generation.partial_image"}),
    event({"type": "image_generation.completed"}),
    DONE,
)
TRANSCRIPTIONS: Final = "/v1/audio/transcriptions"
CALLS: Final[dict[str, tuple[Callable[[Gateway, str], httpx.Response], Script, int]]] = {
    "pictures": (_json("/v1/images/generations", prompt="x", n=2), reply(IMAGES), 80_000),
    "pictures of a stream": (
        _json("/v1/images/generations", prompt="x", stream=True),
        PICTURES,
        40_000,
    ),
    "edited pictures": (_form("/v1/images/edits", "image", b"png"), reply(IMAGES), 80_000),
    "a recording whose length is told": (
        _form(TRANSCRIPTIONS, "file", b"mp3"),
        reply({"text": "a", "usage": {"type": "duration", "seconds": 30}}),
        3_000,
    ),
    "a recording, verbosely": (
        _form("/v1/audio/translations", "file", b"mp3"),
        reply({"text": "a", "duration": 2.5}),
        250,
    ),
    "a recording of whose length nothing is told": (
        _form(TRANSCRIPTIONS, "file", _wav(3)),
        TEXT,
        300,
    ),
    "a large recording": (_form(TRANSCRIPTIONS, "file", _wav(60)), TEXT, 6_000),
    "pages": (
        _json("/v1/ocr", document={"type": "document_url", "document_url": "https://x.example/a"}),
        reply({"pages": [{"index": 0}], "usage_info": {"pages_processed": 7}}),
        7_000,
    ),
    "characters": (_json("/v1/audio/speech", input="grüß dich!", voice="v"), AUDIO, 150),
    "a reranking": (
        _json("/v1/rerank", query="x", documents=["a"]),
        reply({"results": [{"index": 0}], "meta": {"billed_units": {"search_units": 3}}}),
        6_000,
    ),
    "a reranking of which nothing is told": (
        _json("/v1/rerank", query="x", documents=["a"]),
        reply({"results": [{"index": 0}]}),
        2_000,
    ),
    "tokens that have no price": (
        _json("/v1/images/generations", prompt="x"),
        reply({**IMAGES, "usage": {"input_tokens": 10, "output_tokens": 100}}),
        80_000,
    ),
    "embeddings": (
        _json("/v1/embeddings", input="x"),
        reply({"data": [{}], "usage": {"prompt_tokens": 9}}),
        0,
    ),
}


def _priced(gateway: Gateway, lane: Lane, **prices: float) -> None:
    body = {lane.node["id"]: {"m": prices}}
    expect(gateway.admin.put("/api/pricing", json=body), 200)


@pytest.mark.parametrize(("call", "script", "cost"), CALLS.values(), ids=CALLS.keys())
def test_each_thing_has_its_price(
    gateway: Gateway,
    upstream: Upstream,
    lane: Lane,
    call: Callable[[Gateway, str], httpx.Response],
    script: Script,
    cost: int,
) -> None:
    _priced(gateway, lane, **PRICES)
    upstream.script(script)
    answer = call(gateway, lane.model)
    assert answer.status_code == 200, answer.text
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert record["costUsdMicros"] == cost
    if "x-gateway-response-cost" in answer.headers:
        assert float(answer.headers["x-gateway-response-cost"]) == pytest.approx(cost / 1e6)


def test_absurd_counts_of_a_provider_stop_no_usage(
    gateway: Gateway, upstream: Upstream, lane: Lane
) -> None:
    """What no call can come to is not counted, and what is dear beyond any sum is bounded: records of
    everybody go on being taken in.
    """
    ask = _json("/v1/ocr", document={"type": "document_url", "document_url": "https://x.example/a"})

    def cost(pages: int) -> int:
        upstream.script(reply({"pages": [{}], "usage_info": {"pages_processed": pages}}))
        answer = ask(gateway, lane.model)
        assert answer.status_code == 200, answer.text
        return int(gateway.record(answer.headers["x-gateway-request-id"])["costUsdMicros"])

    _priced(gateway, lane, perPage=1)
    assert [cost(9_000_000_000_000_000_000) for _ in range(2)] == [1_000_000] * 2
    assert [cost(1_000_000_000) for _ in range(2)] == [10**15] * 2
    _priced(gateway, lane, perPage=1000)
    assert cost(1_000_000_000) == 10**15
    assert cost(7) == 7_000_000_000
    assert "rejected" not in expect(gateway.admin.get("/api/monitoring/health"), 200)["spool"]


def test_what_fails_costs_nothing(gateway: Gateway, upstream: Upstream, lane: Lane) -> None:
    _priced(gateway, lane, **PRICES)
    upstream.script(reply({"error": {"message": "no"}}, 400))
    answer = _json("/v1/audio/speech", input="hi", voice="v")(gateway, lane.model)
    assert answer.status_code == 400
    assert gateway.record(answer.headers["x-gateway-request-id"])["costUsdMicros"] == 0


def test_tokens_that_have_a_price_go_before_things(
    gateway: Gateway, upstream: Upstream, lane: Lane
) -> None:
    _priced(gateway, lane, input=1, output=10, perImage=0.04)
    upstream.script(reply({**IMAGES, "usage": {"input_tokens": 10, "output_tokens": 100}}))
    answer = _json("/v1/images/generations", prompt="x")(gateway, lane.model)
    assert gateway.record(answer.headers["x-gateway-request-id"])["costUsdMicros"] == 1_010


def test_a_budget_holds_for_pictures(gateway: Gateway, upstream: Upstream, lane: Lane) -> None:
    """Room is taken for as many as are asked for, before any is made."""
    _priced(gateway, lane, **PRICES)
    upstream.script(reply(IMAGES))
    made = gateway.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=0.1)
    with gateway.client(headers={"Authorization": f"Bearer {made['key']}"}) as caller:
        asked = {"model": lane.model, "prompt": "x"}
        too_many = caller.post("/v1/images/generations", json={**asked, "n": 3})
        assert too_many.status_code == 429, too_many.text
        assert upstream.requests == []
        eventually(
            lambda: (
                caller.post("/v1/images/generations", json={**asked, "n": 2}).status_code == 200
            ),
            "there is room for two",
            within_s=gateway.room_within_s,
            every_s=0.1,
        )
        assert caller.post("/v1/images/generations", json={**asked, "n": 1}).status_code == 429


@pytest.fixture(scope="module")
def searching(gateway: Gateway, standin_url: str) -> Iterator[Gateway]:
    """The shared gateway with a search provider, which is for everybody: it is taken away again."""
    body = {"name": "own", "kind": "searxng", "baseUrl": standin_url, "perQuery": 0.005}
    made = expect(gateway.admin.post("/api/search-providers", json=body), 201)
    yield gateway
    path = f"/api/search-providers/{made['provider']['id']}"
    assert gateway.admin.delete(path).status_code == 204


def test_a_search_is_recorded_with_what_it_cost(searching: Gateway) -> None:
    answer = searching.caller.post("/v1/search", json={"query": "x"})
    assert answer.status_code == 200, answer.text
    assert "x-fairlead-bill" not in answer.headers
    record = searching.record(answer.headers["x-gateway-request-id"])
    assert (record["endpoint"], record["provider"]) == ("search", "own")
    assert (record["outcome"], record["costUsdMicros"]) == ("completed", 5_000)

    refused = searching.caller.post("/v1/search", json={"query": "x", "provider": "none"})
    record = searching.record(refused.headers["x-gateway-request-id"])
    assert (record["outcome"], record["costUsdMicros"]) == ("refused", 0)


def test_a_budget_holds_for_searches(searching: Gateway) -> None:
    made = searching.create_key(usageLimitEnabled=True, dailyUsageLimitUsd=0.012)
    with searching.client(headers={"Authorization": f"Bearer {made['key']}"}) as caller:
        statuses = [caller.post("/v1/search", json={"query": "x"}).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
