"""Completion in the shell: `fairlead completion`, and names from the running gateway where it answers at once."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

COMPLETION_VARIABLE: Final = "_FAIRLEAD_COMPLETE"
"""Set by a shell that asks what could follow."""
_DEADLINE_S: Final = 0.8
_MOST: Final = 500
# A shell evaluates what it is offered: names with anything else are not offered.
_PLAIN: Final = re.compile(r"[A-Za-z0-9._:/@+=-]{1,200}")


class Shell(StrEnum):
    """A shell for which there is a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"
    PWSH = "pwsh"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell.")],
) -> None:
    """Print the script with which a shell completes commands, options, models and ids.

    bash: add `eval "$(fairlead completion bash)"` to ~/.bashrc. zsh: add `eval "$(fairlead completion zsh)"` to
    ~/.zshrc, after `compinit`. fish: `fairlead completion fish > ~/.config/fish/completions/fairlead.fish`.
    PowerShell: `fairlead completion pwsh >> $PROFILE`.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    print(
        get_completion_script(
            prog_name="fairlead", complete_var=COMPLETION_VARIABLE, shell=shell.value
        )
    )


def know_shells() -> None:
    """Makes Typer's classes for each shell known, which it does itself only beside `--install-completion`."""
    from typer._completion_classes import completion_init

    completion_init()


def complete_model(ctx: typer.Context, incomplete: str) -> list[str]:
    """Models of the running gateway, and its combos and aliases."""
    return _complete(ctx, incomplete, _models)


def complete_key(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids and names of keys."""
    return _complete(ctx, incomplete, lambda instance: _records(instance, "/api/keys", "keys"))


def complete_group(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids and names of groups."""
    return _complete(ctx, incomplete, lambda instance: _records(instance, "/api/groups", "groups"))


def complete_connection(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids and names of connections."""
    return _complete(
        ctx, incomplete, lambda instance: _records(instance, "/api/providers", "connections")
    )


def complete_combo(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids and names of combos."""
    return _complete(ctx, incomplete, lambda instance: _records(instance, "/api/combos", "combos"))


def complete_node(ctx: typer.Context, incomplete: str) -> list[str]:
    """Ids and prefixes of nodes."""
    return _complete(
        ctx, incomplete, lambda instance: _records(instance, "/api/provider-nodes", "nodes")
    )


def complete_context(incomplete: str) -> list[str]:
    """Names of contexts."""
    from fairlead.cli.chosen import LOCAL
    from fairlead.cli.context_file import read_contexts
    from fairlead.cli.failure import CommandFailed

    try:
        return _offered([LOCAL, *read_contexts().by_name], incomplete)
    except CommandFailed:
        return []


def _complete(ctx: typer.Context, incomplete: str, names: Any) -> list[str]:
    """Names that the gateway of the command line knows; nothing if it does not answer at once."""
    from pathlib import Path

    from fairlead.cli.chosen import CONTEXT
    from fairlead.cli.failure import CommandFailed
    from fairlead.cli.instance import Instance
    from fairlead.cli.options import DATA_DIR
    from fairlead.errors import Refusal

    CONTEXT.set(ctx.find_root().params.get("context"))
    try:
        data_dir = Path(ctx.params.get("data_dir") or DATA_DIR)
        with Instance(ctx.params.get("url"), data_dir, timeout_s=_DEADLINE_S) as instance:
            return _offered(names(instance), incomplete)
    except (CommandFailed, Refusal):
        return []


def _models(instance: Instance) -> list[str]:
    return [str(model["id"]) for model in instance.get("/v1/models")["data"]]


def _records(instance: Instance, path: str, key: str) -> list[str]:
    records = instance.get(path, limit=_MOST)[key]
    return [
        str(record[field])
        for record in records
        for field in ("id", "name", "prefix")
        if record.get(field)
    ]


def _offered(names: list[str], incomplete: str) -> list[str]:
    fit = (name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name))
    return list(dict.fromkeys(fit))[:_MOST]
