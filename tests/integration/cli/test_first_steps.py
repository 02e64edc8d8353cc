"""What somebody meets who uses the commands for the first time: names, limits, causes and suggestions."""

from __future__ import annotations

import json
import secrets
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlead import __version__
from tests.support.command import Completed, fairlead, sentence, started_fairlead
from tests.support.processes import Gateway, Lane, expect
from tests.support.terminal import Terminal
from tests.support.upstream import completion, reply

Run = Callable[..., Completed]


@pytest.fixture
def run(gateway: Gateway) -> Run:
    return lambda *arguments, **more: fairlead(
        *arguments, FAIRLEAD_DATA_DIR=str(gateway.data_dir), **more
    )


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nobody listens on, and that nobody else is given meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_the_version_is_an_option(option: str) -> None:
    """In an interpreter that is started for it, as in a shell."""
    ended = started_fairlead(option)
    assert (ended.returncode, ended.stdout) == (0, f"fairlead {__version__}\n")


def test_there_is_one_way_to_complete(run: Run) -> None:
    assert "--install-completion" not in run("--help").stdout
    assert "Register-ArgumentCompleter" in run("completion", "pwsh").stdout


@pytest.mark.parametrize(
    ("typed", "meant"),
    [(("keyz",), "keys"), (("keys", "creat"), "create"), (("setup-codx",), "setup-codex")],
)
def test_a_mistyped_command_is_told_what_was_meant(
    run: Run, typed: tuple[str, ...], meant: str
) -> None:
    ended = run(*typed)
    assert ended.returncode == 2
    assert meant in ended.stderr


def test_mistyped_names_are_told_what_was_meant(run: Run, gateway: Gateway) -> None:
    name = f"laptop-{secrets.token_hex(4)}"
    gateway.create_key(name=name)
    assert f"Did you mean `{name}`?" in sentence(run("keys", "show", name[:-1]), 1)
    wrong = sentence(run("providers", "add", "opnai", "--no-key"), 1)
    assert "There is no provider `opnai`" in wrong
    assert "Did you mean `openai`" in wrong
    assert "Did you mean `codex`" in run("run", "codx").stderr
    assert "Did you mean `codex`" in run("undo", "codx").stderr
    assert "Did you mean `dailyUsageLimitUsd`" in sentence(
        run("keys", "edit", name, "dailyUsgeLimitUsd=5"), 1
    )


def test_known_providers_are_listed_without_a_gateway(tmp_path: Path) -> None:
    elsewhere = {"FAIRLEAD_DATA_DIR": str(tmp_path)}
    known = json.loads(fairlead("providers", "known", "--json", **elsewhere).stdout)
    assert known["total"] == len(known["providers"]) > 50
    found = json.loads(fairlead("providers", "known", "ANTHROPIC", "--json", **elsewhere).stdout)
    assert "anthropic" in [each["id"] for each in found["providers"]]
    assert "Did you mean `openai`" in fairlead("providers", "known", "opennai", **elsewhere).stdout


def test_a_key_is_created_with_its_limits(run: Run, gateway: Gateway) -> None:
    name = f"limited-{secrets.token_hex(4)}"
    options = (
        "--budget",
        "20/month",
        "--rpm",
        "60",
        "--models",
        "openai/*",
        "--tokens",
        "2M/month",
    )
    made = run("keys", "create", name, *options)
    assert made.returncode == 0, made.stderr
    gateway.canaries.append(made.stdout.strip())
    key = json.loads(run("keys", "show", name, "--json").stdout)
    assert (key["monthlyUsageLimitUsd"], key["usageLimitEnabled"]) == (20.0, True)
    assert key["rateLimits"] == [{"limit": 60, "window": 60}]
    assert key["allowedModels"] == ["openai/*"]
    (limit,) = json.loads(run("limits", "list", name, "--json").stdout)["limits"]
    assert (limit["tokenLimit"], limit["resetInterval"]) == (2_000_000, "monthly")
    added = run("limits", "add", name, "5k/day", "--model", "openai/gpt-4o")
    assert "5,000 tokens daily" in added.stdout
    assert "openai/gpt-4o" in run("limits", "list").stdout
    assert run("limits", "remove", limit["id"]).returncode == 0
    # An amount alone takes effect.
    assert run("keys", "edit", name, "usageLimitEnabled=false").returncode == 0
    assert run("keys", "edit", name, "dailyUsageLimitUsd=5").returncode == 0
    key = json.loads(run("keys", "show", name, "--json").stdout)
    assert (key["dailyUsageLimitUsd"], key["usageLimitEnabled"]) == (5.0, True)
    tiny = sentence(run("keys", "edit", name, "dailyUsageLimitUsd=0.0000001"), 1)
    assert "must be 0 or at least 0.000001" in tiny


