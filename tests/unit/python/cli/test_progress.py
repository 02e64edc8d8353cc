"""Progress on standard error: after a second, on a terminal alone, and never in what a program reads."""

from __future__ import annotations

import io
from contextlib import redirect_stderr

import pytest

from fairlead.cli import progress


class Screen(io.StringIO):
    """What is drawn on a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return Screen()


def test_a_long_transfer_has_a_bar(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_AFTER_S", 0.0)
    with redirect_stderr(screen), progress.transfer("state.duckdb", 2_000_000) as advance:
        advance(1_000_000)
        advance(1_000_000)
    assert "state.duckdb" in screen.getvalue()
    assert "2.0/2.0 MB" in screen.getvalue()


def test_a_short_transfer_has_none(screen: Screen) -> None:
    with redirect_stderr(screen), progress.transfer("state.duckdb", 10) as advance:
        advance(10)
    assert screen.getvalue() == ""


def test_without_a_terminal_nothing_is_drawn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_AFTER_S", 0.0)
    with progress.transfer("state.duckdb", 10) as advance, progress.waiting("Copying"):
        advance(10)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
