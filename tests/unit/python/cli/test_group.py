"""The list of commands: each is there, says of itself what the list says, and is imported when it is run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import typer

from fairlead.cli.app import app
from fairlead.cli.group import COMMANDS

CODE = """
import json, sys
sys.argv = ['fairlead', '--help']
from fairlead.cli.app import run
run()
json.dump([name for name in sys.modules if name.startswith('fairlead.')], sys.stderr)
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads(name: str) -> None:
    command = typer.main.get_command(app).commands[name]
    assert command.name == name
    assert command.help or command.short_help


def test_groups_say_of_themselves_what_the_list_says() -> None:
    commands = typer.main.get_command(app).commands
    for name, entry in COMMANDS.items():
        if entry.function == "app":
            assert commands[name].help == entry.summary, name


def test_help_imports_no_command() -> None:
    ended = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    loaded = set(json.loads(ended.stderr))
    of_commands = {f"fairlead.cli.commands.{entry.module}" for entry in COMMANDS.values()}
    # Names of contexts are completed for an option of every command.
    assert loaded & of_commands == {"fairlead.cli.commands.completion"}
