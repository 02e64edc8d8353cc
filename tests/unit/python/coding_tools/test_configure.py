"""Files of a home, as they are configured, configured again, taken back and restored."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fairlead.coding_tools.backups import BackupStore
from fairlead.coding_tools.catalogue import FOLDER, catalogue, read_catalogue
from fairlead.coding_tools.configure import ConfigurationFailed, Configurator
from fairlead.coding_tools.detection import Detector
from fairlead.coding_tools.filling import GatewayTarget

TARGET = GatewayTarget("http://127.0.0.1:20128", "sk-fl-secret", "p/m", ("p/m", "p/other"))
CONFIGURABLE = [tool for tool in catalogue().values() if tool.files]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


@pytest.fixture
def configurator(home: Path, tmp_path: Path) -> Configurator:
    return Configurator(home, BackupStore(tmp_path / "data"))


def files_of(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()
    }


def test_the_catalogue_has_every_tool() -> None:
    tools = catalogue().values()
    # Those of the design, and llm.
    assert sum(tool.category == "code" for tool in tools) == 26 + 1
    assert sum(tool.category == "agent" for tool in tools) == 10
    hidden = {tool.id for tool in tools if tool.base_url_support == "none"}
    assert hidden == {"zcode", "cursor", "antigravity", "hermes", "kiro"}
    assert not any(catalogue()[each].is_displayed for each in hidden)


def test_no_two_tools_read_their_key_from_one_variable_of_ours() -> None:
    for tool in catalogue().values():
        named = set(re.findall(r"FAIRLEAD_[A-Z0-9_]+", (FOLDER / f"{tool.id}.toml").read_text()))
        assert named <= {tool.own_variable}
    assert catalogue()["codex"].key_variable == "FAIRLEAD_CODEX_KEY"
    assert catalogue()["goose"].key_variable == "OPENAI_API_KEY"
    assert catalogue()["custom"].key_variable is None


def test_names_of_tools_are_told_apart() -> None:
    names = [tool.id for tool in catalogue().values()]
    names += [name for tool in catalogue().values() if tool.launch for name in tool.launch.aliases]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("surprise = 1", "surprise"),
        ('[[files]]\npath = "../x"\nformat = "json"\nmembers = []', "below the home"),
        ('[[files]]\npath = "/etc/x"\nformat = "json"\nmembers = []', "path"),
        ('[detection]\ncommand = "/bin/sh"', "command"),
        ('[detection]\ncommand = "x"\nversionArgument = "-c"', "versionArgument"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, line: str, reason: str) -> None:
    text = (FOLDER / "custom.toml").read_text()
    (tmp_path / "custom.toml").write_text(f"{text}\n{line}\n")
    with pytest.raises(ValueError, match=rf"(?s)custom\.toml.*{reason}"):
        read_catalogue(tmp_path)


@pytest.mark.parametrize("tool", CONFIGURABLE, ids=lambda tool: tool.id)
def test_every_tool_is_configured_and_taken_back(
    tool: object, home: Path, configurator: Configurator
) -> None:
    applied = configurator.apply(tool, TARGET, migration=False)  # type: ignore[arg-type]
    written = files_of(home)
    assert applied.backup is not None
    assert any(b"127.0.0.1:20128" in content for content in written.values())
    for plan in applied.files:
        if b"sk-fl-secret" in plan.after:
            assert plan.file.secret, f"{plan.path} holds the key"
            assert plan.path.stat().st_mode & 0o777 == 0o600
        assert "sk-fl-secret" not in plan.preview
    assert configurator.apply(tool, TARGET, migration=False).backup is None  # type: ignore[arg-type]
    assert files_of(home) == written
    configurator.undo(tool)  # type: ignore[arg-type]
    assert files_of(home) == {}


MINE = b'// mine\n{\n\t"model": "my/own",   // stays\n\t"theme" : "dark",\n}\n'


def test_a_file_of_the_users_comes_back_byte_for_byte(
    home: Path, configurator: Configurator
) -> None:
    tool = catalogue()["opencode"]
    place = home / ".config/opencode/opencode.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(MINE)
    place.chmod(0o640)
    configurator.apply(tool, TARGET, migration=False)
    changed = place.read_text()
    assert changed.startswith(
        '// mine\n{\n\t"model": "fairlead/p/m",   // stays\n\t"theme" : "dark",'
    )
    assert place.stat().st_mode & 0o777 == 0o640
    # Again, with another model: what undo restores is still the user's own file.
    other = GatewayTarget("http://127.0.0.1:1", "k", "p/other", ("p/other",))
    configurator.apply(tool, other, migration=False)
    assert '"p/m"' not in place.read_text(), "a model that is gone is taken out"
    configurator.undo(tool)
    assert place.read_bytes() == MINE


def test_what_was_edited_since_is_not_lost(home: Path, configurator: Configurator) -> None:
    tool = catalogue()["opencode"]
    place = home / ".config/opencode/opencode.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(MINE)
    configurator.apply(tool, TARGET, migration=False)
    place.write_bytes(place.read_bytes().replace(b'"dark"', b'"light"'))
    # Configured once more on top of the edit.
    configurator.apply(tool, GatewayTarget("http://x", "k", "p/m", ("p/m",)), migration=False)
    configurator.undo(tool)
    assert place.read_bytes() == MINE.replace(b'"dark"', b'"light"')


def test_an_old_form_is_told_and_taken_out_on_request(
    home: Path, configurator: Configurator
) -> None:
    tool = catalogue()["goose"]
    place = home / ".config/goose/config.yaml"
    place.parent.mkdir(parents=True)
    before = b"GOOSE_PROVIDER: anthropic # old\nGOOSE_MODE: auto\n"
    place.write_bytes(before)
    (plan,) = configurator.plan(tool, TARGET, migration=False)
    assert plan.old_members == ["GOOSE_PROVIDER"]
    assert b"GOOSE_PROVIDER" in plan.after
    configurator.apply(tool, TARGET, migration=True)
    assert b"GOOSE_PROVIDER" not in place.read_bytes()
    assert place.read_bytes().startswith(b"GOOSE_MODE: auto\n")
    configurator.undo(tool)
    assert place.read_bytes() == before


def test_backups_are_listed_and_restored(home: Path, configurator: Configurator) -> None:
    tool = catalogue()["aider"]
    place = home / ".aider.conf.yml"
    place.write_bytes(b"model: mine\n")
    backup = configurator.back_up(tool, "manual")
    configurator.apply(tool, TARGET, migration=False)
    safety, paths = configurator.restore(tool, backup)
    assert (place.read_bytes(), paths) == (b"model: mine\n", [place])
    listed = configurator.store.list_all("aider")
    assert [each.reason for each in listed] == ["restore", "apply", "manual"]
    assert listed[0] == safety
    assert configurator.store.find("aider", "../../etc") is None


def test_a_damaged_backup_is_not_restored(home: Path, configurator: Configurator) -> None:
    tool = catalogue()["aider"]
    (home / ".aider.conf.yml").write_bytes(b"model: mine\n")
    backup = configurator.back_up(tool, "manual")
    next(configurator.store._folder.rglob("0")).write_bytes(b"other")
    with pytest.raises(ConfigurationFailed, match="damaged"):
        configurator.restore(tool, backup)
    assert (home / ".aider.conf.yml").read_bytes() == b"model: mine\n"


def test_links_and_folders_of_others_are_refused(
    home: Path, configurator: Configurator, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "settings.json").write_bytes(b"{}")
    tool = catalogue()["claude"]
    (home / ".claude").symlink_to(outside)
    with pytest.raises(ConfigurationFailed, match="symbolic link"):
        configurator.apply(tool, TARGET, migration=False)
    (home / ".claude").unlink()
    (home / ".claude").mkdir()
    (home / ".claude/settings.json").symlink_to(outside / "settings.json")
    with pytest.raises(ConfigurationFailed, match="symbolic link"):
        configurator.apply(tool, TARGET, migration=False)
    (home / ".claude/settings.json").unlink()
    os.mkfifo(home / ".claude/settings.json")
    with pytest.raises(ConfigurationFailed, match="not a file"):
        configurator.apply(tool, TARGET, migration=False)
    assert (outside / "settings.json").read_bytes() == b"{}"
    assert configurator.store.list_all() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_files_of_other_users_are_refused(home: Path, configurator: Configurator) -> None:
    place = home / ".aider.conf.yml"
    place.write_bytes(b"")
    os.chown(place, 1234, 1234)
    with pytest.raises(ConfigurationFailed, match="another user"):
        configurator.apply(catalogue()["aider"], TARGET, migration=False)


def test_one_file_that_cannot_be_edited_leaves_all_as_they_are(
    home: Path, configurator: Configurator
) -> None:
    (home / ".qwen").mkdir()
    (home / ".qwen/settings.json").write_bytes(b"{ not json")
    with pytest.raises(ConfigurationFailed, match=r"settings\.json was not changed"):
        configurator.apply(catalogue()["qwen"], TARGET, migration=False)
    assert files_of(home) == {".qwen/settings.json": b"{ not json"}


def test_two_writers_take_turns(home: Path, configurator: Configurator) -> None:
    """Each sets its own tool's members in one folder, many times: nothing is lost, and nothing fails."""
    failures: list[Exception] = []

    def write(number: int) -> None:
        for turn in range(10):
            target = GatewayTarget(f"http://127.0.0.1:{number}", "k", f"p/m{turn}", (f"p/m{turn}",))
            try:
                configurator.apply(catalogue()["aider"], target, migration=False)
            except ConfigurationFailed as error:
                failures.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in (1, 2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert failures == []
    assert b"model: " in (home / ".aider.conf.yml").read_bytes()


KILLED = """
import os, signal, sys
from pathlib import Path
from fairlead.coding_tools.backups import BackupStore
from fairlead.coding_tools.catalogue import catalogue
from fairlead.coding_tools.configure import Configurator
from fairlead.coding_tools.detection import Detector
from fairlead.coding_tools.filling import GatewayTarget

def apply(home, data, stop):
    calls = 0
    def counted(name):
        real = getattr(os, name)
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == stop:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)
        setattr(os, name, call)
    for name in ("open", "fsync", "rename", "fchmod", "mkdir", "fdopen"):
        counted(name)
    target = GatewayTarget("http://127.0.0.1:1", "sk-fl-k", "p/m", ("p/m",))
    Configurator(home, BackupStore(data)).apply(catalogue()["qwen"], target, migration=False)

# A process for each point, with everything imported once.
for stop in range(1, 200):
    home, data = (Path(sys.argv[1]) / f"{name}{stop}" for name in ("home", "data"))
    (home / ".qwen").mkdir(parents=True)
    (home / ".qwen/settings.json").write_bytes(bytes.fromhex(sys.argv[2]))
    child = os.fork()
    if child == 0:
        try:
            apply(home, data, stop)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(stop, status, flush=True)
    if status != -9:
        break
"""


def test_killed_at_any_point_a_file_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    old, new = b'{\n  "mine": 1\n}\n', None
    arguments = [sys.executable, "-c", KILLED, str(tmp_path), old.hex()]
    ended = subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=100)
    points = [tuple(map(int, line.split())) for line in ended.stdout.splitlines()]
    assert len(points) > 20
    assert points[-1][1] == 0, ended.stderr
    for stop, status in points:
        home, data = tmp_path / f"home{stop}", tmp_path / f"data{stop}"
        content = (home / ".qwen/settings.json").read_bytes()
        if status == 0:
            continue
        assert status == -9
        assert content in (old, new or content)
        if content != old:
            new = content
            assert b'"mine": 1' in content
            assert b"127.0.0.1:1" in content
            # The backup was whole before, and undo finds it.
            configurator = Configurator(home, BackupStore(data))
            configurator.undo(catalogue()["qwen"])
            assert (home / ".qwen/settings.json").read_bytes() == old
    assert content != old


