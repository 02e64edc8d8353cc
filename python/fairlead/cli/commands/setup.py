"""`fairlead setup-<tool>` and `configure`: write a coding tool's configuration so that it calls the gateway."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fairlead.cli.failure import CommandFailed
from fairlead.cli.group import HELP_OPTIONS, TOOLS
from fairlead.cli.money import exact_dollars
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import show_json
from fairlead.cli.tool_list import SETUP_PREFIX, displayed_tools, summary_of_tool
from fairlead.text.near_names import did_you_mean

if TYPE_CHECKING:
    # Typer carries its own copy of click.
    from typer._click.core import Command

    from fairlead.cli.tool_gateway import GatewayChoice, ToolGateway
    from fairlead.coding_tools.backups import BackupStore
    from fairlead.coding_tools.configure import Applied, Configurator
    from fairlead.coding_tools.entry import ToolEntry

_CONTAINER_EXIT: Final = 2

_KEY_VARIABLE: Final = "FAIRLEAD_SETUP_API_KEY"

Remote = Annotated[
    str | None, typer.Option(help="The address of another gateway than the one on this machine.")
]
ApiKey = Annotated[
    str | None,
    typer.Option(
        "--api-key",
        envvar=_KEY_VARIABLE,
        help="The key that the tool sends. Without it, a new key is created on this machine's gateway.",
        show_default=False,
    ),
]
Port = Annotated[int | None, typer.Option(help="The port of the instance on this machine.")]
Model = Annotated[str | None, typer.Option(help="The model that the tool starts with.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be written, without writing it.")
]
AllowContainerWrite = Annotated[
    bool,
    typer.Option(
        "--allow-container-write",
        envvar="GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE",
        help="Write even in a container, whose files are lost when it ends.",
    ),
]
Migrate = Annotated[
    bool, typer.Option("--migrate", help="Remove what an older configuration method left behind.")
]
ConfigHome = Annotated[
    Path,
    typer.Option(
        "--config-home",
        envvar="CLI_CONFIG_HOME",
        help="The home directory to configure.",
    ),
]
HOME: Final = Path("~")


def key_source(context: typer.Context) -> str | None:
    """The source of the key in `--api-key`; None if none was given."""
    if context.params.get("api_key") is None:
        return None
    source = context.get_parameter_source("api_key")
    return _KEY_VARIABLE if source is not None and source.name == "ENVIRONMENT" else "--api-key"


def setup_command(tool: str) -> Command:
    """The command `setup-<tool>` of a displayed tool."""
    # Making a command out of a signature takes longer than all else: it is done once.
    command = copy(_any_setup_command())
    command.name = f"{SETUP_PREFIX}{tool}"
    command.help = summary_of_tool(tool)
    return command


@cache
def _any_setup_command() -> Command:
    app = typer.Typer(add_completion=False, context_settings=HELP_OPTIONS)
    app.command(rich_help_panel=TOOLS)(setup)
    return typer.main.get_command(app)


# Long by its signature: Typer reads each option from a parameter.
def setup(
    context: typer.Context,
    remote: Remote = None,
    api_key: ApiKey = None,
    port: Port = None,
    model: Model = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    migrate: Migrate = False,
    allow_container_write: AllowContainerWrite = False,
    config_home: ConfigHome = HOME,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Configure a coding tool to call the gateway."""
    from fairlead.cli.tool_gateway import GatewayChoice

    tool = str(context.command.name).removeprefix(SETUP_PREFIX)
    choice = GatewayChoice(remote, api_key, port, url, data_dir, key_source(context))
    options = SetupOptions(yes, dry_run, migrate, allow_container_write, as_json)
    setup_tool(tool, choice, config_home, model=model, options=options)


@dataclass(frozen=True, slots=True)
class SetupOptions:
    """How `setup` goes about it."""

    yes: bool
    dry_run: bool
    migrate: bool
    allow_container: bool
    as_json: bool


def setup_tool(
    name: str,
    choice: GatewayChoice,
    home: Path,
    *,
    model: str | None,
    options: SetupOptions,
) -> None:
    """Writes a tool's configuration, then makes one call through the gateway as the tool will."""
    from fairlead.cli.tool_gateway import open_gateway
    from fairlead.coding_tools.configure import ConfigurationFailed

    tool = tool_named(name)
    home = home.expanduser().absolute()
    if not options.dry_run and tool.files:
        _refuse_container(tool, home, choice, allowed=options.allow_container)
    gateway = open_gateway(choice)
    chosen = model or _choose_model(tool, gateway, options)
    configurator = open_configurator(home, choice.data_dir)
    try:
        if options.dry_run:
            _print_preview(tool, configurator, gateway, chosen, options)
            return
        _confirm(tool, configurator, options)
        _write(tool, configurator, gateway, chosen, options)
    except ConfigurationFailed as error:
        raise CommandFailed(str(error)) from None


