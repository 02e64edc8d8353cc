"""Access tokens in memory: what each bearer is, looked up by the hash of the token's text.

Introspection reads nothing else. A token costs some 600 bytes, so the table is bounded, and a client
may have a share of it only.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Final, NamedTuple

PREFIX: Final = "fla_"
TOKENS_MAX: Final = 200_000
TOKENS_OF_CLIENT_MAX: Final = 20_000
# Expired tokens are removed in batches, by the half minute in which they expire.
LOT_S: Final = 30


class Token(NamedTuple):
    """A stored token: SHA-256 of its text, its client's key, its scopes, its audience and its
    expiry (UTC seconds). `audience` is what was asked for, separated by spaces; without it the
    client's own audiences count.
    """

    hash: bytes
    client_key: str
    client_id: str
    scope: str
    issued_at_s: int
    expires_at_s: int
    audience: str = ""


def new_text() -> str:
    """The text of a new token: 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(text: str) -> bytes:
    """The hash under which a token is stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class TokenTable:
    """Tokens that are valid, or were until lately; readers check the expiry themselves."""

    def __init__(self) -> None:
        self._tokens: dict[bytes, Token] = {}
        self._of_client: dict[str, set[bytes]] = {}
        self._lots: dict[int, list[bytes]] = {}

    def __len__(self) -> int:
        return len(self._tokens)

    def has_capacity(self, client_key: str, coming: int = 0) -> bool:
        """Whether the client may have one more token, with so many being stored."""
        return (
            len(self._tokens) + coming < TOKENS_MAX
            and len(self._of_client.get(client_key, ())) < TOKENS_OF_CLIENT_MAX
        )

    def get(self, digest: bytes) -> Token | None:
        """The token with this hash."""
        return self._tokens.get(digest)

    def add(self, token: Token) -> None:
        """Adds a token, which is valid from then on."""
        self._tokens[token.hash] = token
        self._of_client.setdefault(token.client_key, set()).add(token.hash)
        self._lots.setdefault(token.expires_at_s // LOT_S, []).append(token.hash)

    def drop(self, digest: bytes) -> Token | None:
        """Removes a token and returns it."""
        token = self._tokens.pop(digest, None)
        if token is not None and (mine := self._of_client.get(token.client_key)) is not None:
            mine.discard(digest)
            if not mine:
                del self._of_client[token.client_key]
        return token

    def drop_client(self, client_key: str) -> int:
        """Removes all tokens of a client; returns how many."""
        mine = self._of_client.pop(client_key, set())
        for digest in mine:
            self._tokens.pop(digest, None)
        return len(mine)

    def forget_expired(self, now_s: int) -> int:
        """Removes expired tokens; returns how many."""
        gone = 0
        for lot in [lot for lot in self._lots if (lot + 1) * LOT_S <= now_s]:
            for digest in self._lots.pop(lot):
                gone += self.drop(digest) is not None
        return gone
