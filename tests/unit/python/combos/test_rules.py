"""Rules, order, copies, mappings and defaults of combos, from the outside."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.management import Management

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

PATH = "/api/combos"
MAPPINGS = "/api/model-combo-mappings"
DEFAULTS = "/api/settings/combo-defaults"

RULES: dict[str, Any] = {
    "systemMessage": "Be brief.",
    "toolFilterRegex": "^get_",
    "allowedProviders": ["a"],
    "allowedModelFamilies": ["gpt"],
    "contextLength": 8_000,
}
CONFIG: dict[str, Any] = {
    "targetTimeoutMs": 5_000,
    "comboTimeoutMs": 9_000,
    "maxSetRetries": 2,
    "setRetryDelayMs": 10,
    "cooldownWaitMs": 1_000,
    "queueDepth": 0,
    "queueTimeoutMs": 700,
    "contextRequirements": {"minContextWindow": 4_000, "contextFilterMode": "strict"},
    "responseValidation": {
        "minContentLength": 3,
        "jsonPathPredicates": [{"path": "a.0", "condition": "equals", "value": 1}],
    },
    "shadowRouting": {"targets": ["b/m"], "sampleRate": 0.5},
}


async def make(management: Management, name: str, **fields: Any) -> Any:
    body = {"name": name, "models": ["a/m"], **fields}
    return await management.ask("POST", PATH, body, expect=201)


async def test_rules_are_kept_and_reach_the_relay(management: Management) -> None:
    made = await make(management, "ruled", **RULES, config=CONFIG)
    shown = await management.ask("GET", f"{PATH}/{made['id']}")
    assert {name: shown[name] for name in RULES} == RULES
    assert shown["config"]["shadowRouting"] == {
        "enabled": True,
        "targets": ["b/m"],
        "sampleRate": 0.5,
        "maxTargets": 1,
        "timeoutMs": 60_000,
    }
    combo = management.snapshot()["combos"][0]
    assert combo["params"] == {}
    assert combo["rules"] == {
        "system_message": "Be brief.",
        "tool_filter_regex": "^get_",
        "allowed_providers": ["a"],
        "allowed_model_families": ["gpt"],
        "context_length": 8_000,
        "target_timeout_ms": 5_000,
        "combo_timeout_ms": 9_000,
        "max_set_retries": 2,
        "set_retry_delay_ms": 10,
        "cooldown_wait_ms": 1_000,
        "queue_depth": 0,
        "queue_timeout_ms": 700,
        "context": {"min_window": 4_000, "prefers_large": False, "is_strict": True},
        "validation": {
            "holds_streams": True,
            "forbidden_substrings": [],
            "required_substrings": [],
            "min_content_length": 3,
            "predicates": [{"path": "a.0", "condition": "equals", "value": 1}],
        },
        "shadow": {
            "targets": ["b/m"],
            "sample_rate": 0.5,
            "max_targets": 1,
            "timeout_ms": 60_000,
        },
    }
    off = {"config": {"shadowRouting": {"targets": ["b/m"], "enabled": False}}}
    await management.ask("PUT", f"{PATH}/{made['id']}", {**off, "systemMessage": None})
    rules = management.snapshot()["combos"][0]["rules"]
    assert "shadow" not in rules
    assert "system_message" not in rules


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"toolFilterRegex": "(?=x)"}, "toolFilterRegex", "look-around"),
        ({"toolFilterRegex": "("}, "toolFilterRegex", "no pattern"),
        ({"allowedProviders": ["a/m"]}, None, "prefix"),
        ({"allowedModelFamilies": ["gpt*"]}, None, "begin"),
        ({"contextLength": 10}, "contextLength", "1000"),
        ({"systemMessage": ""}, "systemMessage", "1"),
        ({"config": {"maxSetRetries": 11}}, None, "10"),
        ({"config": {"cooldownWaitMs": 300_001}}, None, "300000"),
        ({"config": {"queueDepth": 10_001}}, None, "10000"),
        ({"config": {"queueTimeoutMs": 0}}, None, "1"),
        ({"config": {"fallbackDelayMs": 9}}, "config.fallbackDelayMs", "at once"),
        ({"config": {"stickyWeightedLimit": 9}}, "config.stickyWeightedLimit", "`stickyLimit`"),
        ({"compressionOverride": "lite"}, "compressionOverride", "pipeline"),
        ({"config": {"responseValidation": {"streams": "drop"}}}, None, "hold"),
        ({"config": {"maxRetries": 11}}, None, "10"),
        ({"config": {"handoffModel": "a/m"}}, "config.handoffModel", "context-relay"),
        (
            {"strategy": "context-relay", "config": {"handoffModel": "m"}},
            "config.handoffModel",
            "prefix",
        ),
        ({"strategy": "fusion", "config": {"judgeModel": "m"}}, "config.judgeModel", "prefix"),
        (
            {"config": {"shadowRouting": {"targets": ["m"]}}},
            "config.shadowRouting.targets.0",
            "prefix",
        ),
        ({"config": {"shadowRouting": {"targets": ["b/m"], "sampleRate": 2}}}, None, "1"),
        (
            {"strategy": "fusion", "config": {"shadowRouting": {"targets": ["b/m"]}}},
            "config.shadowRouting",
            "fusion",
        ),
        (
            {"config": {"responseValidation": {"jsonPathPredicates": [{"path": "a..b"}]}}},
            None,
            "",
        ),
    ],
)
async def test_a_rule_that_cannot_hold_is_refused(
    management: Management, fields: dict[str, Any], param: str | None, words: str
) -> None:
    body = {"name": "x", "models": ["a/m"], **fields}
    message, told = await management.refused("POST", PATH, body)
    assert words in message
    assert param is None or told == param
    assert (await management.ask("GET", PATH))["total"] == 0


async def test_defaults_hold_where_a_combo_says_nothing(management: Management) -> None:
    await make(management, "own", config={"targetTimeoutMs": 7})
    await make(management, "none")
    body = {
        "comboDefaults": {"targetTimeoutMs": 9, "maxSetRetries": 1, "maxRetries": 2},
        "providerOverrides": {"a": {"targetTimeoutMs": 8}},
    }
    await management.ask("PUT", DEFAULTS, body)
    shown = await management.ask("GET", DEFAULTS)
    assert shown["comboDefaults"]["targetTimeoutMs"] == 9
    rules = {one["name"]: one["rules"] for one in management.snapshot()["combos"]}
    assert rules["own"] == {"target_timeout_ms": 7, "max_set_retries": 1, "max_retries": 2}
    assert rules["none"] == {
        "target_timeout_ms": 9,
        "max_set_retries": 1,
        "max_retries": 2,
        "provider_timeouts_ms": {"a": 8},
    }
    await management.refused("PUT", DEFAULTS, {"comboDefaults": {"targetTimeoutMs": 0}})
    await management.refused("PUT", DEFAULTS, {"defaults": {}})


async def test_combos_are_put_in_an_order_and_copied(management: Management) -> None:
    a, b, c = [await make(management, name) for name in "abc"]

    async def names() -> list[str]:
        return [one["name"] for one in (await management.ask("GET", PATH))["combos"]]

    assert await management.ask("POST", f"{PATH}/reorder", {"comboIds": [c["id"], a["id"]]}) == {
        "success": True
    }
    assert await names() == ["c", "a", "b"]
    await make(management, "d")
    assert await names() == ["c", "a", "b", "d"]
    await management.refused("POST", f"{PATH}/reorder", {"comboIds": ["none"]})
    await management.refused("POST", f"{PATH}/reorder", {"comboIds": [b["id"], b["id"]]})
    await management.refused("POST", f"{PATH}/reorder", {"comboIds": []})

    copy = await management.ask("POST", f"{PATH}/{a['id']}/duplicate", {}, expect=201)
    assert (copy["name"], copy["isActive"], copy["models"]) == ("a copy", False, a["models"])
    again = await management.ask("POST", f"{PATH}/{a['id']}/duplicate", {}, expect=201)
    assert again["name"] == "a copy 2"
    taken = {"name": "b", "isActive": True}
    await management.refused("POST", f"{PATH}/{a['id']}/duplicate", taken, expect=409)
    await management.refused("POST", f"{PATH}/none/duplicate", {}, expect=404)


async def test_models_are_mapped_to_combos(management: Management) -> None:
    combo = await make(management, "fast")
    low = await management.ask(
        "POST", MAPPINGS, {"pattern": "a/*", "comboId": combo["id"]}, expect=201
    )
    high = {"pattern": "a/gpt-*", "comboId": combo["id"], "priority": 5, "enabled": False}
    await management.ask("POST", MAPPINGS, high, expect=201)
    listed = await management.ask("GET", MAPPINGS)
    assert [one["pattern"] for one in listed["mappings"]] == ["a/gpt-*", "a/*"]
    assert management.snapshot()["mappings"] == [{"pattern": "a/*", "combo": "fast"}]
    await management.ask("PUT", f"{MAPPINGS}/{listed['mappings'][0]['id']}", {"enabled": True})
    assert [one["pattern"] for one in management.snapshot()["mappings"]] == ["a/gpt-*", "a/*"]

    message, _ = await management.refused("DELETE", f"{PATH}/{combo['id']}", expect=409)
    assert "`a/*`" in message
    taken = {"pattern": "a/*", "comboId": combo["id"]}
    await management.refused("POST", MAPPINGS, taken, expect=409)
    await management.refused("POST", MAPPINGS, {"pattern": "b/*", "comboId": "none"})
    await management.refused("POST", MAPPINGS, {"pattern": "*", "comboId": combo["id"]})
    await management.ask("DELETE", f"{MAPPINGS}/{low['id']}")
    await management.ask("GET", f"{MAPPINGS}/{low['id']}", expect=404)


async def test_without_a_worker_nothing_is_decided(management: Management) -> None:
    await make(management, "fast")
    body = {"comboName": "fast"}
    await management.refused("POST", f"{PATH}/simulate", body, expect=503)
    await management.refused("POST", f"{PATH}/test", body, expect=503)
    await management.refused("POST", f"{PATH}/simulate", {"name": "fast"})
