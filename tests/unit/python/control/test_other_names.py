"""Fields that the reference system names otherwise are read by those names too, and never under two names at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.management import Management

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

THINKING = "/api/settings/thinking-budget"
PROMPT = "/api/settings/system-prompt"
PIPELINES = "/api/context/combos"
COMBOS = "/api/combos"
ALIASES = "/api/models/alias"


async def test_the_thinking_budget(management: Management) -> None:
    sent = {"mode": "auto", "customBudget": 4096}
    shown = await management.ask("PUT", THINKING, sent)
    assert shown == {"mode": "auto-strip", "budgetTokens": 4096}
    assert await management.ask("GET", THINKING) == shown


async def test_the_system_prompt_has_fifty_thousand_characters(management: Management) -> None:
    longest = "x" * 50_000
    shown = await management.ask("PUT", PROMPT, {"prefixPrompt": longest, "suffixPrompt": "s"})
    assert shown == {"prefix": longest, "suffix": "s"}
    refused = await management.ask("PUT", PROMPT, {"suffixPrompt": longest + "x"}, expect=400)
    assert refused["error"]["param"] == "suffix"


async def test_a_pipeline(management: Management) -> None:
    stages = [{"engine": "rtk", "intensity": "aggressive"}, {"engine": "caveman"}]
    made = await management.ask("POST", PIPELINES, {"name": "p", "pipeline": stages}, expect=201)
    assert [(each["engine"], each["level"]) for each in made["stages"]] == [
        ("rtk", "aggressive"),
        ("caveman", "standard"),
    ]
    changed = {"pipeline": [{"engine": "caveman", "intensity": "minimal"}]}
    shown = await management.ask("PUT", f"{PIPELINES}/{made['id']}", changed)
    assert [each["level"] for each in shown["stages"]] == ["minimal"]


@pytest.mark.parametrize(
    ("step", "model"),
    [
        ({"provider": "openai", "model": "gpt-4o"}, "openai/gpt-4o"),
        ({"providerId": "openai", "model": "openai/gpt-4o"}, "openai/gpt-4o"),
        ({"provider": "a", "providerId": "a", "model": "b/c", "weight": 2}, "a/b/c"),
        ({"model": "a/m", "connection_id": None}, "a/m"),
    ],
    ids=str,
)
async def test_a_step_of_a_combo(management: Management, step: dict[str, Any], model: str) -> None:
    body = {"name": "fast", "models": [step], "context_cache_protection": True}
    made = await management.ask("POST", COMBOS, body, expect=201)
    assert [each["model"] for each in made["models"]] == [model]
    assert made["contextCacheProtection"] is True


async def test_an_alias_is_put_and_looked_up(management: Management) -> None:
    path = ALIASES
    assert await management.ask("PUT", path, {"alias": "quick", "model": "a/m"}) == {
        "alias": "quick",
        "model": "a/m",
    }
    await management.ask("PUT", path, {"alias": "other", "model": "a/n"})
    one = await management.ask("GET", path, alias="quick")
    assert one == {"aliases": {"quick": "a/m"}, "total": 1}
    await management.ask("GET", path, alias="nosuch", expect=404)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", THINKING, {"customBudget": 1, "budgetTokens": 2}),
        ("PUT", PROMPT, {"prefix": "a", "prefixPrompt": "b"}),
        ("POST", PIPELINES, {"name": "p", "stages": [], "pipeline": []}),
        (
            "POST",
            PIPELINES,
            {
                "name": "p",
                "stages": [{"engine": "rtk", "level": "minimal", "intensity": "minimal"}],
            },
        ),
        (
            "POST",
            COMBOS,
            {"name": "c", "models": [{"provider": "a", "providerId": "b", "model": "m"}]},
        ),
        ("POST", COMBOS, {"name": "c", "models": [{"provider": 5, "model": "m"}]}),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_field_under_two_names_is_refused(
    management: Management, method: str, path: str, body: dict[str, Any]
) -> None:
    refused = await management.ask(method, path, body, expect=400)
    assert refused["error"]["code"] == "invalid_request"
