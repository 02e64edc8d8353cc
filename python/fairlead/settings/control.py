"""The configuration of the control plane: the settings, and what the supervisor made for this start."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr

from fairlead.process.tracing import Batching
from fairlead.settings.fields import ServeFields


class ControlConfig(ServeFields):
    """The document of `FAIRLEAD_CONTROL_CONFIG`."""

    link_token: SecretStr = Field(min_length=16)
    control_socket: Path
    # Printed where the gateway was started; asked of whoever sets it up from another machine.
    setup_token: SecretStr | None = None
    tracing: Batching | None = None
    # The process that starts coding tools for the relay, and its token.
    acp_url: str | None = None
    acp_token: SecretStr | None = None
