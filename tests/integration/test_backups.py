"""A backup put back on a running gateway: keys, sessions and relays are as they were then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect
from tests.support.upstream import Upstream, completion, reply

PASSWORD = "the owner's own words"
PATH = "/api/db-backups"
OCTETS = {"content-type": "application/octet-stream"}


def test_a_backup_is_put_back_and_everything_starts_from_it(
    gateways: Callable[..., Gateway],
) -> None:
    gateway = gateways(INITIAL_PASSWORD=PASSWORD)
    kept = gateway.create_key(name="kept")["key"]
    exported = gateway.admin.get(f"{PATH}/export")
    assert exported.status_code == 200, exported.text[:500]
    assert kept.encode() not in exported.content
    later = gateway.create_key(name="later")["key"]
    caller = gateway.client()

    def status(key: str) -> int:
        return caller.get("/v1/models", headers={"authorization": f"Bearer {key}"}).status_code

    assert (status(kept), status(later)) == (200, 200)
    content = exported.content
    damaged = gateway.admin.post(
        f"{PATH}/import", content=content[: len(content) // 2], headers=OCTETS
    )
    assert "Nothing was changed." in expect(damaged, 400)["error"]["message"]
    worker = gateway.control
    done = expect(gateway.admin.post(f"{PATH}/import", content=content, headers=OCTETS), 200)
    assert (done["imported"], done["apiKeyCount"]) == (True, 1)
    # In force when it was answered; control starts anew after that.
    assert (status(kept), status(later)) == (200, 401)
    eventually(lambda: not worker.is_alive() and gateway.manages(), "control is back", within_s=30)
    gateway.remember_processes()
    assert (status(kept), status(later)) == (200, 401)
    expect(gateway.admin.post(PATH, json={"backupId": done["replacedBackupId"]}), 200)
    eventually(gateway.manages, "control is back again", within_s=30)
    gateway.remember_processes()
    assert (status(kept), status(later)) == (200, 200)
    gateway.assert_keeps_secrets()


def _upload(gateway: Gateway, content: bytes) -> str:
    """Sends an export in two parts; returns its path."""
    begun = expect(gateway.admin.post(f"{PATH}/uploads", json={"size": len(content)}), 201)
    path = f"{PATH}/uploads/{begun['id']}"
    half = len(content) // 2
    for offset, part in ((0, content[:half]), (half, content[half:])):
        sent = gateway.admin.put(path, params={"offset": offset}, content=part, headers=OCTETS)
        expect(sent, 200)
    return path


def _state(gateway: Gateway, path: str) -> Any:
    answer = gateway.admin.get(path)
    return answer.json()["state"] if answer.status_code == 200 else None


@pytest.mark.one_node(reason="usage follows the log of all nodes, also behind what was put back")
def test_everything_is_put_back_and_a_kill_before_that_changes_nothing(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    gateway = gateways()
    lane = gateway.add_lane(upstream)

    def call() -> str:
        lane.upstream.script(reply(completion("hello")))
        answer = gateway.caller.post(CHAT, json=lane.body())
        request_id: str = answer.headers["x-gateway-request-id"]
        gateway.shown_record(request_id)
        return request_id

    def file_ids() -> set[str]:
        return {one["id"] for one in expect(gateway.caller.get("/v1/files"), 200)["data"]}

    def add_file() -> str:
        form = {"file": ("a.jsonl", b"{}"), "purpose": (None, "batch")}
        added: str = expect(gateway.caller.post("/v1/files", files=form), 200)["id"]
        return added

    kept, kept_file = call(), add_file()
    exported = gateway.admin.get(f"{PATH}/exportAll")
    assert exported.status_code == 200, exported.text[:500]
    later, later_file = call(), add_file()
    path = _upload(gateway, exported.content)
    expect(gateway.admin.post(f"{path}/restore", json={}), 202)
    gateway.control.kill()
    eventually(gateway.manages, "control is back", within_s=30)
    gateway.remember_processes()
    assert file_ids() == {kept_file, later_file}
    assert {kept, later} <= {one["requestId"] for one in gateway.shown_records()}
    assert _state(gateway, path) == "received"
    control = gateway.control
    expect(gateway.admin.post(f"{path}/restore", json={}), 202)
    eventually(
        lambda: not control.is_alive() and _state(gateway, path) == "restored",
        "everything is put back",
        within_s=60,
        every_s=0.1,
    )
    gateway.remember_processes()
    shown = {one["requestId"] for one in gateway.shown_records()}
    assert kept in shown
    assert later not in shown
    assert file_ids() == {kept_file}
    content = gateway.caller.get(f"/v1/files/{kept_file}/content")
    assert (content.status_code, content.content) == (200, b"{}")
    call()
