"""Limits on wrong secrets at the issuer: per minute for a client at an address, and for an address.

Only wrong secrets count, so a client that asks for many tokens is not slowed down. While there are
too many, a right secret is refused as well, because the answer would confirm the guess. A stranger
at another address cannot lock a client out.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Final

from fairlead.errors import RateLimited
from fairlead.identity.issuer.fault import too_many_guesses
from fairlead.identity.rate_window import RateWindow

OF_CLIENT_A_MINUTE: Final = 10
OF_ADDRESS_A_MINUTE: Final = 100


class SecretGuesses:
    """The counts of one issuer, in its event loop."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._of_client = RateWindow(OF_CLIENT_A_MINUTE, now)
        self._of_address = RateWindow(OF_ADDRESS_A_MINUTE, now)

    def check(self, client_id: str, address: str) -> None:
        """Raises 429 while there were too many wrong secrets."""
        try:
            self._of_address.check(address)
            self._of_client.check(_pair(client_id, address))
        except RateLimited as limited:
            raise too_many_guesses(limited.retry_after_s or 1) from None

    def count(self, client_id: str, address: str) -> None:
        """Counts a wrong secret."""
        self._of_address.count_attempt(address)
        self._of_client.count_attempt(_pair(client_id, address))


def _pair(client_id: str, address: str) -> str:
    # A digest has one length for any id; the table keeps only the beginning of a name.
    return hashlib.sha256(f"{address} {client_id}".encode("utf-8", "surrogatepass")).hexdigest()
