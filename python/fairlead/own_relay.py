"""Calling models from control: through this instance's own relay, as the key on whose behalf it is
done.

Limits, cost and the log are that key's. Control proves with the link token for which key it asks
(docs/explanation/contracts.md).
"""

from __future__ import annotations

import ssl
from typing import Final

import httpx

from fairlead.settings import ControlConfig

ON_BEHALF: Final = "x-fairlead-on-behalf"


def relay_client(config: ControlConfig, *, connections: int = 100) -> httpx.AsyncClient:
    """A client of the relay, without timers of its own: whoever asks sets a deadline."""
    # In clear on our own machine there is nothing to verify, and reading the system's certificates takes tens of ms.
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if config.tls_certificate is not None:
        # The relay's own certificate, on our own machine: its name is the operator's matter.
        verify = ssl.create_default_context(cafile=str(config.tls_certificate))
        verify.check_hostname = False
    return httpx.AsyncClient(
        base_url=config.relay_own_url,
        trust_env=False,
        verify=verify,
        timeout=None,  # noqa: S113
        limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
    )


def on_behalf_of(config: ControlConfig, key_id: str) -> dict[str, str]:
    """The header that makes a call the key's."""
    return {ON_BEHALF: f"{config.link_token.get_secret_value()}:{key_id}"}
