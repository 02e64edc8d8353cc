"""Commands that watch: usage, cost, logs, health, quota, sessions, cache and top."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from rich.cells import cell_len

from tests.support.command import Completed, clean_environment, fairlead, sentence
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.terminal import Terminal
from tests.support.upstream import completion, reply

Run = Callable[..., Completed]


@pytest.fixture
def run(gateway: Gateway) -> Run:
    return lambda *arguments, **more: fairlead(
        *arguments, FAIRLEAD_DATA_DIR=str(gateway.data_dir), **more
    )


@pytest.fixture
def called(gateway: Gateway, lane: Lane) -> Lane:
    """A lane over which one call was settled."""
    lane.upstream.script(reply(completion("hello")))
    assert gateway.caller.post("/v1/chat/completions", json=lane.body()).status_code == 200
    eventually(lambda: gateway.shown_records(model=lane.model), "the call is settled", within_s=8)
    return lane


@pytest.mark.parametrize(
    "command",
    [
        "models",
        "usage",
        "cost",
        "logs",
        "health",
        "quota",
        "sessions",
        "cache show",
        "cache list",
        "config show",
    ],
)
def test_a_table_for_people_and_a_document_for_programs(
    run: Run, called: Lane, command: str
) -> None:
    words = command.split()
    table = run(*words)
    document = run(*words, "--json")
    assert (table.returncode, table.stderr, document.stderr) == (0, "", "")
    assert table.stdout.strip()
    assert isinstance(json.loads(document.stdout), dict)
    assert "\x1b" not in table.stdout


def test_usage_and_cost_name_keys_and_providers(run: Run, called: Lane, gateway: Gateway) -> None:
    usage = run("usage", "--by", "hour,provider,key", "--limit", "500").stdout
    assert called.prefix in usage
    assert "everything" in usage, "the key's name"
    by_provider = run("cost", "--by", "provider", "--since", "24h").stdout
    assert called.prefix in by_provider
    assert "--since" in sentence(run("usage", "--since", "soon"), 1)
    assert "groupBy" in sentence(run("usage", "--by", "weather"), 1)


def test_logs_are_followed(gateway: Gateway, called: Lane) -> None:
    command = [sys.executable, "-m", "fairlead", "logs", "-f", "--json", "--model", called.model]
    with subprocess.Popen(
        command,
        env=clean_environment() | {"FAIRLEAD_DATA_DIR": str(gateway.data_dir)},
        stdout=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        try:
            first = json.loads(following.stdout.readline())
            called.upstream.script(reply({"error": {"message": "no"}}, status=400))
            gateway.caller.post("/v1/chat/completions", json=called.body())
            second = json.loads(following.stdout.readline())
        finally:
            following.terminate()
    assert (first["status"], second["status"]) == (200, 400)
    assert second["model"] == called.model


def test_top_draws_and_ends(gateway: Gateway, called: Lane) -> None:
    environment = {"FAIRLEAD_DATA_DIR": str(gateway.data_dir)}
    with Terminal("top", "--every", "0.5", **environment) as terminal:
        terminal.wait_for("requests/s")
        # The gateway is shared, and its providers may be more than the screen has lines: the busiest stand first.
        called.upstream.script(reply(completion("hello")))
        assert gateway.caller.post("/v1/chat/completions", json=called.body()).status_code == 200
        terminal.wait_for(called.prefix)
        terminal.type("q")
        assert terminal.end() == 0
    with Terminal("top", "--every", "60", **environment) as terminal:
        terminal.wait_for("Looking")
        terminal.type("\x03")
        assert terminal.end() == 0
    assert "Traceback" not in terminal.shown


def test_top_is_one_frame_for_programs(run: Run, called: Lane) -> None:
    def has_provider() -> bool:
        frame = json.loads(run("top", "--json", "--every", "0.5").stdout)
        return called.prefix in [each["provider"] for each in frame["providers"]]

    # Workers tell their counters about every two seconds.
    eventually(has_provider, "the provider is in a frame", within_s=15)
    assert "--json" in sentence(run("top"), 1)


def test_tables_fit_the_terminal(run: Run, gateway: Gateway, called: Lane) -> None:
    # A sentence about refused callers follows the table.
    assert gateway.client().get("/v1/models").status_code == 401
    eventually(lambda: "--refused" in run("logs").stdout, "the refusal is counted", within_s=15)
    for columns in (60, 140):
        with Terminal(
            "logs", columns=columns, FAIRLEAD_DATA_DIR=str(gateway.data_dir), NO_COLOR="1"
        ) as terminal:
            assert terminal.end() == 0
        lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal.shown).splitlines()
        # Names of other tests, with whom the gateway is shared, have characters of no width and of two.
        wide = [line for line in lines if cell_len(line) > columns]
        assert not wide
        assert any(called.model in line for line in lines), "no name is cut in pieces"
        assert "--refused" in " ".join(lines)
        assert "\x1b[3" not in terminal.shown


def test_the_cache_is_not_cleared_by_accident(run: Run) -> None:
    assert "--all" in sentence(run("cache", "clear"), 1)
    assert json.loads(run("cache", "clear", "--model", "no-such", "--json").stdout) == {
        "removed": 0,
        "shared": 0,
    }


def test_a_hostile_name_is_harmless_in_every_table(run: Run, gateway: Gateway) -> None:
    made = gateway.create_key(name="\u202eevil\u2066 " + "n" * 150)
    for arguments in (("keys", "list"), ("keys", "show", made["id"]), ("keys", "list", "--json")):
        shown = run(*arguments).stdout
        assert r"\u202eevil" in shown
        assert "\u202e" not in shown
    assert "\u202e" not in run("keys", "revoke", made["id"]).stdout
