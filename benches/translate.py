"""What translating costs in the relay: processor time of a relay worker for streams of a hundred pieces, between any
two dialects beside those that pass.

    python benches/translate.py [--streams 100] [--rounds 3] [--save NAME]

Starts a gateway and a scripted provider for each dialect on this machine, lets callers of every dialect read the same
streams, and divides the worker's processor time (`/proc/<pid>/stat`) by that of the caller who speaks the provider's
own dialect. Of several rounds the least counts, so that a busy machine says little; the wanted ratio is 1.6 at most.
What reading and translating a request of 100 KB costs is told by `cargo run --release --example translate_speed -p
fairlead-dialect`, which this script runs first where cargo is there: wanted are 400 microseconds at most.
"""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.integration.test_dialect_faults import ASKS, UPSTREAMS  # noqa: E402
from tests.support.processes import Gateway, start_gateway  # noqa: E402
from tests.support.upstream import (  # noqa: E402
    LAST_CHUNK,
    SSE_HEAD,
    Step,
    Upstream,
    Wait,
    chunk,
)

PIECES = 100
AT_ONCE = 8
WANTED_RATIO = 1.6
# Between two pieces, so that each arrives by itself, as from a model.
GAP_S = 0.002
OWN = {
    "openai": "chat",
    "openai-responses": "responses",
    "anthropic": "messages",
    "gemini": "gemini",
}


def stream_of(dialect: str) -> list[Step]:
    """A stream of `PIECES` pieces of text."""
    said, end = UPSTREAMS[dialect]()
    *before, piece = said
    events = [*before, *([piece] * (PIECES - 1)), *end]
    steps: list[Step] = [SSE_HEAD]
    for event in events:
        steps += [chunk(event), Wait(GAP_S)]
    return [*steps, LAST_CHUNK]


def cpu_ms(gateway: Gateway, path: str, body: dict[str, Any], streams: int) -> float:
    """Of the relay worker, for one stream."""

    def read(_: int) -> int:
        with gateway.caller.stream("POST", path, json=body) as answer:
            assert answer.status_code == 200
            return sum(len(piece) for piece in answer.iter_raw())

    worker = gateway.relay
    began_s = worker.cpu_s
    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert all(pool.map(read, range(streams)))
    return (worker.cpu_s - began_s) * 1000 / streams


def measure(streams: int, rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds of processor for one stream, by provider and caller."""
    told: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder, start_gateway(Path(folder)) as gateway:
        for dialect in UPSTREAMS:
            with Upstream() as upstream:
                upstream.script(stream_of(dialect))
                node = gateway.add_node(f"bench-{dialect}", upstream.url, dialect=dialect)
                gateway.add_connection(node["id"], f"sk-bench-{dialect}")
                best = dict.fromkeys(ASKS, float("inf"))
                for _ in range(rounds):
                    for caller, ask in ASKS.items():
                        path, body = ask(f"bench-{dialect}/m")
                        best[caller] = min(best[caller], cpu_ms(gateway, path, body, streams))
                told[dialect] = best
    return told


def request_lines() -> list[str]:
    """What the core alone needs, where cargo is there to build it."""
    cargo = shutil.which("cargo")
    if cargo is None:
        return []
    command = ["run", "--quiet", "--release", "--locked", "-p", "fairlead-dialect"]
    command += ["--example", "translate_speed"]
    done = subprocess.run([cargo, *command], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", help="writes benches/results/NAME-translate.json")
    parser.add_argument("--without-core", action="store_true")
    asked = parser.parse_args()
    lines = [] if asked.without_core else request_lines()
    print("\n".join(lines))
    told = measure(asked.streams, asked.rounds)
    ratios: dict[str, dict[str, float]] = {}
    print(
        f"stream of {PIECES} pieces through the relay: milliseconds of processor, ratio to passing"
    )
    for dialect, cells in told.items():
        passing = cells[OWN[dialect]]
        ratios[dialect] = {caller: cell / passing for caller, cell in cells.items()}
        for caller, cell in cells.items():
            print(f"{dialect} to {caller}: {cell:.2f} ({ratios[dialect][caller]:.2f} x)")
    worst = max(ratio for cells in ratios.values() for ratio in cells.values())
    print(f"worst ratio {worst:.2f}, wanted at most {WANTED_RATIO}")
    if asked.save:
        document = {
            "machine": platform.processor() or platform.machine(),
            "pieces": PIECES,
            "cpu_ms": told,
            "ratios": ratios,
            "core": lines,
        }
        path = ROOT / "benches" / "results" / f"{asked.save}-translate.json"
        path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
