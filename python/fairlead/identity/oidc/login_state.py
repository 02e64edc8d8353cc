"""A sign-in under way at the provider, kept in the browser that began it.

State, nonce and verifier travel in one sealed cookie: an answer counts only in the browser that
asked, within ten minutes, and the server keeps nothing for people who never come back.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import asdict, dataclass
from typing import Self
from urllib.parse import unquote

import orjson

from fairlead.errors import Internal
from fairlead.store.sealer import Sealer

COOKIE = "oidc_errand"
LIFETIME_S = 600
# The longest that the relay lets a browser ask for.
RETURN_TO_MAX_CHARS = 8192
_SEALED_AS = "oidc-errand"


@dataclass(frozen=True, slots=True)
class LoginState:
    """One sign-in at one issuer. `return_to` is a path of ours."""

    state: str
    nonce: str
    verifier: str
    return_to: str
    redirect_uri: str
    issuer: str
    expires_at_ms: int

    @classmethod
    def begin(cls, return_to: str, redirect_uri: str, issuer: str, at_ms: int) -> Self:
        """A fresh one."""
        state, nonce, verifier = (secrets.token_urlsafe(48) for _ in range(3))
        return cls(
            state, nonce, verifier, return_to, redirect_uri, issuer, at_ms + LIFETIME_S * 1000
        )

    @property
    def challenge(self) -> str:
        """S256 of the verifier."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def is_of(self, state: str, at_ms: int) -> bool:
        """Whether an answer with this state belongs to it, and in time."""
        return at_ms < self.expires_at_ms and hmac.compare_digest(
            self.state.encode(), state.encode()
        )

    def to_cookie(self, sealer: Sealer) -> str:
        """Sealed, for the browser."""
        # Browsers keep cookies of 4 KiB: an authorization request of a tool client is long, and repeats itself.
        sealed = sealer.seal(_SEALED_AS, zlib.compress(orjson.dumps(asdict(self)), 9))
        return base64.urlsafe_b64encode(sealed).decode()

    @classmethod
    def from_cookie(cls, text: str, sealer: Sealer) -> Self | None:
        """None for what is no cookie of ours."""
        try:
            sealed = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
            return cls(**orjson.loads(zlib.decompress(sealer.unseal(_SEALED_AS, sealed))))
        except (binascii.Error, UnicodeEncodeError, Internal, TypeError, ValueError, zlib.error):
            return None


def own_path(text: str | None) -> str:
    """The path of ours that a link may lead back to; `/` for anything that could lead elsewhere."""
    if not text or len(text) > RETURN_TO_MAX_CHARS:
        return "/"
    if re.search(r"[\x00-\x1f\x7f\\]", text):
        return "/"
    # A browser may decode a path once more than we think, and takes a backslash for a slash. What stands in the query
    # is a tool client's, leads nowhere, and comes back as it was.
    path = text.partition("?")[0]
    for form in (path, unquote(path), unquote(unquote(path))):
        if (
            not form.startswith("/")
            or form.startswith("//")
            or re.search(r"[\x00-\x20\x7f\\]", form)
        ):
            return "/"
    return text
