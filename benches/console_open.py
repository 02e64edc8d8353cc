"""A whole gateway at ten million rows: when Chromium first paints a page, how long each page takes while a thousand
requests pass in a second, what ten open consoles cost control, and whether a relayed call costs more beside them.

Used by `console.py`, on its data. The gateway is as shipped, with the stand-in provider; `wrk` sends the requests at an
even pace, and the tabs hold their live streams open as the console's script does. A call's cost is the processor time
of the relay's processes alone, over some ten thousand calls in turns without and with consoles, because a machine that
does other things besides has a pace of its own at every moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benches.load.process import pss_bytes, tree, usage  # noqa: E402
from tests.support.process import free_port  # noqa: E402

FAIRLEAD = str(Path(sys.executable).with_name("fairlead"))
CONSOLES = 10
LIVE_PAGES = ("/dashboard", "/dashboard/logs", "/dashboard/health", "/dashboard/limits")
PAINTED = ("/dashboard", "/dashboard/usage", "/dashboard/logs")
PAINT_ROUNDS = 5
# Turns without and with consoles, one after another, and how long each is.
TURNS = 6
TURN_S = 6
# So many connections that each wait so long between two requests make the pace.
AT_ONCE = 24
PAUSE_MS = 22
SETTLE_S = 3.0
PAGE_ROUNDS = 5
READY_S = 60.0
PAINT_WANTED_MS = 300.0
# What ten consoles may add to control's memory, and to the processor time of a relayed call: less than what calls
# differ by from one turn to the next.
MEMORY_WANTED_MB = 60.0
CALL_WANTED = 0.03
_CALL = {"model": "demo/echo", "messages": [{"role": "user", "content": "Hello"}]}
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@dataclass(frozen=True, slots=True)
class Turn:
    """Some seconds of calls: requests a second; microseconds of the relay's CPU for each; their median and 99th
    percentile in milliseconds; control's CPU, milliseconds a second.
    """

    rate: float
    call_us: float
    p50_ms: float
    p99_ms: float
    control_ms: float


@dataclass(frozen=True, slots=True)
class UnderLoad:
    """A page while calls pass: milliseconds of each round, and of control's CPU."""

    rounds: list[float]
    cpu_ms: float


@dataclass(frozen=True, slots=True)
class Opened:
    """Milliseconds to the first paint, least and median of each page; each page under load; megabytes of control
    without and with ten consoles; the turns without and with them, in pairs.
    """

    paints: dict[str, tuple[float, float]]
    pages: dict[str, UnderLoad]
    rate: float
    memory_mb: tuple[float, float]
    turns: list[tuple[Turn, Turn]]

    @property
    def added_mb(self) -> float:
        """What ten consoles take."""
        return self.memory_mb[1] - self.memory_mb[0]

    @property
    def added_shares(self) -> list[float]:
        """By how much more CPU a call costs beside ten consoles, of each pair of turns."""
        return [beside.call_us / alone.call_us - 1 for alone, beside in self.turns]

    @property
    def is_call_met(self) -> bool:
        """Whether a call costs what it costs without consoles."""
        return statistics.median(self.added_shares) <= CALL_WANTED

    @property
    def is_met(self) -> bool:
        """Whether every bar is kept, those of pages apart."""
        painted = all(least <= PAINT_WANTED_MS for least, _ in self.paints.values())
        return painted and self.added_mb <= MEMORY_WANTED_MB and self.is_call_met

    def report(self) -> str:
        """The part of the page behind the table of pages."""
        lines = [
            "",
            f"| first paint in Chromium | least ms | median ms | at most {PAINT_WANTED_MS:.0f} |",
            "| --- | --: | --: | --- |",
        ]
        lines += [
            f"| `{path}` | {least:.0f} | {median:.0f} | {_met(least <= PAINT_WANTED_MS)} |"
            for path, (least, median) in self.paints.items()
        ]
        shares = self.added_shares
        lines += [
            "",
            f"Calls in {len(self.turns)} pairs of turns of {TURN_S} s: median, and least to most in brackets.",
            "",
            f"| | no console | {CONSOLES} consoles | bar |",
            "| --- | --: | --: | --- |",
            (
                f"| control's memory, PSS in MB | {self.memory_mb[0]:.0f} | {self.memory_mb[1]:.0f} "
                f"| at most {MEMORY_WANTED_MB:.0f} more: {_met(self.added_mb <= MEMORY_WANTED_MB)} |"
            ),
            self._row("requests a second", "rate", 0) + " |",
            self._row("a relayed call, CPU us of the relay", "call_us", 0)
            + f" a pair differs by {statistics.median(shares):+.1%} ({min(shares):+.1%} to {max(shares):+.1%}), "
            f"at most {CALL_WANTED:+.0%}: {_met(self.is_call_met)} |",
            self._row("a relayed call, median ms", "p50_ms", 2) + " |",
            self._row("a relayed call, p99 ms", "p99_ms", 2) + " |",
            self._row("control's CPU, ms a second", "control_ms", 0) + " |",
        ]
        return "\n".join(lines) + "\n"

    def _row(self, title: str, name: str, digits: int) -> str:
        cells = []
        for side in (0, 1):
            values = [getattr(pair[side], name) for pair in self.turns]
            middle, least, most = statistics.median(values), min(values), max(values)
            cells.append(f"{middle:,.{digits}f} ({least:,.{digits}f} to {most:,.{digits}f})")
        return f"| {title} | {cells[0]} | {cells[1]} |"


