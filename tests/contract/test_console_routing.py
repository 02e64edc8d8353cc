"""Pages of the console for what decides where a request goes: their forms, wrong and right, and two tabs."""

from __future__ import annotations

import html
import re

import pytest

from tests.contract.test_console import MARKUP, add_person, make_connection, post

pytestmark = pytest.mark.anyio

MODEL = "n/one"


@pytest.fixture
async def admin(control) -> dict[str, str]:
    return await add_person(control, "admin")


async def shown(control, who: dict[str, str], path: str) -> str:
    answer = await control.client.get(path, headers=who)
    assert answer.status_code == 200, answer.text
    return html.unescape(answer.text)


def seen_in(text: str) -> str:
    found = re.search(r'name="seen" value="([^"]+)"', text)
    assert found is not None
    return found[1]


async def combos_of(control) -> list[dict]:
    return (await control.client.get("/api/combos")).json()["combos"]


async def test_a_combo_is_made_with_every_kind_of_field_and_reads_back(control, admin) -> None:
    connection = await make_connection(control)
    steps = {
        "models.0.model": MODEL,
        "models.0.connectionId": connection,
        "models.0.weight": "70",
        "models.0.label": "the first",
        "models.2.model": "n/two",
        "models.2.weight": "30",
        "models.1.model": "",
    }
    typed = {
        "act": "create",
        "name": "quick",
        "description": MARKUP,
        "isActive": "on",
        "strategy": "weighted",
        "config.stickyLimit": "5",
        "config.comboTimeoutMs": "0",
        "config.contextRequirements.minContextWindow": "8000",
        "config.contextRequirements.contextFilterMode": "strict",
        "config.responseValidation.requiredSubstrings": "one\r\ntwo",
        "config.responseValidation.forbiddenSubstrings": "",
        "config.responseValidation.jsonPathPredicates": 'a.0 nonEmpty\r\nok equals true\r\nno equals "x y"',
        "config.shadowRouting.enabled": "on",
        "config.shadowRouting.targets": "n/three",
        "config.shadowRouting.sampleRate": "0.5",
        "allowedProviders": "n",
        "systemMessage": "Be brief.\r\nBe kind.",
        "contextLength": "100000",
    }
    answer = await post(control, admin, "/dashboard/combos/new", **typed, **steps)
    assert answer.status_code == 303, html.unescape(answer.text)
    (combo,) = await combos_of(control)
    assert [(each["model"], each["weight"]) for each in combo["models"]] == [
        (MODEL, 70),
        ("n/two", 30),
    ]
    assert combo["models"][0]["connectionId"] == connection
    config = {name: value for name, value in combo["config"].items() if value is not None}
    assert config["stickyLimit"] == 5
    assert config["comboTimeoutMs"] == 0
    assert config["contextRequirements"]["contextFilterMode"] == "strict"
    assert config["responseValidation"]["requiredSubstrings"] == ["one", "two"]
    told = [each.get("value") for each in config["responseValidation"]["jsonPathPredicates"]]
    assert told == [None, True, "x y"]
    assert config["shadowRouting"]["sampleRate"] == 0.5
    assert combo["systemMessage"] == "Be brief.\nBe kind."
    place = f"/dashboard/combos/{combo['id']}"
    page = await shown(control, admin, place)
    for kept in ('no equals "x y"', "n/three", "Be brief.", 'value="70"', "the first"):
        assert kept in page, kept
    # Saved as it was shown, nothing has changed.
    again = {**typed, **steps, "act": "change", "seen": seen_in(page)}
    again |= {"config.shadowRouting.maxTargets": "1", "config.shadowRouting.timeoutMs": "60000"}
    answer = await post(control, admin, place, **again)
    assert answer.status_code == 303, html.unescape(answer.text)
    (after,) = await combos_of(control)
    assert after == combo


WRONG_COMBOS: tuple[tuple[dict[str, str], str, str], ...] = (
    ({"name": ""}, "name", "Name is needed"),
    ({"name": "combo/x"}, "name", "letters, digits"),
    ({"models.0.model": "without-a-prefix"}, "models-0-model", "has no provider prefix"),
    ({"models.1.model": "combo/nowhere"}, "models-1-model", "there is no combo"),
    ({"models.1.model": MODEL, "models.1.weight": "ten"}, "models-1-weight", "whole number"),
    ({"models.1.model": MODEL, "models.1.weight": "900"}, "models-1-weight", "100"),
    ({"models.1.model": MODEL, "models.1.prompt": "x"}, "models-1-prompt", "pipeline"),
    ({"config.judgeModel": "n/judge"}, "config-judgeModel", "fusion"),
    ({"config.targetTimeoutMs": "soon"}, "config-targetTimeoutMs", "whole number"),
    ({"toolFilterRegex": "(?=x)"}, "toolFilterRegex", "no pattern"),
    (
        {"config.responseValidation.jsonPathPredicates": "a.b is fine"},
        "config-responseValidation-jsonPathPredicates",
        "is no condition",
    ),
    ({"config.shadowRouting.enabled": "on"}, "config-shadowRouting-targets", "targets"),
    ({"allowedProviders": "a/b"}, "allowedProviders", "prefix"),
)


