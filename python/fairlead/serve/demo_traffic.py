"""Five weeks of made-up traffic for `--demo` on a new instance: every page of the console has something to show.

The records are segments of the spool, which control takes in as any other. Each carries the session tag of a
made-up application, `demo/...`, and is of a key whose name begins with `demo: `. Its provider is one of the demo's own.
"""

from __future__ import annotations

import itertools
import math
import os
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson

DAYS: Final = 35
REQUESTS_A_DAY: Final = 450
KEY_PREFIX: Final = "demo: "
SEGMENT_RECORDS: Final = 5_000


@dataclass(frozen=True, slots=True)
class Application:
    """A caller: its key's name, its part of the traffic, the models it uses, its hours."""

    name: str
    tag: str
    part: float
    models: tuple[str, ...]
    at_night: bool
    tokens: tuple[int, int]
    spent_part: float | None = None
    """The part of its monthly limit that its key has spent; None: its key has no limit."""
    has_sessions: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """A model: its provider, micro-dollars for a thousand tokens in and out, its pace."""

    provider: str
    name: str
    price_in: float
    price_out: float
    first_ms: float
    tokens_per_s: float
    failing: float


MODELS: Final = {
    "large": Model("demo-east", "large", 3_000, 15_000, 720, 96, 0.006),
    "small": Model("demo-east", "small", 1_000, 5_000, 380, 140, 0.004),
    "mini": Model("demo-west", "mini", 250, 2_000, 610, 110, 0.009),
    "full": Model("demo-west", "full", 1_250, 10_000, 1_350, 88, 0.012),
    "flash": Model("demo-spare", "flash", 300, 2_500, 340, 190, 0.015),
}
"""By the provider's prefix: the demo has a connection to each of them."""
COMBO: Final = "support"
COMBO_MODELS: Final = ("demo-east/small", "demo-west/mini", "demo-spare/flash")


@dataclass(frozen=True, slots=True)
class DemoTarget:
    """The node and the connection of a made-up provider."""

    node_id: str
    connection_id: str


@dataclass(frozen=True, slots=True)
class Fault:
    """An error that a made-up request ends with: its kind and status, and what the provider answered."""

    kind: str
    status: int
    words: str
    provider_status: int
    provider_code: str
    provider_message: str


FAULTS: Final = (
    Fault(
        "upstream_overloaded",
        503,
        "The provider is overloaded (503).",
        503,
        "overloaded",
        "The engine is currently overloaded. Please try again later.",
    ),
    Fault(
        "upstream_rate_limited",
        429,
        "The provider limits this connection.",
        429,
        "rate_limit_exceeded",
        "Rate limit reached for requests: limit 500 per minute.",
    ),
    Fault(
        "upstream_timeout",
        504,
        "The provider timed out (504).",
        504,
        "timeout",
        "The upstream server did not respond in time.",
    ),
)
INCIDENT: Final = Fault(
    "upstream_status",
    502,
    "The provider failed (500).",
    500,
    "internal_error",
    "The server had an error while processing your request.",
)
# The incident: so long ago, for so long, at this provider.
INCIDENT_BEGAN: Final = timedelta(days=3, hours=2)
INCIDENT_LASTED: Final = timedelta(minutes=50)
INCIDENT_AT: Final = "demo-west"

APPLICATIONS: Final = (
    Application(
        "support assistant",
        "demo/support",
        0.42,
        ("small", "small", "mini", "flash"),
        at_night=False,
        tokens=(1_400, 260),
        spent_part=0.35,
        has_sessions=True,
    ),
    Application(
        "code review",
        "demo/review",
        0.24,
        ("large", "large", "full"),
        at_night=False,
        tokens=(9_500, 900),
        spent_part=0.93,
        has_sessions=True,
    ),
    Application(
        "nightly reports",
        "demo/reports",
        0.12,
        ("full", "mini"),
        at_night=True,
        tokens=(6_000, 1_500),
    ),
    Application(
        "search answers",
        "demo/search",
        0.22,
        ("flash", "mini"),
        at_night=False,
        tokens=(2_600, 180),
    ),
)


@dataclass(frozen=True, slots=True)
class Owners:
    """Ids of the demo's keys by application, and its places by prefix."""

    keys: Mapping[str, str]
    targets: Mapping[str, DemoTarget]


NOBODY: Final = Owners({}, {})


