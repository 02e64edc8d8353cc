"""Whether the gateway answers `/readyz` with 200."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from typing import Final

from fairlead.serve.port import Address

_ASK_TIMEOUT_S: Final = 1.0


async def is_ready(address: Address, *, tls: bool) -> bool:
    """Asks once."""
    return await asyncio.to_thread(_ask, address, tls)


def _ask(address: Address, tls: bool) -> bool:
    connection: http.client.HTTPConnection
    if tls:
        # This asks whether our own worker serves on an address that is ours; there is nobody to
        # verify.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = http.client.HTTPSConnection(
            address.reachable, timeout=_ASK_TIMEOUT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(address.reachable, timeout=_ASK_TIMEOUT_S)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
