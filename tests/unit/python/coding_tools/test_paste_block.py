"""Commands that point a coding tool at the gateway on another machine, run in a real shell where there is one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fairlead.coding_tools.catalogue import catalogue
from fairlead.coding_tools.filling import GatewayTarget
from fairlead.coding_tools.paste_block import END, KEPT, paste_block

TARGET = GatewayTarget(
    "https://gateway.example", "sk-fl-it's", "lab/big-1", ("lab/big-1", "lab/small")
)
DISPLAYED = [tool for tool in catalogue().values() if tool.is_displayed]
# Tools whose commands write files.
WRITTEN = [tool for tool in DISPLAYED if END in getattr(paste_block(tool, TARGET), "shell", "")]


def run(script: str, home: Path) -> str:
    environment = {"HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-eu"],
        input=script,
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("tool", DISPLAYED, ids=lambda tool: tool.id)
def test_every_tool_has_commands_with_the_address_or_steps_for_the_user(tool) -> None:
    block = paste_block(tool, TARGET)
    if block is None:
        assert tool.steps
        return
    for commands in (block.shell, block.powershell):
        assert "gateway.example" in commands
        assert "%url%" not in commands
        assert "%key%" not in commands
        assert "%model%" not in commands


def test_a_tool_of_environment_variables_is_started_with_them(tmp_path) -> None:
    block = paste_block(catalogue()["claude"], TARGET)
    assert block is not None
    command = tmp_path / "bin" / "claude"
    command.parent.mkdir()
    command.write_text(
        '#!/bin/sh\nprintf \'%s %s\' "$ANTHROPIC_BASE_URL" "$ANTHROPIC_AUTH_TOKEN"\n'
    )
    command.chmod(0o755)
    assert run(block.shell, tmp_path) == "https://gateway.example sk-fl-it's"
    assert "$env:ANTHROPIC_AUTH_TOKEN = 'sk-fl-it''s'" in block.powershell


@pytest.mark.parametrize("tool", WRITTEN, ids=lambda tool: tool.id)
def test_the_files_of_another_tool_are_written_and_kept(tool, tmp_path) -> None:
    block = paste_block(tool, TARGET)
    assert block is not None
    first = next(file for file in tool.files if file.members)
    place = tmp_path / first.path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("what was there")
    run(block.shell, tmp_path)
    assert Path(f"{place}{KEPT}").read_text() == "what was there"
    for file in tool.files:
        if not file.members:
            continue
        written = (tmp_path / file.path).read_text()
        if file.format == "json":
            assert json.loads(written)
        if file.secret:
            assert (tmp_path / file.path).stat().st_mode & 0o077 == 0
    assert "gateway.example" in "".join(
        (tmp_path / file.path).read_text() for file in tool.files if file.members
    )


@pytest.mark.skipif(shutil.which("pwsh") is None, reason="there is no PowerShell on this machine")
def test_powershell_reads_its_commands(tmp_path) -> None:
    for tool in DISPLAYED:
        block = paste_block(tool, TARGET)
        if block is not None:
            script = f"[scriptblock]::Create(@'\n{block.powershell}\n'@) | Out-Null"
            subprocess.run(["pwsh", "-NoProfile", "-Command", script], timeout=60, check=True)
