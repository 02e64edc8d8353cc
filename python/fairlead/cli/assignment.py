"""Fields that are set on the command line: `name=laptop isActive=false`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fairlead.cli.failure import CommandFailed

# Everybody on a machine sees the arguments of every process.
_SECRETS: Final = frozenset(
    {
        "apiKey",
        "awsKeys",
        "serviceAccount",
        "secret",
        "customHeaders",
        "oidcClientSecret",
        "currentPassword",
    }
)

Assignments = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="FIELD=VALUE...",
        help="Fields by their API names. A value is JSON, or else text.",
    ),
]
SecretFile = Annotated[
    list[str] | None,
    typer.Option(
        "--from-file",
        metavar="FIELD=PATH",
        help="A field whose value is read from a file, or standard input with `-`, such as a secret. Repeatable.",
    ),
]


def fields_from(assignments: list[str] | None, files: list[str] | None) -> dict[str, Any]:
    """The fields by their names. Raises `CommandFailed`."""
    fields: dict[str, Any] = {}
    for name, text in _pairs(assignments or [], "FIELD=VALUE"):
        if name in _SECRETS:
            raise CommandFailed(
                f"{name} is a secret, and everybody on this machine sees a command line: "
                f"put it into a file and use --from-file {name}=PATH."
            )
        fields[name] = _value(text)
    for name, path in _pairs(files or [], "FIELD=PATH"):
        fields[name] = _value(_content(path))
    if not fields:
        raise CommandFailed("nothing is to be changed: name a field and its value, as FIELD=VALUE.")
    return fields


def _pairs(texts: Iterable[str], form: str) -> Iterable[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise CommandFailed(f"`{text}` must have the form {form}.")
        yield name, value


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _content(path: str) -> str:
    import sys

    if path == "-":
        return sys.stdin.read().strip()
    try:
        return Path(path).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise CommandFailed(f"{path} cannot be read ({reason}).") from None
