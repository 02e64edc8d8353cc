"""Configuration files of coding tools: where they are, and whether a container may write them."""

from __future__ import annotations

from pathlib import Path

from pydantic import AliasChoices, Field

from fairlead.settings.group import AbsolutePath, SettingsGroup


class CodingToolFields(SettingsGroup):
    """Settings of `POST /api/cli-tools/apply` and of the commands `setup-<tool>`."""

    gateway_allow_container_config_write: bool = Field(
        False,
        validation_alias=AliasChoices("GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE"),
        description="Whether tools are configured although their files are gone with the container.",
    )
    cli_config_home: AbsolutePath = Field(
        Path("~"),
        validation_alias=AliasChoices("CLI_CONFIG_HOME"),
        description="The home directory whose coding tools are configured: in a container, one that "
        "is mounted from the host.",
    )
