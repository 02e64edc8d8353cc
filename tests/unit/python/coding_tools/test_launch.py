"""Signals between `run` and the tool that it started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.coding_tools.entry import Launch
from fairlead.coding_tools.filling import GatewayTarget
from fairlead.coding_tools.launch import LaunchPlan, run_tool

TARGET = GatewayTarget("http://127.0.0.1:20128", "sk-fl-secret", "p/m", ("p/m",))


@pytest.fixture
def early_signal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """SIGUSR1 comes while the child is being started, and kills nobody but it."""
    whole = subprocess.Popen

    def interrupted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        os.kill(os.getpid(), signal.SIGUSR1)
        return whole(*arguments, **options)

    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    monkeypatch.setattr(subprocess, "Popen", interrupted)
    yield
    signal.signal(signal.SIGUSR1, before)


def run(*command: str) -> int:
    return run_tool(Launch(), LaunchPlan(list(command), {}), TARGET, os.environ)


@pytest.mark.usefixtures("early_signal")
def test_a_signal_that_comes_before_the_child_reaches_it() -> None:
    assert run("sleep", "20") == 128 + signal.SIGUSR1


def test_what_we_ignore_the_child_ignores() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run("sh", "-c", "kill -HUP $$; exit 7") == 7
    finally:
        signal.signal(signal.SIGHUP, before)


def test_an_interrupt_of_the_terminal_is_the_childs() -> None:
    assert run("sh", "-c", "kill -INT $PPID; exit 7") == 7
    assert run("sh", "-c", "kill -INT $$; sleep 5; exit 7") == 128 + signal.SIGINT
