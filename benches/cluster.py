"""What a request costs on a node of a cluster and with several workers, as ratios of processor time.

    python benches/cluster.py [--front granian|native] [--rounds 3] [--seconds 20] [--connections 16]

Needs nginx (as the provider), wrk, Debian's PostgreSQL and redis-server, and a machine that does nothing else. In each
round gateways are loaded one after the other with plain completions: a node by itself, and two nodes on one PostgreSQL
and one Redis, each node at the same rate (its connections pause between requests); one worker and four workers over one
Redis, as fast as they can, and four at last with 20 keys far from their limits and at them. Figures are microseconds of
processor time (user and system, from /proc) of all processes of the gateways for each answered request; those of
PostgreSQL and Redis are told beside them. Of several rounds the median counts. Exit code 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field, fields
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benches.admission import Admissions, measure_admission  # noqa: E402
from benches.load.plain import PAUSE_MS, WARM_UP_S, load, provider  # noqa: E402
from benches.load.process import pss_bytes, usage  # noqa: E402
from tests.support.postgresql import PostgresqlServer  # noqa: E402
from tests.support.processes import Gateway, start_gateway  # noqa: E402
from tests.support.shared_store import shared_store  # noqa: E402

SECRET_KEY = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="
NODE_MAX = 1.15
"""How much more a request may cost on a node of a cluster than on a node by itself."""
WORKERS_MIN = 0.9
"""What part of the requests in a second of processor time of one worker four workers must answer."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of processor time for each request, and what a gateway's processes hold in memory after it."""

    gateway_us: float
    stores_us: float
    requests: int
    memory_mb: float


@dataclass(frozen=True, slots=True)
class Kind:
    """Gateways that share what they store, and what each of them is loaded with."""

    gateways: int
    flags: list[str]
    environment: dict[str, str]
    pause_ms: int


def measure(
    gateways: list[Gateway],
    stores: list[int],
    base_url: str,
    kind: Kind,
    arguments: argparse.Namespace,
) -> Cost:
    """The cost of a request at these gateways, which share what they store."""
    first = gateways[0]
    node = first.add_node("bench", base_url)
    first.add_connection(node["id"], "sk-bench")
    key = first.create_key(name="bench")["key"]
    urls = [f"{each.url}/v1/chat/completions" for each in gateways]
    connections = arguments.connections * len(urls)

    def answered_in(seconds: float) -> int:
        answers = load(urls, [key], "bench/m", connections, seconds, pause_ms=kind.pause_ms)
        return answers.all_answered()

    answered_in(WARM_UP_S)
    roots = [each.popen.pid for each in gateways]
    before = {pid: usage(pid) for pid in (*roots, *stores)}
    answered = answered_in(arguments.seconds)
    # What is recorded belongs to the requests.
    time.sleep(2)

    def spent_us(pids: list[int]) -> int:
        return sum(sum(usage(pid).since(before[pid]).values()) for pid in pids)

    memory_mb = sum(map(pss_bytes, roots)) / len(roots) / 1e6
    return Cost(spent_us(roots) / answered, spent_us(stores) / answered, answered, memory_mb)


@dataclass(slots=True)
class Round:
    """The cost at each kind of instance, and admissions at four workers."""

    costs: dict[str, Cost] = field(default_factory=dict)
    admissions: Admissions | None = None


def round_of(arguments: argparse.Namespace) -> Round:
    measured = Round()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(provider(folder))
        store = stack.enter_context(shared_store(folder / "store"))
        database = stack.enter_context(PostgresqlServer.start())
        database.make_template()
        front = {"FAIRLEAD_FRONT": arguments.front, "FAIRLEAD_SECRET_KEY": SECRET_KEY}
        shared = {**front, "FAIRLEAD_SHARED_URL": store.url}
        in_database = {**shared, "FAIRLEAD_DATABASE_URL": database.migrated()}
        kinds = {
            "one node": Kind(1, [], front, PAUSE_MS),
            "two nodes": Kind(2, [], in_database, PAUSE_MS),
            "one worker": Kind(1, ["--workers", "1"], shared, 0),
            "four workers": Kind(1, ["--workers", "4"], shared, 0),
        }
        for name, kind in kinds.items():
            with contextlib.ExitStack() as running:
                gateways = [
                    running.enter_context(start_gateway(folder, *kind.flags, **kind.environment))
                    for _ in range(kind.gateways)
                ]
                stores = [store.pid, *([database.pid] if kind.gateways > 1 else [])]
                measured.costs[name] = measure(gateways, stores, url, kind, arguments)
                print(f"  {name}: {measured.costs[name]}", flush=True)
                if name == "four workers":
                    measured.admissions = measure_admission(gateways[0], url, arguments.seconds)
                    print(f"  {measured.admissions}", flush=True)
    return measured


def median_of(each: list[Admissions]) -> Admissions:
    names = [field.name for field in fields(Admissions)]
    return Admissions(*(statistics.median(getattr(one, name) for one in each) for name in names))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--front", choices=("granian", "native"), default="native")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--connections", type=int, default=16)
    arguments = parser.parse_args()
    rounds = [round_of(arguments) for _ in range(arguments.rounds)]
    median: dict[str, float] = {}
    for name in rounds[0].costs:
        costs = [each.costs[name] for each in rounds]
        median[name] = statistics.median(cost.gateway_us for cost in costs)
        stores_us, memory_mb = (
            statistics.median(getattr(cost, what) for cost in costs)
            for what in ("stores_us", "memory_mb")
        )
        print(
            f"{name}: {median[name]:.0f} us of processor time a request, {stores_us:.0f} us of the stores, "
            f"{memory_mb:.0f} MB a gateway"
        )
    node = median["two nodes"] / median["one node"]
    workers = median["one worker"] / median["four workers"]
    print(f"a request on a node of a cluster: {node:.2f} x (at most {NODE_MAX})")
    print(
        f"requests a second of processor time at four workers: {workers:.2f} x (at least {WORKERS_MIN})"
    )
    admissions = median_of([each.admissions for each in rounds if each.admissions])
    print(*admissions.lines(), sep="\n")
    is_good = node <= NODE_MAX and workers >= WORKERS_MIN and admissions.is_good()
    return 0 if is_good else 1


if __name__ == "__main__":
    raise SystemExit(main())
