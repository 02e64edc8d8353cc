"""The processes that read pages: a page that holds one is killed with it, and nobody else notices."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.scrape.page import pool as pool_module
from fairlead.scrape.page.extract import ReadOptions, Source
from fairlead.scrape.page.pool import Pool, ReadFailed
from tests.support.polling import eventually

pytestmark = pytest.mark.anyio

PAGE = Source(
    "http://a.example/", b"<title>T</title><main><h1>Head</h1><p>Text <a href=/b>b</a></main>"
)
MARKDOWN = ReadOptions(form="markdown")


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    running = Pool(workers=1, read_deadline_s=60.0)
    yield running
    await running.close()


async def test_a_page_is_read_in_another_process(pool: Pool) -> None:
    document, links = await pool.read(PAGE, MARKDOWN)
    assert document["content"] == "# Head\n\nText [b](http://a.example/b)"
    assert links == ["http://a.example/b"]
    (pid,) = pool.process_ids
    assert pid != os.getpid()
    await pool.read(PAGE, MARKDOWN)
    assert pool.process_ids == [pid]


async def test_a_process_that_does_not_answer_is_killed_and_replaced(pool: Pool) -> None:
    await pool.read(PAGE, MARKDOWN)
    (stuck,) = pool.process_ids
    os.kill(stuck, signal.SIGSTOP)
    pool._read_deadline_s = 0.3
    with pytest.raises(ReadFailed) as failure:
        await pool.read(PAGE, MARKDOWN)
    assert failure.value.code == "timeout"
    with pytest.raises(ProcessLookupError):
        os.kill(stuck, 0)
    pool._read_deadline_s = 60.0
    assert (await pool.read(PAGE, MARKDOWN))[0]["title"] == "T"
    assert stuck not in pool.process_ids


async def test_a_process_that_dies_takes_its_page_with_it_and_no_other(pool: Pool) -> None:
    await pool.read(PAGE, MARKDOWN)
    (pid,) = pool.process_ids
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: _is_gone(pid), "it is dead")
    assert (await pool.read(PAGE, MARKDOWN))[0]["title"] == "T"


async def test_memory_that_a_page_takes_is_bounded(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pool.read(PAGE, MARKDOWN)
    (pid,) = pool.process_ids
    # As small as the process is now: the next large page does not fit.
    pages = Path(f"/proc/{pid}/statm").read_text().split()[0]
    now_bytes = int(pages) * resource.getpagesize()
    resource.prlimit(
        pid, resource.RLIMIT_AS, (now_bytes + 8 * 1024 * 1024, now_bytes + 8 * 1024 * 1024)
    )
    large = Source(PAGE.url, b"<p>text <b>x</b>" * 500_000)
    with pytest.raises(ReadFailed) as failure:
        await pool.read(large, MARKDOWN)
    assert failure.value.code == "too_large"
    assert (await pool.read(PAGE, MARKDOWN))[0]["title"] == "T"


async def test_a_worn_process_is_replaced(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "PAGES_WORN", 2)
    seen = set()
    for _ in range(4):
        await pool.read(PAGE, MARKDOWN)
        seen |= set(pool.process_ids)
    assert len(pool.process_ids) <= 1
    assert len(seen) >= 2


async def test_processes_end_with_the_pool() -> None:
    running = Pool(workers=1)
    await running.read(PAGE, MARKDOWN)
    (pid,) = running.process_ids
    await running.close()
    assert _is_gone(pid)


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 200_000,
        b"<b><i><u>" * 50_000 + b"text",
        b"<table>" * 20_000 + b"x",
        b"<a href=/x>" * 100_000,
        b"<p" + b" a=b" * 200_000 + b">x",
        b"&" * 1_000_000,
        b"<!--" * 200_000,
        b"<svg><" * 100_000,
        b"<select>" * 50_000 + b"<option>" * 50_000,
        b"\x00\xff\xfe" * 100_000,
        b"<pre>\n" * 30_000,
        b"<" * 500_000,
        b"<style>" * 100_000,
        b'<p title="' + b"x" * 1_000_000,
    ],
)
async def test_hostile_pages_end(body: bytes) -> None:
    """Whatever the page, an answer or a failure; never a reader that hangs."""
    running = Pool(workers=1, read_deadline_s=30.0)
    try:
        codes: set[str] = set()
        for form in ("markdown", "html", "text"):
            try:
                await running.read(
                    Source(PAGE.url, body),
                    ReadOptions(form=form, lists=["links", "tables", "code", "images"]),
                )
            except ReadFailed as failure:
                codes.add(failure.code)
        assert codes <= {"too_large", "timeout"}
        assert (await running.read(PAGE, MARKDOWN))[0]["title"] == "T"
    finally:
        await running.close()


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True
