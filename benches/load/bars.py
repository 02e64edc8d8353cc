"""The figures that fairlead is held to, beside what a run found."""

from __future__ import annotations

from dataclasses import dataclass

from outcome import Outcome

OURS, NGINX, NEAREST = "fairlead", "nginx", "sglang-router"


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
    p99 = [found.p99_us(name, unary) for name in (OURS, NGINX)]
    speed = [found.per_second(name, unary) for name in (OURS, NGINX)]
    streams = [found.per_second(name, stream) for name in (OURS, NGINX)]
    held = found.open_streams
    return [
        Bar("unary requests/s, 32 connections / nginx's", ratio(*speed), 0.22, at_least=True),
        Bar("100-chunk streams/s, 32 connections / nginx's", ratio(*streams), 0.80, at_least=True),
        Bar("CPU per unary request / nginx's", ratio(*cpu), 6),
        Bar(f"added p50, one connection / {NEAREST}'s", ratio(*added), 2),
        Bar("p99, 32 connections / nginx's", ratio(*p99), 3),
        Bar("relay memory after load", ratio(found.rss_bytes(OURS), 1e6), 120, unit=" MB"),
        Bar("memory of an open stream", held.bytes_each / 1e3 if held else None, 60, unit=" KB"),
    ]


def ratio(ours: float | None, theirs: float | None) -> float | None:
    return ours / theirs if ours is not None and theirs else None


def minus(one: float | None, other: float | None) -> float | None:
    return one - other if one is not None and other is not None else None
