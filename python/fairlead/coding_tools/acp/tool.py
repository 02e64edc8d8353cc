"""One process of a tool, with one conversation in it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, Final

import structlog

from fairlead import __version__
from fairlead.coding_tools.acp.answer import Ending, Piece, ending_of, piece_of
from fairlead.coding_tools.acp.chat import Block, History, Turn, prompt_of
from fairlead.coding_tools.acp.config import AcpConfig
from fairlead.coding_tools.acp.fault import FAILED_TOOL, AcpFault, bad_request
from fairlead.coding_tools.acp.peer import Peer, ToolError, ToolGone
from fairlead.coding_tools.acp.permissions import answer_permission
from fairlead.coding_tools.acp.process import start_process
from fairlead.coding_tools.acp.process_session import kill_session, memory_of
from fairlead.coding_tools.entry import ToolEntry
from fairlead.process.minimal_environment import minimal_environment

PROTOCOL: Final = 1
_START_S: Final = 60.0
_CANCEL_S: Final = 1.0
_PIECES: Final = 256
_AUTH_REQUIRED: Final = -32000

log = structlog.get_logger("fairlead.acp")


class Tool:
    """A running tool. Made by `start_tool`, ended by `close`."""

    def __init__(
        self, entry: ToolEntry, process: asyncio.subprocess.Process, config: AcpConfig, folder: Path
    ) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process has no pipes")
        self.entry = entry
        self.started_s = time.monotonic()
        self.history = History()
        self.reads_images = False
        self.ended_because: str | None = None
        """Why this gateway ended it, for whoever was being answered."""
        self._process = process
        self._config = config
        self._folder = folder
        self._is_killed = False
        self._session: str | None = None
        self._pieces: asyncio.Queue[Piece | Ending | AcpFault] | None = None
        self._prompting: asyncio.Task[None] | None = None
        self._peer = Peer(process.stdout, process.stdin, self._answer, self._notice)
        self._reading = asyncio.create_task(self._live())

    @property
    def is_alive(self) -> bool:
        """Whether it can be prompted."""
        return not self._reading.done() and self._process.returncode is None

    def memory_bytes(self) -> int:
        """Memory that its processes use now."""
        return memory_of(self._process.pid)

    async def greet(self) -> None:
        """Agrees on the protocol. Nothing of this machine is offered: neither files nor terminals."""
        offered = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        greeting = await self._call_agent(
            "initialize",
            protocolVersion=PROTOCOL,
            clientCapabilities=offered,
            clientInfo={"name": "fairlead", "title": "fairlead", "version": __version__},
        )
        if greeting.get("protocolVersion") != PROTOCOL:
            raise self._fault(f"speaks another version of the protocol than {PROTOCOL}")
        able = greeting.get("agentCapabilities")
        prompts = able.get("promptCapabilities") if isinstance(able, dict) else None
        self.reads_images = isinstance(prompts, dict) and prompts.get("image") is True

    async def begin(self) -> None:
        """Begins a conversation in which nothing was said yet."""
        answer = await self._call_agent("session/new", cwd=str(self._folder), mcpServers=[])
        session = answer.get("sessionId")
        if not isinstance(session, str):
            raise self._fault("answered without a session's id")
        self._session, self.history = session, History()

    async def prompt(self, turns: Sequence[Turn]) -> AsyncGenerator[Piece | Ending, None]:
        """Says what is new of the turns, and yields what it answers, the ending last. `AcpFault`."""
        if not self.reads_images and any(each.images for each in turns):
            raise bad_request(f"{self.entry.name} reads no pictures.", "messages")
        news = self.history.news(turns)
        if news is None:
            await self.begin()
            news = turns
        texts: list[str] = []
        async for piece in self._prompted(prompt_of(news)):
            if isinstance(piece, Piece) and piece.kind == "content":
                texts.append(piece.text)
            if isinstance(piece, Ending):
                self.history.add(news, "".join(texts))
            yield piece

    async def cancel(self) -> None:
        """Asks the tool to stop, and waits briefly until it has."""
        prompting = self._prompting
        if prompting is None or prompting.done() or self._session is None:
            return
        await self._peer.notify("session/cancel", {"sessionId": self._session})
        await asyncio.wait({prompting}, timeout=_CANCEL_S)

    async def close(self, because: str | None = None) -> None:
        """Kills its processes and removes its folder. Does nothing the second time."""
        self.ended_because = self.ended_because or because
        self._kill()
        await self._process.wait()
        self._reading.cancel()
        await asyncio.wait({self._reading})
        if self._prompting is not None:
            # Callers that still wait get the reason for the end within this time.
            await asyncio.wait({self._prompting}, timeout=_CANCEL_S)
            self._prompting.cancel()
        if self._config.workspace is None:
            await asyncio.to_thread(_remove, self._folder)

    async def _live(self) -> None:
        """Reads until the tool is gone, then ends at once what it left: later its process id may be another's."""
        try:
            await self._peer.run()
        finally:
            self._kill()

    def _kill(self) -> None:
        if not self._is_killed:
            self._is_killed = True
            kill_session(self._process.pid)

    async def _prompted(self, blocks: list[Block]) -> AsyncGenerator[Piece | Ending, None]:
        pieces: asyncio.Queue[Piece | Ending | AcpFault] = asyncio.Queue(_PIECES)
        self._pieces = pieces
        self._prompting = asyncio.create_task(self._finish(blocks, pieces))
        try:
            while True:
                piece = await pieces.get()
                if isinstance(piece, AcpFault):
                    raise piece
                yield piece
                if isinstance(piece, Ending):
                    return
        finally:
            self._pieces = None

    async def _finish(
        self, blocks: list[Block], pieces: asyncio.Queue[Piece | Ending | AcpFault]
    ) -> None:
        # Without a deadline: the session's time is the limit.
        try:
            result = await self._peer.ask(
                "session/prompt", {"sessionId": self._session, "prompt": blocks}
            )
            end: Ending | AcpFault = ending_of(result)
            if result.get("stopReason") == "cancelled":
                end = self._gone()
        except ToolError as error:
            end = self._refused(error)
        except ToolGone:
            end = self._gone()
        if self._pieces is pieces:
            await pieces.put(end)

    async def _call_agent(self, method: str, **params: Any) -> dict[str, Any]:
        try:
            async with asyncio.timeout(_START_S):
                return await self._peer.ask(method, params)
        except TimeoutError:
            raise self._fault(f"did not answer {method} within {_START_S:g} s") from None
        except ToolError as error:
            raise self._refused(error) from None
        except ToolGone:
            raise self._gone() from None

    def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method != "session/request_permission":
            return None
        return answer_permission(self._config.permissions, params)

    async def _notice(self, method: str, params: dict[str, Any]) -> None:
        pieces = self._pieces
        if method != "session/update" or pieces is None or params.get("sessionId") != self._session:
            return
        if (piece := piece_of(params.get("update"))) is not None:
            await pieces.put(piece)

    def _refused(self, error: ToolError) -> AcpFault:
        if error.code == _AUTH_REQUIRED:
            return self._fault("is not signed in: sign it in where the gateway runs")
        return self._fault(f"refused the prompt: {error.message[:500]}")

    def _gone(self) -> AcpFault:
        return self._fault(self.ended_because or "ended before it answered")

    def _fault(self, what: str) -> AcpFault:
        return AcpFault(FAILED_TOOL, "tool_failed", f"{self.entry.name} {what}.")


