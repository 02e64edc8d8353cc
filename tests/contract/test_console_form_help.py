"""Forms that help: the step that was added has the focus, unknown models are named, no group is part of itself."""

from __future__ import annotations

import html
import re

import pytest

from fairlead.dashboard.combo_form import edited_step, unserved_steps
from tests.contract.test_console import admin as admin  # noqa: PLC0414 - a fixture
from tests.contract.test_console import make_combo, make_connection, post
from tests.contract.test_console_reasons import text_of

pytestmark = pytest.mark.anyio

STEPS = {"models.0.model": "n/one", "models.1.model": "n/two", "models.2.model": "n/three"}


@pytest.mark.parametrize(
    ("edit", "place"),
    [("add", 2), ("up:2", 1), ("down:0", 1), ("drop:2", 2), ("up:0", 0), ("nonsense:1", None)],
)
def test_the_step_that_was_edited_is_known(edit: str, place: int | None) -> None:
    assert edited_step(STEPS, edit) == place


async def test_the_step_that_was_added_or_moved_has_the_focus(control, admin) -> None:
    typed = {"act": "create", "name": "c", "strategy": "priority", **STEPS}
    for edit, name in (("add", "models.3.model"), ("up:2", "models.1.model")):
        answer = await post(control, admin, "/dashboard/combos/new", **typed, edit=edit)
        (focused,) = re.findall(r'<input id="([^"]*)"[^>]* autofocus', answer.text)
        assert focused == f"f-{name.replace('.', '-')}"
    plain = await control.client.get("/dashboard/combos/new", headers=admin)
    assert "autofocus" not in plain.text


CATALOGUE = {
    "providers": [
        {
            "id": "openai",
            "prefix": "openai",
            "name": "OpenAI",
            "asOf": "2026-11-21",
            "models": {"chat": [{"id": "openai/gpt-4o"}]},
        },
        {"id": "node-1", "prefix": "lab", "name": "Lab", "asOf": None, "models": {}},
    ]
}


def test_a_step_whose_model_nobody_is_known_to_serve_is_named() -> None:
    known = ["openai/gpt-4o", "lab/anything", "openai/gpt-*", "bare-name"]
    assert unserved_steps([{"kind": "model", "model": each} for each in known], CATALOGUE) == []
    assert unserved_steps([{"kind": "combo-ref", "comboName": "x"}], CATALOGUE) == []
    (unknown,) = unserved_steps([{"model": "openai/gpt-9-nonexistent"}], CATALOGUE)
    assert unknown.startswith(
        "Step 1: `openai/gpt-9-nonexistent` is in no list of OpenAI's models."
    )
    (nobody,) = unserved_steps([{"model": "lab/m"}, {"model": "groq/m"}], CATALOGUE)
    assert nobody == "Step 2: no connection serves `groq/m`."


async def test_the_page_of_a_combo_says_which_step_nobody_serves(control, admin) -> None:
    combo = await make_combo(control)
    path = f"/dashboard/combos/{combo}"
    before = await control.client.get(path, headers=admin)
    assert "Step 1: no connection serves `n/one`." in text_of(before.text)
    await make_connection(control)
    after = await control.client.get(path, headers=admin)
    assert "no connection serves" not in after.text


async def test_a_group_is_part_of_neither_itself_nor_a_group_below_it(control, admin) -> None:
    made = await control.client.post("/api/groups", json={"name": "top"})
    top = made.json()["id"]
    below = await control.client.post("/api/groups", json={"name": "below", "parentId": top})
    other = await control.client.post("/api/groups", json={"name": "other"})

    async def offered(path: str) -> set[str]:
        page = (await control.client.get(path, headers=admin)).text
        (field,) = re.findall(r'<select id="f-parentId".*?</select>', page, re.DOTALL)
        return set(re.findall(r'<option value="([^"]+)"', field))

    ids = {top, below.json()["id"], other.json()["id"]}
    assert await offered("/dashboard/groups/new") == ids
    assert await offered(f"/dashboard/groups/{top}") == {other.json()["id"]}


async def test_settings_have_an_index_and_a_bar_for_saving(control, admin) -> None:
    page = (await control.client.get("/dashboard/settings", headers=admin)).text
    (index,) = re.findall(r'<nav class="index".*?</nav>', page, re.DOTALL)
    for place in re.findall(r'href="#([^"]+)"', index):
        assert f'id="{place}"' in page, place
    assert 'class="record long"' in page


async def test_the_form_of_a_provider_has_its_own_fields_and_links_its_keys(control, admin) -> None:
    openai = (await control.client.get("/dashboard/providers/new/openai", headers=admin)).text
    assert "https://platform.openai.com/api-keys" in openai
    assert 'rel="noreferrer"' in openai
    for other in ("AWS", "Google service account", "Workspace", "Region"):
        assert other not in openai, other
    bedrock = (await control.client.get("/dashboard/providers/new/bedrock", headers=admin)).text
    assert "AWS access key id" in bedrock
    assert "Region" in bedrock
    choice = text_of((await control.client.get("/dashboard/providers/new", headers=admin)).text)
    assert choice.index("Popular") < choice.index("Clouds") < choice.index("On your machine")


async def test_a_coding_tool_has_commands_for_the_visitors_machine(control, admin) -> None:
    asked = {"system": "powershell", "model": "lab/m"}
    page = await control.client.get("/dashboard/cli-code/claude", params=asked, headers=admin)
    assert page.status_code == 200
    shown = text_of(page.text)
    assert "$env:ANTHROPIC_MODEL = 'lab/m'" in shown
    assert "YOUR-KEY" in shown
    plain = await control.client.get("/dashboard/cli-code/codex", headers=admin)
    assert "export FAIRLEAD_CODEX_KEY=YOUR-KEY" in text_of(plain.text)
    body = {"tool": "claude", "model": "lab/m", "apiKey": "k", "elsewhere": True}
    answer = (await control.client.post("/api/cli-tools/apply", json=body)).json()
    assert answer["files"] == []
    assert "export ANTHROPIC_AUTH_TOKEN=k" in answer["commands"]["shell"]


async def test_a_preset_of_a_new_key_is_in_force_when_the_form_is_sent(control, admin) -> None:
    path = "/dashboard/keys/new"
    page = (await control.client.get(path, params={"preset": "ci"}, headers=admin)).text
    typed = {
        html.unescape(name): html.unescape(value)
        for name, value in re.findall(r'<input id="f-[^"]*" name="([^"]*)" value="([^"]*)"', page)
    }
    lines = dict(
        re.findall(r'<textarea id="f-[^"]*" name="([^"]*)"[^>]*>\n([^<]*)</textarea>', page)
    )
    made = await post(
        control, admin, path, **{"act": "create", **typed, **lines, "name": "ci", "isActive": "on"}
    )
    assert made.status_code == 201, made.text
    (key,) = (await control.client.get("/api/keys")).json()["keys"]
    assert (key["usageLimitEnabled"], key["dailyUsageLimitUsd"]) == (True, 5)
    assert key["rateLimits"] == [{"limit": 60, "window": 60}]
    assert key["expiresAt"] is not None
    unknown = await control.client.get(path, params={"preset": "nonsense"}, headers=admin)
    assert unknown.status_code == 200
