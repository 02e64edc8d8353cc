"""Hash checks are right, few at once, and never in the loop's thread."""

from __future__ import annotations

import asyncio
import threading

import pytest
from argon2 import PasswordHasher

from fairlead.errors import Overloaded
from fairlead.identity.password import (
    CHECKS_AT_ONCE,
    CHECKS_WAITING_MAX,
    PasswordChecker,
    same_text,
)

pytestmark = pytest.mark.anyio
CHEAP = PasswordHasher(time_cost=1, memory_cost=1024)


async def test_a_hash_is_matched_by_its_password_alone() -> None:
    checker = PasswordChecker()
    stored = CHEAP.hash("right")
    assert await checker.matches("right", stored)
    assert not await checker.matches("Right", stored)
    assert not await checker.matches("right", "$argon2id$broken")
    checker.close()


async def test_a_hash_costs_64_mib_in_three_rounds() -> None:
    checker = PasswordChecker()
    assert (await checker.hash("right")).startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    checker.close()


async def test_checks_at_once_and_waiting_are_bounded() -> None:
    checker = PasswordChecker()
    go_on = threading.Event()
    running, most = 0, 0
    lock = threading.Lock()

    def verify(password: str, password_hash: str) -> bool:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        go_on.wait(10)
        with lock:
            running -= 1
        return True

    checker._verify = verify
    room = CHECKS_AT_ONCE + CHECKS_WAITING_MAX
    tasks = [asyncio.create_task(checker.matches("x", "y")) for _ in range(room)]
    await asyncio.sleep(0)  # each task asks for a thread
    with pytest.raises(Overloaded):
        await checker.matches("x", "y")
    go_on.set()
    assert await asyncio.gather(*tasks) == [True] * room
    assert most <= CHECKS_AT_ONCE
    checker.close()


def test_texts_are_compared_whole() -> None:
    assert same_text("pässword", "pässword")
    assert not same_text("password", "password ")
    assert not same_text("", "password")
