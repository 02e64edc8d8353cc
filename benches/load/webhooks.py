"""Measures deliveries of webhooks: how many a second control keeps up, with one of ten listeners dead.

    python benches/load/webhooks.py [--rounds N] [--events N] [--secrets N] [--keep]

Control's own deliverer on a real database, in a process of its own as control is, and ten listeners
in another one, of which one takes what it is sent and never answers. Each event goes to all ten.
A round puts the events into the outbox and measures until the nine have all of them; the best round
is what the machine can do, the others say how quiet it was. A second measure offers a steady 200
deliveries a second for the whole of a round and tells how late they came. Exit code 1 when the best
misses the bar.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairlead import __version__, _core
from fairlead.moment import now_ms
from fairlead.net.egress import Egress
from fairlead.records.webhook_endpoints import insert_endpoint, new_endpoint
from fairlead.store.database import Database
from fairlead.store.outbox import Event, emit
from fairlead.store.prepare import MIGRATIONS
from fairlead.store.sealer import Sealer
from fairlead.store.state import State
from fairlead.webhooks.worker import Worker

GOAL_PER_S = 200
LISTENERS, DEAD = 10, 1
RESULTS = Path(__file__).parents[1] / "results"
DEADLINE_S = 120.0


@dataclass
class Round:
    """One round. `late_ms` are delays of the steady measure, from outbox to listener."""

    per_second: float
    cpu_ms_per_delivery: float
    steady_per_second: float
    late_p50_ms: float
    late_p99_ms: float
    late_max_ms: float


# ------------------------------------------------------------------------- the listeners' process


class Sink(asyncio.Protocol):
    """Answers every request with 204; a dead one reads and says nothing."""

    def __init__(self, is_dead: bool, came: list[tuple[float, str]]) -> None:
        self._is_dead = is_dead
        self._came = came
        self._bytes = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def data_received(self, data: bytes) -> None:
        if self._is_dead:
            return
        self._bytes += data
        while (end := self._bytes.find(b"\r\n\r\n")) >= 0:
            head = self._bytes[:end].lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            if len(self._bytes) < end + 4 + length:
                return
            message_id = head.split(b"webhook-id:")[1].split(b"\r\n")[0].strip().decode()
            self._came.append((time.time(), message_id))
            self._bytes = self._bytes[end + 4 + length :]
            self._transport.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            if b"connection: close" in head:
                self._transport.close()


def listen(pipe: Any) -> None:
    """Runs ten listeners; the pipe is told their ports, and what came since it last asked."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        came: list[tuple[float, str]] = []
        servers = [
            await loop.create_server(
                lambda is_dead=number < DEAD: Sink(is_dead, came), "127.0.0.1", 0, backlog=1024
            )
            for number in range(LISTENERS)
        ]
        pipe.send([server.sockets[0].getsockname()[1] for server in servers])

        def answer() -> None:
            if pipe.recv() == "count":
                pipe.send(len(came))
            else:
                pipe.send(came[:])
                came.clear()

        loop.add_reader(pipe.fileno(), answer)
        await asyncio.Event().wait()

    asyncio.run(main())


# ------------------------------------------------------------------------- the deliverer's process


async def measure(options: argparse.Namespace, pipe: Any, ports: list[int]) -> list[Round]:
    with tempfile.TemporaryDirectory(prefix="fairlead-webhooks-") as folder:
        database = await asyncio.to_thread(
            Database.open, Path(folder) / "state.duckdb", MIGRATIONS / "state"
        )
        state = State(database, Sealer(b"k" * 32))
        secret = _core.new_webhook_secret()

        def subscribe(con: Any) -> None:
            for port in ports:
                url = f"http://127.0.0.1:{port}/hook"
                endpoint = new_endpoint("gateway", url, ["key.created"], now_ms())
                insert_endpoint(con, state.sealer, endpoint, secret)

        await state.record(subscribe)
        egress = Egress("127.0.0.0/8")
        worker = asyncio.create_task(Worker(state, egress).run())
        alive = LISTENERS - DEAD
        try:
            # The dead one is known as such before anything is measured, as it is in life.
            await offer(state, 5)
            await arrived(pipe, worker, 5 * alive)
            await settled(state, 5 * alive)
            return [await one_round(options, state, pipe, worker) for _ in range(options.rounds)]
        finally:
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
            egress.close()
            await database.close()


async def one_round(options: argparse.Namespace, state: State, pipe: Any, worker: Any) -> Round:
    alive = LISTENERS - DEAD
    wanted = options.events * alive
    pipe.send("take")
    pipe.recv()
    cpu, started = time.process_time(), time.monotonic()
    before = await delivered(state)
    await offer(state, options.events)
    await arrived(pipe, worker, wanted)
    await settled(state, before + wanted)
    took_s = time.monotonic() - started
    cpu_ms = (time.process_time() - cpu) * 1000 / wanted
    pipe.send("take")
    pipe.recv()
    late, steady = await steadily(options, state, pipe, worker)
    return Round(
        wanted / took_s,
        cpu_ms,
        steady,
        statistics.median(late),
        statistics.quantiles(late, n=100)[98],
        max(late),
    )


