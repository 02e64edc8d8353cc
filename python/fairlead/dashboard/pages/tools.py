"""Coding tools: what is installed, whether it is pointed here, and pointing it here with a backup.

`cli-code` has the tools that write code, `cli-agents` those that work by themselves, `acp-agents` those that
the gateway starts as models.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from fairlead.dashboard.api import Refused, not_there
from fairlead.dashboard.form import Field, Group, make_form, read_values
from fairlead.dashboard.names import read_keys
from fairlead.dashboard.own_machine import KEY_TEXT, SYSTEMS, read_own_machine
from fairlead.dashboard.page import Action, Failure, FormFields, Page, Question, View, Visit

ALIASES: Final = Field(
    "aliases",
    "Its names and the models they stand for",
    "pairs",
    "One name = model or combo per line. Replaces the earlier ones.",
    example="gemini-3-pro = auto",
)
MITM: Final = (("antigravity", "Antigravity"), ("kiro", "Kiro AI"))
STATES: Final = {
    "configured": ("points here", "good"),
    "not_configured": ("not configured", ""),
    "not_installed": ("not installed", ""),
    "other": ("points elsewhere", "warn"),
    "unknown": ("not known", ""),
}
SUGGESTIONS: Final = "models"
LEADS: Final = {
    "code": "Tools that write code with you, pointed at the gateway with one form, and back again.",
    "agent": "Agents that work by themselves, pointed at the gateway with one form, and back again.",
}
PLACES: Final = {"code": "/cli-code", "agent": "/cli-agents"}
TITLES: Final = {"code": "Coding tools", "agent": "Terminal agents"}


def _fields(models: list[str]) -> tuple[Field, ...]:
    return (
        Field(
            "model",
            "Model",
            most=300,
            example=models[0] if models else "auto",
            hint="Empty: the first that there is, for tools that list models.",
            suggestions=SUGGESTIONS,
        ),
        Field("apiKey", "Key", "secret", "The key that the tool will send.", most=500),
        Field("baseUrl", "Address", most=2000, hint="Empty: the gateway's own."),
        Field("migration", "Remove an older form of it", "switch"),
    )


async def show_code(visit: Visit) -> View:
    """The tools that write code, with their states."""
    return await _list_view(visit, "code")


async def show_agents(visit: Visit) -> View:
    """The agents, with their states."""
    return await _list_view(visit, "agent")


async def show_acp(visit: Visit) -> View:
    """The tools that the gateway can start over stdio, and those that it may."""
    listed, states = await _read(visit)
    names = set(listed["models"])
    tools = [each for each in listed["tools"] if each["acpSpawnable"]]
    fields = {
        "tools": [(each, states[each["id"]], f"acp/{each['id']}" in names) for each in tools],
        "title": "Tools as models",
    }
    return View("acp_tools.html", fields, ("tools",))


async def show_tool(visit: Visit) -> View:
    """One tool: its state, its form, its backups."""
    return await _tool_view(visit, None)


async def preview(visit: Visit, typed: FormFields) -> View:
    """The files as they would be; nothing is written."""
    return await _tool_view(visit, await _apply(visit, typed, is_dry=True), typed)


async def apply(visit: Visit, typed: FormFields) -> str:
    """Writes the configuration, over a backup."""
    await _apply(visit, typed, is_dry=False)
    return _page_url(visit).removeprefix("/dashboard")


async def confirm_restore(visit: Visit, typed: FormFields) -> Question:
    """Lists the files that are restored."""
    tool, _ = await _tool(visit)
    backups = (await visit.api.get("/api/cli-tools/backups", tool=tool["id"]))["backups"]
    backup = next((each for each in backups if each["id"] == typed.get("backup")), None)
    if backup is None:
        raise not_there("backup of this tool")
    goes = [*backup["files"], "The present files are backed up first."]
    return Question(f"Put {tool['name']} back?", goes, "Put it back", _page_url(visit))


async def restore(visit: Visit, typed: FormFields) -> str:
    """Puts a backup of the tool's files back."""
    body = {"tool": visit.params["tool_id"], "backupId": typed.get("backup", "")}
    await visit.api.send("POST", "/api/cli-tools/backups", body)
    return _page_url(visit).removeprefix("/dashboard")


async def back_up(visit: Visit, _typed: FormFields) -> str:
    """Backs every tool's files up."""
    await visit.api.send("POST", "/api/cli-tools/backups", {})
    return PLACES["code"]


async def show_aliases(visit: Visit) -> View:
    """A tool whose address cannot be set, and what its names stand for."""
    status = await visit.api.get(_mitm_path(visit))
    group = Group("Aliases", (ALIASES,), is_open=True)
    form = make_form("alias", (group,), {ALIASES.name: status["aliases"]}, visit.failure)
    return View("tool_aliases.html", {"status": status, "fields": form, "title": status["name"]})


