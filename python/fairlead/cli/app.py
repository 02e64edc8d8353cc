"""The application with all its commands, and the exit codes of their failures."""

from __future__ import annotations

import sys

import typer

from fairlead.cli import (
    agent,
    combos,
    issuer,
    keys,
    nodes,
    owner,
    providers,
    serve,
    setup,
    standin,
    status,
    version,
    webhooks,
)
from fairlead.cli import run as run_command
from fairlead.cli.failure import CommandFailed
from fairlead.errors import Refusal

app = typer.Typer(
    name="fairlead",
    cls=setup.ToolCommands,
    help="One door for AI traffic.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("serve")(serve.serve)
app.command("issuer")(issuer.issuer)
app.command("standin")(standin.standin)
app.command("status")(status.status)
app.command("version")(version.version)
app.command("run", rich_help_panel="Coding tools")(run_command.run)
app.command("configure", rich_help_panel="Coding tools")(setup.configure)
app.command("undo", rich_help_panel="Coding tools")(setup.undo)
app.add_typer(agent.app, name="agent")
app.add_typer(agent.app, name="agents", hidden=True)
app.add_typer(combos.app, name="combos")
app.add_typer(keys.app, name="keys")
app.add_typer(nodes.app, name="nodes")
app.add_typer(owner.app, name="owner")
app.add_typer(providers.app, name="providers")
app.add_typer(webhooks.app, name="webhooks")
app.add_typer(webhooks.app, name="webhook", hidden=True)


def run() -> int:
    """Runs the command that the process was started with and returns the exit code."""
    try:
        app()
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
    print(f"fairlead: {sentence}", file=sys.stderr)
