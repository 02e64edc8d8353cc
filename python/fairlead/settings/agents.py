"""Callers of agents."""

from __future__ import annotations

from typing import Literal

from pydantic import AliasChoices, Field

from fairlead.settings.group import SettingsGroup


class AgentAuthFields(SettingsGroup):
    """Whether agents ask for an access token, and who judges it."""

    auth_enabled: bool = Field(
        False,
        validation_alias=AliasChoices("AUTH__ENABLED"),
        description="Whether agents ask their callers for an access token.",
    )
    auth_provider: Literal["issuer", "hydra"] = Field(
        "issuer",
        validation_alias=AliasChoices("AUTH__PROVIDER"),
        description="The issuer of tokens: `issuer`, an OAuth 2.0 server with Hydra's admin API; `hydra` is the same.",
    )
    auth_timeout_ms: int = Field(
        5000,
        ge=100,
        le=30_000,
        validation_alias=AliasChoices("AUTH__TIMEOUT_MS"),
        description="How long a token's introspection may take; then the caller is refused.",
    )
    auth_cache_s: int = Field(
        30,
        ge=0,
        le=30,
        validation_alias=AliasChoices("AUTH__CACHE_S"),
        description="How long another issuer's answer about a valid token is cached; the built-in one is always asked.",
    )
