"""`/api/combos` and `/api/models/alias` from the outside."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.gateway.combos.fields import STRATEGIES
from tests.support.management import Management

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

PATH = "/api/combos"
ALIAS = "/api/models/alias"


async def make(management: Management, name: str, *models: Any, **fields: Any) -> Any:
    body = {"name": name, "models": list(models) or ["a/m"], **fields}
    return await management.ask("POST", PATH, body, expect=201)


async def test_a_combo_is_made_listed_read_changed_and_deleted(management: Management) -> None:
    combo = await make(management, "fast", "a/m", {"model": "b/m", "weight": 3}, description="d")
    step = {"connectionId": None, "weight": 0, "label": None, "prompt": None}
    assert combo["models"] == [
        {**step, "kind": "model", "model": "a/m"},
        {**step, "kind": "model", "model": "b/m", "weight": 3},
    ]
    assert (combo["strategy"], combo["isActive"]) == ("priority", True)
    listed = await management.ask("GET", PATH)
    assert listed == {"combos": [combo], "total": 1, "limit": 50, "offset": 0}

    path = f"{PATH}/{combo['id']}"
    changed = await management.ask("PUT", path, {"strategy": "weighted"})
    assert changed == {**combo, "strategy": "weighted", "updatedAt": changed["updatedAt"]}
    assert changed["updatedAt"] > combo["updatedAt"]
    assert await management.ask("GET", path) == changed

    assert await management.ask("DELETE", path) == {"success": True}
    await management.ask("GET", path, expect=404)
    await management.ask("PUT", path, {"name": "x"}, expect=404)
    await management.ask("DELETE", path, expect=404)


async def test_the_relay_gets_what_it_needs(management: Management) -> None:
    await make(management, "inner", {"model": "a/m", "weight": 2})
    config = {"stickyLimit": 4}
    outer = await make(management, "outer", "combo/inner", strategy="weighted", config=config)
    off = await make(management, "off", isActive=False)
    await management.ask("POST", ALIAS, {"alias": "quick", "model": "outer"})
    document = management.snapshot()
    assert [combo["name"] for combo in document["combos"]] == ["inner", "outer"]
    assert document["combos"][1] == {
        "id": outer["id"],
        "name": "outer",
        "strategy": "weighted",
        "steps": [{"kind": "combo-ref", "combo": "inner", "weight": 0}],
        "params": {"sticky_limit": 4},
        "rules": {},
    }
    assert document["combos"][0]["steps"] == [
        {"kind": "model", "model": "a/m", "connection_id": None, "weight": 2, "prompt": None}
    ]
    assert document["aliases"] == {"quick": "outer"}
    await management.ask("PUT", f"{PATH}/{off['id']}", {"isActive": True})
    assert [combo["name"] for combo in management.snapshot()["combos"]][-1] == "off"


async def test_every_strategy_and_its_other_names(management: Management) -> None:
    for strategy in STRATEGIES:
        made = await make(management, f"by {strategy}", strategy=strategy)
        assert made["strategy"] == strategy
    made = await make(management, "old word", strategy="usage")
    assert made["strategy"] == "least-used"


async def test_a_name_is_taken_once(management: Management) -> None:
    await make(management, "one")
    two = await make(management, "two")
    body = {"name": "one", "models": ["a/m"]}
    message, param = await management.refused("POST", PATH, body, expect=409)
    assert ("`one`" in message, param) == (True, "name")
    await management.refused("PUT", f"{PATH}/{two['id']}", {"name": "one"}, expect=409)
    await management.ask("PUT", f"{PATH}/{two['id']}", {"name": "two"})


async def test_a_circle_is_refused_and_told(management: Management) -> None:
    a = await make(management, "a")
    await make(management, "b", "combo/a")
    await make(management, "c", {"kind": "combo-ref", "comboName": "b"})
    message, param = await management.refused("PUT", f"{PATH}/{a['id']}", {"models": ["combo/c"]})
    assert ("a > c > b > a" in message, param) == (True, "models")
    message, _ = await management.refused("PUT", f"{PATH}/{a['id']}", {"models": ["combo/a"]})
    assert "a > a" in message
    message, _ = await management.refused("POST", PATH, {"name": "s", "models": ["combo/s"]})
    assert "s > s" in message


async def test_combos_stand_in_each_other_ten_deep(management: Management) -> None:
    first = await make(management, "c1")
    for depth in range(2, 11):
        await make(management, f"c{depth}", f"combo/c{depth - 1}")
    message, _ = await management.refused("POST", PATH, {"name": "c11", "models": ["combo/c10"]})
    assert "11 levels deep" in message
    await make(management, "below")
    body = {"models": ["combo/below"]}
    message, _ = await management.refused("PUT", f"{PATH}/{first['id']}", body)
    assert "11 levels deep" in message, "from above, too"


async def test_what_is_in_use_stays(management: Management) -> None:
    inner = await make(management, "inner")
    await make(management, "outer", "combo/inner")
    path = f"{PATH}/{inner['id']}"
    message, _ = await management.refused("DELETE", path, expect=409)
    assert "`outer`" in message
    message, _ = await management.refused("PUT", path, {"name": "other"}, expect=409)
    assert "renamed" in message
    await management.ask("PUT", path, {"strategy": "random"})
    lone = await make(management, "lone")
    await management.ask("POST", ALIAS, {"alias": "nick", "model": "combo/lone"})
    message, _ = await management.refused("DELETE", f"{PATH}/{lone['id']}", expect=409)
    assert "`nick`" in message


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"models": []}, "models", "1"),
        ({"models": ["m"]}, "models.0.model", "prefix"),
        ({"models": ["combo/none"]}, "models.0.comboName", "`none`"),
        ({"models": [{"model": "a/m", "weight": 101}]}, None, "100"),
        ({"models": [{"model": "a/m", "prompt": "p"}]}, "models.0.prompt", "pipeline"),
        (
            {"models": [{"model": "a/m", "connectionId": "0" * 8 + "-0000-4000-8000-" + "0" * 12}]},
            "models.0.connectionId",
            "connection",
        ),
        ({"strategy": "best"}, "strategy", "priority"),
        ({"config": {"stickyLimit": 2}}, "config.stickyLimit", "round-robin"),
        ({"config": {"stickyLimit": 0}, "strategy": "weighted"}, "config.stickyLimit", "1"),
        ({"config": {"unknown": 1}}, "config.unknown", ""),
        ({"name": "combo/x"}, "name", "combo/"),
        ({"name": "a\tb"}, "name", "letters"),
        ({"name": "x" * 101}, "name", "100"),
    ],
)
async def test_what_breaks_a_rule_is_refused(
    management: Management, fields: dict[str, Any], param: str | None, words: str
) -> None:
    message, found = await management.refused(
        "POST", PATH, {"name": "n", "models": ["a/m"], **fields}
    )
    assert words in message
    if param is not None:
        assert found == param


async def test_an_empty_change_is_refused(management: Management) -> None:
    combo = await make(management, "one")
    message, _ = await management.refused("PUT", f"{PATH}/{combo['id']}", {})
    assert "No valid fields to update" in message


async def test_aliases(management: Management) -> None:
    assert await management.ask("GET", ALIAS) == {"aliases": {}, "total": 0}
    await make(management, "fast")
    made = await management.ask("POST", ALIAS, {"alias": "gpt-4", "model": "openai/gpt-4o"})
    assert made == {"alias": "gpt-4", "model": "openai/gpt-4o"}
    await management.ask("POST", ALIAS, {"alias": "gpt-4", "model": "combo/fast"})
    await management.ask("POST", ALIAS, {"alias": "any", "model": "auto/cheap"})
    listed = await management.ask("GET", ALIAS)
    assert listed == {"aliases": {"any": "auto/cheap", "gpt-4": "combo/fast"}, "total": 2}
    assert await management.ask("DELETE", ALIAS, alias="gpt-4") == {"success": True}
    await management.ask("DELETE", ALIAS, alias="gpt-4", expect=404)


async def test_an_alias_leads_somewhere_in_one_step(management: Management) -> None:
    await make(management, "fast")
    await management.ask("POST", ALIAS, {"alias": "x", "model": "a/m"})
    for body, status in (
        ({"alias": "y", "model": "x"}, 400),
        ({"alias": "y", "model": "y"}, 400),
        ({"alias": "y", "model": "nothing"}, 400),
        ({"alias": "y", "model": "combo/nothing"}, 400),
        ({"alias": "a/m", "model": "b/m"}, 409),
        ({"alias": "fast", "model": "b/m"}, 409),
        ({"alias": "auto/x", "model": "b/m"}, 400),
        ({"alias": "combo/x", "model": "b/m"}, 400),
    ):
        await management.refused("POST", ALIAS, body, expect=status)
    body = {"name": "x", "models": ["a/m"]}
    message, _ = await management.refused("POST", PATH, body, expect=409)
    assert "alias" in message
