"""`fairlead setup-<tool>`, `undo` and `run` as a person runs them, against a running gateway."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, completion, reply

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lane(gateway: Gateway) -> Iterator[Lane]:
    with Upstream() as upstream:
        upstream.script(reply(completion()))
        yield gateway.add_lane(upstream)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


@pytest.fixture
def environment(gateway: Gateway, home: Path, tmp_path: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}
    commands = tmp_path / "bin"
    commands.mkdir()
    return clean | {
        "HOME": str(home),
        "PATH": f"{commands}:{clean['PATH']}",
        "FAIRLEAD_DATA_DIR": str(gateway.data_dir),
        "GATEWAY_ALLOW_CONTAINER_CONFIG_WRITE": "true",
        "NO_COLOR": "1",
    }


@pytest.fixture
def run(environment: dict[str, str]) -> Run:
    return lambda *arguments: subprocess.run(
        [sys.executable, "-m", "fairlead", *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def keys_of(gateway: Gateway) -> set[str]:
    return {each["name"] for each in expect(gateway.admin.get("/api/keys?limit=500"), 200)["keys"]}


def test_one_command_points_a_tool_here_and_another_takes_it_back(
    gateway: Gateway, lane: Lane, home: Path, run: Run
) -> None:
    place = home / ".aider.conf.yml"
    place.write_text("dark-mode: true  # mine\n")
    preview = run("setup-aider", "--dry-run", "--model", lane.model)
    assert f"openai/{lane.model}" in preview.stdout
    assert place.read_text() == "dark-mode: true  # mine\n"
    assert "aider (setup)" not in keys_of(gateway)
    done = run("setup-aider", "--yes", "--model", lane.model)
    assert done.returncode == 0, done.stderr
    assert f"Wrote {place}" in done.stdout
    assert "It works" in done.stdout
    assert "sk-fl-" not in done.stdout, "the key is in the file, and nowhere else"
    assert place.read_text().startswith("dark-mode: true  # mine\n")
    assert place.stat().st_mode & 0o777 == 0o600
    assert "aider (setup)" in keys_of(gateway)
    # Once more, with --json.
    again = run("setup-aider", "--yes", "--model", lane.model, "--json")
    assert json.loads(again.stdout)["call"]["model"]
    undone = run("undo", "aider", "--json")
    assert json.loads(undone.stdout)["files"] == [str(place)]
    assert place.read_text() == "dark-mode: true  # mine\n"
    assert "aider (setup)" not in keys_of(gateway), "its key is revoked"
    assert "was not configured by fairlead" in run("undo", "aider").stderr


def test_a_remote_gateway_is_reached_by_its_key(
    gateway: Gateway, lane: Lane, home: Path, run: Run
) -> None:
    done = run(
        "setup-opencode",
        "--remote",
        f"{gateway.url}/v1",
        "--api-key",
        gateway.key,
        "--model",
        lane.model,
    )
    assert done.returncode == 0, done.stderr
    written = json.loads((home / ".config/opencode/opencode.json").read_text())
    assert written["provider"]["fairlead"]["options"]["baseURL"] == f"{gateway.url}/v1"
    assert gateway.key not in json.dumps(written)
    wrong = run(
        "setup-opencode", "--remote", gateway.url, "--api-key", "sk-fl-wrong", "--model", lane.model
    )
    assert wrong.returncode == 1
    assert "refused the call" in wrong.stderr
    run("undo", "opencode")


def test_each_tool_has_a_variable_and_a_key_of_its_own(
    gateway: Gateway, lane: Lane, home: Path, run: Run, environment: dict[str, str]
) -> None:
    first = run("setup-opencode", "--yes", "--model", lane.model)
    assert first.returncode == 0, first.stderr
    exported = next(line for line in first.stdout.splitlines() if line.startswith("export "))
    name, _, key = exported.removeprefix("export ").partition("=")
    assert name == "FAIRLEAD_OPENCODE_KEY"
    gateway.canaries.append(key)
    assert "{env:FAIRLEAD_OPENCODE_KEY}" in (home / ".config/opencode/opencode.json").read_text()
    # As the user is asked to, and under the name that every tool once shared.
    environment |= {name: key, "FAIRLEAD_API_KEY": key}
    second = run("setup-qwen", "--yes", "--model", lane.model)
    assert second.returncode == 0, second.stderr
    assert key not in (home / ".qwen/.env").read_text()
    assert {"opencode (setup)", "qwen (setup)"} <= keys_of(gateway)
    undone = run("undo", "opencode")
    assert "WARNING" not in undone.stderr
    assert "opencode (setup)" not in keys_of(gateway)
    assert "qwen (setup)" in keys_of(gateway)
    run("undo", "qwen")


def test_a_key_that_another_tool_sends_is_not_revoked(
    gateway: Gateway, lane: Lane, run: Run, environment: dict[str, str]
) -> None:
    made = json.loads(run("setup-codex", "--yes", "--json", "--model", lane.model).stdout)
    assert made["keyVariable"] == "FAIRLEAD_CODEX_KEY"
    gateway.canaries.append(made["apiKey"])
    environment["FAIRLEAD_SETUP_API_KEY"] = made["apiKey"]
    second = run("setup-qwen", "--yes", "--model", lane.model)
    assert "The tool sends the key from FAIRLEAD_SETUP_API_KEY." in second.stdout
    assert "qwen (setup)" not in keys_of(gateway)
    del environment["FAIRLEAD_SETUP_API_KEY"]
    undone = run("undo", "codex")
    assert undone.returncode == 0
    assert "WARNING: The key was not revoked, because qwen uses it too" in undone.stderr
    assert "codex (setup)" in keys_of(gateway)
    assert "WARNING" not in run("undo", "qwen").stderr


def test_a_tool_that_is_set_up_anew_leaves_other_tools_their_key(
    gateway: Gateway, lane: Lane, run: Run
) -> None:
    made = json.loads(run("setup-codex", "--yes", "--json", "--model", lane.model).stdout)
    gateway.canaries.append(made["apiKey"])
    key = ("--api-key", made["apiKey"])
    assert run("setup-qwen", "--yes", "--model", lane.model, *key).returncode == 0
    before = expect(gateway.admin.get("/api/keys?limit=500"), 200)["keys"]
    again = run("setup-codex", "--yes", "--model", lane.model)
    assert "qwen uses it too" in again.stderr
    after = expect(gateway.admin.get("/api/keys?limit=500"), 200)["keys"]
    assert {each["id"] for each in before} < {each["id"] for each in after}
    run("undo", "codex")
    run("undo", "qwen")


def test_run_takes_no_key_of_a_tool_that_is_set_up(
    gateway: Gateway, lane: Lane, run: Run, environment: dict[str, str]
) -> None:
    environment["FAIRLEAD_API_KEY"] = "sk-fl-of-another-tool"
    command(environment, "codex", "#!/bin/sh\nenv | grep FAIRLEAD_CODEX_KEY\n")
    ended = run("run", "codex", "--model", lane.model)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("FAIRLEAD_CODEX_KEY=sk-fl-")
    assert "of-another-tool" not in ended.stdout


def test_a_model_that_does_not_answer_leaves_no_trace(
    gateway: Gateway, home: Path, run: Run
) -> None:
    failed = run("setup-claude", "--yes", "--model", "nobody/m")
    assert failed.returncode == 1
    assert "refused the call" in failed.stderr
    assert list(home.iterdir()) == []
    assert "claude (setup)" not in keys_of(gateway)


def test_unknown_tools_are_named(run: Run) -> None:
    assert run("setup-cursor").returncode == 2
    assert "There is no coding tool `cursor`" in run("undo", "cursor").stderr
    assert "Name a tool: " in run("configure").stderr
    assert run("run", "emacs").returncode == 2


SHOW = """#!/bin/sh
echo "$@"
env | grep -E 'ANTHROPIC|QWEN_HOME' | sort
test -z "$QWEN_HOME" || cat "$QWEN_HOME/settings.json"
exit 42
"""


def command(environment: dict[str, str], name: str, script: str) -> None:
    place = Path(environment["PATH"].split(":")[0]) / name
    place.write_text(script)
    place.chmod(0o755)


def test_run_sets_the_environment_and_ends_as_the_tool_does(
    gateway: Gateway, lane: Lane, home: Path, run: Run, environment: dict[str, str]
) -> None:
    command(environment, "claude", SHOW)
    ended = run("run", "cc", "--model", lane.model, "--", "-p", "two words")
    assert ended.returncode == 42
    lines = ended.stdout.splitlines()
    assert lines[0] == "-p two words"
    assert f"ANTHROPIC_BASE_URL={gateway.url}" in lines
    assert f"ANTHROPIC_MODEL={lane.model}" in lines
    assert any(line.startswith("ANTHROPIC_AUTH_TOKEN=sk-fl-") for line in lines)
    assert list(home.iterdir()) == [], "nothing is written into the home"
    assert "claude (setup)" not in keys_of(gateway), "the key ends with the run"


def test_run_gives_a_tool_a_home_where_it_needs_a_file(
    lane: Lane, home: Path, run: Run, environment: dict[str, str]
) -> None:
    command(environment, "qwen", SHOW)
    ended = run("run", "qwen-code", "--model", lane.model)
    place = next(line for line in ended.stdout.splitlines() if line.startswith("QWEN_HOME="))
    assert lane.model in ended.stdout
    assert not Path(place.partition("=")[2]).exists(), "it is gone with the run"
    assert list(home.iterdir()) == []


def test_run_of_what_is_not_there_ends_with_127(lane: Lane, run: Run) -> None:
    ended = run("run", "grok-build", "--model", lane.model)
    assert ended.returncode == 127
    assert "grok is not in PATH" in ended.stderr


def test_run_passes_signals_on(lane: Lane, environment: dict[str, str], tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command(environment, "claude", f"#!/bin/sh\necho $$ > {ready}\nexec sleep 30\n")
    started = subprocess.Popen(
        [sys.executable, "-m", "fairlead", "run", "claude", "--model", lane.model], env=environment
    )
    eventually(lambda: ready.exists() and ready.read_text().strip(), "the tool runs", within_s=20)
    started.send_signal(signal.SIGTERM)
    assert started.wait(20) == 143
