"""The page about the command line is fresh and names every command."""

from __future__ import annotations

from pathlib import Path

from fairlead.cli.group import COMMANDS
from fairlead.cli.reference import command_reference

PAGE = Path(__file__).resolve().parents[4] / "docs" / "reference" / "command-line.md"


def test_the_page_is_what_the_commands_say() -> None:
    assert PAGE.read_text("utf-8") == command_reference(), "run `make reference`"


def test_every_listed_command_is_on_the_page() -> None:
    page = command_reference()
    for name, entry in COMMANDS.items():
        if entry.panel:
            assert f"### fairlead {name}" in page, name
