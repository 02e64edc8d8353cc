"""A background task that ends is told of and started again; stopping ends them all."""

from __future__ import annotations

import asyncio

import pytest

from fairlead.control import background as module
from fairlead.control.background import Background

pytestmark = pytest.mark.anyio


async def test_a_task_that_fails_is_told_of_and_started_again(monkeypatch) -> None:
    monkeypatch.setattr(module, "BACKOFF_FIRST_S", 0.01)
    runs = 0
    steady = asyncio.Event()

    async def fails_twice() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise ValueError("first")
        if runs == 2:
            return
        steady.set()
        await asyncio.Event().wait()

    background = Background()
    background.start("trial", fails_twice)
    async with asyncio.timeout(10):
        await steady.wait()
    [report] = background.reports()
    assert (report.name, report.running, report.restarts) == ("trial", True, 2)
    assert report.last_error == "ended"
    await background.stop()
    assert not background.reports()[0].running


async def test_a_task_that_must_be_back_soon_waits_no_longer_than_it_says() -> None:
    runs = 0
    is_back = asyncio.Event()

    async def fails_often() -> None:
        nonlocal runs
        runs += 1
        if runs == 12:
            # Doubled each time, the waits would come to minutes.
            is_back.set()
        raise ValueError("lost")

    background = Background()
    background.start("trial", fails_often, backoff_max_s=0.01)
    async with asyncio.timeout(10):
        await is_back.wait()
    await background.stop()


async def test_while_it_waits_to_start_again_it_is_not_running(monkeypatch) -> None:
    monkeypatch.setattr(module, "BACKOFF_FIRST_S", 60)
    failed = asyncio.Event()

    async def fails() -> None:
        failed.set()
        raise ValueError("secret")

    background = Background()
    background.start("trial", fails)
    async with asyncio.timeout(10):
        await failed.wait()
        while background.reports()[0].running:
            await asyncio.sleep(0)
    assert background.reports()[0].last_error == "ValueError"
    await background.stop()
