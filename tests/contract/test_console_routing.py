"""Pages of the console for what decides where a request goes: their forms, wrong and right, and two tabs."""

from __future__ import annotations

import html
import re

import pytest

from tests.contract.test_console import MARKUP, add_person, make_connection, post

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

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
    again["config.responseValidation.streams"] = "hold"
    answer = await post(control, admin, place, **again)
    assert answer.status_code == 303, html.unescape(answer.text)
    (after,) = await combos_of(control)
    assert after == combo


WRONG_COMBOS: tuple[tuple[dict[str, str], str, str], ...] = (
    ({"name": ""}, "name", "Name is required"),
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


UNDO = re.compile(r'name="undo" value="([^"]+)"')


async def test_what_was_deleted_comes_back_as_it_was_for_who_deleted_it(control, admin) -> None:
    steps = {"models.0.model": MODEL, "models.0.weight": "70", "models.1.model": "n/two"}
    typed = {"act": "create", "name": "quick", "strategy": "weighted", "isActive": "on"}
    answer = await post(control, admin, "/dashboard/combos/new", **typed, **steps)
    assert answer.status_code == 303, html.unescape(answer.text)
    (before,) = await combos_of(control)
    path = f"/dashboard/combos/{before['id']}"
    gone = await post(control, admin, path, act="delete", confirmed="yes")
    assert await combos_of(control) == []
    page = await shown(control, admin, gone.headers["location"])
    found = UNDO.search(page)
    assert found is not None
    other = await add_person(control, "admin", "other")
    assert UNDO.search(await shown(control, other, gone.headers["location"])) is None
    refused = await post(control, other, "/dashboard/undo", undo=found[1])
    assert (refused.status_code, await combos_of(control)) == (404, [])

    back = await post(control, admin, "/dashboard/undo", undo=found[1])
    assert back.status_code == 303, html.unescape(back.text)
    assert "It is back as it was." in await shown(control, admin, back.headers["location"])
    (after,) = await combos_of(control)
    own = ("id", "createdAt", "updatedAt")
    assert {name: value for name, value in after.items() if name not in own} == {
        name: value for name, value in before.items() if name not in own
    }
    again = await post(control, admin, "/dashboard/undo", undo=found[1])
    assert again.status_code == 404, "once"
    assert "too late" in again.text


async def test_names_and_prices_come_back(control, admin) -> None:
    await make_connection(control)
    names = "/dashboard/models/names"
    await post(control, admin, names, act="alias", alias="smart", model=MODEL)
    place = "/dashboard/models/model?id=openai%2Fgpt-4o"
    price = {"openai": {"gpt-4o": {"input": 1.5, "output": 3.25}}}
    set_ = await control.client.put("/api/pricing", json=price)
    assert set_.status_code == 200, set_.text

    async def state() -> tuple[dict, dict]:
        aliases = (await control.client.get("/api/models/alias")).json()["aliases"]
        prices = (await control.client.get("/api/pricing?provider=openai")).json()
        return aliases, prices["openai"].get("gpt-4o")

    before = await state()
    for path, typed in (
        (names, {"act": "drop_alias", "alias": "smart"}),
        (place, {"act": "unset"}),
    ):
        gone = await post(control, admin, path, **typed, confirmed="yes")
        assert await state() != before
        found = UNDO.search(await shown(control, admin, gone.headers["location"]))
        assert found is not None, path
        back = await post(control, admin, "/dashboard/undo", undo=found[1])
        assert back.status_code == 303, html.unescape(back.text)
        assert await state() == before


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


WRONG_PRICES: tuple[tuple[dict[str, str], str, str], ...] = (
    ({"price.input": ""}, "price-input", "at least one price"),
    ({"price.input": "-1"}, "price-input", "greater than or equal to 0"),
    ({"price.output": "dear"}, "price-output", "must be a number"),
    ({"price.tiers": "flex input=x"}, "price-tiers", "no part of a tier"),
    ({"price.tiers": "input=1"}, "price-tiers", "`service` or `above`"),
    ({"price.tiers": "cheap input=1"}, "price-tiers", "service"),
)


async def test_a_model_is_priced_described_and_left_as_it_was(control, admin) -> None:
    await make_connection(control)
    place = "/dashboard/models/model?id=openai%2Fgpt-4o"
    page = await shown(control, admin, place)
    assert 'value="2.5"' in page
    assert "batch input=1.25 output=5" in page
    stamps = re.findall(r'name="seen" value="([^"]+)"', page)
    price = {"act": "price", "seen": stamps[0], "price.input": "3", "price.output": "9.5"}
    for wrong, field, words in WRONG_PRICES:
        typed = price | {"price.output": ""} | wrong
        await check_wrong(control, admin, place, typed, field, words)
    tiers = "above=200000 input=6\r\nflex cachedInput=0.25"
    answer = await post(control, admin, place, **price, **{"price.tiers": tiers})
    assert answer.status_code == 303, html.unescape(answer.text)
    assert answer.headers["location"].startswith(place)
    set_ = (await control.client.get("/api/pricing")).json()["openai"]["gpt-4o"]
    assert (set_["input"], set_["output"], set_["source"]) == (3, 9.5, "operator")
    assert [(each["service"], each["above"]) for each in set_["tiers"]] == [
        (None, 200_000),
        ("flex", None),
    ]
    answer = await post(control, admin, place, **(price | {"price.input": "4"}))
    assert answer.status_code == 409, "the other tab has set it"
    assert 'value="4"' in answer.text
    page = await shown(control, admin, place)
    assert "above=200000 input=6" in page
    assert 'value="$3"' not in page
    said = {"act": "settings", "seen": re.findall(r'name="seen" value="([^"]+)"', page)[1]}
    typed = said | {"modelName": MARKUP, "contextWindowOverride": "0"}
    await check_wrong(control, admin, place, typed, "contextWindowOverride", "1")
    answer = await post(control, admin, place, **(typed | {"contextWindowOverride": "64000"}))
    assert answer.status_code == 303
    rows = (await control.client.get("/api/provider-models")).json()["modelCompatOverrides"]
    assert [each["contextWindowOverride"] for each in rows] == [64_000]
    listed = await control.client.get("/dashboard/models?q=gpt-4o", headers=admin)
    assert "<script>alert" not in listed.text
    for act, where in (("unset", "/api/pricing"), ("forget", "/api/provider-models")):
        assert "confirmed" in (await post(control, admin, place, act=act)).text
        answer = await post(control, admin, place, act=act, confirmed="yes")
        assert answer.status_code == 303, (act, where)
    assert "openai" not in (await control.client.get("/api/pricing")).json()
    for nowhere in ("openai%2Fno-such", "nowhere%2Fx", "x", ""):
        answer = await control.client.get(f"/dashboard/models/model?id={nowhere}", headers=admin)
        assert answer.status_code in (400, 404), nowhere


async def test_facts_of_a_model_are_shown_set_and_restored(control, admin) -> None:
    await make_connection(control)
    place = "/dashboard/models/model?id=openai%2Fgpt-5.2-codex"
    page = await shown(control, admin, place)
    for words in (
        "Facts in force",
        "catalogue, family",
        "gpt-5.2-codex*",
        "litellm",
        "Longest user",
    ):
        assert words in page
    assert "set here" not in page
    seen = re.findall(r'name="seen" value="([^"]+)"', page)[2]
    typed = {"act": "facts", "seen": seen, "facts.userMost": "32", "refuses": "seed\r\nlogit_bias"}
    for wrong, field, words in (
        ({"facts.userMost": "-1"}, "facts.userMost", "0"),
        ({"facts.userMost": "many"}, "facts.userMost", "whole number"),
        ({"refuses": "model"}, "refuses", "every request needs"),
        ({"facts.toolNames.most": "3"}, "facts.toolNames.letters", "required"),
        ({"facts.prefill": "never"}, "facts.prefill", "choices"),
    ):
        await check_wrong(control, admin, place, typed | wrong, field, words)
    assert (await post(control, admin, place, **typed)).status_code == 303
    rows = (await control.client.get("/api/provider-models")).json()["modelCompatOverrides"]
    assert (rows[0]["facts"]["userMost"], rows[0]["refuses"]) == (32, ["seed", "logit_bias"])
    page = await shown(control, admin, place)
    assert page.count("set here") == 2
    assert 'value="32"' in page
    assert (await post(control, admin, place, **typed)).status_code == 409, "it was read before"
    seen = re.findall(r'name="seen" value="([^"]+)"', page)[1]
    uses = {"act": "settings", "seen": seen, "type": "embedding", "supportsVision": "false"}
    assert (await post(control, admin, place, **uses)).status_code == 303
    rows = (await control.client.get("/api/provider-models")).json()["modelCompatOverrides"]
    assert (rows[0]["type"], rows[0]["supportsVision"]) == ("embedding", False)
    assert rows[0]["facts"]["userMost"] == 32, "the other form keeps it"
    answer = await post(control, admin, place, act="forget", confirmed="yes")
    assert answer.status_code == 303
    assert "set here" not in await shown(control, admin, place)


async def test_a_connection_says_what_its_provider_refuses(control, admin) -> None:
    connection = await make_connection(control)
    place = f"/dashboard/providers/{connection}"
    typed = {
        "act": "change",
        "seen": seen_in(await shown(control, admin, place)),
        "name": "one",
        "providerSpecificData.inexpressible": "drop",
        "providerSpecificData.refuses": "seed",
    }
    answer = await post(control, admin, place, **typed)
    assert answer.status_code == 303, html.unescape(answer.text)
    path = f"/api/providers/{connection}"
    specific = (await control.client.get(path)).json()["connection"]["providerSpecificData"]
    assert (specific["inexpressible"], specific["refuses"]) == ("drop", ["seed"])
    for lines, expected in (("-", []), ("", None)):
        seen = seen_in(await shown(control, admin, place))
        typed |= {"seen": seen, "providerSpecificData.refuses": lines}
        assert (await post(control, admin, place, **typed)).status_code == 303
        specific = (await control.client.get(path)).json()["connection"]["providerSpecificData"]
        assert specific["refuses"] == expected
    wrong = {"seen": seen_in(await shown(control, admin, place))}
    wrong |= {"providerSpecificData.refuses": "messages"}
    field = "providerSpecificData.refuses"
    await check_wrong(control, admin, place, typed | wrong, field, "every request needs")


async def test_a_group_says_what_happens_to_refused_members(control, admin) -> None:
    typed = {"act": "create", "name": "team", "inexpressible": "drop"}
    answer = await post(control, admin, "/dashboard/groups/new", **typed)
    assert answer.status_code == 303, html.unescape(answer.text)
    (group,) = (await control.client.get("/api/groups")).json()["groups"]
    assert group["inexpressible"] == "drop"
    place = f"/dashboard/groups/{group['id']}"
    page = await shown(control, admin, place)
    assert '<option value="drop" selected>' in page
    change = {"act": "change", "seen": seen_in(page), "name": "team", "inexpressible": ""}
    assert (await post(control, admin, place, **change)).status_code == 303
    assert (await control.client.get(f"/api/groups/{group['id']}")).json()["inexpressible"] is None
    refused = await control.client.patch(
        f"/api/groups/{group['id']}", json={"inexpressible": "ignore"}
    )
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "inexpressible")


