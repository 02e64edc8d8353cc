"""Readiness of the gateway: the relay serves, and it is linked to control."""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from typing import Final

from fairlead.serve.port import Address

_ASK_TIMEOUT_S: Final = 1.0


async def ready_worker(address: Address, *, tls: bool, needs_control: bool = True) -> str | None:
    """Asks `/readyz` once; the id of the worker that answered, None where it was not ready. The link matters,
    because a relay alone answers 200 from the snapshot of an earlier start: enough where control is elsewhere.
    """
    return await asyncio.to_thread(_probe, address, tls, needs_control)


def _probe(address: Address, tls: bool, needs_control: bool) -> str | None:
    connection: http.client.HTTPConnection
    if tls:
        # Our own worker over loopback: there is no name to verify.
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
        answer = connection.getresponse()
        state = json.loads(answer.read())
        is_linked = not needs_control or state["control"]["state"] == "connected"
        is_ready = answer.status == 200 and is_linked
        return str(state["worker"]) if is_ready else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