def test_a_new_file_is_a_new_tool(tmp_path: Path, home: Path) -> None:
    """It is read, detected, configured and seen to be."""
    folder = tmp_path / "tools"
    shutil.copytree(FOLDER, folder)
    text = (FOLDER / "aider.toml").read_text().replace('"aider"', '"newcomer"')
    (folder / "newcomer.toml").write_text(text.replace(".aider.conf.yml", ".newcomer.yml"))
    tool = read_catalogue(folder)["newcomer"]
    assert tool.is_displayed
    store = BackupStore(tmp_path / "data")
    Configurator(home, store).apply(tool, TARGET, migration=False)
    assert list(files_of(home)) == [".newcomer.yml"]
    command, config = asyncio.run(Detector(home, store, ["http://127.0.0.1:20128"]).find(tool))
    assert (command.installed, command.reason) == (False, "Its command is not in PATH.")
    assert (config.status, config.endpoint) == ("configured", "http://127.0.0.1:20128/v1")


def test_the_newest_key_is_the_one_that_is_remembered(
    home: Path, configurator: Configurator
) -> None:
    """Where a file names a variable only, nothing changes in it when a new key is made."""
    tool = catalogue()["codex"]
    configurator.apply(tool, TARGET, migration=False, key_id="one")
    assert configurator.apply(tool, TARGET, migration=False, key_id="two").backup is None
    origin = configurator.store.origin("codex")
    assert origin is not None
    assert origin.key_id == "two"
