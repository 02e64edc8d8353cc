"""How a tool is answered that asks whether it may act.

Only what holds for this one act is ever allowed: nothing that a tool would remember.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.coding_tools.acp.config import Policy

_READING: Final = frozenset({"read", "search", "think"})
"""Kinds of acts that change nothing on this machine and send nothing away."""


def answer_permission(policy: Policy, params: dict[str, Any]) -> dict[str, Any]:
    """The result of `session/request_permission`: one of the options offered, or `cancelled` where none fits."""
    call = params.get("toolCall")
    kind = call.get("kind") if isinstance(call, dict) else None
    is_allowed = policy == "allow" or (policy == "read" and kind in _READING)
    wanted = "allow_once" if is_allowed else "reject_once"
    options = params.get("options")
    for option in options if isinstance(options, list) else []:
        if isinstance(option, dict) and option.get("kind") == wanted:
            return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return {"outcome": {"outcome": "cancelled"}}
