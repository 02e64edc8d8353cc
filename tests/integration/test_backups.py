"""A backup put back on a running gateway: keys, sessions and relays are as they were then."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect

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
