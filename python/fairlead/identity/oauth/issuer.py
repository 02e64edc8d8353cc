"""The authorization server's own addresses, all from the one origin under which it is reached, and
the rule for the resource that tokens are bound to (RFC 8707).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from starlette.requests import Request

from fairlead.calls.caller import Caller
from fairlead.calls.origin import public_origin
from fairlead.settings import ServeFields

RESOURCE_PATH = "/mcp/rpc"
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
NO_ISSUER = (
    "unable to determine a trustworthy issuer: set SERVICE_PUBLIC_BASE_URL, or have a trusted proxy "
    "send X-Forwarded-Host and X-Forwarded-Proto: https"
)

_URI = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>.*)", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Issuer:
    """The server's addresses. `origin` is the issuer's name, byte for byte, wherever it appears."""

    origin: str

    @classmethod
    def of(cls, request: Request, caller: Caller, config: ServeFields) -> Self | None:
        """The issuer for a request; None when nothing trustworthy says under which address the
        gateway is reached.
        """
        origin = public_origin(request, caller, config)
        return None if origin is None else cls(origin)

    @property
    def resource(self) -> str:
        """The canonical resource."""
        return self.origin + RESOURCE_PATH

    @property
    def resource_metadata(self) -> str:
        """The address of the resource's metadata, to which a challenge points."""
        return f"{self.origin}{RESOURCE_METADATA}{RESOURCE_PATH}"

    def is_resource(self, uri: str) -> bool:
        """Whether the URI names the canonical resource: scheme and host in any case, everything else
        byte for byte.
        """
        found = _URI.fullmatch(uri)
        if found is None or "@" in found["authority"]:
            return False
        folded = f"{found['scheme']}://{found['authority']}".lower()
        return folded.isascii() and folded == self.origin and found["rest"] == RESOURCE_PATH

    def challenge(self, error: str | None = None) -> str:
        """The value of `WWW-Authenticate` (RFC 9728, 5.1; RFC 6750, 3)."""
        error_parameter = "" if error is None else f'error="{error}", '
        return f'Bearer {error_parameter}resource_metadata="{self.resource_metadata}"'
