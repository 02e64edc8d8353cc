"""What a gateway costs that nobody asks anything: memory, processor, and the time until it is ready.

    python benches/idle.py [--front granian|native] [--rounds 3] [--seconds 60] [--save NAME]

Starts a gateway on a new data directory in each round. Start is the time until `fairlead ready` is printed, as wall
clock and as processor time of all its processes (user and system): on a machine that does other work only the second
says something. Memory is the sum of PSS (`/proc/<pid>/smaps_rollup`) of all processes, `SETTLE_S` after the start;
idle is their processor time in the seconds after that. `--help` is timed for `fairlead` and for `fairlead serve`. Of
several rounds the median counts. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benches.load.process import pss_bytes, stat, tree, usage  # noqa: E402
from tests.support.process import free_port  # noqa: E402

FAIRLEAD = str(Path(sys.executable).with_name("fairlead"))
SETTLE_S = 5.0


@dataclass(frozen=True, slots=True)
class Figures:
    """One round, in the units of the names."""

    pss_mb: float
    ready_s: float
    ready_cpu_s: float
    idle_percent: float
    help_s: float
    help_cpu_s: float


GOALS = Figures(
    pss_mb=140, ready_s=2.0, ready_cpu_s=2.0, idle_percent=0.3, help_s=0.3, help_cpu_s=0.3
)


def measure(front: str, seconds: float) -> tuple[Figures, list[str]]:
    """A round, and a line for each process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [FAIRLEAD, "serve", "--data-dir", f"{folder}/data", "--front", front]
        started_s = time.monotonic()
        gateway = subprocess.Popen(
            [*command, "--port", str(free_port())], stdout=subprocess.PIPE, text=True
        )
        try:
            for line in gateway.stdout or ():
                if line.startswith("fairlead ready"):
                    break
            ready_s = time.monotonic() - started_s
            ready_cpu_s = spent_s(gateway.pid)
            time.sleep(SETTLE_S)
            lines = [describe(pid) for pid in tree(gateway.pid)]
            memory_mb = pss_bytes(gateway.pid) / 1e6
            before = usage(gateway.pid)
            time.sleep(seconds)
            idle_us = sum(usage(gateway.pid).since(before).values())
        finally:
            gateway.send_signal(signal.SIGTERM)
            gateway.wait(30)
    help_s, help_cpu_s = time_help()
    idle_percent = idle_us / 1e6 / seconds * 100
    return Figures(memory_mb, ready_s, ready_cpu_s, idle_percent, help_s, help_cpu_s), lines


def spent_s(root: int) -> float:
    """Processor time of a tree of processes, with those that have ended meanwhile."""
    ticks = sum(int(each) for pid in tree(root) if (found := stat(pid)) for each in found[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def describe(pid: int) -> str:
    """`relay 34.1 MB`, by the words of its command line."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    name = words[words.index("fairlead.serve") + 1] if "fairlead.serve" in words else "supervisor"
    memory_kb = int(
        next(
            line.split()[1]
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
            if line.startswith("Pss:")
        )
    )
    return f"  {name} {memory_kb * 1024 / 1e6:.1f} MB"


def time_help() -> tuple[float, float]:
    """The slower of two `--help`, as wall clock and as processor time."""
    found = []
    for command in ([FAIRLEAD, "--help"], [FAIRLEAD, "serve", "--help"]):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started_s = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found.append((time.monotonic() - started_s, cpu_s))
    return max(each[0] for each in found), max(each[1] for each in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--front", choices=("granian", "native"), default="granian")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--save", help="writes benches/results/NAME-idle.json")
    asked = parser.parse_args()
    rounds = []
    for _ in range(asked.rounds):
        figures, lines = measure(asked.front, asked.seconds)
        rounds.append(figures)
    print("\n".join(lines))
    is_met = True
    for each in fields(Figures):
        value = statistics.median(getattr(figures, each.name) for figures in rounds)
        goal = getattr(GOALS, each.name)
        # Wall clock is shown; on a machine that is shared only processor time is judged.
        is_judged = each.name not in ("ready_s", "help_s")
        is_met &= value <= goal or not is_judged
        print(
            f"{each.name} {value:.2f}, wanted at most {goal:g}{'' if is_judged else ' (idle machine)'}"
        )
    if asked.save:
        document = {
            "machine": platform.processor() or platform.machine(),
            "front": asked.front,
            "rounds": [asdict(figures) for figures in rounds],
        }
        path = ROOT / "benches" / "results" / f"{asked.save}-idle.json"
        path.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())