def write_traffic(data_dir: Path, owners: Owners, now: datetime) -> int:
    """Puts the records into the spool, a segment for each week; returns how many."""
    folder = data_dir / "spool"
    folder.mkdir(mode=0o700, exist_ok=True)
    records = demo_records(owners, now)
    many = 0
    for number in itertools.count():
        lines = [orjson.dumps(record) for record in itertools.islice(records, SEGMENT_RECORDS)]
        if not lines:
            return many
        many += len(lines)
        _write_segment(folder, f"demo-{number:08d}", lines)
    return many


def _write_segment(folder: Path, name: str, lines: list[bytes]) -> None:
    partial = folder / f"{name}.part"
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(b"\n".join(lines) + b"\n")
    partial.rename(folder / f"{name}.ndjson")


def monthly_limits(now: datetime) -> dict[str, float]:
    """The limit in USD of each application that has one, so that its key has spent the part that it says."""
    parts = {app.tag: app for app in APPLICATIONS if app.spent_part}
    month_ms = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000
    spent = dict.fromkeys(parts, 0)
    for record in demo_records(NOBODY, now):
        if record["session_tag"] in spent and record["ts_ms"] >= month_ms:
            spent[record["session_tag"]] += record["cost_usd_micros"]
    return {
        app.name: max(round(spent[tag] / 1_000_000 / (app.spent_part or 1), 2), 0.01)
        for tag, app in parts.items()
    }


def demo_records(owners: Owners, now: datetime) -> Iterator[dict[str, Any]]:
    """Records of the days before `now`, oldest first, always those of the same dice."""
    dice = random.Random(20_127)  # noqa: S311 - made-up traffic, and the same each time
    first = now - timedelta(days=DAYS)
    step = timedelta(minutes=10)
    at, number = first, 0
    while at < now:
        for app in APPLICATIONS:
            expected = REQUESTS_A_DAY / 144 * app.part * _busy(at, at_night=app.at_night)
            for _ in range(_poisson(dice, expected)):
                moment = at + step * dice.random()
                if moment < now:
                    number += 1
                    yield _record(dice, Call(app, moment, number, now), owners)
        at += step


def _busy(at: datetime, *, at_night: bool) -> float:
    """How busy an application is at a time of day, 1 on average."""
    hour = at.hour + at.minute / 60
    if at_night:
        return 6.0 if 1 <= hour < 5 else 0.0
    wave = max(0.12, math.sin((hour - 6) / 15 * math.pi) * 1.9) if 6 <= hour <= 21 else 0.12
    return wave * (0.35 if at.weekday() >= 5 else 1.0)


@dataclass(frozen=True, slots=True)
class Call:
    """A made-up call: whose it is, when it came, the how many-eth it is; `now` is when the demo began."""

    app: Application
    at: datetime
    number: int
    now: datetime

    @property
    def session_id(self) -> str | None:
        """The session: some of an application's calls in one stretch of ten minutes."""
        if not self.app.has_sessions:
            return None
        return (
            f"{self.app.tag.rpartition('/')[2]}-{int(self.at.timestamp()) // 600}-{self.number % 2}"
        )

    def is_in_incident(self, provider: str) -> bool:
        """Whether the provider fails at that time."""
        began = self.now - INCIDENT_BEGAN
        return provider == INCIDENT_AT and began <= self.at < began + INCIDENT_LASTED


