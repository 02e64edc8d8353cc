"""The address of the gateway's listener, and its certificate."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fairlead.net.host import is_loopback
from fairlead.settings.group import SettingsGroup


class ListenerFields(SettingsGroup):
    """The address, and the workers and threads behind it."""

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(20128, ge=1, le=65535, description="Port to listen on.")
    workers: int = Field(1, ge=1, le=64, description="Relay worker processes.")
    front: Literal["granian", "native"] = Field(
        "granian",
        description="Who has the relay's socket: `granian`, or the engine itself (`native`).",
    )
    threads: int = Field(
        1, ge=1, le=63, description="Threads of the relay; more than one with `native` only."
    )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can call."""
        return is_loopback(self.host)
