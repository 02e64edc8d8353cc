"""Contents without a row: those of a crash go, and those of an upload at another node stay."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.gateway.batches.runner import BatchRunner
from fairlead.gateway.files.contents import STRAY_AFTER_MS, Contents, contents_of
from fairlead.gateway.files.table import StoredFile, put_file
from fairlead.moment import now_ms
from fairlead.store.blobs.directory import Directory
from tests.support.management import run_management
from tests.support.process import free_port
from tests.support.s3_server import ACCESS_KEY_ID, SECRET_ACCESS_KEY, S3Server

pytestmark = pytest.mark.anyio

OLD_S = time.time() - STRAY_AFTER_MS / 1000 - 60


async def one(body: bytes) -> AsyncIterator[bytes]:
    yield body


def age(folder: Path, *names: str) -> None:
    for name in names:
        os.utime(folder / name, (OLD_S, OLD_S))


async def test_what_another_node_is_about_to_name_stays(tmp_path: Path) -> None:
    """The folder is shared: its node has not written the rows yet, and this one was started later."""
    contents, folder = Contents(Directory(tmp_path)), tmp_path / "files"
    for name in ("file-young", "file-old", "file-known"):
        await contents.write(name, one(b"x"), 1)
    (folder / "file-coming.part").write_bytes(b"half")
    (folder / "file-crashed.part").write_bytes(b"half")
    age(folder, "file-old", "file-known", "file-crashed.part")

    async def known() -> set[str]:
        # Written while the folder was being looked at.
        return {"file-known"}

    assert await contents.forget_strays(known, now_ms()) == 1
    assert {path.name for path in folder.iterdir()} == {
        "file-young",
        "file-known",
        "file-coming.part",
    }


async def test_the_runner_deletes_what_has_no_row(tmp_path: Path) -> None:
    folder = tmp_path / "shared" / "files"
    folder.mkdir(parents=True)
    for name in ("file-row", "file-stray", "file-young"):
        (folder / name).write_bytes(b"x")
    age(folder, "file-row", "file-stray")
    settings = {"port": free_port(), "files_url": (tmp_path / "shared").as_uri()}
    async with run_management(tmp_path / "data", **settings) as management:
        services = management.services
        own = services.data_dir / "files"
        own.mkdir()
        (own / "file-restored").write_bytes(b"of an archive")
        file = StoredFile("file-row", "key", "batch", "in", 1, now_ms(), None)
        await services.state.record(lambda con: put_file(con, file))
        runner = BatchRunner(services)
        await runner._bring_in()
        await runner._forget_strays()
    assert sorted(path.name for path in folder.iterdir()) == [
        "file-restored",
        "file-row",
        "file-young",
    ]
    assert list(own.iterdir()) == []


async def test_contents_of_the_data_directory_go_into_a_bucket(tmp_path: Path) -> None:
    with S3Server() as server:
        settings = {
            "port": free_port(),
            "files_url": server.url,
            "files_access_key_id": ACCESS_KEY_ID,
            "files_secret_access_key": SECRET_ACCESS_KEY,
        }
        async with run_management(tmp_path / "data", **settings) as management:
            services = management.services
            (services.data_dir / "files").mkdir()
            (services.data_dir / "files" / "file-1").write_bytes(b"here")
            await BatchRunner(services)._bring_in()
            assert await contents_of(services).size("file-1") == 4
        assert server.below("files") == {"file-1": b"here"}
