"""The configuration of the process that starts coding tools: settings, and what the supervisor made for this start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from fairlead.errors import Refusal
from fairlead.process.minimal_environment import named_environment
from fairlead.settings import ServeFields
from fairlead.text.names_in import names_in

if TYPE_CHECKING:
    from fairlead.coding_tools.entry import ToolEntry

Policy = Literal["refuse", "read", "allow"]


class AcpConfig(BaseModel):
    """The document of `FAIRLEAD_ACP_CONFIG`. `environment` is passed on to tools and may hold secrets."""

    # The command that starts an instance reads settings here, and never uses this class.
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    token: SecretStr = Field(min_length=16)
    tools: list[str]
    permissions: Policy
    workspace: Path | None
    environment: dict[str, SecretStr]
    max_sessions: int
    memory_bytes: int
    idle_s: float
    session_s: float


def acp_tools(settings: ServeFields) -> list[ToolEntry]:
    """The tools that settings name; `Refusal` for one that cannot be started, and for a process of root."""
    names = names_in(settings.acp_tools)
    if not names:
        return []
    # Most instances start no coding tool, and to read the catalogue takes a tenth of a second.
    from fairlead.coding_tools.catalogue import catalogue  # noqa: PLC0415

    known = {each.id: each for each in catalogue().values() if each.acp is not None}
    for name in names:
        if name not in known:
            raise Refusal(
                f"FAIRLEAD_ACP_TOOLS: `{name}` is none of the tools that speak the Agent Client Protocol: "
                f"name some of {', '.join(known)}."
            )
    if os.geteuid() == 0 and not settings.acp_allow_root:
        raise Refusal(
            "FAIRLEAD_ACP_TOOLS: this is root, and a coding tool of root may change everything: start the gateway as "
            "another user, or set FAIRLEAD_ACP_ALLOW_ROOT."
        )
    if not settings.is_loopback and not settings.require_api_key:
        raise Refusal(
            "FAIRLEAD_ACP_TOOLS: anybody who reaches this address could have tools act here: set REQUIRE_API_KEY, or "
            "listen on a loopback address."
        )
    workspace = settings.acp_workspace
    if workspace is not None and not os.access(workspace, os.R_OK | os.W_OK | os.X_OK):
        raise Refusal(
            f"FAIRLEAD_ACP_WORKSPACE: {workspace} is no folder that this user may write: make it, or name another."
        )
    return [known[name] for name in dict.fromkeys(names)]


def acp_document(settings: ServeFields) -> dict[str, object] | None:
    """The document without its token, with secrets in clear; None where no tool may be started. `Refusal` as above."""
    tools = acp_tools(settings)
    if not tools:
        return None
    return {
        "tools": [each.id for each in tools],
        "permissions": settings.acp_permissions,
        "workspace": None if settings.acp_workspace is None else str(settings.acp_workspace),
        "environment": named_environment(names_in(settings.acp_environment)),
        "max_sessions": settings.acp_max_sessions,
        "memory_bytes": settings.acp_memory_mb * 1024 * 1024,
        "idle_s": settings.acp_idle_s,
        "session_s": settings.acp_session_s,
    }
