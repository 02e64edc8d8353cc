"""Contents: the same of a folder and of a bucket, and what each does when it is interrupted."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from fairlead.errors import InvalidRequest, StorageUnavailable
from fairlead.settings.files import BucketLocation, read_files_url
from fairlead.store.blobs import bucket as bucket_module
from fairlead.store.blobs.blob import Blobs, copy_to, fetch
from fairlead.store.blobs.bucket import Bucket
from fairlead.store.blobs.bucket_blobs import PART_BYTES, BucketBlobs
from fairlead.store.blobs.directory import Directory
from tests.support.s3_server import ACCESS_KEY_ID, SECRET_ACCESS_KEY, S3Server

pytestmark = pytest.mark.anyio

LARGE = os.urandom(1024) * (2 * PART_BYTES // 1024 + 100)


@pytest.fixture
def server() -> Iterator[S3Server]:
    with S3Server() as running:
        yield running


def open_bucket(server: S3Server, folder: Path, secret: str = SECRET_ACCESS_KEY) -> BucketBlobs:
    location = read_files_url(server.url)
    assert isinstance(location, BucketLocation)
    return BucketBlobs(Bucket(location, ACCESS_KEY_ID, secret), folder)


@pytest.fixture
async def bucket(server: S3Server, tmp_path: Path) -> AsyncIterator[BucketBlobs]:
    blobs = open_bucket(server, tmp_path)
    yield blobs
    await blobs.close()


@pytest.fixture(params=["directory", "bucket"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "directory":
        (tmp_path / "root").mkdir()
        return Directory(tmp_path / "root")
    found: BucketBlobs = request.getfixturevalue("bucket")
    return found


async def pieces(body: bytes, size: int = 300_000) -> AsyncIterator[bytes]:
    for at in range(0, len(body), size):
        yield body[at : at + size]


async def content(blobs: Blobs, name: str, first: int = 0, last: int | None = None) -> bytes:
    return b"".join([chunk async for chunk in blobs.read(name, first, last)])


@pytest.mark.parametrize("body", [b"", b"small", LARGE], ids=["empty", "small", "large"])
async def test_what_is_written_is_read(blobs: Blobs, tmp_path: Path, body: bytes) -> None:
    await blobs.write("files/one", pieces(body), len(body))
    assert await blobs.size("files/one") == len(body)
    assert await content(blobs, "files/one") == body
    await copy_to(blobs, "files/one", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == body
    assert (await fetch(blobs, "files/one", tmp_path / "other")).read_bytes() == body
    await blobs.remove("files/one", "files/never")
    assert await blobs.size("files/one") is None
    with pytest.raises(FileNotFoundError):
        await content(blobs, "files/one")


async def test_a_part_of_a_content_is_read(blobs: Blobs) -> None:
    await blobs.write("files/one", pieces(LARGE), len(LARGE))
    assert await content(blobs, "files/one", 7, 9) == LARGE[7:10]
    assert await content(blobs, "files/one", len(LARGE) - 5) == LARGE[-5:]


async def test_contents_are_listed_by_folder(blobs: Blobs) -> None:
    names = [f"files/f-{number}" for number in range(8)]
    for name in [*names, "backups/b.duckdb", "filesystem/no"]:
        await blobs.write(name, pieces(b"12"), 2)
    listed = await blobs.list("files")
    assert [blob.name for blob in listed] == names
    assert {blob.size for blob in listed} == {2}
    assert all(abs(blob.changed_ms - time.time() * 1000) < 60_000 for blob in listed)
    assert listed[0].file == "f-0"
    assert await blobs.list("none") == []


async def test_contents_of_folders_in_folders_come_page_by_page_in_their_order(
    blobs: Blobs, tmp_path: Path
) -> None:
    names = [f"bodies/{hour}/b-{number}" for hour in (7, 8, 9) for number in range(4)]
    for name in reversed(names):
        await blobs.write(name, pieces(b"12"), 2)
    pages = [[blob.name for blob in page] async for page in blobs.pages("bodies")]
    assert len(pages) > 1
    assert [name for page in pages for name in page] == names
    assert [blob.name async for page in blobs.pages("bodies/8") for blob in page] == names[4:8]
    await blobs.remove(*names[4:8])
    assert [blob.name async for page in blobs.pages("bodies/8") for blob in page] == []
    assert not (tmp_path / "root" / "bodies" / "8").exists(), "a folder goes with what it held"
    source = tmp_path / "source"
    source.write_bytes(b"made here")
    assert await blobs.take("bodies/8/again", source) == 9
    await blobs.remove("bodies/8/again", *names)
    assert await blobs.list("bodies") == []


async def test_a_removal_from_a_store_that_is_away_is_one_error(
    bucket: BucketBlobs, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "RETRY_FIRST_S", 0.0)
    server.failures = 1_000
    with pytest.raises(StorageUnavailable, match="does not answer"):
        await bucket.remove("files/one", "files/two")


async def test_a_file_is_taken_over_once(blobs: Blobs, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"made here")
    os.utime(source, (1, 1))
    assert await blobs.take("files/out", source) == 9
    assert not source.exists()
    assert (await blobs.list("files"))[0].changed_ms > 1_000_000
    assert await blobs.take("files/out", source) == 9
    assert await blobs.take("files/none", source) is None


@pytest.mark.parametrize("announced", [4, 6, len(LARGE) - 1, len(LARGE) + 1])
async def test_what_does_not_come_whole_is_not_there(
    blobs: Blobs, server: S3Server, announced: int
) -> None:
    body = b"12345" if announced < 10 else LARGE
    with pytest.raises(InvalidRequest):
        await blobs.write("files/one", pieces(body), announced)
    assert await blobs.size("files/one") is None
    await blobs.forget_unfinished("files", 2**50)
    assert await blobs.list("files") == []
    assert server.uploads == {}


async def test_a_folder_that_was_not_mounted_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StorageUnavailable, match="cannot be written"):
        await Directory(tmp_path / "mount").write("files/one", pieces(b"body"), 4)
    assert not (tmp_path / "mount").exists()


async def test_a_writing_that_is_cancelled_is_forgotten(
    bucket: BucketBlobs, server: S3Server
) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield LARGE[: PART_BYTES + 1]
        await asyncio.sleep(60)

    writing = asyncio.create_task(bucket.write("files/one", endless(), len(LARGE)))
    while not any(upload.parts for upload in server.uploads.values()):
        await asyncio.sleep(0.02)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert server.uploads == {}
    assert server.objects == {}


async def test_uploads_of_dead_processes_are_forgotten_when_they_are_old(
    bucket: BucketBlobs, server: S3Server
) -> None:
    for name in ("files/old", "files/young", "other/old"):
        await bucket._begin(name)
    for upload in server.uploads.values():
        upload.begun_s -= 7200 if "old" in upload.key else 0
    await bucket.forget_unfinished("files", int((time.time() - 3600) * 1000))
    assert sorted(u.key for u in server.uploads.values()) == [
        "of/this/files/young",
        "of/this/other/old",
    ]


async def test_what_passes_is_tried_again(
    bucket: BucketBlobs, server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_module, "RETRY_FIRST_S", 0.001)
    server.failures = 2
    await bucket.write("files/one", pieces(b"body"), 4)
    server.failures = bucket_module.TRIES
    with pytest.raises(StorageUnavailable, match="does not answer \\(503\\)"):
        await bucket.size("files/one")


async def test_a_content_that_breaks_off_is_read_on(bucket: BucketBlobs, server: S3Server) -> None:
    await bucket.write("files/one", pieces(LARGE), len(LARGE))
    server.cut_after = 100_000
    assert await content(bucket, "files/one") == LARGE
    assert [method for method, _ in server.requests[-2:]] == ["GET", "GET"]


async def test_a_wrong_key_is_said_without_it(server: S3Server, tmp_path: Path) -> None:
    blobs = open_bucket(server, tmp_path, "another-secret")
    with pytest.raises(StorageUnavailable, match="refuses PUT with 403 SignatureDoesNotMatch") as e:
        await blobs.write("files/one", pieces(b"body"), 4)
    assert "another-secret" not in str(e.value)
    await blobs.close()


async def test_a_store_that_is_gone_is_said(tmp_path: Path) -> None:
    with S3Server() as server:
        blobs = open_bucket(server, tmp_path)
    with pytest.raises(StorageUnavailable, match="does not answer"):
        await blobs.size("files/one")
    await blobs.close()


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("files/here", "must begin with file:/// or s3://"),
        ("file://host/path", "absolute path"),
        ("file:relative", "absolute path"),
        ("s3:///prefix", "name a bucket"),
        ("s3://UPPER/prefix", "name a bucket"),
        ("s3://key:secret@bucket/prefix", "hold no key"),
        ("s3://bucket/../x", "a prefix of letters"),
        ("s3://bucket/a%20b", "a prefix of letters"),
        ("s3://bucket?acl=public", "only `endpoint` and `region`"),
        ("s3://bucket?region=a&region=b", "each once"),
        ("s3://bucket?region=a/b", "a region such as"),
        ("s3://bucket?endpoint=https://host/path", "an endpoint without a path"),
        ("s3://bucket?endpoint=ftp://host", "http or https address"),
    ],
)
def test_an_address_of_no_store_is_refused(url: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        read_files_url(url)


def test_addresses_of_stores() -> None:
    assert read_files_url("file:///srv/fair%20lead") == Path("/srv/fair lead")
    assert read_files_url("s3://bucket") == BucketLocation(
        "bucket", "", "https://s3.us-east-1.amazonaws.com", "us-east-1"
    )
    of_own = read_files_url("s3://bucket/a/b/?endpoint=http%3A%2F%2Fminio:9000%2F&region=eu-west-1")
    assert of_own == BucketLocation("bucket", "a/b/", "http://minio:9000", "eu-west-1")