def _write(
    tool: ToolEntry,
    configurator: Configurator,
    gateway: ToolGateway,
    model: str,
    options: SetupOptions,
) -> None:
    made_for = None
    earlier = EarlierKey.of(configurator.store, tool.id)
    gateway, made_for = gateway.with_new_key(f"{tool.id} (setup)")
    try:
        call = gateway.try_call(model)
        applied = None
        if tool.files:
            applied = configurator.apply(
                tool, gateway.target(model), migration=options.migrate, key_id=made_for
            )
    except BaseException:
        if made_for is not None:
            gateway.revoke(made_for)
        raise
    if made_for is not None and earlier is not None and not earlier.warn_of_others():
        gateway.revoke(earlier.id)
    shows_key = made_for is not None and not any(file.secret for file in tool.files)
    shown = _Applied(tool, applied, gateway, call, gateway.key if shows_key else None)
    if options.as_json:
        show_json(shown.document())
    else:
        shown.print()


@dataclass(frozen=True, slots=True)
class EarlierKey:
    """The key that was created for a tool, and the other tools that send it too."""

    id: str
    others: list[str]

    @classmethod
    def of(cls, store: BackupStore, tool: str) -> EarlierKey | None:
        """None where no key was created for the tool."""
        origin = store.origin(tool)
        if origin is None or origin.key_id is None:
            return None
        return cls(origin.key_id, store.tools_with_the_key_of(tool))

    def warn_of_others(self) -> bool:
        """Says which tools would stop working without the key; True where there are any."""
        if self.others:
            print(
                f"fairlead: WARNING: The key was not revoked, because {' and '.join(self.others)} "
                f"{'uses' if len(self.others) == 1 else 'use'} it too. Set up each of them again, "
                f"then run `fairlead keys revoke {self.id}`.",
                file=sys.stderr,
            )
        return bool(self.others)


@dataclass(frozen=True, slots=True)
class _Applied:
    """The result for a tool: its files, the test call, and the new key if nothing else holds it."""

    tool: ToolEntry
    applied: Applied | None
    gateway: ToolGateway
    call: dict[str, Any]
    key: str | None

    @property
    def paths(self) -> list[str]:
        return (
            [str(plan.path) for plan in self.applied.files if plan.is_changed]
            if self.applied
            else []
        )

    @property
    def backup_id(self) -> str | None:
        return self.applied.backup.id if self.applied and self.applied.backup else None

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "tool": self.tool.id,
            "files": self.paths,
            "backupId": self.backup_id,
            "steps": self.tool.steps,
            "call": self.call,
            **(
                {"apiKey": self.key, "keyVariable": self.tool.key_variable}
                if self.key is not None
                else {}
            ),
        }

    def print(self) -> None:
        """As lines for a person."""
        for path in self.paths:
            print(f"Wrote {path}")
        if self.tool.files and not self.paths:
            print("Nothing had to change.")
        for step in _steps(self.tool, self.gateway.url):
            print(f"- {step}")
        if self.gateway.choice.key_source is not None:
            print(f"The tool sends the key from {self.gateway.choice.key_source}.")
        if self.key is not None:
            variable = self.tool.key_variable
            print(f"export {variable}={self.key}" if variable else f"Key: {self.key}")
            print("Save the key now: it cannot be shown again.", file=sys.stderr)
        cost = self.call["costUsd"]
        answered = f"{self.call['provider']} answered in {self.call['latencyMs']} ms"
        print(f"It works: {answered}{f', for {exact_dollars(cost)}' if cost else ''}.")
        if self.backup_id:
            print(f"`fairlead undo {self.tool.id}` puts everything back.")


def _steps(tool: ToolEntry, url: str) -> list[str]:
    return [step.replace("<gateway>", url) for step in tool.steps]


def _print_preview(
    tool: ToolEntry,
    configurator: Configurator,
    gateway: ToolGateway,
    model: str,
    options: SetupOptions,
) -> None:
    plans = configurator.plan(tool, gateway.target(model), migration=options.migrate)
    if options.as_json:
        files = [
            {"path": str(plan.path), "content": plan.preview, "oldMembers": plan.old_members}
            for plan in plans
            if plan.is_changed
        ]
        show_json({"tool": tool.id, "dryRun": True, "files": files, "steps": tool.steps})
        return
    for plan in plans:
        if plan.is_changed:
            print(f"# {plan.path}\n{plan.preview}")
        for member in plan.old_members:
            print(f"# {member} is of an older form: --migrate takes it out")
    for step in _steps(tool, gateway.url):
        print(f"- {step}")


