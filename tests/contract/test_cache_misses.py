"""`/api/usage/cache-health` says why prompts were not read from the providers' caches, and what that cost."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.contract.test_numbers import get, settle
from tests.support.records import usage_record

pytestmark = pytest.mark.anyio

SAVING = 2_700_000  # micro-dollars per million tokens
BEFORE = "aaaaaaaa.bbbbbbbb.3.33333333.22222222.11111111"
GROWN = "aaaaaaaa.bbbbbbbb.5.55555555.44444444.33333333.22222222.11111111"


def call(request_id: str, age_s: float, hashes: str = BEFORE, **fields: Any) -> dict[str, Any]:
    """A call of a conversation with 20,000 tokens."""
    numbers = {
        "ts_ms": int((time.time() - age_s) * 1000),
        "tokens_input": 20_000,
        "tokens_cached": 0,
        "tokens_cache_write": 0,
        "conversation": "0123456789abcdef",
        "prompt_hashes": hashes,
        "cache_read_saving": SAVING,
    }
    return usage_record(request_id, **(numbers | fields))


@pytest.mark.parametrize(
    ("fields", "cause", "changed_by", "place"),
    [
        ({"upstream_model": "n", "model": "lab/n"}, "model_switch", "client", "model"),
        ({"upstream_model": "n"}, "model_switch", "gateway", "model"),
        ({"connection_id": "d"}, "other_connection", "gateway", "connection"),
        ({"hashes": GROWN.replace("aaaaaaaa", "cccccccc")}, "tools", "client", "tools"),
        ({"hashes": GROWN.replace("bbbbbbbb", "cccccccc")}, "system_prompt", "client", "system"),
        ({"hashes": GROWN.replace("33333333", "cccccccc")}, "client", "client", "messages[2]"),
        ({"hashes": "aaaaaaaa.bbbbbbbb.2.cccccccc.11111111"}, "client", "client", "messages[1]"),
        ({"hashes": GROWN, "compression": "lite"}, "compression", "gateway", None),
        ({"hashes": GROWN}, "provider", "provider", None),
    ],
)
async def test_the_first_difference_is_the_cause(
    control: Any, fields: dict[str, Any], cause: str, changed_by: str, place: str | None
) -> None:
    await settle(control, call("one", 100), call("two", 40, **fields))
    found = await get(control, "/api/usage/cache-health?range=1h")
    cost = 20_000 * SAVING // 1_000_000
    (total,) = found["misses"]
    assert total == {
        "cause": cause,
        "calls": 1,
        "tokens": 20_000,
        "costUsdMicros": cost,
        "costUsd": cost / 1e6,
    }
    (miss,) = found["recentMisses"]
    assert (miss["requestId"], miss["cause"], miss["changedBy"]) == ("two", cause, changed_by)
    assert miss["firstDifference"] == place
    assert found["truncated"] is False


async def test_a_cache_that_lapsed_is_no_fault_of_the_prompt(control: Any) -> None:
    hour = {"tokens_cache_write_hour": 20_000}
    await settle(
        control,
        call("one", 1_000),
        call("two", 600, GROWN),
        call("three", 500, conversation="fedcba9876543210", **hour),
        call("four", 10, GROWN, conversation="fedcba9876543210"),
    )
    found = await get(control, "/api/usage/cache-health?range=1h")
    causes = {miss["requestId"]: miss["cause"] for miss in found["recentMisses"]}
    assert causes == {"two": "time", "four": "provider"}, "one prompt was kept for an hour"


async def test_what_was_read_is_no_miss(control: Any) -> None:
    await settle(
        control,
        call("one", 100),
        call("read", 90, GROWN, tokens_input=22_000, tokens_cached=19_500),
        call("other", 80, conversation="fedcba9876543210"),
        call("small", 70, conversation="11", tokens_input=900),
        call("small again", 60, GROWN, conversation="11", tokens_input=1_000),
        call("failed", 50, GROWN, status=500, outcome="upstream_failed"),
        usage_record("unpriced", tokens_input=20_000),
    )
    found = await get(control, "/api/usage/cache-health?range=1h")
    assert (found["misses"], found["recentMisses"]) == ([], [])


async def test_the_misses_of_one_model_are_those_that_it_paid(control: Any) -> None:
    other = {"upstream_model": "n", "model": "lab/n"}
    await settle(
        control, call("one", 100), call("two", 90, GROWN, **other), call("three", 80, GROWN)
    )
    all_of_them = await get(control, "/api/usage/cache-health?range=1h")
    assert [(one["cause"], one["calls"]) for one in all_of_them["misses"]] == [("model_switch", 2)]
    one = await get(control, "/api/usage/cache-health?range=1h&model=n")
    assert [miss["requestId"] for miss in one["recentMisses"]] == ["two"]
