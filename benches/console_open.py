"""Consoles that are open: when Chromium first paints a page, what ten tabs cost control, and what a relayed call costs
beside them.

Used by `console.py`, on its data. The gateway is as shipped, with the stand-in provider; the tabs hold their live
streams open as the console's script does. A call's cost is the processor time of the whole gateway but control,
over some thousand calls, since the clock says little on a machine of two cores that plays every part.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import statistics
import subprocess
import sys
import time
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
CALLS = 3_000
AT_ONCE = 8
READY_S = 60.0
PAINT_WANTED_MS = 300.0
# What ten consoles may add to control's memory, and to the time of a relayed call.
MEMORY_WANTED_MB = 60.0
CALL_WANTED = 0.1
_CALL = {"model": "demo/echo", "messages": [{"role": "user", "content": "Hello"}]}
_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@dataclass(frozen=True, slots=True)
class Opened:
    """Milliseconds to the first paint, least and median of each page; megabytes of control without and with ten
    consoles; microseconds of CPU of a relayed call, and milliseconds of control's CPU a second, likewise.
    """

    paints: dict[str, tuple[float, float]]
    memory_mb: tuple[float, float]
    call_us: tuple[float, float]
    call_p50_ms: tuple[float, float]
    control_ms: tuple[float, float]

    @property
    def added_mb(self) -> float:
        """What ten consoles take."""
        return self.memory_mb[1] - self.memory_mb[0]

    @property
    def added_share(self) -> float:
        """By how much slower a call is beside ten consoles. What the frames of their streams cost the relay is in
        its processor time, which is told without a bar.
        """
        return self.call_p50_ms[1] / self.call_p50_ms[0] - 1

    @property
    def is_met(self) -> bool:
        """Whether every bar is kept."""
        painted = all(least <= PAINT_WANTED_MS for least, _ in self.paints.values())
        return painted and self.added_mb <= MEMORY_WANTED_MB and self.added_share <= CALL_WANTED

    def report(self) -> str:
        """The part of the page."""
        lines = [
            "",
            f"| first paint in Chromium | least ms | median ms | at most {PAINT_WANTED_MS:.0f} |",
            "| --- | --: | --: | --- |",
        ]
        lines += [
            f"| `{path}` | {least:.0f} | {median:.0f} | {_met(least <= PAINT_WANTED_MS)} |"
            for path, (least, median) in self.paints.items()
        ]
        lines += [
            "",
            f"| | no console | {CONSOLES} consoles | bar |",
            "| --- | --: | --: | --- |",
            (
                f"| control's memory, PSS in MB | {self.memory_mb[0]:.0f} | {self.memory_mb[1]:.0f} "
                f"| at most {MEMORY_WANTED_MB:.0f} more: {_met(self.added_mb <= MEMORY_WANTED_MB)} |"
            ),
            (
                f"| a relayed call, CPU us without control | {self.call_us[0]:.0f} "
                f"| {self.call_us[1]:.0f} | |"
            ),
            (
                f"| a relayed call, median ms | {self.call_p50_ms[0]:.2f} | {self.call_p50_ms[1]:.2f} "
                f"| at most {CALL_WANTED:.0%} more: {_met(self.added_share <= CALL_WANTED)} |"
            ),
            (
                f"| control's CPU, ms a second, beside the calls | {self.control_ms[0]:.0f} "
                f"| {self.control_ms[1]:.0f} | |"
            ),
        ]
        return "\n".join(lines) + "\n"


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


def measure_open(data_dir: Path, password: str) -> Opened:
    """Starts a gateway on the data and measures."""
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
        return asyncio.run(_measure(running, password))
    finally:
        gateway.send_signal(signal.SIGTERM)
        gateway.wait(READY_S)


async def _measure(running: _Running, password: str) -> Opened:
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
        await _call_many(running, key, CALLS // 4)
        alone = await _beside(running, key)
        memory_mb = pss_bytes(running.control) / 1e6
        tabs = [asyncio.create_task(_open_tab(client, at)) for at in range(CONSOLES)]
        try:
            await asyncio.sleep(5)
            together = await _beside(running, key)
            memory_open_mb = pss_bytes(running.control) / 1e6
            for tab in tabs:
                if tab.done():
                    raise SystemExit(f"a console was shut: {tab.exception()}")
        finally:
            for tab in tabs:
                tab.cancel()
            await asyncio.gather(*tabs, return_exceptions=True)
    call, p50, control = zip(alone, together, strict=True)
    return Opened(paints, (memory_mb, memory_open_mb), call, p50, control)


async def _open_tab(client: httpx.AsyncClient, at: int) -> None:
    """The live stream of a tab, opened anew whenever it ends, as browsers do; runs until it is cancelled."""
    query = urlencode({"at": LIVE_PAGES[at % len(LIVE_PAGES)]})
    while True:
        async with client.stream("GET", f"/dashboard/live?{query}") as answer:
            if answer.status_code != 200:
                raise SystemExit(f"no live stream: {answer.status_code}")
            async for _ in answer.aiter_bytes():
                pass


async def _beside(running: _Running, key: str) -> tuple[float, float, float]:
    """CPU microseconds of a call, its median milliseconds, and control's CPU milliseconds a second."""
    control = running.control
    before, began_s = usage(running.pid), time.monotonic()
    times = await _call_many(running, key, CALLS)
    spent = usage(running.pid).since(before)
    of_control = spent.pop(control, 0)
    took_s = time.monotonic() - began_s
    return sum(spent.values()) / CALLS, statistics.median(times), of_control / 1000 / took_s


async def _call_many(running: _Running, key: str, many: int) -> list[float]:
    """Milliseconds of each call, a few at once."""
    times: list[float] = []
    headers = {"authorization": f"Bearer {key}"}

    async def work(client: httpx.AsyncClient) -> None:
        for _ in range(many // AT_ONCE):
            began_s = time.perf_counter()
            answer = await client.post("/v1/chat/completions", json=_CALL, headers=headers)
            times.append((time.perf_counter() - began_s) * 1000)
            if answer.status_code != 200:
                raise SystemExit(f"a call failed: {answer.status_code} {answer.text[:200]}")

    async with httpx.AsyncClient(base_url=running.url, timeout=60) as client:
        await asyncio.gather(*(work(client) for _ in range(AT_ONCE)))
    return times


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
