"""Credentials that a command is given: from a file, standard input or a prompt, and never from its arguments."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from fairlead.cli.failure import CommandFailed


def read_credential(path: Path | None, prompt: str) -> str:
    """One line of visible ASCII. Raises `CommandFailed` and `typer.BadParameter`."""
    text = _text(path, prompt)
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise CommandFailed(
            "the credential must be one line of visible characters, without spaces."
        )
    return text


def prompt_secret(prompt: str, *, twice: bool = False) -> str:
    """Hidden input of a person, or the first line of piped input; `twice` asks a person again."""
    if not sys.stdin.isatty():
        # There is no terminal whose echo could be turned off, and no person who could mistype.
        return sys.stdin.readline().rstrip("\r\n")
    return str(typer.prompt(prompt, hide_input=True, confirmation_prompt=twice, err=True))


def _text(path: Path | None, prompt: str) -> str:
    if path is None:
        return prompt_secret(prompt).strip()
    if str(path) == "-":
        return sys.stdin.read().strip()
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise typer.BadParameter(f"{path} cannot be read: {reason}.") from None
