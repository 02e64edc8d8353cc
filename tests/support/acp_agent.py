"""A coding tool that speaks the Agent Client Protocol by its authors' own library, and does what its prompt names.

It is started as a program (`tests/support/acp_command.py`).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal, cast

from acp import (
    PROTOCOL_VERSION,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    RequestError,
    run_agent,
)
from acp.helpers import (
    plan_entry,
    start_tool_call,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
)
from acp.schema import (
    AgentCapabilities,
    PermissionOption,
    PromptCapabilities,
    ToolCallUpdate,
    Usage,
)

EATEN_BYTES = 150 * 1024 * 1024
"""By each of the four processes that `eat` starts: one alone is within the bounds of a process."""


class ObedientAgent:
    """Says what it heard; some words make it do more."""

    def __init__(self) -> None:
        self.client: Any = None
        self.turns: dict[str, int] = {}
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        able = AgentCapabilities(prompt_capabilities=PromptCapabilities(image=True))
        return InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_capabilities=able)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        name = f"s{len(self.turns) + 1}"
        self.turns[name] = 0
        return NewSessionResponse(session_id=name)

    async def cancel(self, session_id: str, **_: Any) -> None:
        Path(os.environ["HOME"], "cancelled").touch()
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        self.turns[session_id] += 1
        heard = "".join(block.text for block in prompt if block.type == "text")
        word, images = heard.split()[0], sum(block.type == "image" for block in prompt)
        acts = {
            "work": self._work,
            "permit": self._permit,
            "read": self._read,
            "where": self._where,
            "wait": self._wait,
            "eat": self._eat,
            "die": self._die,
        }
        if (act := acts.get(word)) is not None:
            await act(session_id)
        said = f"{session_id} turn {self.turns[session_id]}, {images} pictures: {heard}"
        for part in (said[:10], said[10:]):
            await self._say(session_id, part)
        stop: Literal["cancelled", "end_turn"] = (
            "cancelled" if self.cancelled.is_set() else "end_turn"
        )
        usage = Usage(input_tokens=11, output_tokens=5, total_tokens=20, cached_read_tokens=4)
        return PromptResponse(stop_reason=stop, usage=usage)

    async def _say(self, session: str, text: str) -> None:
        await self.client.session_update(session_id=session, update=update_agent_message_text(text))

    async def _work(self, session: str) -> None:
        for update in (
            update_agent_thought_text("I think."),
            update_plan([plan_entry("look around", status="in_progress")]),
            start_tool_call("t1", "Edit hello.txt", kind="edit"),
        ):
            await self.client.session_update(session_id=session, update=update)

    async def _permit(self, session: str) -> None:
        options = [
            PermissionOption(option_id=kind, name=kind, kind=kind)
            for kind in ("allow_always", "allow_once", "reject_always", "reject_once")
        ]
        call = ToolCallUpdate(tool_call_id="t1", title="rm -rf /", kind="execute")
        asked = await self.client.request_permission(
            session_id=session, tool_call=call, options=options
        )
        await self._say(session, f"<{asked.outcome.model_dump(by_alias=True).get('optionId')}> ")

    async def _read(self, session: str) -> None:
        for asking in (
            self.client.read_text_file(session_id=session, path="/etc/passwd"),
            self.client.write_text_file(
                session_id=session, path=str(Path.cwd() / "written"), content=""
            ),
            self.client.create_terminal(session_id=session, command="id"),
        ):
            try:
                await asking
                await self._say(session, "<got it> ")
            except RequestError as error:
                await self._say(session, f"<{error.code}> ")

    async def _where(self, session: str) -> None:
        names = ",".join(sorted(os.environ))
        await self._say(session, f"<{os.getpid()}|{Path.cwd()}|{names}> ")

    async def _wait(self, session: str) -> None:
        # In a group of its own, as shells start what they run.
        child = subprocess.Popen(["sleep", "600"], process_group=0)
        await self._say(session, f"<{os.getpid()} {child.pid}> ")
        await self.cancelled.wait()

    async def _eat(self, session: str) -> None:
        await self._say(session, "eating ")
        program = f"x = bytearray({EATEN_BYTES}); import time; time.sleep(600)"
        for _ in range(4):
            subprocess.Popen([sys.executable, "-c", program])
        await asyncio.sleep(60)

    async def _die(self, session: str) -> None:
        await self._say(session, "dying ")
        os._exit(3)


if __name__ == "__main__":
    asyncio.run(run_agent(cast("Any", ObedientAgent())))
