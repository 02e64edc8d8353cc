"""The coding tool of `acp_agent.py` as a command, where those of the catalogue are looked for.

It stands apart from the program, whose library takes most of a second of a core to import.
"""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Final

AGENT: Final = Path(__file__).with_name("acp_agent.py")


def install_agent(folder: Path, command: str) -> None:
    """Makes the command in a folder of PATH."""
    place = folder / command
    place.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
