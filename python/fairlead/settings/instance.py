"""The instance: its data and its role."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from fairlead.settings.group import AbsolutePath, SettingsGroup


class InstanceFields(SettingsGroup):
    """The data directory, and the checks at the start."""

    data_dir: AbsolutePath = Field(
        Path("~/.fairlead"), description="The directory for all stored data."
    )
    demo: bool = Field(False, description="Start the stand-in provider too.")
    allow_unauthenticated_bind: bool = Field(
        False, description="Listen on a public address although anybody may call."
    )
