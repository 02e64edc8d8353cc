"""Copies of the state: whole, of one moment, and put back all or not at all."""

from __future__ import annotations

import tarfile
from io import BytesIO
from pathlib import Path

import duckdb
import pytest

from fairlead.store.sealer import Sealer

pytestmark = pytest.mark.anyio

OCTETS = {"content-type": "application/octet-stream"}
PATH = "/api/db-backups"


@pytest.fixture
def left(management) -> list[str]:
    """Notes each wish to start anew, in place of doing so."""
    wished: list[str] = []
    management.services.state.database.on_fatal = lambda: wished.append("anew")
    return wished


async def keys(management) -> set[str]:
    listed = await management.ask("GET", "/api/keys")
    return {key["name"] for key in listed["keys"]}


async def upload(management, content: bytes, *, dry_run: bool = False):
    query = {"dryRun": "true"} if dry_run else {}
    return await management.client.post(
        f"{PATH}/import", content=content, headers=OCTETS, params=query
    )


def leftovers(management) -> list[str]:
    names = [path.name for path in (management.services.data_dir / "backups").iterdir()]
    return [name for name in names if not name.endswith(".duckdb")]


async def test_a_backup_is_made_listed_and_put_back(management, left) -> None:
    await management.ask("POST", "/api/keys", {"name": "before"}, expect=201)
    made = await management.ask("PUT", PATH)
    assert made["created"] is True
    assert (made["reason"], made["filename"]) == ("manual", f"{made['id']}.duckdb")
    await management.ask("POST", "/api/keys", {"name": "after"}, expect=201)
    version = management.snapshot()["version"]
    back = await management.ask("POST", PATH, {"backupId": made["id"]})
    assert (back["restored"], back["apiKeyCount"]) == (True, 1)
    assert await keys(management) == {"before"}
    # The relays have it, under a version that is above those they had.
    assert [key["name"] for key in management.snapshot()["keys"]] == ["before"]
    assert management.snapshot()["version"] > version
    assert left == ["anew"]
    listed = (await management.ask("GET", PATH))["backups"]
    assert [each["reason"] for each in listed] == ["pre-restore", "manual"]
    assert listed[0]["id"] == back["replacedBackupId"]
    # What was replaced can be had back.
    await management.ask("POST", PATH, {"backupId": back["replacedBackupId"]})
    assert await keys(management) == {"before", "after"}
    assert leftovers(management) == []


async def test_an_export_is_an_import(management, left) -> None:
    await management.ask("POST", "/api/keys", {"name": "kept"}, expect=201)
    exported = await management.client.get(f"{PATH}/export")
    assert exported.status_code == 200
    assert exported.headers["content-type"] == "application/octet-stream"
    assert exported.headers["cache-control"] == "no-store"
    assert ".duckdb" in exported.headers["content-disposition"]
    await management.ask("POST", "/api/keys", {"name": "later"}, expect=201)
    dry = (await upload(management, exported.content, dry_run=True)).json()
    assert (dry["imported"], dry["dryRun"], dry["apiKeyCount"]) == (False, True, 1)
    assert await keys(management) == {"kept", "later"}
    assert left == []
    done = (await upload(management, exported.content)).json()
    assert (done["imported"], done["apiKeyCount"]) == (True, 1)
    assert await keys(management) == {"kept"}
    assert leftovers(management) == []


async def test_the_archive_has_both_databases_and_no_key(management, tmp_path: Path) -> None:
    answer = await management.client.get(f"{PATH}/exportAll")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/gzip")
    with tarfile.open(fileobj=BytesIO(answer.content)) as archive:
        assert sorted(archive.getnames()) == ["state.duckdb", "usage.duckdb"]
        archive.extractall(tmp_path / "out", filter="data")
    for name in ("state", "usage"):
        with duckdb.connect(str(tmp_path / "out" / f"{name}.duckdb"), read_only=True) as found:
            assert found.execute("SELECT count(*) > 0 FROM schema_version").fetchone() == (True,)
    assert leftovers(management) == []


def foreign(path: Path, *statements: str) -> bytes:
    with duckdb.connect(str(path)) as con:
        for statement in statements:
            con.execute(statement)
    return path.read_bytes()


