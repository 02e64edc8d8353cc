"""Agents: prompts that answer at an address, as agents do (A2A)."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.dashboard.api import Api
from fairlead.dashboard.form import Field, Group, changed_values, make_form, read_values
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged

PLACE: Final = "/agent-skills"


async def _groups(api: Api) -> tuple[Group, ...]:
    keys = await read_all(api, "/api/keys", "keys")
    options = (("", "none: as the gateway"), *((each["id"], each["name"]) for each in keys))
    return (
        Group(
            "Agent",
            (
                Field("name", "Name", most=200, is_required=True, example="Invoice reader"),
                Field("model", "Model", most=300, hint="Empty: auto/reliable.", example="auto"),
                Field(
                    "temperature", "Temperature", "decimal", "0 to 2. Empty: as the model has it."
                ),
                Field(
                    "apiKeyId",
                    "Asks with the key",
                    "choice",
                    "That key's limits, cost and log.",
                    options=options,
                ),
                Field("description", "Description", "prose", is_required=True),
                Field(
                    "prompt",
                    "Instructions",
                    "prose",
                    "Callers never see it.",
                    is_required=True,
                ),
            ),
            is_open=True,
        ),
    )


async def show_agents(visit: Visit) -> View:
    """Every agent."""
    skills = await read_all(visit.api, "/api/agent-skills", "skills")
    return View("agents.html", {"agents": skills})


async def show_new(visit: Visit) -> View:
    """The form of a new agent."""
    form = make_form("create", await _groups(visit.api), {}, visit.failure)
    return View("agent.html", {"agent": None, "fields": form, "title": "New agent"})


async def show_agent(visit: Visit) -> View:
    """An agent and its form."""
    agent, groups = await asyncio.gather(visit.api.get(_path(visit)), _groups(visit.api))
    form = make_form("change", groups, agent, visit.failure, **{SEEN: agent["updatedAt"]})
    return View("agent.html", {"agent": agent, "fields": form, "title": agent["name"]})


async def create(visit: Visit, typed: FormFields) -> str:
    """Makes the agent."""
    values = await _values(visit, typed)
    sent = {name: value for name, value in values.items() if value is not None}
    made = await visit.api.send("POST", "/api/agent-skills", sent)
    return f"{PLACE}/{made['id']}"


async def change(visit: Visit, typed: FormFields) -> str:
    """Changes what differs."""
    agent = await visit.api.get(_path(visit))
    check_unchanged(agent, typed)
    changed = changed_values(await _values(visit, typed), agent)
    if changed:
        await visit.api.send("PUT", _path(visit), changed)
    return f"{PLACE}/{agent['id']}"


async def confirm_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with an agent."""
    agent = await visit.api.get(_path(visit))
    goes = [
        f"The agent {agent['name']}: {agent['path']} answers no more.",
        "Its tasks: those in progress are cancelled, and the others deleted.",
    ]
    page_url = f"/dashboard{PLACE}/{agent['id']}"
    return Question(f"Delete the agent {agent['name']}?", goes, "Delete it", page_url)


async def delete(visit: Visit, _typed: FormFields) -> str:
    """Deletes the agent."""
    await visit.api.send("DELETE", _path(visit))
    return PLACE


def _path(visit: Visit) -> str:
    return f"/api/agent-skills/{visit.params['skill_id']}"


async def _values(visit: Visit, typed: FormFields) -> dict[str, Any]:
    groups = await _groups(visit.api)
    return read_values([field for group in groups for field in group.fields], typed)


PAGES = (
    Page("agent-skills", "Agents", show_agents, group="Build", rank=4, icon="people"),
    Page(
        "agent-skills/new",
        "New agent",
        show_new,
        actions={"create": Action(create, "The agent answers.")},
    ),
    Page(
        "agent-skills/{skill_id}",
        "Agent",
        show_agent,
        actions={
            "change": Action(change, "The agent was saved."),
            "delete": Action(delete, "The agent was deleted.", confirm_delete),
        },
    ),
)
