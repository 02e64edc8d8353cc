"""The process for a call: that of its session, or a separate one that ends with the call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import structlog

from fairlead.coding_tools.acp.config import AcpConfig
from fairlead.coding_tools.acp.fault import AcpFault
from fairlead.coding_tools.acp.tool import Tool, start_tool
from fairlead.coding_tools.entry import ToolEntry

_LOOK_EVERY_S: Final = 1.0

log = structlog.get_logger("fairlead.acp")


@dataclass(eq=False, slots=True)
class Session:
    """A place for one process. `name` is the caller's for it; without one it ends with the call."""

    entry: ToolEntry
    name: str | None
    tool: Tool | None = None
    is_busy: bool = True
    idle_since_s: float = field(default_factory=time.monotonic)


class Sessions:
    """All processes of tools. `watch` is its background task; `close` ends them all."""

    def __init__(self, config: AcpConfig) -> None:
        self._config = config
        self._all: list[Session] = []
        self._is_closed = False

    @asynccontextmanager
    async def hold(self, entry: ToolEntry, name: str | None) -> AsyncIterator[Tool]:
        """The tool of a session, for one call: kept when the block ends well, ended when it does not. `AcpFault`."""
        session = await self._place(entry, name)
        try:
            if session.tool is None:
                session.tool = await start_tool(entry, self._config)
                log.info("session started", tool=entry.id, sessions=len(self._all))
            yield session.tool
        except BaseException:
            await asyncio.shield(self._end(session, "was left"))
            raise
        if session.name is None or not session.tool.is_alive:
            await asyncio.shield(self._end(session, None))
        else:
            session.is_busy, session.idle_since_s = False, time.monotonic()

    async def watch(self) -> None:
        """Ends sessions that are idle, old or too large, until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            for session in list(self._all):
                reason = await self._over(session)
                if reason is not None:
                    await self._end(session, reason)

    async def close(self) -> None:
        """Ends every session; no more begin."""
        self._is_closed = True
        await asyncio.gather(
            *(self._end(each, "was stopped with the gateway") for each in list(self._all))
        )

    async def _place(self, entry: ToolEntry, name: str | None) -> Session:
        """The caller's session, or a free slot for a new one."""
        while (found := self._find(entry, name)) is not None:
            if found.is_busy:
                message = f"This session of {entry.name} is answering another request: wait for it, or name another."
                raise AcpFault(409, "session_busy", message)
            if found.tool is not None and found.tool.is_alive:
                found.is_busy = True
                return found
            await self._end(found, None)
        if self._is_closed:
            raise AcpFault(503, "stopping", "The gateway is stopping.", retry_after_s=1)
        session = Session(entry, name)
        # The place is taken before anything is awaited, so that the limit holds for those who ask at once.
        idle = None
        if len(self._all) >= self._config.max_sessions:
            idle = min(
                (each for each in self._all if not each.is_busy), key=_idle_since, default=None
            )
            if idle is None:
                # No 503: the relay would put the connection, and with it the existing sessions, into cooldown.
                message = f"All {self._config.max_sessions} sessions of coding tools are busy: try again later."
                raise AcpFault(409, "sessions_busy", message)
            self._all.remove(idle)
        self._all.append(session)
        if idle is not None:
            await self._end(idle, None)
        return session

    def _find(self, entry: ToolEntry, name: str | None) -> Session | None:
        if name is None:
            return None
        named = (each for each in self._all if each.name == name and each.entry.id == entry.id)
        return next(named, None)

    async def _over(self, session: Session) -> str | None:
        """Why a session must end now; None where it need not."""
        tool = session.tool
        if tool is None:
            return None
        now_s = time.monotonic()
        if not session.is_busy and now_s - session.idle_since_s > self._config.idle_s:
            return "was idle for too long"
        if now_s - tool.started_s > self._config.session_s:
            return f"ran longer than {self._config.session_s:g} s"
        if await asyncio.to_thread(tool.memory_bytes) > self._config.memory_bytes:
            return f"used more memory than {self._config.memory_bytes // 1024**2} MiB"
        return None

    async def _end(self, session: Session, reason: str | None) -> None:
        if session in self._all:
            self._all.remove(session)
        if session.tool is None:
            return
        if reason is not None:
            log.info("session ended", tool=session.entry.id, reason=reason)
        session.tool.ended_because = session.tool.ended_because or reason
        await session.tool.cancel()
        await session.tool.close(reason)


def _idle_since(session: Session) -> float:
    return session.idle_since_s
