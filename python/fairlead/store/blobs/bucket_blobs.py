"""Contents in a bucket: small ones by one request, others in parts of which nothing is seen before the last."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final
from xml.sax.saxutils import unescape

import httpx

from fairlead.errors import FairleadError, InvalidRequest
from fairlead.store.blobs.blob import Blob, chunks_of
from fairlead.store.blobs.bucket import Bucket

PART_BYTES: Final = 8 * 1024 * 1024
PARTS_MAX: Final = 10_000
# Each holds a part in memory.
WRITES_AT_ONCE: Final = 8
REMOVALS_AT_ONCE: Final = 8
# A content that breaks off is read on from where it was, so often.
RESUMES: Final = 3
ABORT_WITHIN_S: Final = 10.0

_UPLOAD_ID: Final = re.compile(r"<UploadId>([^<]+)</UploadId>")
_TOKEN: Final = re.compile(r"<NextContinuationToken>([^<]+)</NextContinuationToken>")
_MARKERS: Final = ("NextKeyMarker", "NextUploadIdMarker")


class BucketBlobs:
    """`Blobs` in a bucket. Unfinished work is in `work_folder`, on this machine only."""

    def __init__(self, bucket: Bucket, work_folder: Path) -> None:
        self._bucket = bucket
        self._work_folder = work_folder
        self._writes = asyncio.Semaphore(WRITES_AT_ONCE)

    @property
    def work_folder(self) -> Path:
        return self._work_folder

    def path(self, name: str) -> None:  # noqa: ARG002 - none of them is on this machine
        return None

    async def write(self, name: str, chunks: AsyncIterator[bytes], announced: int) -> None:
        async with self._writes:
            if announced <= PART_BYTES:
                async for body in _parts(chunks, announced, PART_BYTES):
                    await self._bucket.ask("PUT", name, body=body)
                return
            upload_id = await self._begin(name)
            try:
                await self._write_parts(name, upload_id, chunks, announced)
            except BaseException:
                # Uploads that cannot be deleted now are found by `forget_unfinished`.
                with contextlib.suppress(FairleadError, TimeoutError):
                    async with asyncio.timeout(ABORT_WITHIN_S):
                        await self._bucket.ask("DELETE", name, {"uploadId": upload_id})
                raise

    async def take(self, name: str, source: Path, *, durably: bool = True) -> int | None:  # noqa: ARG002 - it always is
        try:
            size, content = await asyncio.to_thread(_small_content, source)
        except FileNotFoundError:
            return await self.size(name)
        if content is None:
            await self.write(name, chunks_of(source), size)
        else:
            async with self._writes:
                await self._bucket.ask("PUT", name, body=content)
        await asyncio.to_thread(source.unlink, missing_ok=True)
        return size

    async def size(self, name: str) -> int | None:
        answer = await self._bucket.ask("HEAD", name)
        return None if answer.status_code == 404 else int(answer.headers["content-length"])

    async def read(
        self, name: str, first: int = 0, last: int | None = None
    ) -> AsyncIterator[bytes]:
        at = first
        for _ in range(1 + RESUMES):
            try:
                answer = await self._bucket.stream(name, at, last)
                try:
                    if answer.status_code == 404:
                        raise FileNotFoundError(name)
                    async for chunk in answer.aiter_raw():
                        at += len(chunk)
                        yield chunk
                    return
                finally:
                    await answer.aclose()
            except httpx.TransportError:
                if last is not None and at > last:
                    return
        raise self._bucket.lost()

    async def list(self, folder: str) -> list[Blob]:
        found = [blob async for page in self.pages(folder) for blob in page]
        return sorted(found, key=lambda blob: blob.name)

    async def pages(self, folder: str) -> AsyncIterator[Sequence[Blob]]:
        query = {"list-type": "2", "prefix": f"{self._bucket.prefix}{folder}/"}
        while True:
            text = (await self._bucket.ask("GET", None, query)).text
            page: list[Blob] = []
            for entry in re.findall(r"<Contents>(.*?)</Contents>", text, re.DOTALL):
                changed = datetime.fromisoformat(_tag(entry, "LastModified"))
                name = _tag(entry, "Key").removeprefix(self._bucket.prefix)
                page.append(Blob(name, int(_tag(entry, "Size")), int(changed.timestamp() * 1000)))
            yield page
            if (token := _TOKEN.search(text)) is None:
                return
            query["continuation-token"] = unescape(token[1])

    async def remove(self, *names: str) -> None:
        at_once = asyncio.Semaphore(REMOVALS_AT_ONCE)

        async def remove(name: str) -> None:
            async with at_once:
                await self._bucket.ask("DELETE", name)

        try:
            async with asyncio.TaskGroup() as group:
                for name in names:
                    group.create_task(remove(name))
        except ExceptionGroup as errors:
            # They are of one kind, and callers know that kind.
            raise errors.exceptions[0] from None

    async def forget_unfinished(self, folder: str, before_ms: int) -> None:
        query = {"uploads": "", "prefix": f"{self._bucket.prefix}{folder}/"}
        while True:
            text = (await self._bucket.ask("GET", None, query)).text
            for entry in re.findall(r"<Upload>(.*?)</Upload>", text, re.DOTALL):
                begun = datetime.fromisoformat(_tag(entry, "Initiated"))
                if begun.timestamp() * 1000 < before_ms:
                    name = _tag(entry, "Key").removeprefix(self._bucket.prefix)
                    await self._bucket.ask("DELETE", name, {"uploadId": _tag(entry, "UploadId")})
            if _tag(text, "IsTruncated") != "true":
                return
            key, upload = (_tag(text, name) for name in _MARKERS)
            query |= {"key-marker": key, "upload-id-marker": upload}

    async def close(self) -> None:
        await self._bucket.close()

    async def _begin(self, name: str) -> str:
        answer = await self._bucket.ask("POST", name, {"uploads": ""})
        found = _UPLOAD_ID.search(answer.text)
        if found is None:
            raise self._bucket.lost()
        return unescape(found[1])

    async def _write_parts(
        self, name: str, upload_id: str, chunks: AsyncIterator[bytes], announced: int
    ) -> None:
        size = max(PART_BYTES, -(-announced // PARTS_MAX))
        tags: list[str] = []
        async for body in _parts(chunks, announced, size):
            of = {"partNumber": str(len(tags) + 1), "uploadId": upload_id}
            tags.append((await self._bucket.ask("PUT", name, of, body)).headers["etag"])
        parts = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
            for number, tag in enumerate(tags, start=1)
        )
        body = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
        answer = await self._bucket.ask("POST", name, {"uploadId": upload_id}, body)
        # The store may answer 200 before it knows, and 404 to a question that is repeated after it was done.
        is_done = answer.is_success and "<Error>" not in answer.text
        if not is_done and await self.size(name) != announced:
            raise self._bucket.lost()


def _small_content(source: Path) -> tuple[int, bytes | None]:
    """The size of a file, and its content if that goes in one request."""
    size = source.stat().st_size
    return (size, source.read_bytes()) if size <= PART_BYTES else (size, None)


async def _parts(chunks: AsyncIterator[bytes], announced: int, size: int) -> AsyncIterator[bytes]:
    """The stream in parts of a size, the last smaller; one that is empty of an empty stream."""
    part, total = bytearray(), 0
    async for chunk in chunks:
        total += len(chunk)
        if total > announced:
            break
        part += chunk
        while len(part) >= size and total < announced:
            yield bytes(part[:size])
            del part[:size]
    if total != announced:
        raise InvalidRequest("The upload is incomplete.", param="file")
    yield bytes(part)


def _tag(text: str, name: str) -> str:
    found = re.search(rf"<{name}>([^<]*)</{name}>", text)
    return unescape(found[1]) if found else ""
