"""Measures fairlead beside nginx and other gateways: one upstream, one machine, one run.

    python benches/load/run.py [--quick] [--rounds N] [--seconds N] [--peers all|none|NAME,...]
                               [--before FAIRLEAD]

Each round asks every target in turn, so that a machine that slows down slows them all. Other
gateways come from the start scripts in $PEERS_DIR; one that does not install is named and left out. `--before` adds
the command of another checkout as a target, so that a change is compared with what it changes.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import process
from bars import TWO_THREADS, bars
from measure import SCENARIOS, command, measure, wrk_version
from others import NOT_COMPARED, ROOT, peer_names, start_nginx, start_peer, start_upstream
from ours import recorded, start_fairlead
from outcome import Outcome
from report import keep, page, write_readme
from streams import OpenStreams, hold_open
from target import Target, Unavailable

CHUNKS = 100
OPEN_STREAMS = {"granian": 2000, "native": 10_000}
DESCRIPTORS = 65_536
# Of a gateway's: what is no stream, and the short requests among the streams.
OTHER_DESCRIPTORS = 500
# What `--before` names.
BEFORE = "fairlead-before"
WARM_UP_S = 2
WARM_UP_REQUESTS = 50


def main() -> int:
    options = arguments()
    descriptors = raise_descriptors()
    seconds, rounds = (2, 1) if options.quick else (options.seconds, options.rounds)
    found = Outcome(
        date=dt.datetime.now(dt.UTC).date().isoformat(),
        machine=machine(),
        conditions={
            "rounds": f"{rounds} of {seconds} s for each scenario, targets in turn within a round",
            "load": f"{wrk_version()}, one thread; streams of {CHUNKS} chunks, each written alone",
            "fairlead": f"REQUIRE_API_KEY=true, one key, one worker, usage recorded, --front {options.front}",
        },
        front=options.front,
    )
    targets: list[Target] = []
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # nginx gives up root for its worker, which must still get in
        try:
            start_all(found, targets, folder, options.peers, options.before)
            found.conditions["command"] = shown(targets[0], seconds)
            answered = load(found, targets, rounds, seconds)
            if ours := next((target for target in targets if target.name == "fairlead"), None):
                found.usage_records = (recorded(ours, folder, answered), answered)
        finally:
            for target in reversed(targets[1:]):
                target.stop()
        try:
            if not options.no_streams:
                most = min(OPEN_STREAMS[options.front], (descriptors - OTHER_DESCRIPTORS) // 2)
                count = most // (10 if options.quick else 1)
                found.open_streams = measure_streams(found, targets[0], folder, count)
        finally:
            targets[0].stop()
    print(page(found))
    if not options.quick or options.keep:
        kept = keep(found, ROOT / "benches" / "results")
        print(f"kept as {kept.relative_to(ROOT)}")
        if options.readme:
            write_readme(found, ROOT / "README.md", kept)
    return 1 if any(bar.met is False for bar in bars(found)) and options.strict else 0


def raise_descriptors() -> int:
    """As many open files as may be, for everything that is started here: a stream holds two in a gateway. How many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = max(hard, DESCRIPTORS)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument(
        "--quick", action="store_true", help="one short round, nothing kept: a trial"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8, help="per target and scenario in a round")
    parser.add_argument("--peers", default="all", help="all, none, or names with commas between")
    parser.add_argument(
        "--front", choices=("granian", "native"), default="granian", help="who has our socket"
    )
    parser.add_argument(
        "--before", type=Path, help="`.venv/bin/fairlead` of another checkout, built alike"
    )
    parser.add_argument("--no-streams", action="store_true", help="leave out the open streams")
    parser.add_argument("--readme", action="store_true", help="put the table into README.md")
    parser.add_argument("--keep", action="store_true", help="keep the result of a quick run too")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar is missed")
    return parser.parse_args()


