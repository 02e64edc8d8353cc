"""The figures that fairlead is held to, beside what a run found."""

from __future__ import annotations

from dataclasses import dataclass

from outcome import Outcome

OURS, NGINX, NEAREST = "fairlead", "nginx", "sglang-router"
TWO_THREADS = "fairlead-2-threads"


@dataclass(frozen=True, slots=True)
class Bar:
    """`measured` must be at most `wanted`, or at least where `at_least` says so."""

    text: str
    measured: float | None
    wanted: float
    at_least: bool = False
    unit: str = ""

    @property
    def met(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted

    def row(self) -> str:
        sign = ">=" if self.at_least else "<="
        found = "not measured" if self.measured is None else f"{self.measured:.2f}{self.unit}"
        verdict = {True: "met", False: "**missed**", None: "-"}[self.met]
        return f"| {self.text} | {sign} {self.wanted:g}{self.unit} | {found} | {verdict} |"


def bars(found: Outcome) -> list[Bar]:
    one, unary, stream = "unary-c1", "unary-c32", "stream-c32"
    direct = found.p50_us("direct", one)
    added = [minus(found.p50_us(name, one), direct) for name in (OURS, NEAREST)]
    cpu = [found.cpu_us(name, unary) for name in (OURS, NGINX)]
    stream_cpu = [found.cpu_us(name, stream) for name in (OURS, NGINX)]
    p99 = [found.p99_us(name, unary) for name in (OURS, NGINX)]
    speed = [found.per_second(name, unary) for name in (OURS, NGINX)]
    streams = [found.per_second(name, stream) for name in (OURS, NGINX)]
    held = found.open_streams
    is_native = found.front == "native"

    def wanted(granian: float, native: float) -> float:
        return native if is_native else granian

    listed = [
        Bar(
            "unary requests/s, 32 connections / nginx's",
            ratio(*speed),
            wanted(0.22, 0.55),
            at_least=True,
        ),
        Bar(
            "100-chunk streams/s, 32 connections / nginx's",
            ratio(*streams),
            wanted(0.80, 0.95),
            at_least=True,
        ),
        Bar("CPU per unary request / nginx's", ratio(*cpu), wanted(6, 2.5)),
        Bar(f"added p50, one connection / {NEAREST}'s", ratio(*added), wanted(2, 0.5)),
        Bar("p99, 32 connections / nginx's", ratio(*p99), 3),
        Bar("relay memory after load", ratio(found.rss_bytes(OURS), 1e6), 120, unit=" MB"),
        Bar(
            "memory of an open stream",
            held.bytes_each / 1e3 if held else None,
            wanted(60, 30),
            unit=" KB",
        ),
    ]
    if is_native:
        two = [found.busiest_cpu_us(name, unary) for name in (TWO_THREADS, OURS)]
        listed += [
            Bar("CPU per 100-chunk stream / nginx's", ratio(*stream_cpu), 1.4),
            Bar("CPU of the relay for a request, two threads / one", ratio(*two), 1.15),
            Bar(
                f"a new request among {held.count if held else 0:,} open streams",
                held.new_request_ms if held else None,
                20,
                unit=" ms",
            ),
        ]
    return listed


def ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def minus(one: float | None, other: float | None) -> float | None:
    return one - other if one is not None and other is not None else None
