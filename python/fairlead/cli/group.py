"""The commands of `fairlead` by name; each is imported when it is run, so that `--help` stays fast."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup


class CommandEntry(NamedTuple):
    """The module of a command, and its line in the list of commands."""

    module: str
    """Below `fairlead.cli.commands`."""
    function: str
    """A function, or `app` for a group of commands."""
    summary: str
    panel: str = ""
    """The heading of the command in the list; empty for another name of a listed command."""


RUN: Final = "Run"
CALL: Final = "Call models"
WATCH: Final = "Watch"
MANAGE: Final = "Manage"
REACH: Final = "Reach"
TOOLS: Final = "Coding tools"

COMMANDS: Final[dict[str, CommandEntry]] = {
    "serve": CommandEntry("serve", "serve", "Start the gateway.", RUN),
    "issuer": CommandEntry("issuer", "issuer", "Issue access tokens to clients of agents.", RUN),
    "standin": CommandEntry("standin", "standin", "Start a provider that needs no network.", RUN),
    "doctor": CommandEntry("doctor", "doctor", "Find problems and show how to fix them.", RUN),
    "migrate": CommandEntry("migrate", "migrate", "Copy the state to PostgreSQL or back.", RUN),
    "version": CommandEntry("version", "version", "Print the version.", RUN),
    "chat": CommandEntry("chat", "chat", "Ask a model one question.", CALL),
    "repl": CommandEntry("repl", "repl", "Talk with a model.", CALL),
    "models": CommandEntry("models", "models", "List the models that you can call.", CALL),
    "status": CommandEntry("status", "status", "Show whether the gateway is ready.", WATCH),
    "health": CommandEntry("health", "health", "Show the state of workers and providers.", WATCH),
    "top": CommandEntry("top", "top", "Show live traffic by provider.", WATCH),
    "logs": CommandEntry("logs", "app", "Show finished requests.", WATCH),
    "usage": CommandEntry("usage", "app", "Show usage over time.", WATCH),
    "cost": CommandEntry("cost", "cost", "Show costs as a bar chart.", WATCH),
    "quota": CommandEntry("quota", "quota", "Show what providers and keys have left.", WATCH),
    "sessions": CommandEntry("sessions", "sessions", "Show recent sessions.", WATCH),
    "cache": CommandEntry("cache", "app", "The response cache.", WATCH),
    "providers": CommandEntry("providers", "app", "Connections to providers.", MANAGE),
    "nodes": CommandEntry("nodes", "app", "Your own provider endpoints.", MANAGE),
    "facts": CommandEntry("facts", "app", "Facts about a model, and who states them.", MANAGE),
    "combos": CommandEntry("combos", "app", "Names that stand for several models.", MANAGE),
    "aliases": CommandEntry("aliases", "app", "Other names for models and combos.", MANAGE),
    "keys": CommandEntry("keys", "app", "API keys for callers.", MANAGE),
    "limits": CommandEntry("limits", "app", "Token limits of keys.", MANAGE),
    "groups": CommandEntry("groups", "app", "Groups of keys with shared limits.", MANAGE),
    "tokens": CommandEntry("tokens", "app", "Access tokens for management.", MANAGE),
    "webhooks": CommandEntry("webhooks", "app", "Webhooks and their deliveries.", MANAGE),
    "webhook": CommandEntry("webhooks", "app", "Webhooks and their deliveries."),
    "agent": CommandEntry("agent", "app", "Clients that may call agents.", MANAGE),
    "agents": CommandEntry("agent", "app", "Clients that may call agents."),
    "owner": CommandEntry("owner", "app", "The owner's account.", MANAGE),
    "config": CommandEntry("config", "app", "Operator settings.", MANAGE),
    "backup": CommandEntry("backup", "app", "Backups of the state.", MANAGE),
    "restore": CommandEntry("backup", "restore", "Restore a backup.", MANAGE),
    "reseal": CommandEntry("reseal", "reseal", "Encrypt stored secrets with a new key.", MANAGE),
    "login": CommandEntry("login", "login", "Sign in at a remote gateway.", REACH),
    "contexts": CommandEntry("contexts", "app", "Gateways that you signed in at.", REACH),
    "completion": CommandEntry("completion", "completion", "Print a completion script.", REACH),
    "run": CommandEntry("run", "run", "Start a coding tool that calls the gateway.", TOOLS),
    "configure": CommandEntry("setup", "configure", "Choose a coding tool and set it up.", TOOLS),
    "undo": CommandEntry("undo", "undo", "Remove what `setup-<tool>` wrote.", TOOLS),
}


class LoadedCommands(MutableMapping[str, Any]):
    """Commands by name; the module of one is imported when the command is taken out."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = load(name, COMMANDS[name])
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class CommandGroup(TyperGroup):
    """The group of all commands. In a list a command is its summary; where one is run, it is loaded."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = LoadedCommands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the signature is typer's
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - the signature is typer's
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else summary_of(cmd_name, entry)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, self.commands[name] if name in COMMANDS else command, rest


def summary_of(name: str, entry: CommandEntry) -> TyperCommand:
    """A command that can be listed, and not run."""
    return TyperCommand(
        name, help=entry.summary, hidden=not entry.panel, rich_help_panel=entry.panel or None
    )


def load(name: str, entry: CommandEntry) -> Any:
    """The command itself."""
    found = getattr(import_module(f"fairlead.cli.commands.{entry.module}"), entry.function)
    loaded = typer.Typer(context_settings=HELP_OPTIONS)
    if isinstance(found, typer.Typer):
        loaded.add_typer(found, name=name)
    else:
        loaded.command(name)(found)
        # With a callback a single command stays the member of a group.
        loaded.callback()(_no_options)
    group: Any = typer.main.get_command(loaded)
    return group.commands[name]


HELP_OPTIONS: Final = {"help_option_names": ["-h", "--help"]}


def _no_options() -> None:
    """Takes no options."""
