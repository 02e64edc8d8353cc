"""Passwords: argon2id hashes; `INITIAL_PASSWORD` as long as the owner has none.

A check costs 64 MiB and tens of milliseconds, so few run at once, in threads, and few wait.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from fairlead.errors import Overloaded

CHECKS_AT_ONCE = 2
CHECKS_WAITING_MAX = 16
CHECK_DEADLINE_S = 10.0

T = TypeVar("T")


class PasswordChecker:
    """Checks and makes argon2id hashes, a bounded number at once."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher()
        self._threads = ThreadPoolExecutor(CHECKS_AT_ONCE, thread_name_prefix="password")
        self._pending = 0
        self._nobody: str | None = None

    async def matches(self, password: str, password_hash: str) -> bool:
        """Whether the password made this hash. `Overloaded` when too many checks wait."""
        return await self._run(lambda: self._verify(password, password_hash))

    async def hash(self, password: str) -> str:
        """The argon2id hash of a password. `Overloaded` when too many checks wait."""
        return await self._run(lambda: self._hasher.hash(password))

    async def waste(self, password: str) -> None:
        """Takes as long as a failed check, so that timing does not reveal which users exist."""
        if self._nobody is None:
            self._nobody = await self.hash(secrets.token_urlsafe(16))
        await self.matches(password, self._nobody)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._pending >= CHECKS_AT_ONCE + CHECKS_WAITING_MAX:
            raise Overloaded("Too many sign-ins are being checked; try again.", retry_after_s=2)
        self._pending += 1
        try:
            async with asyncio.timeout(CHECK_DEADLINE_S):
                return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except TimeoutError:
            raise Overloaded(
                "The password could not be checked in time; try again.", retry_after_s=2
            ) from None
        finally:
            self._pending -= 1

    def _verify(self, password: str, password_hash: str) -> bool:
        try:
            return self._hasher.verify(password_hash, password)
        except (VerificationError, InvalidHashError):
            return False

    def close(self) -> None:
        """Ends the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def same_text(left: str, right: str) -> bool:
    """Whether two texts are equal, in a time that reveals neither length nor the place of a
    difference.
    """
    return hmac.compare_digest(
        hashlib.sha256(left.encode()).digest(), hashlib.sha256(right.encode()).digest()
    )
