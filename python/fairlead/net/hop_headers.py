"""Headers that the gateway itself sends: those of one hop, of the message's framing, and of the body's encoding."""

from __future__ import annotations

from typing import Final

# RFC 9110, sections 7.6.1 and 8; RFC 9112, section 6.
HOP_HEADERS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""In lower case."""