def _met(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


@dataclass(frozen=True, slots=True)
class _Running:
    url: str
    pid: int

    @property
    def control(self) -> int:
        """The pid of the control plane."""
        for pid in tree(self.pid):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if b"control" in words:
                return pid
        raise SystemExit("the gateway has no control plane")

    @property
    def relays(self) -> list[int]:
        """The pids of the relay's processes."""
        found = [
            pid
            for pid in tree(self.pid)
            if b"relay" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        ]
        if not found:
            raise SystemExit("the gateway has no relay")
        # Those that a relay has started are its own.
        return sorted({pid for root in found for pid in tree(root)})


def measure_open(data_dir: Path, password: str, pages: list[str]) -> Opened:
    """Starts a gateway on the data and measures; `pages` are asked for under load."""
    port = free_port()
    command = [FAIRLEAD, "serve", "--data-dir", str(data_dir), "--port", str(port), "--demo"]
    log = data_dir.parent / "gateway.log"
    with log.open("wb") as out:
        environment = {**os.environ, "INITIAL_PASSWORD": password}
        gateway = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    running = _Running(f"http://127.0.0.1:{port}", gateway.pid)
    try:
        until_s = time.monotonic() + READY_S
        while b"fairlead ready" not in log.read_bytes():
            if gateway.poll() is not None or time.monotonic() > until_s:
                raise SystemExit(f"the gateway does not start: {log.read_text()[-800:]}")
            time.sleep(0.1)
        return asyncio.run(_measure(running, password, pages))
    finally:
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(READY_S)


async def _measure(running: _Running, password: str, pages: list[str]) -> Opened:
    async with httpx.AsyncClient(base_url=running.url, timeout=60) as client:
        signed_in = await client.post("/api/auth/login", json={"password": password})
        if signed_in.status_code != 200:
            raise SystemExit(f"no session: {signed_in.status_code} {signed_in.text[:200]}")
        made = await client.post(
            "/api/keys", json={"name": "of the bench"}, headers={"origin": running.url}
        )
        key = made.json()["key"]
        for path in PAINTED:
            await client.get(path)
        paints = await asyncio.to_thread(_paint, running.url, client.cookies["auth_token"])
        await _turn(running, key)
        shown, rate = await _pages_under_load(running, client, key, pages)
        turns, memory_mb = [], [0.0, 0.0]
        for _ in range(TURNS):
            alone = await _turn(running, key)
            memory_mb[0] = max(memory_mb[0], pss_bytes(running.control) / 1e6)
            async with _consoles(client):
                beside = await _turn(running, key)
                memory_mb[1] = max(memory_mb[1], pss_bytes(running.control) / 1e6)
            turns.append((alone, beside))
    return Opened(paints, shown, rate, (memory_mb[0], memory_mb[1]), turns)


@contextlib.asynccontextmanager
async def _consoles(client: httpx.AsyncClient) -> AsyncIterator[None]:
    """Ten tabs, open until the end."""
    tabs = [asyncio.create_task(_open_tab(client, at)) for at in range(CONSOLES)]
    try:
        await asyncio.sleep(SETTLE_S)
        yield
        for tab in tabs:
            if tab.done():
                raise SystemExit(f"a console was shut: {tab.exception()}")
    finally:
        for tab in tabs:
            tab.cancel()
        await asyncio.gather(*tabs, return_exceptions=True)
        await asyncio.sleep(SETTLE_S)


async def _open_tab(client: httpx.AsyncClient, at: int) -> None:
    """The live stream of a tab, opened anew whenever it ends, as browsers do; runs until it is cancelled."""
    query = urlencode({"at": LIVE_PAGES[at % len(LIVE_PAGES)]})
    while True:
        async with client.stream("GET", f"/dashboard/live?{query}") as answer:
            if answer.status_code != 200:
                raise SystemExit(f"no live stream: {answer.status_code}")
            async for _ in answer.aiter_bytes():
                pass


async def _turn(running: _Running, key: str) -> Turn:
    """Some seconds of calls."""
    control, relays = running.control, running.relays
    before, began_s = usage(running.pid), time.monotonic()
    async with _load(running.url, key, TURN_S) as finish:
        told = await finish()
    spent = usage(running.pid).since(before)
    took_s = time.monotonic() - began_s
    return Turn(
        told["requests"] / (told["duration_us"] / 1e6),
        sum(spent.get(pid, 0) for pid in relays) / told["requests"],
        told["p50_us"] / 1000,
        told["p99_us"] / 1000,
        spent.get(control, 0) / 1000 / took_s,
    )


async def _pages_under_load(
    running: _Running, client: httpx.AsyncClient, key: str, pages: list[str]
) -> tuple[dict[str, UnderLoad], float]:
    """Each page while calls pass, and how many of those there were in a second."""
    control = running.control
    shown: dict[str, UnderLoad] = {}
    async with _load(running.url, key, 600) as finish:
        await asyncio.sleep(SETTLE_S)
        # What control does for the calls alone is no part of a page.
        before, began_s = usage(running.pid).cpu_us[control], time.monotonic()
        await asyncio.sleep(TURN_S)
        of_calls = (usage(running.pid).cpu_us[control] - before) / (time.monotonic() - began_s)
        for path in pages:
            await client.get(path)
            before, began_s = usage(running.pid).cpu_us[control], time.monotonic()
            rounds = []
            for _ in range(PAGE_ROUNDS):
                at_s = time.perf_counter()
                answer = await client.get(path)
                rounds.append((time.perf_counter() - at_s) * 1000)
                if answer.status_code != 200:
                    raise SystemExit(f"{path}: {answer.status_code} {answer.text[:300]}")
            spent_us = usage(running.pid).cpu_us[control] - before
            own_us = max(spent_us - of_calls * (time.monotonic() - began_s), 0.0)
            shown[path] = UnderLoad(rounds, own_us / 1000 / PAGE_ROUNDS)
        told = await finish()
    return shown, told["requests"] / (told["duration_us"] / 1e6)


@contextlib.asynccontextmanager
async def _load(
    url: str, key: str, seconds: int
) -> AsyncIterator[Callable[[], Awaitable[dict[str, Any]]]]:
    """Calls at an even pace for so many seconds; what is yielded ends them, and gives their figures."""
    environment = {
        **os.environ,
        "LOAD_HEADERS": f"authorization: Bearer {key}",
        "LOAD_BODY": json.dumps(_CALL),
        "LOAD_PAUSE_MS": str(PAUSE_MS),
    }
    # fmt: off
    command = ["wrk", "-t", "1", "-c", str(AT_ONCE), "-d", f"{seconds}s", "--latency", "-s",
               str(ROOT / "benches" / "load" / "load.lua"), f"{url}/v1/chat/completions"]
    # fmt: on
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.PIPE
    )

    async def finish() -> dict[str, Any]:
        if seconds > TURN_S:
            process.send_signal(signal.SIGINT)
        output, _ = await asyncio.wait_for(process.communicate(), seconds + READY_S)
        told: dict[str, Any] = json.loads(output.decode().rstrip().rpartition("\n")[2])
        if told["refused"] or told["broken"]:
            raise SystemExit(f"calls failed: {told}")
        return told

    try:
        yield finish
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _paint(url: str, session: str) -> dict[str, tuple[float, float]]:
    """When each page is first painted, from the click on, least and median; empty without Chromium."""
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if chromium is None:
        return {}
    from playwright.sync_api import sync_playwright

    painted: dict[str, tuple[float, float]] = {}
    with sync_playwright() as playwright:
        browser: Any = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(base_url=url)
        context.add_cookies([{"name": "auth_token", "value": session, "url": url}])
        tab = context.new_page()
        for path in PAINTED:
            times = []
            for _ in range(PAINT_ROUNDS + 1):
                tab.goto(path, wait_until="load")
                # The pages' policy lets no script be evaluated that would wait there.
                until_s = time.monotonic() + READY_S
                while (paint_ms := tab.evaluate(_PAINT)) is None and time.monotonic() < until_s:
                    tab.wait_for_timeout(5)
                times.append(float(paint_ms))
            painted[path] = (min(times[1:]), statistics.median(times[1:]))
        browser.close()
    return painted
