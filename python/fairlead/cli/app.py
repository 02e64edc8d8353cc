"""The application with all its commands, and the exit codes of their failures."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from fairlead import __version__
from fairlead.cli.chosen import CONTEXT
from fairlead.cli.commands.completion import COMPLETION_VARIABLE, complete_context, know_shells
from fairlead.cli.failure import CommandFailed
from fairlead.cli.group import HELP_OPTIONS
from fairlead.cli.printable import printable
from fairlead.cli.tool_commands import ToolCommands
from fairlead.errors import Refusal
from fairlead.text.sentence import opened

app = typer.Typer(
    cls=ToolCommands,
    name="fairlead",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # `fairlead completion` is the one way to set completion up.
    add_completion=False,
    context_settings=HELP_OPTIONS,
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"fairlead {__version__}")
        raise typer.Exit


@app.callback()
def fairlead(
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            envvar="FAIRLEAD_CONTEXT",
            help="The gateway to use, by its name in `fairlead contexts list`; `local` is the one on this machine.",
            autocompletion=complete_context,
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            is_eager=True,
            callback=_print_version,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    """One address for AI traffic."""
    del version
    CONTEXT.set(context)


def run() -> int:
    """Runs the command that the process was started with and returns the exit code."""
    if COMPLETION_VARIABLE in os.environ:
        know_shells()
    try:
        app(prog_name="fairlead")
    except Refusal as refusal:
        _print_failure(opened(refusal.sentence))
        return 2
    except CommandFailed as failure:
        _print_failure(failure.sentence)
        return 1
    except BrokenPipeError:
        # The reader of the output has closed it.
        sys.stderr.close()
        return 1
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return 0


def _print_failure(sentence: str) -> None:
    print(f"fairlead: {printable(sentence)}", file=sys.stderr)
