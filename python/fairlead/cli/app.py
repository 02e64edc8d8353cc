"""The application with all its commands, and the exit codes of their failures."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fairlead.cli.chosen import CONTEXT
from fairlead.cli.completion import complete_context
from fairlead.cli.failure import CommandFailed
from fairlead.cli.group import HELP_OPTIONS
from fairlead.cli.printable import printable
from fairlead.cli.tool_commands import ToolCommands
from fairlead.errors import Refusal

app = typer.Typer(
    cls=ToolCommands,
    name="fairlead",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings=HELP_OPTIONS,
)


@app.callback()
def fairlead(
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            envvar="FAIRLEAD_CONTEXT",
            help="The gateway to work at, by its name in `fairlead contexts`; `local` is this machine's.",
            autocompletion=complete_context,
            show_default=False,
        ),
    ] = None,
) -> None:
    """One address for AI traffic."""
    CONTEXT.set(context)


def run() -> int:
    """Runs the command that the process was started with and returns the exit code."""
    try:
        app(prog_name="fairlead")
    except Refusal as refusal:
        _print_failure(refusal.sentence)
        return 2
    except CommandFailed as failure:
        _print_failure(failure.sentence)
        return 1
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        sys.stderr.close()
        return 1
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return 0


def _print_failure(sentence: str) -> None:
    print(f"fairlead: {printable(sentence)}", file=sys.stderr)
