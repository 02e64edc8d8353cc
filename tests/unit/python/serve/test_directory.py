"""The data directory: whose it is, who has it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.errors import Refusal
from fairlead.serve.directory import DataDirectory


def test_it_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "new" / "data") as directory:
        assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700
        assert (directory.path / "lock").read_text() == f"{os.getpid()}\n"


@pytest.mark.parametrize("content", ([], ["lost+found"], ["state.duckdb", "anything"]))
def test_an_empty_or_an_earlier_one_is_taken_and_closed_to_others(
    tmp_path: Path, content: list[str]
) -> None:
    tmp_path.chmod(0o755)
    for name in content:
        (tmp_path / name).touch()
    with DataDirectory(tmp_path):
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_one_with_other_files_is_not_touched(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(Refusal, match="other files"):
        DataDirectory(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_second_one_is_told_who_has_it_and_the_next_gets_it(tmp_path: Path) -> None:
    with DataDirectory(tmp_path), pytest.raises(Refusal, match=f"process id {os.getpid()}:"):
        DataDirectory(tmp_path)
    with DataDirectory(tmp_path):
        pass


def test_the_lock_outlives_its_owner_in_a_child_that_holds_it(tmp_path: Path) -> None:
    """A child that was handed the descriptor keeps the directory; when it is gone, the wait is over."""
    wait = "import sys; sys.stdin.read()"
    with DataDirectory(tmp_path) as directory:
        child = subprocess.Popen(
            [sys.executable, "-c", wait], stdin=subprocess.PIPE, pass_fds=[directory.lock_fd]
        )
    try:
        # The owner, this process, is alive: no wait, but a refusal.
        with pytest.raises(Refusal, match="in use"):
            DataDirectory(tmp_path)
    finally:
        child.communicate()
    with DataDirectory(tmp_path):
        pass


def test_a_socket_path_that_is_too_long_moves_to_a_private_folder(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100)
    with DataDirectory(deep) as directory:
        socket = directory.control_socket()
        assert socket == directory.control_socket()
        assert len(os.fsencode(socket)) <= 100
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    assert not socket.parent.exists()


def test_the_address_is_on_record_only_while_it_is_in_use(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as directory:
        directory.record_url("http://127.0.0.1:1")
        assert (tmp_path / "run" / "url").read_text() == "http://127.0.0.1:1\n"
    assert not (tmp_path / "run" / "url").exists()
