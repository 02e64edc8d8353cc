"""Measures crawls of a local site: pages a second, CPU a page, and whether memory stays flat.

    python benches/load/crawl.py [--rounds 3] [--pages 1000] [--long 5000] [--save NAME]

One gateway as an operator starts it, with robots and politeness off, and a site in a process of its own that
answers at once. Each round crawls the site anew; the long crawl watches the memory of control and of the
processes that read pages. The best round is what the machine can do; CPU time a page tells what a round would
be on a machine that does nothing else. Exit code 1 when the best misses a goal.
"""

# ruff: noqa: ISC004 - lines of a page go on
from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

GOAL_PAGES_PER_S = 60
GOAL_GROWTH = 0.10
BRANCHES = 4
WIDTH = 16
RESULTS = Path(__file__).parents[1] / "results"
# fmt: off
WORDS = [
    "the", "ferry", "of", "two", "rivers", "stands", "where", "people", "have", "lived", "for", "six",
    "centuries", "and", "every", "bridge", "was", "carried", "away", "by", "ice", "before", "dawn", "while",
    "engineers", "explained", "that", "its", "piers", "stood", "in", "gravel",
]
# fmt: on


def page(number: int, pages: int) -> bytes:
    """About 10 KB: a menu, ten paragraphs, a table, links to `BRANCHES` more pages."""
    text = [
        " ".join(WORDS[(number * 7 + i * j) % len(WORDS)] for j in range(90)) for i in range(1, 11)
    ]
    paragraphs = "".join(f"<p>{line} <a href='/p/{number}'>again</a>.</p>" for line in text)
    table = "".join(f"<tr><td>{i}</td><td>{i * number}</td></tr>" for i in range(20))
    children = range(BRANCHES * number + 1, min(BRANCHES * number + BRANCHES + 1, pages))
    menu = "".join(f"<li><a href='/p/{child}'>Page {child}</a></li>" for child in children)
    return (
        f"<!doctype html><html><head><title>Page {number}</title></head><body><nav><ul>{menu}</ul></nav>"
        f"<main><h1>Page {number}</h1>{paragraphs}<table>{table}</table></main></body></html>"
    ).encode()


def serve_site(port: int, pages: int) -> None:
    """The site, until it is ended."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1]
                is_page = path.startswith(b"/p/")
                body = page(int(path[3:]), pages) if is_page else b"none"
                status = b"200 OK" if is_page else b"404 Not Found"
                writer.write(
                    b"HTTP/1.1 " + status + b"\r\nContent-Type: text/html; charset=utf-8\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(body) + body
                )
                await writer.drain()
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", port)
        await server.serve_forever()

    asyncio.run(run())


@dataclass
class Crawl:
    """One crawl: what it took, and memory (bytes) against pages done."""

    pages: int
    seconds: float
    cpu_s: float
    memory: list[tuple[int, int]]

    @property
    def pages_per_s(self) -> float:
        return self.pages / self.seconds

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_s / self.pages


def family(root: int) -> list[int]:
    """A process and all below it."""
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        found.append(pid)
    return found


def cpu_s(pids: list[int]) -> float:
    """User and system time of the processes, with that of their children that have ended."""
    ticks = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_bytes(pids: list[int]) -> int:
    """Private and shared memory of the processes, shared parts by their share."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def crawl(client: httpx.Client, site: str, pages: int, root: int) -> Crawl:
    """Crawls the site from its first page and waits for the end."""
    before_s, begun_s = cpu_s(family(root)), time.monotonic()
    body = {
        "url": f"{site}/p/0",
        "crawlEntireDomain": True,
        "limit": pages,
        "maxDepth": 10,
        "crawlOptions": {"maxConcurrentCrawlers": WIDTH},
        "scrapeOptions": {"extractorFormat": "markdown"},
    }
    answer = client.post("/api/crawl", json=body).raise_for_status().json()
    memory: list[tuple[int, int]] = []
    while True:
        status = client.get(f"/api/crawl/{answer['id']}?limit=1").raise_for_status().json()
        memory.append((status["progress"]["completed"], memory_bytes(family(root))))
        if status["status"] != "scraping":
            break
        time.sleep(0.5)
    seconds = time.monotonic() - begun_s
    done = status["progress"]
    if done != {"total": pages, "completed": pages, "failed": 0, "pending": 0}:
        sys.exit(f"the crawl did not read every page: {status}")
    return Crawl(pages, seconds, cpu_s(family(root)) - before_s, memory)


