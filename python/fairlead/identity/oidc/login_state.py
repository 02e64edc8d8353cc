"""A sign-in in progress at the provider, stored in the browser that began it.

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
# The longest path that the relay accepts from a browser.
RETURN_TO_MAX_CHARS = 8192
_SEALED_AS = "oidc-errand"


@dataclass(frozen=True, slots=True)
class LoginState:
    """A sign-in in progress at one issuer. `return_to` is a path of ours."""

    state: str
    nonce: str
    verifier: str
    return_to: str
    redirect_uri: str
    issuer: str
    expires_at_ms: int

    @classmethod
    def begin(cls, return_to: str, redirect_uri: str, issuer: str, at_ms: int) -> Self:
        """The state of a new sign-in."""
        state, nonce, verifier = (secrets.token_urlsafe(48) for _ in range(3))
        return cls(
            state, nonce, verifier, return_to, redirect_uri, issuer, at_ms + LIFETIME_S * 1000
        )

    @property
    def challenge(self) -> str:
        """The S256 challenge of the verifier."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def is_of(self, state: str, at_ms: int) -> bool:
        """Whether an answer with this state belongs to this sign-in, and came in time."""
        return at_ms < self.expires_at_ms and hmac.compare_digest(
            self.state.encode(), state.encode()
        )

    def to_cookie(self, sealer: Sealer) -> str:
        """The sealed form, for the browser's cookie."""
        # Browsers keep cookies of 4 KiB. An authorization request of a tool client is long and
        # repetitive, so it is compressed.
        sealed = sealer.seal(_SEALED_AS, zlib.compress(orjson.dumps(asdict(self)), 9))
        return base64.urlsafe_b64encode(sealed).decode()

    @classmethod
    def from_cookie(cls, text: str, sealer: Sealer) -> Self | None:
        """The state in a cookie; None for a foreign cookie."""
        try:
            sealed = base64.b64decode(text.encode(), altchars=b"-_", validate=True)
            return cls(**orjson.loads(zlib.decompress(sealer.unseal(_SEALED_AS, sealed))))
        except (binascii.Error, UnicodeEncodeError, Internal, TypeError, ValueError, zlib.error):
            return None


def own_path(text: str | None) -> str:
    """The local path that a link may return to; `/` for anything that could lead elsewhere."""
    if not text or len(text) > RETURN_TO_MAX_CHARS:
        return "/"
    if re.search(r"[\x00-\x1f\x7f\\]", text):
        return "/"
    # Browsers may decode a path once more than we do, and read a backslash as a slash. The query
    # is a tool client's, leads nowhere, and is returned unchanged.
    path = text.partition("?")[0]
    for form in (path, unquote(path), unquote(unquote(path))):
        if (
            not form.startswith("/")
            or form.startswith("//")
            or re.search(r"[\x00-\x20\x7f\\]", form)
        ):
            return "/"
    return text