async def test_models_are_searched_and_walked_page_by_page(control, admin) -> None:
    page = await shown(control, admin, "/dashboard/models")
    rows = re.findall(r'href="/dashboard/models/model\?id=([^"]+)"', page)
    assert len(rows) == 50
    after = re.search(r'href="(\?after=[^"]+)">Next', page)
    assert after is not None
    second = await shown(control, admin, f"/dashboard/models{after[1]}")
    assert not set(rows) & set(re.findall(r'model\?id=([^"]+)"', second))
    assert "From the start" in second
    found = await shown(control, admin, "/dashboard/models?q=GPT-4o-mini&capability=vision")
    assert "openai/gpt-4o-mini" in found
    nothing = await shown(control, admin, "/dashboard/models?q=%3Cscript%3Ealert")
    assert "No model matches" in nothing
    wrong = await shown(control, admin, "/dashboard/models?type=poems")
    assert 'role="alert"' in wrong


async def test_names_for_models_are_made_pointed_elsewhere_and_deleted(control, admin) -> None:
    await make_connection(control)
    made = await control.client.post("/api/combos", json={"name": "one", "models": [MODEL]})
    combo = made.json()["id"]
    place = "/dashboard/models/names"
    alias = {"act": "alias", "alias": "smart", "model": "combo/one"}
    for wrong, field, words in (
        ({"alias": ""}, "alias", "required"),
        ({"alias": "a b"}, "alias", "without blanks"),
        ({"model": "x*"}, "model", "without control characters"),
    ):
        await check_wrong(control, admin, place, alias | wrong, field, words)
    assert (await post(control, admin, place, **alias)).status_code == 303
    assert (await post(control, admin, place, **(alias | {"model": MODEL}))).status_code == 303
    aliases = (await control.client.get("/api/models/alias")).json()["aliases"]
    assert aliases == {"smart": MODEL}
    mapping = {"act": "map", "pattern": "n/t*", "comboId": combo, "enabled": "on", "priority": "7"}
    for wrong, field, words in (
        ({"pattern": "*"}, "pattern", "pattern"),
        ({"comboId": ""}, "comboId", "Choose the combo"),
        ({"priority": "high"}, "priority", "whole number"),
    ):
        await check_wrong(control, admin, place, mapping | wrong, field, words)
    assert (await post(control, admin, place, **mapping)).status_code == 303
    (stored,) = (await control.client.get("/api/model-combo-mappings")).json()["mappings"]
    assert (stored["priority"], stored["enabled"]) == (7, True)
    own = f"/dashboard/models/mappings/{stored['id']}"
    seen = seen_in(await shown(control, admin, own))
    typed = mapping | {"act": "change", "seen": seen, "pattern": "n/tw*"}
    assert (await post(control, admin, own, **typed)).status_code == 303
    assert (await post(control, admin, own, **typed)).status_code == 409
    answer = await post(control, admin, own, act="delete", confirmed="yes")
    assert answer.status_code == 303
    answer = await post(control, admin, place, act="drop_alias", alias="smart", confirmed="yes")
    assert answer.status_code == 303
    assert (await control.client.get("/api/models/alias")).json()["total"] == 0
    assert (await control.client.get("/api/model-combo-mappings")).json()["total"] == 0


