"""The process that judges a backup: what it is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fairlead.errors import InvalidRequest
from fairlead.gateway.backups.keeper import Keeper

pytestmark = pytest.mark.anyio


async def test_it_finds_no_secret_in_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = tmp_path / "environment"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nenv > {found}\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("FAIRLEAD_CONTROL_CONFIG", "a canary")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a canary")
    keeper = Keeper.__new__(Keeper)
    with pytest.raises(InvalidRequest, match="damaged"):
        await keeper.inspect(tmp_path / "part")
    text = found.read_text()
    assert "PATH=" in text
    assert "canary" not in text