# Long by its signature: Typer reads each option from a parameter.
def configure(
    context: typer.Context,
    tool: Annotated[
        str | None, typer.Argument(help="The tool's id. Default: choose from a list.")
    ] = None,
    remote: Remote = None,
    api_key: ApiKey = None,
    port: Port = None,
    model: Model = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    allow_container_write: AllowContainerWrite = False,
    config_home: ConfigHome = HOME,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Choose a coding tool and configure it to call the gateway."""
    from fairlead.cli.tool_gateway import GatewayChoice

    names = list(displayed_tools())
    if tool is None:
        if not sys.stdin.isatty():
            raise CommandFailed(f"name a tool: {', '.join(names)}.")
        tool = _pick("Tool", names, notes=_installed())
    options = SetupOptions(yes, dry_run, False, allow_container_write, as_json)
    choice = GatewayChoice(remote, api_key, port, url, data_dir, key_source(context))
    setup_tool(tool, choice, config_home, model=model, options=options)


def _pick(what: str, names: list[str], notes: Mapping[str, str] | None = None) -> str:
    """The name that somebody chooses by number or by name; a part of names lists those that have it."""
    shown = names
    while True:
        for number, name in enumerate(shown, start=1):
            print(f"{number:4}  {name}{(notes or {}).get(name, '')}", file=sys.stderr)
        typed = str(typer.prompt(f"{what} (number, name or part of a name)", err=True)).strip()
        if typed in names:
            return typed
        if typed.isdigit() and 1 <= int(typed) <= len(shown):
            return shown[int(typed) - 1]
        fitting = [name for name in names if typed.lower() in name.lower()]
        if len(fitting) == 1:
            return fitting[0]
        shown = fitting or names


def _installed() -> dict[str, str]:
    """A mark for each tool whose command is in PATH."""
    from fairlead.coding_tools.catalogue import catalogue

    return {
        each.id: "  (installed)"
        for each in catalogue().values()
        if each.detection is not None and shutil.which(each.detection.command) is not None
    }


def _choose_model(tool: ToolEntry, gateway: ToolGateway, options: SetupOptions) -> str:
    if not gateway.models:
        raise CommandFailed(
            "the gateway serves no model yet: `fairlead providers add <provider>`, or name one with --model."
        )
    if len(gateway.models) == 1:
        return gateway.models[0]
    if options.yes or options.dry_run or not sys.stdin.isatty():
        if tool.models == "one":
            raise CommandFailed(
                f"{tool.name} has one model: name it with --model, such as {gateway.models[0]}."
            )
        return gateway.models[0]
    return _pick("Model", gateway.models)


def _confirm(tool: ToolEntry, configurator: Configurator, options: SetupOptions) -> None:
    places = [str(configurator.home / file.path) for file in tool.files if file.members]
    if options.yes or not places or not sys.stdin.isatty():
        return
    if not typer.confirm(f"Write {', '.join(places)}?", default=True, err=True):
        raise CommandFailed("nothing was written.")


def _refuse_container(tool: ToolEntry, home: Path, choice: GatewayChoice, *, allowed: bool) -> None:
    """Exits with code 2 and instructions where the files would be gone with a container."""
    from fairlead.cli.gateway_address import find_gateway
    from fairlead.cli.tool_gateway import own_url
    from fairlead.coding_tools.environment import container_marks
    from fairlead.coding_tools.guard import EPHEMERAL, host_command, is_ephemeral

    if allowed or not is_ephemeral(tool, home, container_marks()):
        return
    lines = [f"fairlead: {EPHEMERAL}"]
    if command := host_command(
        tool, choice.remote or find_gateway(own_url(choice), choice.data_dir).url
    ):
        lines.append(f"On the host, run: {command}")
    lines += [
        "Or mount the host's home into the container, and name it with CLI_CONFIG_HOME.",
        "Or write all the same, with --allow-container-write or GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE=true.",
    ]
    print("\n".join(lines), file=sys.stderr)
    raise SystemExit(_CONTAINER_EXIT)


def open_configurator(home: Path, data_dir: Path) -> Configurator:
    """The tools' files below a home, with their backups below a data directory."""
    from fairlead.coding_tools.backups import BackupStore
    from fairlead.coding_tools.configure import Configurator

    return Configurator(home, BackupStore(data_dir.expanduser().absolute()))


def tool_named(name: str) -> ToolEntry:
    """A tool that can be set up. Raises `CommandFailed`."""
    from fairlead.coding_tools.catalogue import catalogue, find_tool

    tool = find_tool(catalogue(), name)
    if tool is None or not tool.is_displayed:
        shown = [each.id for each in catalogue().values() if each.is_displayed]
        raise CommandFailed(
            f"there is no coding tool `{name}`: `fairlead configure` lists them.{did_you_mean(name, shown)}"
        )
    return tool