async def start_tool(entry: ToolEntry, config: AcpConfig) -> Tool:
    """Starts a tool and begins a conversation. `AcpFault` where that fails."""
    if entry.acp is None:
        raise ValueError(f"{entry.id} has no command of the protocol")
    environment = minimal_environment()
    environment |= {name: value.get_secret_value() for name, value in config.environment.items()}
    path = shutil.which(entry.acp.command, path=environment.get("PATH"))
    if path is None:
        message = f"{entry.name} is not installed where the gateway runs: `{entry.acp.command}` is not in PATH."
        raise AcpFault(FAILED_TOOL, "tool_not_installed", message)
    folder = config.workspace or Path(tempfile.mkdtemp(prefix="fairlead-acp-"))
    command = [path, *entry.acp.arguments]
    try:
        process = await start_process(command, folder, environment, config.memory_bytes)
    except OSError as error:
        if config.workspace is None:
            _remove(folder)
        message = f"{entry.name} cannot be started ({error.strerror})."
        raise AcpFault(FAILED_TOOL, "tool_failed", message) from None
    tool = Tool(entry, process, config, folder)
    try:
        await tool.greet()
        await tool.begin()
    except BaseException:
        await asyncio.shield(tool.close())
        raise
    return tool


def _remove(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("a session's folder is left", folder=str(folder), error=error.strerror)
