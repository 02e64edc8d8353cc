"""The time that a session of a coding tool has: idle, in all, and with the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fairlead.coding_tools.acp.answer import Piece
from fairlead.coding_tools.acp.chat import Turn
from fairlead.coding_tools.acp.config import AcpConfig
from fairlead.coding_tools.acp.fault import AcpFault
from fairlead.coding_tools.acp.sessions import Sessions
from fairlead.coding_tools.acp.tool import Tool
from fairlead.coding_tools.catalogue import catalogue
from tests.support.acp_command import install_agent

pytestmark = pytest.mark.anyio
QWEN = catalogue()["qwen"]


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_agent(tmp_path, "qwen")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path))


@asynccontextmanager
async def sessions_of(workspace: Path | None = None, **fields: object) -> AsyncIterator[Sessions]:
    usual = {
        "token": "t" * 16,
        "tools": ["qwen"],
        "permissions": "allow",
        "workspace": workspace,
        "environment": {},
        "max_sessions": 1,
        "memory_bytes": 2**30,
        "idle_s": 60,
        "session_s": 60,
    }
    sessions = Sessions(AcpConfig.model_validate({**usual, **fields}))
    watching = asyncio.create_task(sessions.watch())
    try:
        yield sessions
    finally:
        watching.cancel()
        await sessions.close()


async def hear(tool: Tool, text: str) -> str:
    turns = [Turn("user", text)]
    pieces = [each async for each in tool.prompt(turns)]
    return "".join(each.text for each in pieces if isinstance(each, Piece))


async def until_dead(tool: Tool) -> None:
    async with asyncio.timeout(15):
        while tool.is_alive:
            await asyncio.sleep(0.05)


async def test_an_idle_session_ends_and_the_next_call_gets_another(tmp_path: Path) -> None:
    async with sessions_of(tmp_path, idle_s=0.2) as sessions:
        async with sessions.hold(QWEN, "a") as first:
            assert "<allow_once>" in await hear(first, "permit")
        await until_dead(first)
        assert tmp_path.exists(), "a folder of the operator's stays"
        async with sessions.hold(QWEN, "a") as second:
            assert second is not first


async def test_a_session_that_runs_too_long_ends_in_the_middle_and_says_so() -> None:
    async with sessions_of(session_s=1) as sessions:
        with pytest.raises(AcpFault, match="ran longer than 1 s"):
            async with sessions.hold(QWEN, "a") as tool:
                await hear(tool, "wait")
        assert not tool.is_alive


async def test_an_idle_session_makes_room_and_a_busy_one_does_not() -> None:
    async with sessions_of() as sessions:
        async with sessions.hold(QWEN, "a") as first:
            with pytest.raises(AcpFault) as full:
                async with sessions.hold(QWEN, "b"):
                    pass
            assert full.value.code == "sessions_busy"
            with pytest.raises(AcpFault) as busy:
                async with sessions.hold(QWEN, "a"):
                    pass
            assert busy.value.code == "session_busy"
            assert first.is_alive
        async with sessions.hold(QWEN, "b") as second:
            assert not first.is_alive
            assert "s1 turn 1" in await hear(second, "hello")


async def test_all_end_with_the_gateway_and_none_begins_after() -> None:
    async with sessions_of() as sessions:
        async with sessions.hold(QWEN, "a") as tool:
            await hear(tool, "hello")
        await sessions.close()
        assert not tool.is_alive
        with pytest.raises(AcpFault, match="stopping"):
            async with sessions.hold(QWEN, "b"):
                pass
