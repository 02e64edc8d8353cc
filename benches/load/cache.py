"""Measures an exact hit of the response cache beside the same request that goes to an instant upstream.

    python benches/load/cache.py [--rounds N] [--seconds N] [--strict]

One instance, one request over and over. With `temperature` 0 it is answered from what is kept, without it by the
upstream; the two take turns, so that a machine that slows down slows both. The bar is on the median of the rounds'
ratios. The processor time that the relay spends on a request is told beside it: it does not depend on what else runs.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import tempfile
from pathlib import Path

from measure import Scenario, measure
from others import start_upstream
from ours import start_fairlead
from run import wait_and_verify
from target import Target, post

BAR = 1.3
CONNECTIONS = 32


@dataclasses.dataclass(slots=True)
class Deterministic(Target):
    """The same target, asked for answers that can be kept."""

    def body(self, *, stream: bool, model: str | None = None) -> str:
        # Not `super()`: a class with slots is made twice.
        body = json.loads(Target.body(self, stream=stream, model=model))
        return json.dumps({**body, "temperature": 0}, separators=(",", ":"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--strict", action="store_true", help="exit 1 when the bar is missed")
    options = parser.parse_args()
    scenario = Scenario(f"unary-c{CONNECTIONS}", CONNECTIONS, stream=False)
    ratios: list[float] = []
    spent: dict[str, list[float]] = {"upstream": [], "hit": []}
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as name:
        upstream = start_upstream(Path(name), 1)
        try:
            base = upstream.url.removesuffix("/v1/chat/completions")
            target = start_fairlead(base, Path(name))
            try:
                wait_and_verify(target)
                fields = {f.name: getattr(target, f.name) for f in dataclasses.fields(target)}
                kept = Deterministic(**fields)
                post(kept.url, kept.body(stream=False), kept.headers)
                for number in range(options.rounds):
                    per_second: dict[str, float] = {}
                    for which, asked in (("upstream", target), ("hit", kept)):
                        sample = measure(asked, scenario, options.seconds)
                        if sample.refused or sample.broken:
                            raise SystemExit(f"{which}: {sample.refused} refused")
                        per_second[which] = sample.per_second
                        spent[which].append(sample.busiest_cpu_us_per_request)
                        print(f"round {number + 1} {which:8} {sample.per_second:10,.0f}/s")
                    ratios.append(per_second["hit"] / per_second["upstream"])
            finally:
                target.stop()
        finally:
            upstream.stop()
    ratio = statistics.median(ratios)
    for which, each in spent.items():
        print(f"{which}: {min(each):.1f} us of processor time for a request, at best")
    print(f"a hit is {ratio:.2f} x a call to an instant upstream; the bar is {BAR}")
    return 1 if options.strict and ratio < BAR else 0


if __name__ == "__main__":
    sys.exit(main())
