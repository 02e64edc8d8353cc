"""What HTTP clients trust that speak to servers of this machine, without TLS: nobody.

    httpx.get(url, verify=NO_AUTHORITIES)

A client that is not told whom to trust loads every certificate authority there is, and so does each `httpx.get`: 20 ms
of a core.
"""

from __future__ import annotations

import ssl
from typing import Final

NO_AUTHORITIES: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Refuses every server that speaks TLS."""