def growth(run: Crawl) -> tuple[int, int]:
    """Memory after a fifth of the pages and at the end, medians of the samples around."""

    def around(low: float, high: float) -> int:
        samples = sorted(
            size for done, size in run.memory if low * run.pages <= done <= high * run.pages
        )
        return samples[len(samples) // 2] if samples else 0

    return around(0.15, 0.3), around(0.85, 1.0)


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    """The gateway, once it answers."""
    command = [
        sys.executable,
        "-m",
        "fairlead",
        "serve",
        "--port",
        str(port),
        "--data-dir",
        str(folder / "data"),
    ]
    environment = {**os.environ, "FAIRLEAD_ALLOW_PRIVATE_FETCH": "127.0.0.0/8"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    deadline = time.monotonic() + 60
    while b"fairlead ready" not in (folder / "log").read_bytes():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit((folder / "log").read_text())
        time.sleep(0.1)
    return process


def measure(rounds: int, pages: int, long: int) -> tuple[list[Crawl], Crawl]:
    """Short crawls and the long one, on one gateway."""
    site_port, port = free_port(), free_port()
    site = multiprocessing.get_context("spawn").Process(
        target=serve_site, args=(site_port, max(pages, long))
    )
    site.start()
    try:
        with tempfile.TemporaryDirectory(prefix="fairlead-crawl-") as folder:
            gateway = start(Path(folder), port)
            try:
                base = f"http://127.0.0.1:{port}"
                token = (Path(folder) / "data" / "cli-token").read_text().strip()
                with httpx.Client(
                    base_url=base, headers={"x-gateway-cli-token": token}, timeout=60
                ) as admin:
                    calm = {
                        "scrapeRobots": False,
                        "scrapeHostDelayMs": 0,
                        "scrapeHostConcurrency": 32,
                        "scrapeRequestsPerMinute": 0,
                    }
                    admin.patch("/api/settings", json=calm).raise_for_status()
                    key = (
                        admin.post("/api/keys", json={"name": "bench"})
                        .raise_for_status()
                        .json()["key"]
                    )
                with httpx.Client(base_url=base, headers={"X-API-Key": key}, timeout=60) as client:
                    at = f"http://127.0.0.1:{site_port}"
                    crawl(client, at, min(100, pages), gateway.pid)
                    short = [crawl(client, at, pages, gateway.pid) for _ in range(rounds)]
                    return short, crawl(client, at, long, gateway.pid)
            finally:
                gateway.send_signal(signal.SIGTERM)
                gateway.wait(60)
    finally:
        site.terminate()
        site.join(10)


def report(short: list[Crawl], long: Crawl) -> tuple[str, bool]:
    """The result as a page, and whether every goal was met."""
    best = max(short, key=lambda run: run.pages_per_s)
    early, late = growth(long)
    grown = late / early - 1 if early else 0.0
    is_fast, is_flat = best.pages_per_s >= GOAL_PAGES_PER_S, grown <= GOAL_GROWTH
    load = os.getloadavg()[0]
    lines = [
        "# Crawls of a local site",
        "",
        f"- cores: {os.cpu_count()}; system: {platform.system()}, Python {platform.python_version()}; load {load:.1f}",
        f"- pages of {len(page(1, 10)):,} bytes, {WIDTH} at once, as markdown; robots and politeness off",
        "- CPU is that of the whole gateway: relay, control and the processes that read pages",
        "",
        "| crawl | pages/s | CPU ms a page | goal |",
        "| --- | --: | --: | --- |",
    ]
    for count, run in enumerate(short, 1):
        lines.append(
            f"| {run.pages:,} pages, round {count} | {run.pages_per_s:.0f} | {run.cpu_ms:.1f} | |"
        )
    said = "met" if is_fast else "**missed**"
    lines += [
        f"| the best of them | {best.pages_per_s:.0f} | {best.cpu_ms:.1f} | {GOAL_PAGES_PER_S}: {said} |",
        f"| {long.pages:,} pages | {long.pages_per_s:.0f} | {long.cpu_ms:.1f} | |",
        "",
        f"Memory of the long crawl: {early / 2**20:.0f} MB after a fifth of the pages, "
        f"{late / 2**20:.0f} MB at the end, {grown:+.1%} "
        f"(goal: at most {GOAL_GROWTH:+.0%}, {'met' if is_flat else '**missed**'}).",
        "",
    ]
    return "\n".join(lines), is_fast and is_flat


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--long", type=int, default=5000)
    parser.add_argument("--save", help="a name below benches/results")
    chosen = parser.parse_args()
    short, long = measure(chosen.rounds, chosen.pages, chosen.long)
    text, is_met = report(short, long)
    print(text)
    if chosen.save:
        (RESULTS / f"{chosen.save}.md").write_text(text)
    memory: list[Any] = [[done, size] for done, size in long.memory]
    print(json.dumps({"memory": memory[:: max(1, len(memory) // 20)]}), file=sys.stderr)
    sys.exit(0 if is_met else 1)


if __name__ == "__main__":
    main()
