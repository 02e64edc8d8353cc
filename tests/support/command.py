"""The command line as a script runs it: a process with pipes."""

from __future__ import annotations

import os
import re
import subprocess
import sys

_ORDINARY = re.compile(r"fairlead: (the|there|no|nothing|an?|this|it|its|name|only|nobody)\b")

Completed = subprocess.CompletedProcess[str]


def clean_environment() -> dict[str, str]:
    """This process's environment without settings of fairlead's."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}


def fairlead(*arguments: str, typed: str = "", **environment: str) -> Completed:
    """`fairlead <arguments>`, ended, with its output."""
    return subprocess.run(
        [sys.executable, "-m", "fairlead", *arguments],
        env=clean_environment() | environment,
        input=typed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def sentence(ended: Completed, code: int) -> str:
    """The one sentence of a command that failed with `code`."""
    assert ended.returncode == code, ended
    (line,) = ended.stderr.splitlines()
    assert line.startswith("fairlead: ")
    assert line.endswith((".", "?"))
    assert _ORDINARY.match(line) is None, "messages begin with a capital, or with a name"
    assert "Traceback" not in line
    return line
