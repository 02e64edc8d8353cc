"""A probe of a connection whose credential the gateway obtains: it is obtained first, where it has not been."""

from __future__ import annotations

import time
from typing import Any

from fairlead.gateway.cloud_credentials.obtained import NotObtained
from fairlead.gateway.cloud_credentials.sources import Source, filled, obtain
from fairlead.gateway.providers.credentials import Credentials
from fairlead.gateway.providers.endpoint import Endpoint
from fairlead.gateway.providers.obtained_kinds import obtained_kind
from fairlead.gateway.providers.probe import Finding, probe


async def probe_obtained(
    endpoint: Endpoint, credentials: Credentials, auth_type: str, specific: dict[str, Any]
) -> Finding:
    """The finding of a probe. If the credential cannot be obtained, the finding says why."""
    kind = obtained_kind(auth_type)
    if kind is None or getattr(credentials, kind.holder) is not None:
        return await probe(endpoint, credentials)
    started = time.monotonic()
    try:
        source = Source(auth_type, specific, credentials.entra, endpoint.proxy)
        obtained = await obtain(source)
    except NotObtained as error:
        return Finding("auth", str(error), round((time.monotonic() - started) * 1000))
    return await probe(endpoint, filled(credentials, obtained))
