"""`/api/agent-skills` and `/api/v1/agents/tasks`: what is stored, what is refused, and in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.agents import task_table
from fairlead.agents.runner import conversation
from fairlead.agents.skill import slug_of
from fairlead.agents.task import Message, text_part
from tests.support.management import Management

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

SKILLS = "/api/agent-skills"
TASKS = "/api/v1/agents/tasks"
SKILL = {"name": "reviewer", "description": "Reviews code.", "prompt": "You review code."}


async def make(management: Management, **fields: Any) -> dict[str, Any]:
    return await management.ask("POST", SKILLS, {**SKILL, **fields}, expect=201)


async def test_a_skill_is_made_shown_changed_and_deleted(management: Management) -> None:
    made = await make(management, name="Code Reviewer", model="openai/gpt-4o", temperature=0.2)
    assert made["slug"] == "code-reviewer"
    assert made["path"] == "/agents/code-reviewer"
    assert made["apiKeyId"] is None
    assert made["allowedClients"] == []
    path = f"{SKILLS}/{made['id']}"
    assert await management.ask("GET", path) == made
    raw = await management.ask("GET", f"{path}/raw")
    assert raw == {
        "name": "Code Reviewer",
        "description": "Reviews code.",
        "prompt": "You review code.",
        "model": "openai/gpt-4o",
        "temperature": 0.2,
    }
    changed = await management.ask("PUT", path, {"model": None, "name": "critic"})
    assert (changed["model"], changed["slug"]) == (None, "critic")
    assert (changed["prompt"], changed["temperature"]) == ("You review code.", 0.2)
    assert changed["updatedAt"] > made["updatedAt"]
    assert (await management.ask("GET", f"{path}/raw"))["model"].startswith("auto/")
    listed = await management.ask("GET", SKILLS)
    assert (listed["skills"], listed["total"]) == ([changed], 1)
    assert await management.ask("DELETE", path) == {"success": True}
    for method in ("GET", "DELETE"):
        assert await management.refused(method, path, expect=404) == (
            "There is no agent skill with this id.",
            "id",
        )


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "…"}, "name"),
        ({"description": " "}, "description"),
        ({"description": "x" * 2001}, "description"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "x" * 100_001}, "prompt"),
        ({"model": "two words"}, "model"),
        ({"model": "x" * 301}, "model"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"apiKeyId": "no such key"}, "apiKeyId"),
        ({"apiKeyId": "3a3f9d5e-1111-4222-8333-444455556666"}, "apiKeyId"),
        ({"allowedClients": ["two words"]}, "allowedClients[0]"),
        ({"allowedClients": ["c"] * 101}, "allowedClients"),
        ({"id": "mine"}, "id"),
        ({"createdAt": "2026-01-01T00:00:00Z"}, "createdAt"),
    ],
)
async def test_a_field_that_breaks_its_rule_is_named(
    management: Management, fields: dict[str, Any], param: str
) -> None:
    message, named = await management.refused("POST", SKILLS, {**SKILL, **fields})
    assert named == param
    assert param in message
    assert (await management.ask("GET", SKILLS))["total"] == 0


async def test_the_limits_themselves_are_taken(management: Management) -> None:
    made = await make(
        management, name="x" * 200, description="x" * 2000, prompt="x" * 100_000, temperature=2.0
    )
    assert len(made["slug"]) == 64
    await management.ask("PUT", f"{SKILLS}/{made['id']}", {"temperature": 0.0})
    assert await management.refused("PUT", f"{SKILLS}/{made['id']}", {}) == (
        "No valid fields to update",
        None,
    )


async def test_a_path_has_one_agent(management: Management) -> None:
    made = await make(management, name="reviewer")
    other = await make(management, name="other")
    for body in ({"name": "reviewer"}, {"name": "Reviewer"}, {"name": "REVIEWER!"}):
        message, param = await management.refused("POST", SKILLS, {**SKILL, **body}, expect=409)
        assert param == "name"
        assert "is taken" in message
        await management.refused("PUT", f"{SKILLS}/{other['id']}", body, expect=409)
    await management.ask("PUT", f"{SKILLS}/{made['id']}", {"name": "reviewer"})


async def test_a_key_that_makes_a_skill_is_the_one_that_it_asks_with(
    management: Management,
) -> None:
    key = await management.ask("POST", "/api/keys", {"name": "k", "scopes": ["manage"]}, expect=201)
    principal = {"kind": "key", "id": key["id"], "scopes": ["manage"]}
    answer = await management.client.post(
        SKILLS, json=SKILL, headers={"x-fairlead-principal": json.dumps(principal)}
    )
    assert answer.json()["apiKeyId"] == key["id"]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("reviewer", "reviewer"),
        ("Reviewer.v2_x-y", "Reviewer.v2_x-y"),
        ("Zoë's  Agent!", "zoe-s-agent"),
        ("..", ""),
        ("日本", ""),
        ("-a-", "a"),
        ("a/b", "a-b"),
        ("x" * 99, "x" * 64),
    ],
)
def test_a_name_becomes_a_segment_of_a_path(name: str, slug: str) -> None:
    assert slug_of(name) == slug


async def test_tasks_of_operators(management: Management) -> None:
    """No relay runs here: the model cannot be asked, which is how this task ends."""
    skill = await make(management)
    made = await management.ask(
        "POST",
        TASKS,
        expect=201,
        body={
            "providerId": "reviewer",
            "prompt": "Look at it.",
            "source": {"repoName": "a/b", "branch": "main"},
        },
    )
    assert made["providerId"] == "reviewer"
    assert made["agentId"] == skill["id"]
    assert made["prompt"] == "Look at it."
    path = f"{TASKS}/{made['id']}"
    shown = made
    while shown["status"] in ("queued", "running"):
        shown = await management.ask("GET", path)
    assert shown["status"] == "failed"
    assert shown["error"].startswith("The gateway did not answer")
    assert [each["type"] for each in shown["activities"]] == ["message", "error"]
    assert "a/b" in shown["activities"][0]["content"]
    listed = await management.ask("GET", TASKS, provider="reviewer", status="failed")
    assert [each["id"] for each in listed["tasks"]] == [made["id"]]
    assert (await management.ask("GET", TASKS, status="completed"))["total"] == 0
    assert (await management.ask("GET", TASKS, status="awaiting_approval"))["total"] == 0
    assert (await management.ask("GET", TASKS, provider="nobody"))["total"] == 0
    for action in ("cancel", "approve"):
        await management.refused("POST", path, {"action": action}, expect=409)
    await management.refused("POST", path, {"action": "message"})
    more = await management.ask("POST", path, {"action": "message", "message": "And this?"})
    assert more["id"] != made["id"]
    assert more["contextId"] == made["contextId"]
    assert await management.ask("DELETE", path) == {"success": True}
    await management.refused("GET", path, expect=404)
    await management.ask("DELETE", f"{SKILLS}/{skill['id']}")
    assert (await management.ask("GET", TASKS))["total"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {"providerId": "jules", "prompt": "x"},
        {"providerId": "reviewer", "prompt": ""},
        {"providerId": "reviewer", "prompt": "x" * 10_001},
        {"providerId": "reviewer"},
        {"providerId": "reviewer", "prompt": "x", "options": {"autoCreatePr": True}},
        {"providerId": "reviewer", "prompt": "x", "options": {"planApprovalRequired": True}},
        {"providerId": "reviewer", "prompt": "x", "options": {"environment": {"a": "x" * 20_000}}},
        {"providerId": "reviewer", "prompt": "x", "other": 1},
    ],
)
async def test_a_task_that_cannot_be_given(management: Management, body: dict[str, Any]) -> None:
    await make(management)
    await management.refused("POST", TASKS, body)
    assert (await management.ask("GET", TASKS))["total"] == 0


async def test_as_many_tasks_as_there_is_room_for(
    management: Management, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make(management)
    monkeypatch.setattr(task_table, "ACTIVE_OF_OWNER_MAX", 0)
    body = {"providerId": "reviewer", "prompt": "x"}
    await management.refused("POST", TASKS, body, expect=429)


def test_a_conversation_keeps_the_newest_that_fits() -> None:
    said = [
        Message(str(number), "user" if number % 2 == 0 else "agent", (text_part("x" * 90_000),), 0)
        for number in range(5)
    ]
    found = conversation("prompt", said)
    assert [each["role"] for each in found] == ["system", "assistant", "user"]
    data = Message("d", "user", ({"kind": "data", "data": {"a": 1}}, text_part("b")), 0)
    assert conversation("p", [data])[1]["content"] == '{"a":1}\n\nb'
