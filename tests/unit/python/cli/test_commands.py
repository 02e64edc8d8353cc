"""The commands as a person or a script runs them, against a running gateway."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from fairlead.process.extra import install_command
from tests.support.command import fairlead, sentence
from tests.support.processes import Gateway
from tests.support.upstream import Upstream, reply

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(gateway: Gateway) -> Run:
    """Runs a command against the shared gateway, found by its data directory alone."""
    return lambda *arguments, **more: fairlead(
        *arguments, FAIRLEAD_DATA_DIR=str(gateway.data_dir), **more
    )


HIDDEN = """
import sys
for name in {names!r}:
    sys.modules[name] = None
sys.argv = ['fairlead', *{arguments!r}]
from fairlead.cli.app import run
sys.exit(run())
"""


@pytest.mark.parametrize(
    ("names", "arguments", "environment", "extra"),
    [
        (["robyn"], ["serve", "--demo", "--port", "20999"], {}, "standin"),
        (["robyn"], ["standin", "--port", "1"], {}, "standin"),
        (
            ["opentelemetry.exporter"],
            ["serve", "--port", "20999"],
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
            "telemetry",
        ),
    ],
    ids=("serve --demo", "standin", "traces"),
)
def test_an_extra_that_is_not_installed_is_one_sentence(
    tmp_path: Path, names: list[str], arguments: list[str], environment: dict[str, str], extra: str
) -> None:
    """As in an installation of the plain wheel: what to install, before anything is started."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_")}
    ended = subprocess.run(
        [sys.executable, "-c", HIDDEN.format(names=names, arguments=arguments)],
        env=clean | environment | {"FAIRLEAD_DATA_DIR": str(tmp_path / "data")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("fairlead: ")
    assert install_command(extra) in line
    assert not (tmp_path / "data" / "state.duckdb").exists()


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['fairlead', '--help']\n"
        "from fairlead.cli.app import run; code = run()\n"
        "heavy = {'duckdb', 'polars', 'fastapi', 'granian', 'robyn', 'httpx', 'pydantic', 'fairlead._core'}\n"
        "sys.exit(code or sorted(heavy & set(sys.modules)) or 0)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "serve" in ended.stdout


@pytest.mark.slow
def test_help_is_there_in_300_ms() -> None:
    fairlead("--help")  # compiled and in the page cache
    taken_s = []
    for _ in range(5):
        started = time.monotonic()
        assert fairlead("--help").returncode == 0
        taken_s.append(time.monotonic() - started)
    assert min(taken_s) < 0.3


def test_version() -> None:
    from fairlead import __version__

    assert fairlead("version").stdout == f"{__version__}\n"


def test_a_key_is_made_used_listed_and_revoked(run: Run, gateway: Gateway) -> None:
    made = run("keys", "create", "from the command line", "--model", "openai/*")
    key = made.stdout.strip()
    gateway.canaries.append(key)
    assert made.returncode == 0
    assert key.startswith("sk-fl-")
    assert "cannot be shown again" in made.stderr
    bearer = {"authorization": f"Bearer {key}"}
    assert httpx.get(f"{gateway.url}/v1/models", headers=bearer, trust_env=False).status_code == 200

    listed = json.loads(run("keys", "list", "--json").stdout)["keys"]
    (record,) = [one for one in listed if one["name"] == "from the command line"]
    assert record["allowedModels"] == ["openai/*"]
    assert record["id"] in run("keys", "list").stdout
    assert key not in json.dumps(listed)

    assert run("keys", "revoke", "from the command line").returncode == 0
    assert httpx.get(f"{gateway.url}/v1/models", headers=bearer, trust_env=False).status_code == 401
    assert "from the command line" in sentence(run("keys", "revoke", "from the command line"), 1)


def test_a_key_as_json_is_the_answer_of_the_api(run: Run, gateway: Gateway) -> None:
    created = json.loads(run("keys", "create", "machine", "--no-log", "--json").stdout)
    gateway.canaries.append(created["key"])
    assert created["noLog"] is True
    assert json.loads(run("keys", "revoke", created["id"], "--json").stdout)["id"] == created["id"]


def test_an_endpoint_and_its_connection(run: Run, gateway: Gateway, upstream: Upstream) -> None:
    upstream.script(reply({"object": "list", "data": [{"id": "m", "object": "model"}]}))
    assert run("nodes", "add", "cli-node", upstream.url).returncode == 0
    assert "cli-node" in run("nodes", "list").stdout

    secret = "sk-upstream-canary-of-the-command-line"
    gateway.canaries.append(secret)
    added = run(
        "providers", "add", "cli-node", "--name", "lane", "--api-key-file", "-", typed=secret
    )
    assert added.returncode == 0, added
    tested = run("providers", "test", "lane")
    assert (tested.returncode, tested.stderr) == (0, "")
    assert upstream.requests[-1].bearer == secret
    assert secret not in run("providers", "list").stdout + run("providers", "list", "--json").stdout

    upstream.script(reply({"error": {"message": "no"}}, status=401))
    assert run("providers", "test", "lane").returncode == 1


def test_a_connection_without_a_name_is_called_as_its_provider(run: Run) -> None:
    run("nodes", "add", "nameless", "http://127.0.0.1:9/v1")
    run("providers", "add", "nameless", "--no-key")

    # The list names the node by its prefix, not by its id.
    assert re.search(r" nameless +nameless ", run("providers", "list").stdout)


def test_the_sentence_of_the_api_is_passed_on(run: Run) -> None:
    assert "169.254.169.254" in sentence(run("nodes", "add", "x", "http://169.254.169.254/"), 1)


def test_combos_are_made_listed_shown_and_deleted(run: Run) -> None:
    made = run("combos", "create", "spread", "a/one=3", "b/two=1", "--strategy", "weighted")
    assert "combo/spread" in made.stdout
    run("combos", "create", "outer", "combo/spread", "a/one")
    listed = run("combos", "list").stdout
    assert "weighted" in listed
    assert "combo/spread, a/one" in listed
    shown = json.loads(run("combos", "show", "spread", "--json").stdout)
    assert [step["weight"] for step in shown["models"]] == [3, 1]
    assert "b/two" in run("combos", "show", shown["id"]).stdout
    assert "outer" in sentence(run("combos", "delete", "spread"), 1)
    assert "Deleted outer" in run("combos", "delete", "outer").stdout
    assert json.loads(run("combos", "delete", "spread", "--json").stdout)["success"] is True
    assert "weight" in sentence(run("combos", "create", "x", "a/one=many"), 1)
    assert "no combo" in sentence(run("combos", "show", "nothing"), 1)


def test_status_says_ready_and_how_the_parts_are(run: Run, gateway: Gateway) -> None:
    assert gateway.url in run("status").stdout
    found = json.loads(run("status", "--json").stdout)
    assert found["ready"] is True
    assert found["health"]["version"]


def test_nobody_there(tmp_path: Path) -> None:
    (tmp_path / "cli-token").write_text("x")
    told = fairlead("status", "--url", "http://127.0.0.1:9", "--data-dir", str(tmp_path))
    assert "fairlead serve" in sentence(told, 1)


def test_no_token_there(gateway: Gateway, tmp_path: Path) -> None:
    told = fairlead("keys", "list", "--url", gateway.url, "--data-dir", str(tmp_path))
    assert "--data-dir" in sentence(told, 1)


def test_the_token_is_sent_to_this_machine_only(run: Run) -> None:
    assert "192.0.2.1" in sentence(run("keys", "list", "--url", "http://192.0.2.1:20128"), 2)


def test_a_wrong_option_is_code_2() -> None:
    assert fairlead("serve", "--port", "many").returncode == 2
    assert fairlead("no-such-command").returncode == 2


def test_no_colour_where_none_is_wanted(run: Run) -> None:
    coloured = {"FORCE_COLOR": "1", "NO_COLOR": "1"}
    assert "\x1b[3" not in run("status", **coloured).stdout


def test_the_stand_in_says_what_its_port_lacks(upstream: Upstream) -> None:
    told = fairlead("standin", "--port", str(upstream.port))
    assert "in use" in sentence(told, 2)