async def test_guardrails_are_changed_over_what_was_shown_and_tried(control, admin) -> None:
    place = "/dashboard/guardrails"
    page = await shown(control, admin, place)
    revision = re.search(r'name="settingsRevision" value="(\d+)"', page)
    assert revision is not None
    change = {"act": "change", "settingsRevision": revision[1], "guardrailPiiMasker": "redact"}
    answer = await post(control, admin, place, **change)
    assert answer.status_code == 303, html.unescape(answer.text)
    answer = await post(control, admin, place, **(change | {"guardrailPiiMasker": "block"}))
    assert answer.status_code == 409, "the second tab is told"
    answer = await post(control, admin, place, **(change | {"guardrailPiiMasker": "explode"}))
    assert answer.status_code == 400
    settings = (await control.client.get("/api/settings")).json()
    assert settings["guardrailPiiMasker"] == "redact"
    await check_wrong(control, admin, place, {"act": "try", "input": " "}, "input", "Type a text")
    text = f"Write to ada@example.org {MARKUP}"
    answer = await post(control, admin, place, act="try", input=text)
    assert answer.status_code == 200
    assert "<script>alert" not in answer.text
    found = html.unescape(answer.text)
    assert "replaced by a mark" in found
    assert f">{text}" not in found.partition('id="result"')[2].partition("</section>")[0]
    without = {"disabledGuardrails:pii-masker": "on"}
    answer = await post(control, admin, place, act="try", input=text, **without)
    assert "not run" in answer.text
    body = '{"messages": [{"role": "user", "content": "ada@example.org"}]}'
    answer = await post(control, admin, place, act="try", input=body)
    assert '"role": "user"' in html.unescape(answer.text)