def test_a_key_whose_token_limit_is_refused_is_not_left_behind(run: Run) -> None:
    name = f"refused-{secrets.token_hex(4)}"
    assert run("keys", "create", name, "--tokens", "999999999999999M/day").returncode == 1
    assert f"no key with the id or name {name}" in run("keys", "show", name).stderr


def test_an_alias_is_added_called_listed_and_removed(run: Run, lane: Lane) -> None:
    lane.upstream.script(reply({"object": "list", "data": [{"id": "m", "object": "model"}]}))
    assert run("providers", "test", lane.connections[0]["id"]).returncode == 0
    alias = f"short-{secrets.token_hex(4)}"
    added = run("aliases", "add", alias, lane.model)
    assert (added.returncode, added.stderr) == (0, "")
    lane.upstream.script(reply(completion("yes")))
    assert run("chat", "-m", alias, "--json", "hi").returncode == 0
    assert json.loads(run("aliases", "list", "--json").stdout)["aliases"][alias] == lane.model
    assert f"Did you mean `{alias}`" in sentence(run("aliases", "remove", alias[:-1]), 1)
    assert run("aliases", "remove", alias).returncode == 0
    assert alias not in run("aliases", "list").stdout
    doubted = run("aliases", "add", alias, "nosuch/model")
    assert "WARNING: No provider or combo serves `nosuch/model`." in doubted.stderr
    run("aliases", "remove", alias)


def test_a_combo_of_models_that_nobody_serves_is_doubted(run: Run, lane: Lane) -> None:
    name = f"c-{secrets.token_hex(4)}"
    made = run("combos", "create", name, f"{lane.prefix}/m@status=503", "nosuch/x=20")
    assert made.returncode == 0, made.stderr
    assert "WARNING: No provider or combo serves `nosuch/x`." in made.stderr
    steps = json.loads(run("combos", "show", name, "--json").stdout)["models"]
    assert [(step["model"], step["weight"]) for step in steps] == [
        (f"{lane.prefix}/m@status=503", 0),
        ("nosuch/x", 20),
    ]
    assert "from 0 to 100" in sentence(run("combos", "create", f"{name}2", "a/b=101"), 1)
    run("combos", "delete", name)


def test_two_connections_never_get_one_name(run: Run, gateway: Gateway) -> None:
    prefix = f"n{secrets.token_hex(4)}"
    assert run("nodes", "add", prefix, "http://127.0.0.1:9/v1").returncode == 0
    for name in (prefix, f"{prefix}-2"):
        # Piped in, as a script does it.
        added = run("providers", "add", prefix, typed="sk-upstream-canary-piped\n")
        assert (added.returncode, added.stderr) == (0, "")
        assert added.stdout.startswith(f"Added {name} at {prefix} ")
    again = run("providers", "add", prefix, "--no-key", "--name", prefix)
    assert "There is a connection with the name" in sentence(again, 1)
    for name in (prefix, f"{prefix}-2"):
        assert run("providers", "remove", name).returncode == 0
    assert gateway.url


def test_a_failed_test_says_what_was_tried_and_why(run: Run, closed_port: int) -> None:
    prefix = f"n{secrets.token_hex(4)}"
    url = f"http://127.0.0.1:{closed_port}/v1"
    assert run("nodes", "add", prefix, url).returncode == 0
    assert run("providers", "add", prefix, "--no-key").returncode == 0
    tested = run("providers", "test", prefix)
    assert tested.returncode == 1
    assert "the connection was refused" in tested.stdout
    assert f"{url}/models" in tested.stdout
    seen = run("doctor").stdout
    assert f"{url}/models" in seen
    run("nodes", "edit", prefix, "baseUrl=http://nobody.invalid/v1")
    assert "the name does not resolve" in run("providers", "test", prefix).stdout
    run("providers", "remove", prefix)