def start_all(
    found: Outcome, targets: list[Target], folder: Path, peers: str, before: Path | None
) -> None:
    """The upstream first; then everything that starts here, each checked with a real answer."""
    upstream = start_upstream(folder, CHUNKS)
    targets.append(upstream)
    base = upstream.url.removesuffix("/v1/chat/completions")
    scripts = Path(os.environ.get("PEERS_DIR", ROOT.parent / "shared" / "peers"))
    names = peer_names(scripts) if peers == "all" else [] if peers == "none" else peers.split(",")
    if peers == "all":
        found.left_out |= {n: why for n, why in NOT_COMPARED.items() if n not in {"mock", "nginx"}}
        if not names:
            found.left_out["other gateways"] = "no start scripts in $PEERS_DIR"
    starts: dict[str, Callable[[], Target]] = {
        "nginx": partial(start_nginx, base, folder),
        "fairlead": partial(start_fairlead, base, folder, front=found.front),
        **{name: partial(start_peer, name, scripts, base, folder) for name in names},
    }
    if found.front == "native":
        starts[TWO_THREADS] = partial(
            start_fairlead, base, folder, TWO_THREADS, front="native", threads=2
        )
    if before:
        starts[BEFORE] = partial(
            start_fairlead, base, folder, BEFORE, front=found.front, command=before.absolute()
        )
    for name, start in starts.items():
        print(f"starting {name}", file=sys.stderr)
        try:
            target = start()
            targets.append(target)
            wait_and_verify(target)
        except Unavailable as why:
            found.left_out[name] = str(why)
            if targets[-1].name == name:
                targets.pop().stop()
    found.versions = {target.name: target.version for target in targets}


def wait_and_verify(target: Target, deadline_s: float = 10) -> None:
    """Once the target answers at all, it must answer right."""
    end = time.monotonic() + deadline_s
    while True:
        try:
            return target.verify()
        except Unavailable:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def load(found: Outcome, targets: list[Target], rounds: int, seconds: int) -> int:
    """Every scenario at every target, round by round; how many requests fairlead answered."""
    answered = 0
    for target in targets:
        answered += ours(target, measure(target, SCENARIOS[1], WARM_UP_S).requests)
    for number in range(rounds):
        for scenario in SCENARIOS:
            for target in targets:
                sample = measure(target, scenario, seconds)
                found.samples.setdefault(target.name, {}).setdefault(scenario.name, []).append(
                    sample
                )
                answered += ours(target, sample.requests)
                print(
                    f"round {number + 1} {scenario.name:10} {target.name:18} "
                    f"{sample.per_second:10,.0f}/s p50 {sample.p50_us} us p99 {sample.p99_us} us",
                    file=sys.stderr,
                )
    found.pss_bytes = {target.name: process.pss_bytes(target.pid) for target in targets}
    return answered


def ours(target: Target, requests: int) -> int:
    return requests if target.name == "fairlead" else 0


def measure_streams(
    found: Outcome, upstream: Target, folder: Path, count: int
) -> OpenStreams | None:
    """On a fresh instance: memory freed by the load before would hide what streams cost."""
    base = upstream.url.removesuffix("/v1/chat/completions")
    try:
        # Room for the short requests that are asked while the streams are open.
        room = {"FAIRLEAD_MAX_IN_FLIGHT": str(count + 1000)}
        target = start_fairlead(base, folder, "fairlead-streams", found.front, **room)
    except Unavailable as why:
        found.left_out["open streams"] = str(why)
        return None
    try:
        before = process.usage(target.pid)
        for _ in range(WARM_UP_REQUESTS):
            target.verify()
        spent = process.usage(target.pid).since(before)
        worker = max(spent, key=lambda pid: spent[pid])
        return hold_open(target, worker, count)
    finally:
        target.stop()


def machine() -> dict[str, str]:
    """What it ran on, without naming it."""
    info = Path("/proc/cpuinfo").read_text("utf-8")
    found = re.search(r"^model name\s*:\s*(.+)$", info, re.MULTILINE)
    processor = found.group(1).strip() if found else platform.machine()
    cores = str(len(os.sched_getaffinity(0)))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kind = re.sub(r"[^a-z0-9]+", "-", f"{processor}-{cores}-cores".lower()).strip("-")
    return {
        "kind": kind,
        "processor": processor,
        "cores": cores,
        "memory": f"{memory:.0f} GiB",
        "system": f"{platform.system()}, Python {platform.python_version()}",
    }


def shown(target: Target, seconds: int) -> str:
    """The command, without this run's paths and ports."""
    words = command(target, SCENARIOS[1], seconds)
    return " ".join([*words[:-2], "load.lua", "URL"])


if __name__ == "__main__":
    sys.exit(main())
