"""Exports that come back in parts: of the state, or of everything; put back whole or not at all."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tarfile
import zlib
from pathlib import Path
from typing import Any

import anyio
import duckdb
import pytest

from fairlead.gateway.backups import uploads as uploads_module
from fairlead.store.pending_restore import (
    RestoreNote,
    finish_restore,
    last_restore,
    restore_folder,
)
from tests.support.management import Management, run_management

pytestmark = pytest.mark.anyio

PATH = "/api/db-backups"
UPLOADS = f"{PATH}/uploads"
OCTETS = {"content-type": "application/octet-stream"}


@pytest.fixture
def left(management: Management) -> list[str]:
    """Notes each wish to start anew, in place of doing so."""
    wished: list[str] = []
    management.services.state.database.on_fatal = lambda: wished.append("anew")
    return wished


async def send(management: Management, content: bytes, part_bytes: int = 300_000) -> str:
    """Uploads in parts; returns the id."""
    begun = await management.ask("POST", UPLOADS, {"size": len(content)}, expect=201)
    assert (begun["state"], begun["received"]) == ("receiving", 0)
    path = f"{UPLOADS}/{begun['id']}"
    for offset in range(0, len(content), part_bytes):
        part = content[offset : offset + part_bytes]
        answer = await management.client.put(
            path, params={"offset": offset}, content=part, headers=OCTETS
        )
        assert answer.status_code == 200, answer.text
        assert answer.json()["received"] == offset + len(part)
    assert (await management.ask("GET", path))["state"] == "received"
    return str(begun["id"])


async def work(management: Management, upload_id: str, **body: Any) -> dict[str, Any]:
    """Starts a check or restore and waits for what becomes of it."""
    path = f"{UPLOADS}/{upload_id}"
    await management.ask("POST", f"{path}/restore", body, expect=202)
    with anyio.fail_after(60):
        while True:
            found: dict[str, Any] = await management.ask("GET", path)
            if found["state"] in ("checked", "restored", "refused"):
                return found
            await anyio.sleep(0.02)


async def everything(management: Management) -> bytes:
    answer = await management.client.get(f"{PATH}/exportAll")
    assert answer.status_code == 200, answer.text
    return answer.content


async def key_names(management: Management) -> set[str]:
    return {key["name"] for key in (await management.ask("GET", "/api/keys"))["keys"]}


def archive(*entries: tuple[tarfile.TarInfo, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as written:
        for entry, content in entries:
            entry.size = len(content)
            written.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def long_name(size: int) -> tuple[bytes, bytes]:
    """The header of a name of so many bytes, and up to a megabyte of the name, filled up to a whole block."""
    entry = tarfile.TarInfo("././@LongLink")
    entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, size
    part = b"a" * min(size, 1 << 20)
    return entry.tobuf(tarfile.GNU_FORMAT), part + bytes(-len(part) % 512)


def packed(*parts: tuple[bytes, int]) -> bytes:
    """A gzip file of these parts, each repeated so many times and compressed once."""
    sums, size, body = 0, 0, b""
    for part, times in parts:
        packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
        # What follows a full flush refers to nothing before it, so its bytes can be repeated.
        body += (packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)) * times
        for _ in range(times):
            sums = zlib.crc32(part, sums)
        size += len(part) * times
    end = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS).flush()
    return gzip.compress(b"")[:10] + body + end + struct.pack("<II", sums, size % 2**32)


def put_file(data_dir: Path, name: str, content: bytes) -> None:
    (data_dir / "files").mkdir(exist_ok=True)
    (data_dir / "files" / name).write_bytes(content)


async def test_everything_is_put_back_at_the_next_start(tmp_path: Path) -> None:
    async with run_management(tmp_path) as management:
        data_dir = management.services.data_dir
        management.services.state.database.on_fatal = lambda: None
        await management.ask("POST", "/api/keys", {"name": "kept"}, expect=201)
        put_file(data_dir, "file-1", b"kept content")
        await management.services.usage.write(
            lambda con: con.execute("INSERT INTO segments VALUES ('kept', 1)").fetchall()
        )
        content = await everything(management)
        await management.ask("POST", "/api/keys", {"name": "later"}, expect=201)
        put_file(data_dir, "file-2", b"later content")
        await management.services.usage.write(
            lambda con: con.execute("INSERT INTO segments VALUES ('later', 2)").fetchall()
        )
        upload_id = await send(management, content)
        dry = await work(management, upload_id, dryRun=True)
        assert dry["error"] is None
        assert (dry["state"], dry["counts"]["apiKeyCount"], dry["counts"]["fileCount"]) == (
            "checked",
            1,
            1,
        )
        assert await key_names(management) == {"kept", "later"}
        assert not restore_folder(data_dir, upload_id).exists()
        done = await work(management, upload_id)
        assert (done["state"], done["error"]) == ("restored", None)
        assert done["replacedBackupId"] in {
            each["id"] for each in (await management.ask("GET", PATH))["backups"]
        }
        assert await key_names(management) == {"kept"}
        assert restore_folder(data_dir, upload_id).is_dir(), "usage and files wait for the start"
        # A crash now: control starts anew without a word.
    async with run_management(tmp_path) as management:
        data_dir = management.services.data_dir

        def names(con: Any) -> list[str]:
            return [row[0] for row in con.execute("SELECT name FROM segments").fetchall()]

        assert await management.services.usage.read(names) == ["kept"]
        assert [path.name for path in (data_dir / "files").iterdir()] == ["file-1"]
        assert not (data_dir / "restore").exists()
        assert (await management.ask("GET", f"{UPLOADS}/{upload_id}"))["state"] == "restored"
        with duckdb.connect(str(data_dir / "replaced" / "usage.duckdb"), read_only=True) as old:
            assert len(old.execute("SELECT name FROM segments").fetchall()) == 2
        assert (data_dir / "replaced" / "files" / "file-2").read_bytes() == b"later content"


async def test_an_export_of_the_state_alone_leaves_usage_and_files(
    management: Management, left: list[str]
) -> None:
    await management.ask("POST", "/api/keys", {"name": "kept"}, expect=201)
    content = (await management.client.get(f"{PATH}/export")).content
    await management.ask("POST", "/api/keys", {"name": "later"}, expect=201)
    upload_id = await send(management, content)
    assert (await work(management, upload_id))["state"] == "restored"
    assert await key_names(management) == {"kept"}
    with anyio.fail_after(5):
        while left != ["anew"]:
            await anyio.sleep(0.01)
    data_dir = management.services.data_dir
    note = await management.services.state.read(last_restore)
    finish_restore(data_dir, note)
    assert not (data_dir / "replaced").exists()
    assert not (data_dir / "restore").exists()


async def test_what_is_no_export_changes_nothing(
    management: Management, left: list[str], tmp_path: Path
) -> None:
    await management.ask("POST", "/api/keys", {"name": "kept"}, expect=201)
    right = await everything(management)
    with tarfile.open(fileobj=io.BytesIO(right)) as exported:
        parts = {
            name: (exported.extractfile(name) or io.BytesIO()).read()
            for name in ("state.duckdb", "usage.duckdb")
        }
    state, usage = ((tarfile.TarInfo(name), content) for name, content in parts.items())
    link = tarfile.TarInfo("usage.duckdb")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    reading = tmp_path / "reading.duckdb"
    reading.write_bytes(parts["usage.duckdb"])
    with duckdb.connect(str(reading)) as con:
        con.execute(
            "CREATE OR REPLACE MACRO usage_values(t) AS TABLE SELECT * FROM read_text('/etc/passwd')"
        )
    (huge_header, megabyte), (long_header, name) = long_name(1 << 30), long_name(60_000)
    wrong = {
        "text": b"not a database",
        "half": right[: len(right) // 2],
        "no usage": archive(state),
        "a way out": archive(state, usage, (tarfile.TarInfo("../escaped"), b"x")),
        "an absolute way": archive(state, usage, (tarfile.TarInfo("/escaped"), b"x")),
        "a link": archive(state, (link, b"")),
        "twice": archive(state, usage, usage),
        "a name of a gigabyte": packed((huge_header, 1), (megabyte, 1024)),
        "many long names": packed((long_header + name, 40)),
        "more files than it has bytes for": archive(
            *((tarfile.TarInfo(f"files/{number}"), b"") for number in range(20_000))
        ),
        "a bomb": archive((tarfile.TarInfo("state.duckdb"), bytes(64 * 1024 * 1024))),
        "usage that reads files": archive(
            state, (tarfile.TarInfo("usage.duckdb"), reading.read_bytes())
        ),
        "state as usage": archive(state, (tarfile.TarInfo("usage.duckdb"), parts["state.duckdb"])),
    }
    for what, content in wrong.items():
        upload_id = await send(management, content, part_bytes=8 * 1024 * 1024)
        found = await work(management, upload_id)
        assert found["state"] == "refused", what
        assert "Nothing was changed." in found["error"], (what, found["error"])
        assert str(management.services.data_dir) not in found["error"]
        assert not restore_folder(management.services.data_dir, upload_id).exists()
        await management.ask("DELETE", f"{UPLOADS}/{upload_id}")
    assert (await key_names(management), left) == ({"kept"}, [])
    assert list((management.services.data_dir / "incoming").iterdir()) == []


async def test_parts_come_in_their_order_and_within_bounds(management: Management) -> None:
    begun = await management.ask("POST", UPLOADS, {"size": 10}, expect=201)
    path = f"{UPLOADS}/{begun['id']}"

    async def part(
        offset: object, content: bytes, kind: str = OCTETS["content-type"]
    ) -> tuple[int, Any]:
        answer = await management.client.put(
            path, params={"offset": offset}, content=content, headers={"content-type": kind}
        )
        return answer.status_code, (answer.json()["error"] or {}).get("param")

    assert await part(3, b"abc") == (409, "offset")
    assert await part(-1, b"abc") == (400, "offset")
    assert await part("x", b"abc") == (400, "offset")
    assert (await part(0, b""))[0] == 400
    assert (await part(0, b"{}", "application/json"))[0] == 415
    assert (await part(0, b"12345678901"))[0] == 400
    assert (await management.ask("GET", path))["received"] == 0
    assert (await part(0, b"abcde"))[0] == 200
    await management.refused("POST", f"{path}/restore", {}, expect=409)
    await management.refused("POST", f"{path}/restore", {"dryRun": "yes"})
    await management.refused("POST", f"{path}/restore", {"dryrun": True})
    assert (await management.ask("GET", path))["state"] == "receiving"
    await management.ask("DELETE", path)
    for method, where in (("GET", path), ("DELETE", path), ("GET", f"{UPLOADS}/..%2Fsecret.key")):
        await management.refused(method, where, expect=404)


@pytest.mark.parametrize(
    "body", [{}, {"size": 0}, {"size": "5"}, {"size": 2**51}, {"size": 5, "name": "x"}]
)
async def test_an_upload_that_is_none_is_refused(
    management: Management, body: dict[str, Any]
) -> None:
    await management.refused("POST", UPLOADS, body)
    assert not (management.services.data_dir / "incoming").exists()


async def test_size_and_number_are_bounded(management: Management) -> None:
    await management.ask("PATCH", "/api/settings", {"backupUploadMb": 1})
    message, param = await management.refused(
        "POST", UPLOADS, {"size": 1024 * 1024 + 1}, expect=413
    )
    assert (param, "backupUploadMb" in message) == ("size", True)
    begun = [
        (await management.ask("POST", UPLOADS, {"size": 5}, expect=201))["id"]
        for _ in range(uploads_module.UPLOADS_MAX)
    ]
    await management.refused("POST", UPLOADS, {"size": 5}, expect=409)
    # Those that nobody goes on with make room.
    folder = management.services.data_dir / "incoming"
    os.utime(folder / f"{begun[0]}-5.upload", (1, 1))
    await management.ask("POST", UPLOADS, {"size": 5}, expect=201)
    await management.refused("GET", f"{UPLOADS}/{begun[0]}", expect=404)


@pytest.mark.parametrize("stage", ["nothing", "marked", "linked", "usage", "files away", "all"])
def test_a_crash_at_any_step_goes_on_at_the_next_start(tmp_path: Path, stage: str) -> None:
    from fairlead.store.file import open_file
    from fairlead.store.prepare import MIGRATIONS

    def database(path: Path, name: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        con = open_file(path, MIGRATIONS / "usage")
        con.execute("INSERT INTO segments VALUES (?, 1)", [name])
        con.close()

    note = RestoreNote("a" * 24, "state-1", {})
    folder, replaced = restore_folder(tmp_path, note.id), tmp_path / "replaced"
    database(tmp_path / "usage.duckdb", "old")
    database(folder / "usage.duckdb", "new")
    put_file(tmp_path, "file-old", b"old")
    (folder / "files").mkdir()
    (folder / "files" / "file-new").write_bytes(b"new")
    steps = ["nothing", "marked", "linked", "usage", "files away", "all"]
    done = steps.index(stage)
    if done >= 1:
        replaced.mkdir()
        (replaced / f"{note.id}.restore").touch()
    if done >= 2:
        os.link(tmp_path / "usage.duckdb", replaced / "usage.duckdb")
    if done >= 3:
        (folder / "usage.duckdb").replace(tmp_path / "usage.duckdb")
    if done >= 4:
        (tmp_path / "files").rename(replaced / "files")
    if done >= 5:
        (folder / "files").rename(tmp_path / "files")
    for _ in range(2):
        finish_restore(tmp_path, note)
        assert names_in(tmp_path / "usage.duckdb") == ["new"]
        assert names_in(replaced / "usage.duckdb") == ["old"]
        assert [path.name for path in (tmp_path / "files").iterdir()] == ["file-new"]
        assert [path.name for path in (replaced / "files").iterdir()] == ["file-old"]
        assert not (tmp_path / "restore").exists()


def test_what_no_state_notes_is_forgotten(tmp_path: Path) -> None:
    folder = restore_folder(tmp_path, "b" * 24)
    folder.mkdir(parents=True)
    (folder / "usage.duckdb").write_bytes(b"checked, and never put back")
    (tmp_path / "usage.duckdb").write_bytes(b"old")
    finish_restore(tmp_path, RestoreNote("a" * 24, "state-1", {}))
    assert (tmp_path / "usage.duckdb").read_bytes() == b"old"
    assert not folder.exists()


def names_in(path: Path) -> list[str]:
    with duckdb.connect(str(path), read_only=True) as con:
        return [row[0] for row in con.execute("SELECT name FROM segments").fetchall()]
