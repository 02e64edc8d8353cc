"""One measurement: wrk against one target, and what the target spent on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import process
from target import Target, Unavailable

SCRIPT = Path(__file__).resolve().parent / "load.lua"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What wrk asks for: `connections` at a time, each with one request in flight."""

    name: str
    connections: int
    stream: bool


SCENARIOS = (
    Scenario("unary-c1", 1, stream=False),
    Scenario("unary-c32", 32, stream=False),
    Scenario("stream-c32", 32, stream=True),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One round of one scenario at one target."""

    requests: int
    per_second: float
    p50_us: int
    p99_us: int
    bytes_per_request: float
    cpu_us_per_request: float
    busiest_cpu_us_per_request: float
    """Of that, the process that worked most: of fairlead the relay, without control."""
    rss_bytes: int
    """Resident memory of the process that worked most, right after the load."""
    refused: int
    """Answers with a status of 400 or more."""
    broken: int
    """Connections refused, reset or timed out."""


def wrk_version() -> str:
    if shutil.which("wrk") is None:
        raise Unavailable("wrk is not installed (Debian's package `wrk`)")
    told = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False)
    return told.stdout.split("[")[0].strip()


def command(target: Target, scenario: Scenario, seconds: int) -> list[str]:
    connections = str(scenario.connections)
    duration, script = f"{seconds}s", str(SCRIPT)
    return [
        "wrk",
        "-t1",
        "-c",
        connections,
        "-d",
        duration,
        "--timeout",
        "20s",
        "-s",
        script,
        target.url,
    ]


def run_wrk(target: Target, scenario: Scenario, seconds: int) -> dict[str, int]:
    done = subprocess.run(
        command(target, scenario, seconds),
        env={
            **os.environ,
            "LOAD_HEADERS": "\n".join(f"{name}: {value}" for name, value in target.headers.items()),
            "LOAD_BODY": target.body(stream=scenario.stream),
        },
        capture_output=True,
        text=True,
        check=True,
        timeout=seconds + 60,
    )
    told: dict[str, int] = json.loads(done.stdout.strip().splitlines()[-1])
    return told


def measure(target: Target, scenario: Scenario, seconds: int) -> Sample:
    before = process.usage(target.pid)
    told = run_wrk(target, scenario, seconds)
    spent = process.usage(target.pid).since(before)
    requests = max(told["requests"], 1)
    busiest = max(spent, key=lambda pid: spent[pid], default=target.pid)
    return Sample(
        requests=told["requests"],
        per_second=told["requests"] / (told["duration_us"] / 1e6),
        p50_us=told["p50_us"],
        p99_us=told["p99_us"],
        bytes_per_request=told["bytes"] / requests,
        cpu_us_per_request=sum(spent.values()) / requests,
        busiest_cpu_us_per_request=spent.get(busiest, 0) / requests,
        rss_bytes=process.rss_bytes(busiest),
        refused=told["refused"],
        broken=told["broken"],
    )