def _record(dice: random.Random, call: Call, owners: Owners) -> dict[str, Any]:
    app, moment, number = call.app, call.at, call.number
    model = MODELS[dice.choice(app.models)]
    course = _course(dice, call, model)
    is_support = app.tag == "demo/support"
    tokens_in, tokens_out, is_hit = course.tokens_in, course.tokens_out, course.is_hit
    place = owners.targets.get(model.provider)
    return {
        "request_id": f"req_demo{number:08d}",
        "ts_ms": int(moment.timestamp() * 1000),
        "worker_id": "demo",
        "principal_kind": "key",
        "key_id": owners.keys.get(app.name),
        "session_tag": app.tag,
        "session_id": call.session_id,
        "endpoint": "chat",
        "method": "POST",
        "path": "/v1/chat/completions",
        "model": f"{model.provider}/{model.name}",
        "provider": place.node_id if place else model.provider,
        "connection_id": place.connection_id if place else None,
        "upstream_model": model.name,
        "stream": app.tag in ("demo/support", "demo/search"),
        "status": course.status,
        "outcome": "completed" if course.fault is None else "upstream_failed",
        "error_kind": course.fault.kind if course.fault else None,
        "error_message": course.fault.words if course.fault else None,
        "tokens_input": tokens_in,
        "tokens_output": tokens_out,
        "tokens_cached": course.tokens_cached,
        "tokens_reasoning": tokens_out // 3 if model.name == "full" else 0,
        "tokens_cache_write": 0,
        "cost_usd_micros": 0 if is_hit else course.cost_usd_micros,
        "latency_ms": course.latency_ms,
        "ttft_ms": course.ttft_ms,
        "attempts": course.attempts,
        "chosen_ms": 0.4,
        "failed_attempts": _failures(model, course, place),
        "bytes_request": tokens_in * 4 + 300,
        "bytes_response": tokens_out * 5 + 400,
        "no_log": False,
        "cache": "hit" if is_hit else "miss" if is_support else None,
        "cache_kind": "exact" if is_hit else None,
        "cost_saved_usd_micros": course.cost_usd_micros if is_hit else None,
        "combo": COMBO if is_support else None,
        "strategy": "priority" if is_support else None,
        "guardrails": "pii-masker;found=email;action=warn"
        if is_support and dice.random() < 0.02
        else None,
    }


@dataclass(frozen=True, slots=True)
class Course:
    """How one made-up request went. `fault` is its error; `lost` counts the attempts that failed."""

    fault: Fault | None
    status: int
    is_hit: bool
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    cost_usd_micros: int
    first_ms: float
    last_ms: float
    attempts: int
    lost: int

    @property
    def latency_ms(self) -> float:
        """The time to the end: of a failure to its first byte, of a hit next to nothing."""
        if self.is_hit:
            return 1.6
        return round(self.last_ms if self.fault is None else self.first_ms, 3)

    @property
    def ttft_ms(self) -> float | None:
        """The time to the first token; None where there was none."""
        if self.fault is not None:
            return None
        return 1.1 if self.is_hit else round(self.first_ms, 3)


def _course(dice: random.Random, call: Call, model: Model) -> Course:
    app, is_broken = call.app, call.is_in_incident(model.provider)
    trouble = 30.0 if is_broken else 1.0
    failed = dice.random() < (0.9 if is_broken else model.failing)
    is_hit = not failed and app.tag == "demo/support" and dice.random() < 0.14
    tokens_in = int(dice.lognormvariate(math.log(app.tokens[0]), 0.5))
    tokens_out = 0 if failed else int(dice.lognormvariate(math.log(app.tokens[1]), 0.45)) + 1
    cached = int(tokens_in * dice.uniform(0.3, 0.8)) if app.tag == "demo/review" else 0
    cost = round(
        (tokens_in - cached * 0.9) * model.price_in / 1000 + tokens_out * model.price_out / 1000
    )
    first_ms = model.first_ms * dice.lognormvariate(0, 0.35) * (1 + trouble / 60)
    last_ms = first_ms + tokens_out / model.tokens_per_s * 1000 * dice.uniform(0.8, 1.3)
    if failed:
        fault = INCIDENT if is_broken else dice.choice(FAULTS)
        return Course(
            fault, fault.status, is_hit, 0, 0, 0, 0, first_ms, last_ms, attempts=3, lost=3
        )
    attempts = 0 if is_hit else dice.choices((1, 2), (0.97, 0.03))[0]
    return Course(
        None,
        200,
        is_hit,
        tokens_in,
        tokens_out,
        cached,
        cost,
        first_ms,
        last_ms,
        attempts,
        lost=max(attempts - 1, 0),
    )


def _failures(model: Model, course: Course, place: DemoTarget | None) -> str | None:
    """The failed attempts in the form of a relay's record: each of them before the first byte."""
    fault, lost, first_ms = course.fault or FAULTS[0], course.lost, course.first_ms
    connection = place.connection_id if place else model.provider
    answer = f"{fault.provider_status};{fault.provider_code};;;{fault.provider_message}".replace(
        ",", "%2C"
    )
    attempts = [
        f"{connection};{fault.kind};{round(first_ms * number / (lost + 1), 3)};{model.name};{answer}"
        for number in range(1, lost + 1)
    ]
    return ",".join(attempts) or None


def _poisson(dice: random.Random, expected: float) -> int:
    """How many of rare things happen (Knuth's method)."""
    limit, many, product = math.exp(-expected), 0, dice.random()
    while product > limit:
        many += 1
        product *= dice.random()
    return many
