"""A caller whose key is wrong has no entry in the log: it is counted where an operator looks for it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.command import Completed, fairlead, sentence
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.terminal import Terminal

REFUSED = "/api/usage/refused-callers"
Run = Callable[..., Completed]


@pytest.fixture
def run(gateway: Gateway) -> Run:
    return lambda *arguments, **more: fairlead(
        *arguments, FAIRLEAD_DATA_DIR=str(gateway.data_dir), **more
    )


def call(gateway: Gateway, key: str | None, path: str = CHAT) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return gateway.client().post(path, json={"model": "a/b", "messages": []}, headers=headers)


def counts(gateway: Gateway, **query: Any) -> list[dict[str, Any]]:
    return expect(gateway.admin.get(REFUSED, params=query), 200)["refused"]


def requests_of(gateway: Gateway, **wanted: Any) -> int:
    return sum(
        count["requests"]
        for count in counts(gateway, limit=500)
        if all(count[name] == value for name, value in wanted.items())
    )


def test_an_unknown_key_is_counted_by_route_and_reason(gateway: Gateway) -> None:
    before = requests_of(gateway, path=CHAT, status=401)
    for _ in range(3):
        refused = call(gateway, f"sk-unknown-{secrets.token_hex(8)}")
        assert refused.status_code == 401
    message = refused.json()["error"]["message"]
    eventually(
        lambda: requests_of(gateway, path=CHAT, status=401) == before + 3,
        "three requests are counted",
        within_s=10,
    )
    newest = counts(gateway, limit=1)[0]
    assert newest["address"] == "127.0.0.1"
    assert (newest["method"], newest["path"], newest["kind"]) == ("POST", CHAT, "unauthenticated")
    assert newest["message"] == message
    assert counts(gateway, address="192.0.2.1") == []
    later = {"from": "2099-01-01T00:00:00Z", "to": "2099-01-02T00:00:00Z"}
    assert expect(gateway.admin.get(REFUSED, params=later), 200)["requests"] == 0


def test_a_key_that_was_deleted_and_one_that_is_off_are_counted(gateway: Gateway) -> None:
    deleted, off = gateway.create_key(), gateway.create_key()
    expect(gateway.admin.delete(f"/api/keys/{deleted['id']}"), 200)
    expect(gateway.admin.patch(f"/api/keys/{off['id']}", json={"isActive": False}), 200)
    reasons = []
    for key in (deleted, off):
        answer = call(gateway, key["key"], "/v1/embeddings")
        assert answer.status_code in (401, 403)
        reasons.append(answer.json()["error"]["message"])
    for message in reasons:
        eventually(
            lambda message=message: requests_of(gateway, path="/v1/embeddings", message=message),
            "the refusal is counted",
            within_s=10,
        )


def test_keys_are_nowhere_in_the_counts(gateway: Gateway) -> None:
    key = f"sk-secret-{secrets.token_hex(8)}"
    before = requests_of(gateway)
    call(gateway, key)
    eventually(lambda: requests_of(gateway) > before, "it is counted", within_s=10)
    assert key[3:] not in gateway.admin.get(REFUSED, params={"limit": 500}).text


def test_nobody_without_the_right_sees_them(gateway: Gateway) -> None:
    assert gateway.client().get(REFUSED).status_code == 401
    assert gateway.caller.get(REFUSED).status_code == 403


def test_the_commands_show_them(gateway: Gateway, run: Run) -> None:
    call(gateway, "sk-wrong")
    eventually(lambda: requests_of(gateway, path=CHAT), "it is counted", within_s=10)
    table = run("logs", "--refused")
    assert table.returncode == 0, table.stderr
    assert "127.0.0.1" in table.stdout
    assert f"POST {CHAT}" in table.stdout
    assert "unauthenticated" in table.stdout
    document = run("logs", "--refused", "--json")
    assert '"refused"' in document.stdout
    assert "`fairlead logs --refused`" in run("logs").stdout
    assert "--refused" in sentence(run("logs", "--refused", "--model", "a/b"), 1)


def test_followed_logs_print_them_as_they_come(gateway: Gateway) -> None:
    path = "/v1/moderations"
    environment = {"FAIRLEAD_DATA_DIR": str(gateway.data_dir)}
    with Terminal("logs", "--follow", columns=200, **environment) as terminal:
        terminal.wait_for("status")
        call(gateway, "sk-wrong", path)
        terminal.wait_for(f"POST {path}")