async def steadily(
    options: argparse.Namespace, state: State, pipe: Any, worker: Any
) -> tuple[list[float], float]:
    """Offers the bar's rate for a while, ten times a second; how late each came, ms, and the rate."""
    alive = LISTENERS - DEAD
    turns = options.seconds * 10
    sent: dict[str, float] = {}
    started = time.monotonic()
    for turn in range(turns):
        await asyncio.sleep(max(0.0, started + turn / 10 - time.monotonic()))
        at_s = time.time()
        # The rate is of deliveries, and each event is nine.
        due = round(GOAL_PER_S * (turn + 1) / 10 / alive) - len(sent)
        for message_id in await offer(state, due):
            sent[message_id] = at_s
    await arrived(pipe, worker, len(sent) * alive)
    took_s = time.monotonic() - started
    pipe.send("take")
    came = pipe.recv()
    late = [(at_s - sent[message_id]) * 1000 for at_s, message_id in came if message_id in sent]
    return late, len(came) / took_s


async def offer(state: State, count: int) -> list[str]:
    """Events into the outbox, in one transaction; the ids of their messages."""
    at_ms = now_ms()
    ids = [f"msg_{time.time_ns():x}_{n}" for n in range(count)]
    events = [Event("key.created", {"id": i, "name": "bench"}, at_ms, id=i) for i in ids]
    await state.record(lambda con: emit(con, *events))
    return ids


async def arrived(pipe: Any, worker: Any, count: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        pipe.send("count")
        if pipe.recv() >= count:
            return
        if worker.done() or time.monotonic() > deadline:
            raise SystemExit(f"the deliverer does not keep up: {worker}")
        await asyncio.sleep(0.02)


async def delivered(state: State) -> int:
    query = "SELECT count(*) FROM webhook_deliveries WHERE state = 'delivered'"
    row = await state.read(lambda con: con.execute(query).fetchone())
    return int(row[0]) if row else 0


async def settled(state: State, count: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while await delivered(state) < count:
        if time.monotonic() > deadline:
            raise SystemExit("outcomes are not written down")
        await asyncio.sleep(0.02)


# ------------------------------------------------------------------------------------- the report


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--events", type=int, default=200, help="in the outbox at once in a round")
    parser.add_argument("--seconds", type=int, default=8, help="of the steady measure in a round")
    parser.add_argument("--keep", action="store_true", help="keep the result in benches/results")
    options = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    sink = multiprocessing.get_context("spawn").Process(target=listen, args=(theirs,), daemon=True)
    sink.start()
    try:
        rounds = run(measure(options, ours, ours.recv()))
    finally:
        sink.kill()
        sink.join()
    best = max(rounds, key=lambda each: each.per_second)
    text = page(rounds, best, options)
    print(text)
    if options.keep:
        date = dt.datetime.now(dt.UTC).date().isoformat()
        name = f"{date}-webhook-deliveries.md"
        (RESULTS / name).write_text(text, "utf-8")
        found = {"rounds": [asdict(each) for each in rounds], "version": __version__}
        (RESULTS / name).with_suffix(".json").write_text(
            json.dumps(found, indent=2) + "\n", "utf-8"
        )
        print(f"kept as benches/results/{name}", file=sys.stderr)
    return 0 if best.per_second >= GOAL_PER_S else 1


def run(work: Awaitable[list[Round]]) -> list[Round]:
    """On the loop that control runs on."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)  # type: ignore[arg-type]


def page(rounds: list[Round], best: Round, options: argparse.Namespace) -> str:
    verdict = "met" if best.per_second >= GOAL_PER_S else "**missed**"
    lines = [
        f"# Webhook deliveries, {dt.datetime.now(dt.UTC).date().isoformat()}",
        "",
        (
            f"fairlead {__version__}, {platform.machine()}, {os.cpu_count()} cores shared with whatever "
            f"else ran, load {os.getloadavg()[0]:.1f}. One deliverer on a real database, {LISTENERS} "
            f"listeners of which {DEAD} never answers; {options.events} events at once, then "
            f"{options.seconds} s of {GOAL_PER_S} deliveries/s."
        ),
        "",
        "| bar | wanted | best round | |",
        "| --- | --- | --- | --- |",
        (
            f"| deliveries/s with one of ten listeners dead | >= {GOAL_PER_S} | "
            f"{best.per_second:,.0f} | {verdict} |"
        ),
        "",
        "| round | deliveries/s | CPU ms each | steady/s | late p50 ms | p99 ms | most ms |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {number} | {each.per_second:,.0f} | {each.cpu_ms_per_delivery:.2f} | "
            f"{each.steady_per_second:,.0f} | {each.late_p50_ms:.0f} | {each.late_p99_ms:.0f} | "
            f"{each.late_max_ms:.0f} |"
            for number, each in enumerate(rounds, 1)
        ),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