async def alias(visit: Visit, typed: FormFields) -> str:
    """Sets the aliases."""
    await visit.api.send("POST", f"{_mitm_path(visit)}/alias", read_values((ALIASES,), typed))
    return f"/cli-code/mitm/{visit.params['tool_id']}"


async def _read(visit: Visit) -> tuple[dict[str, Any], dict[str, Any]]:
    listed, states = await asyncio.gather(
        visit.api.get("/api/cli-tools"),
        # A page does not wait for commands that are asked for their version: they come over its stream.
        visit.api.get("/api/cli-tools/all-statuses", wait="false"),
    )
    return listed, states


async def _list_view(visit: Visit, category: str) -> View:
    listed, states = await _read(visit)
    tools = [each for each in listed["tools"] if each["category"] == category]
    shown = [(each, states[each["id"]]) for each in tools]
    shown.sort(key=lambda each: (not each[1]["detection"]["installed"], each[0]["name"].lower()))
    fields = {
        "tools": shown,
        "states": STATES,
        "place": f"/dashboard{PLACES[category]}",
        "lead": LEADS[category],
        "mitm": MITM if category == "code" else (),
        "title": TITLES[category],
    }
    return View("tools.html", fields, ("tools",))


async def _tool(visit: Visit) -> tuple[dict[str, Any], dict[str, Any]]:
    listed = await visit.api.get("/api/cli-tools")
    wanted = visit.params["tool_id"]
    tool = next((each for each in listed["tools"] if each["id"] == wanted), None)
    if tool is None:
        raise not_there("coding tool")
    return tool, listed


async def _tool_view(
    visit: Visit, plan: dict[str, Any] | None, typed: FormFields | None = None
) -> View:
    tool, listed = await _tool(visit)
    status, backups, machine, keys = await asyncio.gather(
        visit.api.get("/api/cli-tools/status", tool=tool["id"], wait="false"),
        visit.api.get("/api/cli-tools/backups", tool=tool["id"]),
        read_own_machine(visit, tool, listed["models"]),
        read_keys(visit.api),
    )
    failure = visit.failure
    if typed is not None:
        failure = Failure("preview", "", None, typed)
    action = failure.action if failure else "preview"
    group = Group("On the gateway's machine", _fields(listed["models"]), is_open=plan is not None)
    fields = {
        "tool": tool,
        "status": status,
        "states": STATES,
        "backups": backups["backups"],
        "models": listed["models"],
        "suggestions_id": SUGGESTIONS,
        "base_url": listed["baseUrl"],
        "plan": plan,
        "machine": machine,
        "systems": SYSTEMS,
        "keys": sorted(
            ((key["id"], key["name"]) for key in keys), key=lambda each: each[1].lower()
        ),
        "key_text": KEY_TEXT,
        "fields": make_form(action, (group,), {}, failure),
        "place": f"/dashboard{PLACES.get(tool['category'], '/cli-code')}",
        "title": tool["name"],
    }
    return View("tool.html", fields, ("first_call",) if machine.key_id else ())


async def _apply(visit: Visit, typed: FormFields, *, is_dry: bool) -> dict[str, Any]:
    values = read_values(_fields([]), typed)
    sent = {name: value for name, value in values.items() if value is not None}
    body = {**sent, "tool": visit.params["tool_id"], "dryRun": is_dry}
    try:
        plan: dict[str, Any] = await visit.api.send("POST", "/api/cli-tools/apply", body)
    except Refused as refusal:
        command = refusal.extra.get("hostSetupCommand")
        if command is None:
            raise
        message = f"{refusal.message} On the host: {command}"
        raise Refused(refusal.status, message, refusal.param) from None
    return plan


def _page_url(visit: Visit) -> str:
    return visit.path


def _mitm_path(visit: Visit) -> str:
    return f"/api/cli-tools/{visit.params['tool_id']}-mitm"


_ACTIONS: Final = {
    "preview": Action(preview, "Nothing was written."),
    "apply": Action(apply, "The tool points here; you can restore the previous files."),
    "restore": Action(restore, "The files are as they were.", confirm_restore),
}
PAGES = (
    Page(
        "cli-code",
        "Coding tools",
        show_code,
        group="Tools",
        rank=1,
        icon="tools",
        actions={"back-up": Action(back_up, "Every tool's files were backed up.")},
    ),
    Page("cli-code/{tool_id}", "Coding tool", show_tool, actions=_ACTIONS),
    Page(
        "cli-code/mitm/{tool_id}",
        "Aliases",
        show_aliases,
        actions={"alias": Action(alias, "The aliases are in force.")},
    ),
    Page("cli-agents", "Terminal agents", show_agents, group="Tools", rank=2, icon="tools"),
    Page("cli-agents/{tool_id}", "Agent", show_tool, actions=_ACTIONS),
    Page("acp-agents", "Tools as models", show_acp, group="Tools", rank=3, icon="tools"),
)
