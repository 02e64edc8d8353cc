"""The tools as the relay sees them: one connection of the snapshot, and a model for each."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.settings import ControlConfig
from fairlead.store.sealer import Sealer
from fairlead.text.names_in import names_in

PREFIX: Final = "acp"
"""The prefix of the models' names, and the id of the connection and its provider."""
_TIMEOUTS_MS: Final = {
    "connect_ms": 2_000,
    "header_ms": 120_000,
    "first_token_ms": 60_000,
    "idle_ms": 60_000,
}
_LATE_MS: Final = 10_000


@dataclass(frozen=True, slots=True)
class AcpProvider:
    """The connection to the process that starts the tools. Holds its credential sealed."""

    base_url: str
    sealed: bytes
    tools: dict[str, str]
    """Their names by id."""
    session_ms: int
    revision: int

    @classmethod
    def of(cls, config: ControlConfig, sealer: Sealer, started_ms: int) -> AcpProvider | None:
        """The provider of this start; None where no tool may be started."""
        if config.acp_url is None or config.acp_token is None:
            return None
        # Read where tools are started alone: most gateways start none.
        from fairlead.coding_tools.catalogue import catalogue  # noqa: PLC0415

        known = catalogue()
        secret = orjson.dumps({"api_key": config.acp_token.get_secret_value(), "headers": {}})
        return cls(
            base_url=config.acp_url,
            sealed=sealer.seal(PREFIX, secret),
            tools={name: known[name].name for name in names_in(config.acp_tools)},
            session_ms=config.acp_session_s * 1000,
            revision=started_ms,
        )

    def connection(self) -> dict[str, Any]:
        """The connection, as `gateway.providers.snapshot` writes those of the database."""
        return {
            "id": PREFIX,
            "name": "Coding tools",
            "provider": PREFIX,
            "prefixes": [PREFIX],
            "dialect": "openai",
            "base_url": self.base_url,
            "auth": "bearer",
            "credentials_sealed": base64.b64encode(self.sealed).decode(),
            "priority": 1,
            # A tool works for minutes: a plain answer may take as long as its session.
            "timeouts": {**_TIMEOUTS_MS, "answer_ms": self.session_ms + _LATE_MS},
            "revision": self.revision,
            "sends_session": True,
        }

    def models(self) -> list[dict[str, Any]]:
        """A model for each tool."""
        return [
            {
                "id": f"{PREFIX}/{tool}",
                "provider": PREFIX,
                "created": 0,
                "owned_by": PREFIX,
                "context_length": None,
                "max_output_tokens": None,
                "name": name,
                "mode": "",
            }
            for tool, name in self.tools.items()
        ]
