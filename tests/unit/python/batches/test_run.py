"""A batch whose day is over, with nobody to ask: control alone, on real files."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import orjson
import pytest

from fairlead.gateway.batches import google_router
from fairlead.gateway.batches.results import Results
from fairlead.gateway.batches.runner import BatchRunner
from fairlead.gateway.batches.table import ENDED, find_batch, insert_batch
from fairlead.gateway.files.contents import contents_of
from fairlead.gateway.files.table import StoredFile, find_file, put_file
from fairlead.store.file import Connection
from tests.support.batches import make_batch
from tests.support.management import Management, hold_keys, run_management
from tests.support.process import free_port

pytestmark = pytest.mark.anyio


@pytest.fixture
async def management(tmp_path: Path) -> AsyncIterator[Management]:
    async with run_management(tmp_path / "data", port=free_port()) as running:
        await hold_keys(running.services, "key")
        yield running


async def test_what_was_not_run_in_its_day_is_told(management: Management) -> None:
    services = management.services
    now_ms = time.time_ns() // 1_000_000
    line = {"method": "POST", "url": "/v1/embeddings", "body": {"model": "m", "input": "x"}}
    content = b"".join(orjson.dumps(line | {"custom_id": name}) + b"\n" for name in "abc")

    async def chunks() -> AsyncIterator[bytes]:
        yield content

    await contents_of(services).write("file-in", chunks(), len(content))
    file = StoredFile("file-in", "key", "batch", "in", len(content), now_ms, None)
    batch = make_batch(
        output_expires_after_s=3600, created_at_ms=now_ms, expires_at_ms=now_ms + 1500
    )
    await services.state.record(lambda con: put_file(con, file))
    await services.state.record(lambda con: insert_batch(con, batch))
    BatchRunner.of(services).wake()

    with anyio.fail_after(60):
        while (
            ended := await services.state.read(lambda con: find_batch(con, "batch_1"))
        ).status not in ENDED:
            await anyio.sleep(0.1)
    assert (ended.status, ended.total, ended.failed) == ("expired", 3, 3)
    assert ended.output_file_id is None
    kept = await services.state.read(
        lambda con: find_file(con, ended.error_file_id or "", "key", now_ms)
    )
    assert kept.purpose == "batch_output"
    rows = (services.data_dir / "files" / kept.id).read_bytes().splitlines()
    assert {orjson.loads(row)["error"]["code"] for row in rows} == {"batch_expired"}
    assert [orjson.loads(row)["custom_id"] for row in rows] == ["a", "b", "c"]
    assert not list((services.data_dir / "batches").iterdir())


@pytest.mark.parametrize("is_under_way", [True, False])
async def test_a_batch_ends_with_its_key_and_keeps_what_was_answered(
    management: Management, is_under_way: bool
) -> None:
    services = management.services
    now_ms = time.time_ns() // 1_000_000
    line = {"method": "POST", "url": "/v1/embeddings", "body": {"model": "m", "input": "x"}}
    content = b"".join(orjson.dumps(line | {"custom_id": name}) + b"\n" for name in "ab")
    (services.data_dir / "files").mkdir(exist_ok=True)
    (services.data_dir / "files" / "file-in").write_bytes(content)
    results = Results(services.data_dir, "batch_1")
    results.add({"custom_id": "a", "response": {"status_code": 200, "body": {"usage": {}}}})
    results.close()
    file = StoredFile("file-in", "key", "batch", "in", len(content), now_ms, None)
    batch = make_batch(
        status="in_progress",
        model="m",
        total=2,
        created_at_ms=now_ms,
        expires_at_ms=now_ms + 600_000,
        in_progress_at_ms=now_ms,
    )
    ban = "UPDATE keys SET is_banned = true WHERE id = 'key'"
    runner = BatchRunner.of(services)

    def store(con: Connection) -> None:
        put_file(con, file)
        insert_batch(con, batch)
        if not is_under_way:
            con.execute(ban)

    await services.state.record(store)
    runner.wake()
    with anyio.fail_after(60):
        if is_under_way:
            # Its relay is not there: it is tried again and again.
            while "batch_1" not in runner._runs:
                await anyio.sleep(0.02)
            await services.state.commit(lambda con: con.execute(ban).fetchall())
            runner.wake()
        while (
            ended := await services.state.read(lambda con: find_batch(con, "batch_1"))
        ).status not in ENDED:
            await anyio.sleep(0.05)
    assert (ended.status, ended.completed) == ("failed", 1)
    (told,) = orjson.loads(ended.errors or "")["data"]
    assert told["code"] == "invalid_api_key"
    assert "banned" in told["message"]
    kept = (services.data_dir / "files" / (ended.output_file_id or "")).read_bytes()
    assert orjson.loads(kept)["custom_id"] == "a"


@pytest.mark.parametrize("reached", ["nothing", "half of it written", "moved", "results removed"])
async def test_a_batch_of_googles_kind_is_finished_from_wherever_it_was(
    management: Management, reached: str
) -> None:
    """Control died while it made the one output of what was answered and what was not."""
    services = management.services
    now_ms = time.time_ns() // 1_000_000
    folder = services.data_dir
    (folder / "files").mkdir(exist_ok=True)
    lines = [{"key": name, "request": {"contents": []}} for name in "ab"]
    content = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    (folder / "files" / "file-in").write_bytes(content)
    told = [
        {"key": "a", "error": {"code": 3, "message": "no"}},
        {"key": "b", "response": {"candidates": []}},
    ]
    output = b"".join(orjson.dumps(line) + b"\n" for line in told)
    if reached in ("moved", "results removed"):
        (folder / "files" / "file-out").write_bytes(output)
    results = Results(folder, "batch_1")
    if reached != "results removed":
        body = {"error": {"code": 400, "message": "no"}}
        results.add({"custom_id": "1", "response": {"status_code": 400, "body": body}})
        body = {"candidates": []}
        results.add({"custom_id": "2", "response": {"status_code": 200, "body": body}})
    results.close()
    if reached == "half of it written":
        (folder / "batches" / "batch_1.google").write_bytes(output[:20])
    batch = make_batch(
        endpoint="/v1beta/models/m:generateContent",
        status="finalizing",
        model="m",
        output_file_id="file-out",
        error_file_id="file-err",
        total=2,
        completed=1,
        failed=1,
        created_at_ms=now_ms,
        expires_at_ms=now_ms + 60_000,
        in_progress_at_ms=now_ms,
        finalizing_at_ms=now_ms,
        dialect="gemini",
    )
    file = StoredFile("file-in", "key", "batch", "in", len(content), now_ms, None)

    def store(con: Connection) -> None:
        # At once: a file of nobody's that no batch reads is let go.
        put_file(con, file)
        insert_batch(con, batch)

    await services.state.record(store)
    BatchRunner.of(services).wake()
    with anyio.fail_after(60):
        while (
            ended := await services.state.read(lambda con: find_batch(con, "batch_1"))
        ).status not in ENDED:
            await anyio.sleep(0.05)
    assert (ended.status, ended.completed, ended.failed) == ("completed", 1, 1)
    assert (ended.output_file_id, ended.error_file_id) == ("file-out", None)
    assert (folder / "files" / "file-out").read_bytes() == output
    assert not list((folder / "batches").iterdir())


@pytest.mark.parametrize(("most", "inline"), [(10, False), (1000, True)])
async def test_answers_that_are_too_long_for_an_operation_are_a_file(
    management: Management, monkeypatch: pytest.MonkeyPatch, most: int, inline: bool
) -> None:
    monkeypatch.setattr(google_router, "INLINE_MAX_BYTES", most)
    folder = management.services.data_dir / "files"
    folder.mkdir(exist_ok=True)
    line = {"metadata": {"a": "1"}, "response": {"candidates": []}}
    (folder / "file-out").write_bytes(orjson.dumps(line) + b"\n")
    batch = make_batch(
        endpoint="/v1beta/models/m:generateContent",
        status="completed",
        model="m",
        output_file_id="file-out",
        total=1,
        completed=1,
        in_progress_at_ms=1,
        finalizing_at_ms=1,
        ended_at_ms=2,
        dialect="gemini",
        is_inline=True,
    )

    async def output() -> dict[str, object]:
        answer = await google_router.operation(management.services, batch)
        shown = orjson.loads(answer.body)
        response = {name: value for name, value in shown["response"].items() if name != "@type"}
        assert shown["metadata"].get("output", {}) == response
        return response

    expected = {"inlinedResponses": {"inlinedResponses": [line]}}
    assert await output() == (expected if inline else {"responsesFile": "files/file-out"})
    # Its time is over, or somebody deleted it as a file.
    (folder / "file-out").unlink()
    assert await output() == {}
