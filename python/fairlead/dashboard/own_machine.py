"""Pointing a coding tool at the gateway on the visitor's own machine: commands to paste, and the first call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.calls.caller import caller_of
from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.page import Visit
from fairlead.moment import iso, moment_of, now_ms

KEY_TEXT: Final = "YOUR-KEY"
"""A placeholder in the commands. The text of a key is shown only once, when the key is made."""
SYSTEMS: Final = (("shell", "macOS, Linux, WSL"), ("powershell", "Windows, PowerShell"))
MODELS_NAMED: Final = 300


@dataclass(frozen=True, slots=True)
class OwnMachine:
    """The choices of the form, the commands, and the first call with the chosen key since the form was sent."""

    system: str
    model: str
    key_id: str
    since: str
    commands: str | None
    error: str | None
    first_call: Mapping[str, Any] | None


async def read_own_machine(visit: Visit, tool: Mapping[str, Any], models: list[str]) -> OwnMachine:
    """The commands for the choices of the page's address."""
    query = visit.query
    system = query.get("system", "")
    system = system if system in dict(SYSTEMS) else SYSTEMS[0][0]
    model = query.get("model", "").strip()[:MODELS_NAMED] or (models[0] if models else "auto")
    key_id, since = query.get("key", ""), query.get("since", "")
    commands, error = await _commands(visit, tool["id"], model, system)
    return OwnMachine(
        system,
        model,
        key_id,
        # A page that is opened anew waits for calls from now on.
        since or iso(moment_of(now_ms())),
        commands,
        error,
        await _first_call(visit.api, key_id, since) if key_id and since else None,
    )


async def _commands(
    visit: Visit, tool_id: str, model: str, system: str
) -> tuple[str | None, str | None]:
    caller = caller_of(visit.request)
    body = {
        "tool": tool_id,
        "model": model,
        "apiKey": KEY_TEXT,
        "baseUrl": f"{caller.scheme}://{caller.host or 'localhost'}",
        "elsewhere": True,
    }
    if not visit.api.may("POST", "/api/cli-tools/apply"):
        return None, None
    try:
        made = await visit.api.send("POST", "/api/cli-tools/apply", body)
    except Refused as refusal:
        return None, refusal.message
    return (made["commands"][system] if made["commands"] else None), None


async def _first_call(api: Api, key_id: str, since: str) -> Mapping[str, Any] | None:
    try:
        answer = await api.get("/api/usage/request-logs", keyId=key_id, limit=1, **{"from": since})
    except Refused:
        return None
    return next(iter(answer["logs"]), None)
