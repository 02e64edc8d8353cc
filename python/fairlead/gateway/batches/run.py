"""Runs one batch from its stored step to its end.

Every step may be interrupted by a crash and repeated: the row says which step it is at, the results
on disk say which lines are done, and the names of the files that it will leave are chosen before
they are made.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import orjson

from fairlead.calls.origin import public_base
from fairlead.calls.own_relay import on_behalf_of
from fairlead.errors import NotFound
from fairlead.gateway.batches.anthropic_output import write_results
from fairlead.gateway.batches.google_output import write_output
from fairlead.gateway.batches.lines import Line, check_input, read_lines
from fairlead.gateway.batches.notifications import notify_end
from fairlead.gateway.batches.results import Results
from fairlead.gateway.batches.results_copy import ResultsCopy
from fairlead.gateway.batches.table import (
    OUTPUT_KEPT_S,
    Batch,
    change_batch,
    count_batch,
    find_batch,
)
from fairlead.gateway.files.contents import contents_of, new_id
from fairlead.gateway.files.table import StoredFile, find_file, put_file
from fairlead.moment import now_ms
from fairlead.store.blobs.location import blobs_of
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import check_disk
from fairlead.store.services import Services

WIDTH: Final = 8
"""Lines of one batch that run at once."""
LINE_DEADLINE_S: Final = 900.0
ANSWER_ROOM_BYTES: Final = 8 * 1024 * 1024
"""Free bytes on the disk that are required before a line is run: roughly the largest answer."""
TRIES: Final = 5
"""Attempts at a line that is refused for now. A line that cannot reach the relay is tried until the batch expires."""
WAIT_MAX_S: Final = 60.0
COUNT_EVERY_S: Final = 1.0
CANCEL_GRACE_S: Final = 30.0
# Statuses that may pass: limits of the caller, an overloaded provider or gateway.
PASSING: Final = frozenset({408, 429, 500, 502, 503, 504})
# The writer of the single output file of a batch, and the extension of that file.
_WRITERS: Final = {"gemini": (write_output, ".google"), "anthropic": (write_results, ".anthropic")}


class BatchRun:
    """One batch in progress. `run` returns when the batch has ended; `cancel` ends it sooner."""

    def __init__(self, services: Services, client: httpx.AsyncClient, batch: Batch) -> None:
        self._services = services
        self._client = client
        self._batch = batch
        self._contents = contents_of(services)
        self._copy = ResultsCopy(blobs_of(services), batch.id)
        self._input: Path | None = None
        self._cancelled = asyncio.Event()
        self._write = asyncio.Lock()
        self._origin = public_base(services.config)
        self._revoked: str | None = None
        if batch.status == "cancelling":
            self._cancelled.set()

    def cancel(self) -> None:
        """Ends the batch because its owner has cancelled it."""
        self._cancelled.set()

    def revoke(self, reason: str) -> None:
        """Ends the batch as failed because its key is no longer valid; the results so far are kept."""
        self._revoked = reason
        self._cancelled.set()

    async def run(self) -> None:
        """Continues from the batch's stored step until it has ended."""
        try:
            await self._run()
        finally:
            await asyncio.to_thread(self._input_copy.unlink, missing_ok=True)

    async def _run(self) -> None:
        batch = self._batch
        if batch.status == "validating" and self._revoked is not None:
            await self._fail([_error("invalid_api_key", self._revoked)])
            return
        if batch.status == "validating" and not await self._validate():
            return
        await self._copy.fetch()
        results = await asyncio.to_thread(Results, self._contents.work_folder, batch.id)
        try:
            if batch.status != "finalizing":
                await self._run_lines(results)
            await self._finish(results)
            await self._copy.remove()
        finally:
            results.close()

    @property
    def _input_copy(self) -> Path:
        return self._contents.work_folder / "batches" / f"{self._batch.id}.input"

    async def _input_path(self) -> Path:
        """The input as a file of this machine. `FileNotFoundError`."""
        if self._input is None:
            await asyncio.to_thread(self._input_copy.parent.mkdir, 0o700, exist_ok=True)
            self._input = await self._contents.fetch(self._batch.input_file_id, self._input_copy)
        return self._input

    async def _validate(self) -> bool:
        batch = self._batch
        try:
            await self._services.state.read(
                lambda con: find_file(con, batch.input_file_id, batch.owner, now_ms())
            )
            checked = await asyncio.to_thread(
                check_input,
                await self._input_path(),
                batch.endpoint,
                batch.model if batch.dialect == "gemini" else None,
            )
        except (NotFound, FileNotFoundError):
            await self._fail([_error("input_file_missing", "The input file is not there.")])
            return False
        if checked.errors:
            await self._fail(checked.errors)
            return False
        model = next(iter(checked.models)) if len(checked.models) == 1 else None
        begun_at_ms = now_ms()

        def begin(con: Connection) -> None:
            change_batch(con, batch.id, model=model, total=checked.total)
            # The owner may have cancelled the batch while its input was checked.
            if find_batch(con, batch.id).status == "validating":
                change_batch(con, batch.id, status="in_progress", in_progress_at_ms=begun_at_ms)

        await self._services.state.record(begin)
        return True

    async def _fail(self, errors: list[dict[str, Any]]) -> None:
        document = orjson.dumps({"object": "list", "data": errors}).decode()
        batch_id, ended_at_ms = self._batch.id, now_ms()

        def end(con: Connection) -> None:
            is_cancelled = find_batch(con, batch_id).cancelling_at_ms is not None
            status = "cancelled" if is_cancelled else "failed"
            change_batch(con, batch_id, status=status, errors=document, ended_at_ms=ended_at_ms)
            notify_end(con, batch_id, self._origin)

        await self._services.state.record(end)

    # --- the lines

    async def _run_lines(self, results: Results) -> None:
        under_way: set[asyncio.Task[None]] = set()
        folder = self._contents.work_folder
        stop = asyncio.create_task(self._stopped())
        counter = asyncio.create_task(self._keep_count(results))
        lines = await self._reader()
        try:
            is_more = True
            while is_more or under_way:
                while is_more and len(under_way) < WIDTH and not self._is_stopped():
                    # A request costs money once it is sent, so its answer must fit on the disk first. If it does not
                    # fit, the batch waits until there is space; lines in progress are still written.
                    await asyncio.to_thread(check_disk, folder, ANSWER_ROOM_BYTES)
                    line = await lines.next()
                    if line is None:
                        is_more = False
                    elif line.custom_id not in results.done:
                        under_way.add(asyncio.create_task(self._do(line, results)))
                if self._is_stopped() or not under_way:
                    break
                waiting = {*under_way, stop, counter}
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in (*under_way, counter) if task.done()]:
                    under_way.discard(task)
                    task.result()
            if under_way:
                # Requests in progress have been paid for, so the batch waits for their answers, with a limit.
                grace_s = 0.0 if self._is_expired() or self._revoked else CANCEL_GRACE_S
                await asyncio.wait(under_way, timeout=grace_s)
            if self._is_expired():
                await self._expire(results)
        finally:
            for task in (*under_way, stop, counter):
                task.cancel()
            await asyncio.gather(*under_way, stop, counter, return_exceptions=True)
            await lines.close()

    async def _reader(self) -> _Reader:
        return _Reader(await self._input_path(), self._batch.dialect)

    async def _stopped(self) -> None:
        """Returns when the batch is cancelled or expires."""
        left_s = max(0.0, (self._batch.expires_at_ms - now_ms()) / 1000)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                await self._cancelled.wait()

    def _is_expired(self) -> bool:
        return not self._cancelled.is_set() and now_ms() >= self._batch.expires_at_ms

    def _is_stopped(self) -> bool:
        return self._cancelled.is_set() or self._is_expired()

    async def _keep_count(self, results: Results) -> None:
        while True:
            await asyncio.sleep(COUNT_EVERY_S)
            await self._copy.push()
            await self._count(results)

    async def _count(self, results: Results) -> None:
        batch = await self._services.state.read(lambda con: find_batch(con, self._batch.id))
        counts = results.counts(batch.total)
        await self._services.state.record(lambda con: count_batch(con, batch.id, counts))

    async def _do(self, line: Line, results: Results) -> None:
        response = await self._answer(line)
        document = {
            "id": new_id("batch_req_"),
            "custom_id": line.custom_id,
            "response": response,
            "error": None,
        }
        await self._add(results, document)

    async def _add(self, results: Results, document: dict[str, Any]) -> None:
        async with self._write:
            await asyncio.to_thread(results.add, document)

    async def _answer(self, line: Line) -> dict[str, Any]:
        """The gateway's answer to a line. A temporary refusal is retried a few times; a relay that
        does not answer is waited for.
        """
        batch, config = self._batch, self._services.config
        headers = on_behalf_of(config, batch.owner) | {
            "content-type": "application/json",
            "x-gateway-session-id": batch.id,
            # After a crash the line is sent again with this key, and the relay joins it with the call that is still in
            # progress.
            "idempotency-key": f"{batch.id}:{line.number}",
        }
        if batch.betas is not None:
            headers["anthropic-beta"] = batch.betas
        tried = 0
        while True:
            wait_s = min(WAIT_MAX_S, 2.0 ** min(tried, 6))
            try:
                async with asyncio.timeout(LINE_DEADLINE_S):
                    answer = await self._client.post(
                        batch.endpoint, content=line.body, headers=headers
                    )
            except httpx.TransportError:
                tried = min(tried + 1, TRIES - 2)
            except TimeoutError:
                body = _error("timeout", f"There was no answer within {LINE_DEADLINE_S:g} s.")
                return {"status_code": 504, "request_id": "", "body": {"error": body}}
            else:
                tried += 1
                if answer.status_code not in PASSING or tried >= TRIES:
                    return {
                        "status_code": answer.status_code,
                        "request_id": answer.headers.get("x-gateway-request-id", ""),
                        "body": _document(answer),
                    }
                retry_after = answer.headers.get("retry-after", "")
                if retry_after.isascii() and retry_after.isdigit():
                    wait_s = min(WAIT_MAX_S, max(wait_s, float(retry_after)))
            await asyncio.sleep(wait_s)

    async def _expire(self, results: Results) -> None:
        """Writes every line that was not run in time to the error file."""
        lines = await self._reader()
        try:
            while (line := await lines.next()) is not None:
                if line.custom_id not in results.done:
                    message = (
                        "This request could not be executed before the completion window expired."
                    )
                    document = {
                        "id": new_id("batch_req_"),
                        "custom_id": line.custom_id,
                        "response": None,
                        "error": {"code": "batch_expired", "message": message},
                    }
                    await self._add(results, document)
        finally:
            await lines.close()

    # --- the end

    async def _finish(self, results: Results) -> None:
        """Makes files of the results. May be repeated from any point."""
        batch = await self._services.state.read(lambda con: find_batch(con, self._batch.id))
        results.close()
        if batch.output_file_id is None:
            # Counted now, because only the row has the counts once the files are moved.
            await self._count(results)
            finalizing_at_ms = now_ms()

            def name_files(con: Connection) -> None:
                change_batch(
                    con, batch.id, output_file_id=new_id("file-"), error_file_id=new_id("file-")
                )
                if find_batch(con, batch.id).status == "in_progress":
                    change_batch(
                        con, batch.id, status="finalizing", finalizing_at_ms=finalizing_at_ms
                    )

            await self._services.state.record(name_files)
            batch = await self._services.state.read(lambda con: find_batch(con, self._batch.id))
        output = await self._output(batch, results)
        files = [
            await self._keep(batch, batch.output_file_id or "", output, "output"),
            await self._keep(batch, batch.error_file_id or "", results.errors, "error"),
        ]
        status = "completed"
        if batch.cancelling_at_ms is not None:
            status = "cancelled"
        elif batch.completed + batch.failed < batch.total or self._has_expired(batch):
            status = "expired"
        if self._revoked is not None:
            status = "failed"
            errors = {"object": "list", "data": [_error("invalid_api_key", self._revoked)]}
            batch = replace(batch, errors=orjson.dumps(errors).decode())
        end = partial(_end, batch=batch, files=files, status=status, origin=self._origin)
        await self._services.state.record(end)

    async def _output(self, batch: Batch, results: Results) -> Path:
        """The file that becomes the output. Google's and Anthropic's batches have one file of successes and
        failures, which is written when the batch ends.
        """
        if batch.dialect not in _WRITERS or not batch.total:
            # A batch that was cancelled before its input was read has no lines to report.
            return results.output
        write, ending = _WRITERS[batch.dialect]
        written = results.output.with_suffix(ending)
        if await self._contents.size(batch.output_file_id or "") is None:
            source = await self._input_path()
            await asyncio.to_thread(write, source, results, written)
            await self._contents.move_in(batch.output_file_id or "", written)
        await asyncio.to_thread(results.remove)
        return written

    def _has_expired(self, batch: Batch) -> bool:
        return (batch.finalizing_at_ms or 0) >= batch.expires_at_ms

    async def _keep(self, batch: Batch, file_id: str, source: Path, kind: str) -> StoredFile | None:
        size = await self._contents.move_in(file_id, source)
        if size is None:
            return None
        created_at_ms = now_ms()
        kept_s = batch.output_expires_after_s or OUTPUT_KEPT_S
        return StoredFile(
            file_id,
            batch.owner,
            "batch_output",
            f"{batch.id}_{kind}.jsonl",
            size,
            created_at_ms,
            created_at_ms + kept_s * 1000,
        )


