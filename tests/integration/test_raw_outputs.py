"""Outputs of commands as they were before a filter made them shorter: who may read them, and when they are gone."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.integration.test_compression import MESSAGES, OUTPUT, ask, settings
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect

AT = "/api/context/rtk/raw-output"
NAMED = re.compile(r"GET (/api/context/rtk/raw-output/[0-9a-f]{32})]")
SECRETS = "\nmail someone@example.com\naws_access_key_id = AKIAIOSFODNN7EXAMPLE"


def with_output(text: str) -> list[Any]:
    return [*MESSAGES[:3], MESSAGES[3] | {"content": text}]


def named_in(sent: Any) -> str | None:
    """The path that the shortened output names."""
    found = NAMED.search(sent["messages"][3]["content"])
    return found and found[1]


def read(gateway: Gateway, path: str, key: str) -> Any:
    return gateway.caller.get(path, headers={"Authorization": f"Bearer {key}"})


@pytest.fixture
def key(gateway: Gateway) -> str:
    made: str = gateway.create_key()["key"]
    return made


def test_a_key_reads_what_it_sent_and_nobody_else_does(
    gateway: Gateway, lane: Lane, key: str
) -> None:
    with settings(gateway, compressionRawOutputBytes=10_000_000):
        _, sent = ask(lane, "rtk", key, messages=with_output(OUTPUT + SECRETS))
        path = named_in(sent)
        assert path is not None
        assert len(sent["messages"][3]["content"]) < len(OUTPUT) / 2
        kept = eventually(
            lambda: answer if (answer := read(gateway, path, key)).status_code == 200 else None,
            "it is kept",
        ).json()
        assert kept["text"].startswith(OUTPUT)
        assert kept["command"] == "pip install -r requirements.txt"
        assert kept["bytes"] == len((OUTPUT + SECRETS).encode())
        assert not kept["isCut"]
        assert "someone@example.com" not in kept["text"]
        assert "AKIAIOSFODNN7EXAMPLE" not in kept["text"]
        assert len(kept["redacted"]) == 2
        # The same output in the next turn has the same name, so that its provider's cache stays warm.
        assert named_in(ask(lane, "rtk", key, messages=with_output(OUTPUT + SECRETS))[1]) == path
        assert (
            named_in(ask(lane, "stacked", key, messages=with_output(OUTPUT + SECRETS))[1]) == path
        )
        another = gateway.create_key()["key"]
        for stranger in (another, gateway.create_key(scopes=["manage"])["key"]):
            assert read(gateway, path, stranger).status_code == 404
        assert gateway.admin.get(path).status_code == 401, "only keys own outputs"
        for wrong in (
            "0" * 32,
            "..%2fsecret.key",
            "x" * 300,
            "%00",
            path.rpartition("/")[2].upper(),
        ):
            refused = read(gateway, f"{AT}/{wrong}", key)
            assert refused.status_code in (400, 404), wrong
            assert "secret" not in refused.text.replace(wrong, "")
        files = list((gateway.data_dir / "raw-outputs").iterdir())
        assert all(b"Collecting package-3" not in file.read_bytes() for file in files)
        assert all(file.stat().st_mode & 0o077 == 0 for file in files)
    assert read(gateway, path, key).status_code == 404, "switched off"


def test_every_read_is_in_the_audit_log(gateway: Gateway, lane: Lane) -> None:
    made = gateway.create_key()
    with settings(gateway, compressionRawOutputBytes=10_000_000):
        path = named_in(ask(lane, "rtk", made["key"])[1])
        assert path is not None
        eventually(
            lambda: read(gateway, path, made["key"]).status_code == 200 or None, "it is kept"
        )
        stranger = gateway.create_key()
        assert read(gateway, path, stranger["key"]).status_code == 404
    entries = [each for each in audited(gateway) if each["path"] == path]
    assert entries, "a read leaves an entry"
    for entry in entries:
        assert (entry["method"], entry["outcome"], entry["status"]) == ("GET", "done", 200)
        assert (entry["actor"]["kind"], entry["actor"]["id"]) == ("key", made["id"])
    assert stranger["id"] not in {each["actor"]["id"] for each in audited(gateway)}, (
        "it saw nothing"
    )


def audited(gateway: Gateway) -> list[Any]:
    answer = gateway.admin.get("/api/audit", params={"route": AT})
    entries: list[Any] = expect(answer, 200)["entries"]
    return entries


def test_nothing_is_named_that_is_not_kept(gateway: Gateway, lane: Lane, key: str) -> None:
    _, sent = ask(lane, "rtk", key)
    assert named_in(sent) is None, "off by default"
    silent = gateway.create_key(noLog=True)["key"]
    with settings(gateway, compressionRawOutputBytes=10_000_000):
        assert named_in(ask(lane, "rtk", silent)[1]) is None
        assert named_in(ask(lane, "engine:lite", key)[1]) is None
        assert named_in(ask(lane, "rtk", key)[1]) is not None


def test_the_settings_are_of_the_filters(gateway: Gateway) -> None:
    at = "/api/context/rtk/config"
    before = expect(gateway.admin.get(at), 200)
    assert (before["rawOutputBytes"], before["rawOutputHours"]) == (0, 24)
    try:
        told = expect(gateway.admin.put(at, json={"rawOutputBytes": 5, "rawOutputHours": 2}), 200)
        assert (told["rawOutputBytes"], told["rawOutputHours"]) == (5, 2)
        assert told["level"] == before["level"]
        refused = expect(gateway.admin.put(at, json={"rawOutputHours": 0}), 400)
        assert refused["error"]["param"] == "rawOutputHours"
    finally:
        back = {"rawOutputBytes": 0, "rawOutputHours": 24}
        expect(gateway.admin.put(at, json=back), 200)