async def test_what_is_no_backup_changes_nothing(management, left, tmp_path: Path) -> None:
    await management.ask("POST", "/api/keys", {"name": "kept"}, expect=201)
    right = (await management.client.get(f"{PATH}/export")).content
    holed = bytearray(right)
    for at in range(4096 * 4, len(right), 4096):
        holed[at : at + 64] = b"\xff" * 64
    viewed = tmp_path / "viewed.duckdb"
    viewed.write_bytes(right)
    newer = tmp_path / "newer.duckdb"
    newer.write_bytes(right)
    older = tmp_path / "older.duckdb"
    older.write_bytes(right)
    renamed = tmp_path / "renamed.duckdb"
    renamed.write_bytes(right)
    wrong = {
        "text": b"not a database",
        "nothing": b"",
        "half": right[: len(right) // 2],
        "holes": bytes(holed),
        "another database": foreign(tmp_path / "other.duckdb", "CREATE TABLE t (a INTEGER)"),
        "an empty database": foreign(tmp_path / "empty.duckdb"),
        "views": foreign(
            viewed, "DROP TABLE keys", "CREATE VIEW keys AS SELECT * FROM read_text('/etc/passwd')"
        ),
        "a newer schema": foreign(
            newer, "INSERT INTO schema_version (version, name) VALUES (9999, 'later')"
        ),
        "an older schema": foreign(older, "UPDATE schema_version SET version = 7"),
        "other columns": foreign(renamed, "ALTER TABLE keys RENAME COLUMN name TO title"),
    }
    for what, content in wrong.items():
        for dry_run in (True, False):
            answer = await upload(management, content, dry_run=dry_run)
            if what == "other columns" and dry_run:
                continue
            assert answer.status_code == 400, (what, answer.text)
            message = answer.json()["error"]["message"]
            assert str(management.services.data_dir) not in message
            if what != "nothing":
                assert message.endswith("Nothing was changed."), message
    assert await keys(management) == {"kept"}
    assert left == []
    assert leftovers(management) == []
    # The writer is as it was.
    await management.ask("POST", "/api/keys", {"name": "more"}, expect=201)


async def test_another_key_s_secrets_are_refused(management, left, monkeypatch) -> None:
    exported = (await management.client.get(f"{PATH}/export")).content
    monkeypatch.setattr(management.services.state, "sealer", Sealer(bytes(range(32))))
    answer = await upload(management, exported)
    assert answer.status_code == 409
    assert "another key" in answer.json()["error"]["message"]
    assert left == []


async def test_bodies_and_ids(management, left) -> None:
    _, param = await management.refused("POST", PATH, {"backupId": "../x"}, expect=404)
    assert param == "backupId"
    await management.refused("POST", PATH, {})
    await management.refused("POST", PATH, {"backupId": "x", "more": 1})
    answer = await management.client.post(f"{PATH}/import", json={})
    assert answer.status_code == 415
    assert left == []


async def test_the_newest_are_kept(management) -> None:
    await management.ask("PATCH", "/api/settings", {"backupKeepCount": 2})
    made = [(await management.ask("PUT", PATH))["id"] for _ in range(3)]
    listed = (await management.ask("GET", PATH))["backups"]
    assert {each["id"] for each in listed} == set(made[1:])


async def test_one_is_deleted(management) -> None:
    made = [(await management.ask("PUT", PATH))["id"] for _ in range(2)]
    await management.ask("DELETE", f"{PATH}/{made[0]}")
    assert [each["id"] for each in (await management.ask("GET", PATH))["backups"]] == [made[1]]
    _, param = await management.refused("DELETE", f"{PATH}/{made[0]}", expect=404)
    assert param == "id"
    await management.refused("DELETE", f"{PATH}/..%2Fstate", expect=404)


async def test_a_restore_keeps_the_audit_log(management, left) -> None:
    made = await management.ask("PUT", PATH)
    await management.ask("POST", "/api/keys", {"name": "after"}, expect=201)
    await management.ask("POST", PATH, {"backupId": made["id"]})
    listed = (await management.ask("GET", "/api/audit"))["entries"]
    assert [(each["method"], each["route"]) for each in listed] == [
        ("POST", "/api/db-backups"),
        ("POST", "/api/keys"),
        ("PUT", "/api/db-backups"),
    ]