class _Reader:
    """Reads the lines of the input in a thread, a few at a time."""

    AHEAD: Final = 64

    def __init__(self, path: Path, dialect: str) -> None:
        self._lines: Iterator[Line] = read_lines(path, dialect)
        self._ready: list[Line] = []

    async def next(self) -> Line | None:
        """The next line, or None at the end."""
        if not self._ready:
            self._ready = await asyncio.to_thread(self._some)
        return self._ready.pop() if self._ready else None

    async def close(self) -> None:
        """Closes the file."""
        close = getattr(self._lines, "close", None)
        if close is not None:
            await asyncio.to_thread(close)

    def _some(self) -> list[Line]:
        size, some = 0, []
        for line in self._lines:
            some.append(line)
            size += len(line.body)
            if len(some) >= self.AHEAD or size > 4 * 1024 * 1024:
                break
        return some[::-1]


def _end(
    con: Connection, *, batch: Batch, files: list[StoredFile | None], status: str, origin: str
) -> None:
    for file in files:
        if file is not None:
            put_file(con, file)
    output, errors = files
    change_batch(
        con,
        batch.id,
        status=status,
        output_file_id=output.id if output else None,
        error_file_id=errors.id if errors else None,
        errors=batch.errors,
        ended_at_ms=now_ms(),
    )
    notify_end(con, batch.id, origin)


def _error(code: str, message: str) -> dict[str, Any]:
    return {"code": code, "line": None, "message": message, "param": None}


def _document(answer: httpx.Response) -> Any:
    try:
        return orjson.loads(answer.content)
    except orjson.JSONDecodeError:
        return {"error": _error("not_json", "The answer is not JSON.")}
