"""Coding tools that the gateway starts itself, as models."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field, field_validator

from fairlead.settings.group import AbsolutePath, SettingsGroup
from fairlead.text.names_in import names_in

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class AcpFields(SettingsGroup):
    """The tools, their permissions and their limits."""

    acp_tools: str = Field(
        "",
        max_length=1024,
        description="Coding tools, by id with commas between, that the gateway starts as the models `acp/<id>`; none "
        "unless named.",
    )
    acp_permissions: Literal["refuse", "read", "allow"] = Field(
        "refuse",
        description="How a tool is answered that asks whether it may act: refused, allowed to read and search, or "
        "allowed everything once each time.",
    )
    acp_workspace: AbsolutePath | None = Field(
        None,
        description="Folder in which the tools work, all of them; an empty one for each session if not set.",
    )
    acp_environment: str = Field(
        "",
        max_length=4096,
        description="Environment variables, by name with commas between, that the tools get in "
        "addition to PATH, HOME and similar ones: those with their credentials.",
    )
    acp_max_sessions: int = Field(
        4,
        ge=1,
        le=64,
        description="Processes of tools at once; a call beyond them is answered 409.",
    )
    acp_memory_mb: int = Field(
        2048, ge=64, le=1_048_576, description="Memory of one session's processes together, MiB."
    )
    acp_idle_s: int = Field(
        600, ge=1, le=86_400, description="Seconds without a call after which a session ends."
    )
    acp_session_s: int = Field(
        3600, ge=1, le=86_400, description="Seconds after which a session ends in any case."
    )
    acp_allow_root: bool = Field(
        False, description="Whether tools may be started although the gateway runs as root."
    )

    @field_validator("acp_environment")
    @classmethod
    def _are_variables(cls, text: str) -> str:
        for name in names_in(text):
            if _VARIABLE.fullmatch(name) is None:
                raise ValueError("must be names of variables with commas between, without values")
        return text
