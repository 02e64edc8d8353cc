"""`tests/support/command.py`: a command in a fork is what it is in an interpreter that is started for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import fairlead, started_fairlead


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (("--help",), {"COLUMNS": "100"}),
        (("keys", "list"), {"FAIRLEAD_DATA_DIR": "/nonexistent"}),
        (("no-such-command",), {}),
        (("providers", "known", "openai", "--json"), {}),
    ],
)
def test_output_and_code_are_the_same(
    arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    forked, started = (
        fairlead(*arguments, **environment),
        started_fairlead(*arguments, **environment),
    )
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


def test_a_command_has_its_own_directory_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the test at the time of the call, and none of an earlier command."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "no context first" in fairlead("keys", "list", FAIRLEAD_CONTEXT="first").stderr
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "cli-token").touch(mode=0o644)
    shown = fairlead("keys", "list", FAIRLEAD_DATA_DIR="data", FAIRLEAD_PORT="1").stderr
    assert "Nothing answers at http://127.0.0.1:1" in shown, "the token was read"


def test_what_is_typed_reaches_the_command(tmp_path: Path) -> None:
    token = ("login", "http://127.0.0.1:9", "--token-file", "-")
    ended = fairlead(*token, typed="", XDG_CONFIG_HOME=str(tmp_path))
    typed = fairlead(*token, typed="flm_typed", XDG_CONFIG_HOME=str(tmp_path))
    assert (ended.returncode, typed.returncode) == (1, 1)
    assert ended.stderr != typed.stderr
