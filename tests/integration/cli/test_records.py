"""Records that are shown, changed and removed; settings, backups and `fairlead doctor`."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import Completed, fairlead, sentence
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.upstream import CLOSE, completion, reply

Run = Callable[..., Completed]


@pytest.fixture
def run(gateway: Gateway) -> Run:
    return lambda *arguments, **more: fairlead(
        *arguments, FAIRLEAD_DATA_DIR=str(gateway.data_dir), **more
    )


def test_a_key_is_shown_and_changed(run: Run, gateway: Gateway) -> None:
    made = gateway.create_key(name="to be changed")
    changed = run(
        "keys",
        "edit",
        "to be changed",
        "isActive=false",
        'allowedModels=["a/*"]',
        "modelAccessMode=restricted",
    )
    assert changed.stdout == f"Changed to be changed ({made['id']}).\n"
    shown = json.loads(run("keys", "show", made["id"], "--json").stdout)
    assert (shown["isActive"], shown["allowedModels"]) == (False, ["a/*"])
    assert "FIELD=VALUE" in sentence(run("keys", "edit", made["id"]), 1)
    assert "FIELD=VALUE" in sentence(run("keys", "edit", made["id"], "isActive"), 1)
    assert made["key"] not in run("keys", "show", made["id"]).stdout


def test_a_key_is_made_in_a_group_by_its_name(run: Run, gateway: Gateway) -> None:
    group = json.loads(run("groups", "create", "reading room", "--json").stdout)
    made = json.loads(run("keys", "create", "desk", "--group", "reading room", "--json").stdout)
    gateway.canaries.append(made["key"])
    assert made["groupId"] == group["id"]
    near = sentence(run("keys", "create", "desk", "--group", "reading rom"), 1)
    assert "reading room" in near, "a misspelt name is answered with the near one"
    no_end = gateway.admin.get("/api/usage/history", params={"from": "2999-01-01T00:00:00Z"})
    assert "the current time" in no_end.json()["error"]["message"]


def test_facts_of_a_model_are_shown_changed_and_reset(run: Run, lane: Lane) -> None:
    model = lane.model
    edited = run("facts", "edit", model, "userMost=32", 'refuses=["seed"]', "type=chat")
    assert edited.stdout == f"Changed {model}.\n", edited.stderr
    shown = json.loads(run("facts", "show", model, "--json").stdout)
    stated = {each["name"]: (each["value"], each["origin"]) for each in shown["facts"]}
    assert stated["userMost"] == (32, "model")
    assert stated["refuses"] == (["seed"], "model")
    table = run("facts", "show", model).stdout
    assert "userMost" in table
    assert "seedMember" not in table
    assert "seedMember" in run("facts", "show", model, "--all").stdout
    assert "facts.userMost" in sentence(run("facts", "edit", model, "userMost=many"), 1)
    assert "PROVIDER/MODEL" in sentence(run("facts", "show", "m"), 1)
    assert run("facts", "reset", model).returncode == 0
    assert "userMost" not in run("facts", "show", model).stdout


def test_a_regenerated_key_replaces_the_old_one_at_once(
    run: Run, gateway: Gateway, lane: Lane
) -> None:
    old = gateway.create_key(name="leaked")
    done = run("keys", "regenerate", "leaked")
    assert done.returncode == 0, done.stderr
    new = done.stdout.strip()
    gateway.canaries.append(new)
    statuses = [
        gateway.caller.post(
            "/v1/chat/completions", json=lane.body(), headers={"authorization": f"Bearer {key}"}
        ).status_code
        for key in (old["key"], new)
    ]
    assert statuses == [401, 200]
    assert new not in run("keys", "show", "leaked").stdout


def test_a_node_is_shown_changed_and_removed(run: Run) -> None:
    run("nodes", "add", "cli-edit", "http://127.0.0.1:9/v1")
    assert run("nodes", "edit", "cli-edit", "name=Renamed").returncode == 0
    assert json.loads(run("nodes", "show", "cli-edit", "--json").stdout)["name"] == "Renamed"
    assert "Removed cli-edit" in run("nodes", "remove", "cli-edit").stdout
    assert "no endpoint" in sentence(run("nodes", "show", "cli-edit"), 1)


def test_a_credential_comes_from_a_file_alone(run: Run, gateway: Gateway, lane: Lane) -> None:
    (connection,) = lane.connections
    refused = run("providers", "edit", connection["id"], "apiKey=sk-on-the-command-line")
    assert "--from-file apiKey=PATH" in sentence(refused, 1)
    secret = "sk-upstream-canary-from-a-file"
    gateway.canaries.append(secret)
    changed = run("providers", "edit", connection["id"], "--from-file", "apiKey=-", typed=secret)
    assert changed.returncode == 0, changed
    assert secret not in changed.stdout
    lane.upstream.script(reply(completion()))
    assert gateway.caller.post("/v1/chat/completions", json=lane.body()).status_code == 200
    assert lane.upstream.last.bearer == secret
    assert secret not in run("providers", "show", connection["id"], "--json").stdout


def test_a_combo_is_changed_and_tested(run: Run, lane: Lane) -> None:
    name = f"combo-{lane.prefix}"
    run("combos", "create", name, "a/one")
    assert (
        run(
            "combos", "edit", name, "--step", f"{lane.model}=5", "--strategy", "weighted"
        ).returncode
        == 0
    )
    shown = json.loads(run("combos", "show", name, "--json").stdout)
    assert (shown["strategy"], shown["models"][0]["weight"]) == ("weighted", 5)
    lane.upstream.script(reply(completion("ready")))
    tested = json.loads(run("combos", "test", name, "--json").stdout)
    assert (tested["provider"], tested["failedBefore"]) == (lane.prefix, 0)
    assert "answered after" in run("combos", "test", name).stdout
    lane.upstream.script(reply({"error": {"message": "no"}}, status=401))
    assert run("combos", "test", name).returncode == 1
    assert "edit --help" in sentence(run("combos", "edit", name), 1)
    run("combos", "delete", name)


def test_settings_are_shown_and_set(run: Run) -> None:
    before = json.loads(run("config", "show", "scrapeHostDelayMs", "--json").stdout)
    assert run("config", "set", "scrapeHostDelayMs=1234").stdout == "scrapeHostDelayMs = 1234\n"
    assert run("config", "show", "scrapeHostDelayMs").stdout == "1234\n"
    assert "scrapeHostDelayMs" in sentence(run("config", "set", "scrapeHostDelayMs=-1"), 1)
    assert "no setting" in sentence(run("config", "show", "weather"), 1)
    assert "--from-file" in sentence(run("config", "set", "oidcClientSecret=x"), 1)
    run("config", "set", f"scrapeHostDelayMs={before['scrapeHostDelayMs']}")


def test_a_backup_is_deleted(run: Run) -> None:
    made = json.loads(run("backup", "create", "--json").stdout)
    assert run("backup", "delete", made["id"]).stdout == f"Deleted {made['id']}.\n"
    assert made["id"] not in run("backup", "list").stdout
    assert sentence(run("backup", "delete", made["id"]), 1)
    assert sentence(run("backup", "delete", "../state.duckdb"), 1)


def test_a_backup_is_exported_looked_into_and_put_back(
    gateways: Callable[..., Gateway], tmp_path: Path
) -> None:
    gateway = gateways()

    def run(*arguments: str, **more: str) -> Completed:
        return fairlead(*arguments, FAIRLEAD_DATA_DIR=str(gateway.data_dir), **more)

    gateway.create_key(name="kept")
    made = json.loads(run("backup", "create", "--json").stdout)
    assert made["id"] in run("backup", "list").stdout
    target = tmp_path / "state.duckdb"
    assert run("backup", "export", str(target)).returncode == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert "already" in sentence(run("backup", "export", str(target)), 1)
    assert list(tmp_path.glob(".*.part")) == []
    gateway.create_key(name="later")
    dry = json.loads(run("restore", "--file", str(target), "--dry-run", "--json").stdout)
    assert (dry["dryRun"], dry["apiKeyCount"]) == (True, 1)
    refused = run("restore", made["id"], typed="n\n")
    assert refused.returncode == 1
    assert "later" in run("keys", "list").stdout
    before = gateway.control
    restored = run("restore", "--file", str(target), "--yes")
    assert restored.returncode == 0, restored
    assert "Restored." in restored.stdout
    # Control restarts once its answer is out: it may still be the old one that answers.
    eventually(lambda: not before.is_alive() and gateway.manages(), "control is back", within_s=30)
    gateway.remember_processes()
    assert "later" not in run("keys", "list").stdout
    damaged = tmp_path / "damaged"
    damaged.write_bytes(target.read_bytes()[:5000])
    assert "Nothing was changed" in sentence(run("restore", "--file", str(damaged), "--yes"), 1)
    assert "one of the two" in sentence(run("restore"), 1)


def test_doctor_names_what_is_wrong_and_its_fix(
    run: Run, gateway: Gateway, lane: Lane, tmp_path: Path
) -> None:
    healthy = run("doctor", "--no-providers", "--json")
    found = json.loads(healthy.stdout)
    assert (healthy.returncode, found["ok"]) == (0, True), found
    assert {each["check"] for each in found["findings"]} >= {
        "config",
        "port",
        "files",
        "disk",
        "clock",
        "extras",
        "gateway",
        "snapshot",
    }
    lane.upstream.script(reply({"error": {"message": "no"}}, status=401))
    asked = run("doctor")
    assert asked.returncode == 1
    assert "fix: " in asked.stdout
    assert "providers edit" in asked.stdout
    lane.upstream.script([CLOSE])
    unreached = run("doctor")
    assert unreached.returncode == 1
    assert f"providers test {lane.connections[0]['id']}" in " ".join(unreached.stdout.split())
    assert "providers edit" not in unreached.stdout
    token = gateway.data_dir / "cli-token"
    token.chmod(0o644)
    try:
        open_file = run("doctor", "--no-providers")
    finally:
        token.chmod(0o600)
    assert open_file.returncode == 1
    assert f"chmod go= {token}" in open_file.stdout


def test_doctor_before_anything_runs(tmp_path: Path) -> None:
    ended = fairlead(
        "doctor",
        "--json",
        "--url",
        "http://127.0.0.1:9",
        "--data-dir",
        str(tmp_path),
        FAIRLEAD_DRAIN_MS="soon",
    )
    failed = {
        each["check"]: each["fix"]
        for each in json.loads(ended.stdout)["findings"]
        if each["severity"] == "failure"
    }
    assert ended.returncode == 1
    assert set(failed) >= {"config", "gateway"}
    assert "fairlead serve" in failed["gateway"]
