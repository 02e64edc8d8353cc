"""The file of contexts: private, replaced whole, and shared by writers."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path

import pytest

from fairlead.cli.context_file import (
    GatewayContext,
    changed_contexts,
    context_name,
    contexts_path,
    read_contexts,
)
from fairlead.cli.failure import CommandFailed


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "fairlead"


def store(name: str) -> None:
    with changed_contexts() as contexts:
        contexts.by_name[name] = GatewayContext(f"https://{name}.example", "flm_canary")
        contexts.current = name


def test_what_is_written_is_read_and_private(folder: Path) -> None:
    store("work")
    assert stat.S_IMODE(contexts_path().stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    contexts = read_contexts()
    assert contexts.current == "work"
    assert contexts.find("work").url == "https://work.example"
    assert "canary" not in repr(contexts), "a credential is in no log"
    assert [path.name for path in folder.iterdir() if path.suffix == ".tmp"] == []


def test_a_file_that_others_may_read_is_not_used() -> None:
    store("work")
    contexts_path().chmod(0o644)
    with pytest.raises(CommandFailed, match="chmod 600"):
        read_contexts()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"contexts": []}', '{"contexts": {"a": {}}}'])
def test_a_damaged_file_is_named(text: str) -> None:
    store("work")
    contexts_path().write_text(text)
    with pytest.raises(CommandFailed, match=r"contexts\.json"):
        read_contexts()


def test_a_change_that_fails_changes_nothing() -> None:
    store("work")
    before = contexts_path().read_bytes()

    def change() -> None:
        with changed_contexts() as contexts:
            contexts.by_name.clear()
            contexts.find("elsewhere")

    with pytest.raises(CommandFailed, match="no context"):
        change()
    assert contexts_path().read_bytes() == before


def test_writers_at_once_lose_nothing() -> None:
    names = [f"n{at}" for at in range(12)]
    writers = [threading.Thread(target=store, args=(name,)) for name in names]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(20)
    assert sorted(read_contexts().by_name) == sorted(names)
    assert json.loads(contexts_path().read_text())["current"] in names


@pytest.mark.parametrize("name", ["", " ", "local", "a\x1b", "x" * 101])
def test_names_that_are_refused(name: str) -> None:
    with pytest.raises(CommandFailed, match="name"):
        context_name(name)
