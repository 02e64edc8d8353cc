"""Model calls from control: through this instance's own relay, on behalf of a key or as its operator.

The key's limits, costs and log apply. Control proves the key with the link token
(docs/explanation/contracts.md).
"""

from __future__ import annotations

import ssl
from typing import Final

import httpx

from fairlead.settings import ControlConfig

ON_BEHALF: Final = "x-fairlead-on-behalf"
COUNTED: Final = "x-fairlead-counted"
"""Set by the relay on a request that it counted under its limits. It goes back with the call for the same work."""


def relay_client(config: ControlConfig, *, connections: int = 100) -> httpx.AsyncClient:
    """An HTTP client of the relay, without timeouts: each caller sets a deadline."""
    # Over loopback in clear text there is nothing to verify, and reading the system's certificates takes tens
    # of ms.
    verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if config.tls_certificate is not None:
        # TLS on this machine with the relay's own certificate, whose name need not match a loopback address.
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
    """The headers that charge a call to the key."""
    return {ON_BEHALF: f"{config.link_token.get_secret_value()}:{key_id}"}


def as_operator(config: ControlConfig) -> dict[str, str]:
    """The headers of a call that the operator makes: no key's limits, costs and log apply. Reads a file."""
    token = (config.data_dir / "cli-token").read_text("ascii").strip()
    return {"x-gateway-cli-token": token}