def test_a_failed_test_of_a_webhook_says_where_and_why(run: Run) -> None:
    name = f"w-{secrets.token_hex(4)}"
    made = run("webhooks", "create", "https://nobody.invalid/hooks/secret-path", "--name", name)
    assert made.returncode == 0, made.stderr
    failed = sentence(run("webhooks", "test", name), 1)
    assert "https://nobody.invalid: the name does not resolve" in failed
    assert "secret-path" not in failed
    assert "Did you mean" in sentence(run("webhooks", "show", name[:-1]), 1)
    run("webhooks", "delete", name)


def test_models_have_their_provider_and_type(run: Run, lane: Lane) -> None:
    lane.upstream.script(reply({"object": "list", "data": [{"id": "m", "object": "model"}]}))
    assert run("providers", "test", lane.connections[0]["id"]).returncode == 0
    shown = run("models", "--provider", lane.prefix).stdout
    assert lane.model in shown
    assert "chat" in shown
    found = json.loads(run("models", "--provider", lane.prefix, "--json").stdout)["data"]
    assert [each["id"] for each in found] == [lane.model]
    assert "No model has the prefix" in run("models", "--provider", "nobody-has-it").stdout
    assert f"Did you mean `{lane.model}`" in run("models", f"{lane.model}x").stdout


def test_requests_that_are_followed_have_headings(gateway: Gateway) -> None:
    with Terminal("logs", "-f", FAIRLEAD_DATA_DIR=str(gateway.data_dir)) as terminal:
        terminal.wait_for("status  model")
        terminal.type("\x03")
        terminal.end()


def test_calls_of_a_tool_that_has_ended_have_its_name(
    run: Run, gateway: Gateway, lane: Lane, tmp_path: Path
) -> None:
    place = tmp_path / "claude"
    place.write_text("#!/bin/sh\nexit 0\n")
    place.chmod(0o755)
    path = f"{tmp_path}:/usr/bin:/bin"
    for _ in range(2):
        assert run("run", "claude", "--model", lane.model, PATH=path).returncode == 0
    keys = expect(gateway.admin.get("/api/keys?limit=500"), 200)["keys"]
    (key,) = [each for each in keys if each["name"] == "claude (run)"]
    assert key["isActive"] is False, "its key is of no use once the tool has ended"


def test_a_data_directory_without_an_instance_has_the_port_of_its_environment(
    tmp_path: Path, closed_port: int
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "cli-token").write_text("flt_nothing")
    failed = fairlead("status", FAIRLEAD_DATA_DIR=str(folder), FAIRLEAD_PORT=str(closed_port))
    assert f"Nothing answers at http://127.0.0.1:{closed_port}" in sentence(failed, 1)


def test_an_instance_that_is_starting_says_so(tmp_path: Path) -> None:
    from fairlead.serve.directory import DataDirectory

    with DataDirectory(tmp_path / "data"):
        failed = fairlead("status", FAIRLEAD_DATA_DIR=str(tmp_path / "data"))
    assert "is starting or stopping: try again in a moment" in sentence(failed, 1)


def test_a_directory_that_hides_the_context_in_use_is_named(
    run: Run, gateway: Gateway, tmp_path: Path
) -> None:
    folder = tmp_path / "fairlead"
    folder.mkdir(mode=0o700)
    contexts = {"current": "remote", "contexts": {"remote": {"url": gateway.url, "token": "flt_x"}}}
    place = folder / "contexts.json"
    place.write_text(json.dumps(contexts))
    place.chmod(0o600)
    ended = run("keys", "list", XDG_CONFIG_HOME=str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "not the context in use, remote" in ended.stderr
    assert run("--context", "local", "keys", "list", XDG_CONFIG_HOME=str(tmp_path)).stderr == ""
