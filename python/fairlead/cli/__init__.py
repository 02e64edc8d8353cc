"""The command line: `fairlead <command>`, one module per command.

A command that reads prints a table for people and, with `--json`, the API's own answer for
programs. Exit codes: 0 done; 1 it failed; 2 it was not attempted (a wrong option, a start that is
refused).
"""

from __future__ import annotations

import gc
import sys
from typing import Final

# Loading modules makes many objects and hardly any garbage. At the interpreter's own threshold of 700 the collector
# takes a fifth of the time of a command.
_OBJECTS_BEFORE_COLLECTION: Final = 50_000


def main() -> None:
    """The entry point of `fairlead` and `python -m fairlead`."""
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    bar_imports()
    from fairlead.cli.app import run

    sys.exit(run())


def bar_imports() -> None:
    """Keeps out of this process the command line of httpx, which httpx imports together with click and Pygments
    where these are installed.
    """
    # An import of a module that is None here fails, as if it were not installed.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
