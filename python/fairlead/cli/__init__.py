"""The command line: `fairlead <command>`, one module per command.

A command that reads prints a table for people and, with `--json`, the API's own answer for
programs. Exit codes: 0 done; 1 it failed; 2 it was not attempted (a wrong option, a start that is
refused).
"""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point of `fairlead` and `python -m fairlead`."""
    from fairlead.cli.app import run

    sys.exit(run())
