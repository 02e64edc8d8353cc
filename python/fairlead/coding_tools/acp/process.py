"""A tool's process: started in a separate session, without the gateway's environment."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

LINE_BYTES: Final = 16 * 1024 * 1024
"""The longest message of a tool."""
_LAUNCHER: Final = "fairlead.coding_tools.acp.launcher"


async def start_process(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], memory_bytes: int
) -> asyncio.subprocess.Process:
    """Starts a program by its path; the process is its launcher, which leads the session and ends with it. `OSError`
    where that cannot be started; a program that cannot be run ends at once.
    """
    own = [sys.executable, "-P", "-m", _LAUNCHER, str(os.getpid()), str(memory_bytes)]
    return await asyncio.create_subprocess_exec(
        *own,
        *command,
        cwd=folder,
        env=dict(environment),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        # The error output of a tool quotes its conversation, which belongs in no log.
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        limit=LINE_BYTES,
    )