async def test_what_is_wrong_with_a_combo_stands_by_its_field(control, admin) -> None:
    typed = {"act": "create", "name": "kept", "strategy": "priority", "models.0.model": MODEL}
    for wrong, field, words in WRONG_COMBOS:
        await check_wrong(control, admin, "/dashboard/combos/new", typed | wrong, field, words)
    assert await combos_of(control) == []


async def check_wrong(control, who, path: str, typed: dict[str, str], field: str, words: str):
    """Sends a wrong form: the error stands by its field, and what was typed stays."""
    answer = await post(control, who, path, **typed)
    assert answer.status_code == 400, answer.text
    page = html.unescape(answer.text)
    error = re.search(rf'id="f-{field}-error">([^<]*)<', page)
    assert error is not None, re.findall(r'class="error"[^>]*>([^<]*)<', page)
    assert words in error[1]
    for name, value in typed.items():
        if name != "act" and value != "on":
            assert value in page, name


async def test_rows_are_added_moved_and_removed_without_losing_what_was_typed(
    control, admin
) -> None:
    typed = {
        "act": "create",
        "name": "half",
        "config.stickyLimit": "not yet",
        "models.0.model": "n/a",
        "models.1.model": "n/b",
    }

    async def press(edit: str) -> list[str]:
        answer = await post(control, admin, "/dashboard/combos/new", **typed, edit=edit)
        assert answer.status_code == 200
        assert 'value="not yet"' in answer.text
        assert "data-edited" in answer.text
        assert 'role="alert"' not in answer.text
        return re.findall(r'name="models\.\d+\.model" value="([^"]*)"', answer.text)

    assert await press("add") == ["n/a", "n/b", ""]
    assert await press("down:0") == ["n/b", "n/a"]
    assert await press("up:0") == ["n/a", "n/b"]
    assert await press("drop:0") == ["n/b"]
    assert await press("drop:7") == ["n/a", "n/b"]
    assert await combos_of(control) == []


async def test_the_second_tab_with_a_combo_is_told(control, admin) -> None:
    made = await control.client.post("/api/combos", json={"name": "one", "models": [MODEL]})
    place = f"/dashboard/combos/{made.json()['id']}"
    seen = seen_in(await shown(control, admin, place))
    typed = {"act": "change", "seen": seen, "strategy": "priority", "models.0.model": MODEL}
    answer = await post(control, admin, place, **typed, name="from the first")
    assert answer.status_code == 303, html.unescape(answer.text)
    answer = await post(control, admin, place, **typed, name="from the second")
    assert answer.status_code == 409
    assert "changed this in the meantime" in answer.text
    assert 'value="from the second"' in answer.text
    # A row that is added in between does not make the form a fresh one.
    answer = await post(control, admin, place, **typed, name="from the second", edit="add")
    assert seen_in(answer.text) == seen
    (combo,) = await combos_of(control)
    assert (combo["name"], combo["isActive"]) == ("from the first", False)


async def test_combos_are_put_in_an_order_copied_and_deleted(control, admin) -> None:
    for name in ("a", "b", "c"):
        await control.client.post("/api/combos", json={"name": name, "models": [MODEL]})
    there = {each["name"]: each["id"] for each in await combos_of(control)}

    async def order(**typed: str) -> str:
        answer = await post(control, admin, "/dashboard/combos", act="reorder", **typed)
        assert answer.status_code == 303, answer.text
        return "".join(each["name"] for each in await combos_of(control))

    assert await order(id=there["c"], move="up") == "acb"
    assert await order(id=there["a"], move="up") == "acb"
    assert await order(id=there["a"], move="down") == "cab"
    assert await order(order=f"{there['b']},{there['a']},{there['c']}") == "bac"
    answer = await post(control, admin, "/dashboard/combos", act="reorder", id="gone", move="up")
    assert answer.status_code == 404
    assert "not here any more" in answer.text
    answer = await post(control, admin, "/dashboard/combos", act="reorder", order="")
    assert answer.status_code == 400
    place = f"/dashboard/combos/{there['a']}"
    answer = await post(control, admin, place, act="duplicate")
    assert answer.status_code == 303
    copy = next(each for each in await combos_of(control) if each["name"] == "a copy")
    assert answer.headers["location"].startswith(f"/dashboard/combos/{copy['id']}?")
    assert copy["isActive"] is False
    answer = await post(control, admin, place, act="delete")
    assert "Delete the combo a?" in answer.text
    answer = await post(control, admin, place, act="delete", confirmed="yes")
    assert answer.status_code == 303
    assert there["a"] not in {each["id"] for each in await combos_of(control)}


async def test_a_simulation_says_what_is_wrong_with_its_request(control, admin) -> None:
    place = "/dashboard/combos/simulate"
    for wrong, field in (("{", "request"), ("[]", "request")):
        answer = await post(control, admin, place, act="simulate", comboName="x", request=wrong)
        assert answer.status_code == 400
        assert f'id="f-{field}-error"' in answer.text
        assert 'value="x"' in answer.text
    answer = await post(control, admin, place, act="simulate", comboName=" ")
    assert answer.status_code == 400
    assert 'id="f-comboName-error"' in answer.text
