"""Measures an exact hit of the response cache beside the same request that goes to an instant upstream.

    python benches/load/cache.py [--rounds N] [--seconds N] [--strict]

One instance, one request over and over. With `temperature` 0 it is answered from what is kept, without it by the
upstream; the two take turns within a round, so that a machine that slows down slows both. The bar is on the ratio
of their best rounds.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
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
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--strict", action="store_true", help="exit 1 when the bar is missed")
    options = parser.parse_args()
    scenario = Scenario(f"unary-c{CONNECTIONS}", CONNECTIONS, stream=False)
    best = {"upstream": 0.0, "hit": 0.0}
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
                    for which, asked in (("upstream", target), ("hit", kept)):
                        sample = measure(asked, scenario, options.seconds)
                        if sample.refused or sample.broken:
                            raise SystemExit(f"{which}: {sample.refused} refused")
                        best[which] = max(best[which], sample.per_second)
                        print(f"round {number + 1} {which:8} {sample.per_second:10,.0f}/s")
            finally:
                target.stop()
        finally:
            upstream.stop()
    ratio = best["hit"] / best["upstream"]
    print(f"a hit is {ratio:.2f} x a call to an instant upstream; the bar is {BAR}")
    return 1 if options.strict and ratio < BAR else 0


if __name__ == "__main__":
    sys.exit(main())
