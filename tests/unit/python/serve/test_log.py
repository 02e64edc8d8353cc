"""Log lines reach stderr whole, and a stderr that nobody reads stops nobody."""

from __future__ import annotations

import asyncio
import io
import os
import time
from concurrent.futures import ThreadPoolExecutor

from fairlead.serve.log import LogSink
from tests.support.polling import eventually


async def pumped(*chunks: bytes) -> list[bytes]:
    """What a sink makes of a child's output that arrives in these chunks."""
    out = io.BytesIO()
    sink = LogSink(out)
    source = asyncio.StreamReader()
    for chunk in chunks:
        source.feed_data(chunk)
    source.feed_eof()
    await sink.pump(source)
    sink.close()
    return out.getvalue().splitlines()


def test_lines_stay_whole_however_they_arrive() -> None:
    lines = asyncio.run(pumped(b"one\ntw", b"o\nthr", b"ee"))
    assert lines == [b"one", b"two", b"three"]


def test_a_line_without_end_is_passed_on_in_pieces() -> None:
    lines = asyncio.run(pumped(b"x" * 200_000))
    assert b"".join(lines) == b"x" * 200_000
    assert max(map(len, lines)) < 140_000


def test_a_reader_that_stops_reading_blocks_nobody_and_is_told_what_it_missed() -> None:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as reader, ThreadPoolExecutor(1) as threads:
        with os.fdopen(write_end, "wb") as out:
            sink = LogSink(out)
            started = time.monotonic()
            for number in range(12_000):
                sink.line(b"%d " % number + b"x" * 100)
            assert time.monotonic() - started < 2

            seen = threads.submit(reader.readlines)
            eventually(sink._waiting.empty, "what was waiting is written")
            sink.line(b"after")
            sink.close()
        *lines, after = seen.result(5)
    numbers = [int(line.split()[0]) for line in lines if not line.startswith(b"fairlead")]
    told = [int(line.split()[1]) for line in lines if line.startswith(b"fairlead")]
    assert numbers == sorted(numbers)
    assert len(numbers) + sum(told) == 12_000
    assert told
    assert after == b"after\n"


def test_a_closed_stderr_is_no_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb", buffering=0) as out:
        sink = LogSink(out)
        sink.line(b"lost")
        sink.line(b"lost too")
        sink.close()
