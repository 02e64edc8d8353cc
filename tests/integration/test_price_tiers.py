"""What a call costs follows from what its provider tells: the size of the input, the lifetime of what it caches, the
service tier. The record says which prices applied.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import (
    DONE,
    Script,
    Upstream,
    completion,
    delta,
    event,
    finish,
    reply,
    stream,
)

PRICE: Final = {
    "input": 10,
    "output": 50,
    "cachedInput": 1,
    "cacheWrite": 12,
    "cacheWriteHour": 20,
    "tiers": [
        {"above": 1_000, "input": 20, "output": 100},
        {"service": "flex", "input": 5, "output": 25},
        {"service": "batch", "input": 4, "output": 20},
    ],
}


def _answer(tokens_in: int, **fields: Any) -> Script:
    return reply({**completion(tokens_in=tokens_in, tokens_out=10), **fields})


def _stream(tokens_in: int, service_tier: str) -> Script:
    used = {"prompt_tokens": tokens_in, "completion_tokens": 10}
    return stream(
        delta("hello"),
        finish(),
        event({"choices": [], "service_tier": service_tier, "usage": used}),
        DONE,
    )


CASES: Final[dict[str, tuple[Script, dict[str, Any], int, list[str], str | None]]] = {
    "up to the threshold": (_answer(1_000), {}, 10_000 + 500, [], None),
    "above it": (_answer(1_001), {}, 20_020 + 1_000, ["above_1000"], None),
    "flex": (_answer(100, service_tier="flex"), {}, 500 + 250, ["flex"], "flex"),
    "flex in a stream": (_stream(100, "flex"), {"stream": True}, 500 + 250, ["flex"], "flex"),
    "a tier without a price": (
        _answer(100, service_tier="priority"),
        {"service_tier": "priority"},
        1_000 + 500,
        [],
        "priority",
    ),
}


@pytest.mark.parametrize(
    ("script", "fields", "cost", "tiers", "service"), CASES.values(), ids=CASES
)
def test_the_price_follows_what_the_provider_tells(
    gateway: Gateway,
    upstream: Upstream,
    lane: Lane,
    script: Script,
    fields: dict[str, Any],
    cost: int,
    tiers: list[str],
    service: str | None,
) -> None:
    expect(gateway.admin.put("/api/pricing", json={lane.node["id"]: {"m": PRICE}}), 200)
    upstream.script(script)
    answer = gateway.caller.post(CHAT, json=lane.body(**fields))
    assert answer.status_code == 200, answer.text
    shown = _shown(gateway, answer.headers["x-gateway-request-id"])
    assert shown["costUsdMicros"] == cost
    assert shown["priceTiers"] == tiers
    assert shown["serviceTier"] == service


def test_each_lifetime_of_a_cache_has_its_price(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream, dialect="anthropic")
    expect(gateway.admin.put("/api/pricing", json={lane.node["id"]: {"m": PRICE}}), 200)
    used = {
        "input_tokens": 100,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 300,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
        "output_tokens": 10,
        "service_tier": "standard",
    }
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "hello"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": used,
    }
    for path in ("/v1/messages", CHAT):
        upstream.script(reply(message))
        answer = gateway.caller.post(path, json=lane.body(max_tokens=64))
        assert answer.status_code == 200, answer.text
        shown = _shown(gateway, answer.headers["x-gateway-request-id"])
        assert shown["costUsdMicros"] == 1_000 + 200 + 1_200 + 4_000 + 500
        assert shown["priceTiers"] == ["cached_input", "cache_write", "cache_write_hour"]
        assert shown["tokensCacheWriteHour"] == 200


def test_lines_of_a_batch_are_paid_by_the_tier_that_served_them(
    gateway: Gateway, upstream: Upstream, lane: Lane
) -> None:
    """The batch's price where the provider says that it charges it, else the usual one."""
    expect(gateway.admin.put("/api/pricing", json={lane.node["id"]: {"m": PRICE}}), 200)
    upstream.script(_answer(100, service_tier="batch"), _answer(100))
    body = lane.body(messages=[{"role": "user", "content": "in a batch"}])
    line = {"method": "POST", "url": CHAT, "body": body}
    content = "".join(json.dumps({"custom_id": name, **line}) + "\n" for name in ("a", "b"))
    file = expect(
        gateway.caller.post(
            "/v1/files", data={"purpose": "batch"}, files={"file": ("in.jsonl", content.encode())}
        ),
        200,
    )
    made = {"input_file_id": file["id"], "endpoint": CHAT, "completion_window": "24h"}
    batch = expect(gateway.caller.post("/v1/batches", json=made), 200)

    def records() -> list[dict[str, Any]] | None:
        found = gateway.shown_records(sessionTag=batch["id"])
        return found if len(found) == 2 else None

    shown = eventually(records, "control shows both lines", within_s=30)
    told = sorted(
        (one["serviceTier"] or "", one["priceTiers"], one["costUsdMicros"]) for one in shown
    )
    assert told == [("", [], 1_000 + 500), ("batch", ["batch"], 400 + 200)]


def test_a_model_without_a_price_is_told_as_such(
    gateway: Gateway, upstream: Upstream, lane: Lane
) -> None:
    upstream.script(_answer(100))
    answer = gateway.caller.post(CHAT, json=lane.body())
    shown = _shown(gateway, answer.headers["x-gateway-request-id"])
    assert shown["costUsdMicros"] == 0
    assert shown["priceTiers"] == ["unpriced"]


def _shown(gateway: Gateway, request_id: str) -> dict[str, Any]:
    """The record as the log shows it."""

    def find() -> dict[str, Any] | None:
        found = gateway.shown_records(requestId=request_id)
        return found[0] if found else None

    shown: dict[str, Any] = eventually(find, "control shows the record")
    return shown