async def test_pipelines_are_made_assigned_previewed_and_deleted(control, admin) -> None:
    made = await control.client.post("/api/combos", json={"name": "one", "models": [MODEL]})
    combo = made.json()["id"]
    new = "/dashboard/context/pipelines/new"
    typed = {"act": "create", "name": "ours", "description": MARKUP, f"combos:{combo}": "on"}
    for wrong, field, words in (
        ({"stages": ""}, "stages", "at least one"),
        ({"stages": "lite hardest"}, "stages", "no level"),
        ({"stages": "nothing"}, "stages", "must be one of"),
        ({"stages": "lite", "name": "lite"}, "name", "modes"),
    ):
        await check_wrong(control, admin, new, typed | wrong, field, words)
    answer = await post(control, admin, new, **typed, stages="lite\r\nrtk aggressive")
    assert answer.status_code == 303, html.unescape(answer.text)
    (pipeline,) = (await control.client.get("/api/context/combos")).json()["combos"]
    assert pipeline["stages"] == [
        {"engine": "lite", "level": "standard"},
        {"engine": "rtk", "level": "aggressive"},
    ]
    path = f"/api/context/combos/{pipeline['id']}/assignments"
    assigned = (await control.client.get(path)).json()["assignments"]
    assert [each["id"] for each in assigned] == [combo]
    place = f"/dashboard/context/pipelines/{pipeline['id']}"
    page = await shown(control, admin, place)
    assert "rtk aggressive" in page
    change = typed | {"act": "change", "seen": seen_in(page), "stages": "lite"}
    del change[f"combos:{combo}"]
    assert (await post(control, admin, place, **change)).status_code == 303
    assert (await control.client.get(path)).json()["assignments"] == []
    assert (await post(control, admin, place, **change)).status_code == 409
    page = await shown(control, admin, "/dashboard/context")
    seen = seen_in(page)
    set_ = {"act": "change", "seen": seen, "mode": "ours", "automaticTokens": "0"}
    set_ |= {"automaticMode": "standard"}
    await check_wrong(
        control,
        admin,
        "/dashboard/context",
        set_ | {"automaticTokens": "few"},
        "automaticTokens",
        "whole",
    )
    assert (await post(control, admin, "/dashboard/context", **set_)).status_code == 303
    assert (await post(control, admin, "/dashboard/context", **set_)).status_code == 409
    answer = await post(control, admin, place, act="delete", confirmed="yes")
    assert answer.status_code == 409, "a setting names it"
    preview = "/dashboard/context/preview"
    await check_wrong(
        control, admin, preview, {"act": "preview", "text": ""}, "text", "Type a text"
    )
    text = f"so   many    blanks\n\n\n\n\nand {MARKUP}\n\n\n\nthe end   "
    answer = await post(control, admin, preview, act="preview", mode="lite", text=text)
    assert answer.status_code == 200, html.unescape(answer.text)
    assert "<del>" in answer.text
    assert "<script>alert" not in answer.text
    answer = await post(control, admin, preview, act="preview", mode="no such", text=text)
    assert answer.status_code == 400
    assert "many    blanks" in answer.text
