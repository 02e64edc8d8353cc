"""`fairlead run`: a coding tool pointed at the gateway for this one time."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from fairlead.cli.commands.setup import ApiKey, DryRun, Model, Port, Remote
from fairlead.cli.failure import CommandFailed
from fairlead.cli.options import DATA_DIR, DataDir, Json, Url
from fairlead.cli.output import show_json
from fairlead.errors import Refusal
from fairlead.text.near_names import did_you_mean


# Long by its signature: Typer reads each option from a parameter.
def run(
    tool: Annotated[
        str, typer.Argument(help="The tool: claude, codex, aider, goose, opencode, qwen, ...")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(help="The tool's own arguments, after `--`.")
    ] = None,
    remote: Remote = None,
    api_key: ApiKey = None,
    port: Port = None,
    model: Model = None,
    dry_run: DryRun = False,
    data_dir: DataDir = DATA_DIR,
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Start a coding tool that calls the gateway. Nothing in your home directory is changed."""
    from fairlead.cli.tool_gateway import GatewayChoice, open_gateway
    from fairlead.coding_tools.catalogue import catalogue, find_tool
    from fairlead.coding_tools.environment import inherited_environment
    from fairlead.coding_tools.launch import NOT_FOUND, plan_launch, run_tool, shell_lines

    entry = find_tool(catalogue(), tool)
    if entry is None or entry.launch is None:
        known = sorted(each.id for each in catalogue().values() if each.launch)
        raise Refusal(
            f"no coding tool `{tool}` can be run.{did_you_mean(tool, known)} Known are {', '.join(known)}."
        )
    gateway = open_gateway(GatewayChoice(remote, api_key, port, url, data_dir))
    chosen = model or (gateway.models[0] if gateway.models else None)
    if chosen is None:
        raise CommandFailed("the gateway serves no model yet: name one with --model.")
    if dry_run:
        target = gateway.target(chosen)
        plan = plan_launch(entry, entry.launch, target, arguments or [])
        if as_json:
            show_json({"command": plan.command, "environment": plan.environment})
        else:
            print("\n".join(shell_lines(plan)))
        return
    with gateway.with_run_key(entry.id) as keyed:
        target = keyed.target(chosen)
        plan = plan_launch(entry, entry.launch, target, arguments or [])
        code = run_tool(entry.launch, plan, target, inherited_environment())
    if code == NOT_FOUND:
        print(f"fairlead: {plan.command[0]} is not in PATH: see {entry.docs_url}.", file=sys.stderr)
    raise SystemExit(code)
