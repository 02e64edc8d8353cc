"""Seven days of made-up traffic for `--demo` on a new instance, so that the console has something to show.

The records are a segment of the spool, which control takes in as any other. Each carries the session tag of a
made-up application, `demo/...`, and is of a key whose name begins with `demo: `.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson

DAYS: Final = 7
REQUESTS_A_DAY: Final = 1_900
KEY_PREFIX: Final = "demo: "


@dataclass(frozen=True, slots=True)
class Application:
    """A caller: its key's name, its part of the traffic, the models it uses, its hours."""

    name: str
    tag: str
    part: float
    models: tuple[str, ...]
    at_night: bool
    tokens: tuple[int, int]
    daily_limit_usd: float | None = None
    weekly_limit_usd: float | None = None


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
    "large": Model("anthropic", "claude-sonnet-4-5", 3_000, 15_000, 720, 96, 0.006),
    "small": Model("anthropic", "claude-haiku-4-5", 1_000, 5_000, 380, 140, 0.004),
    "mini": Model("openai", "gpt-5-mini", 250, 2_000, 610, 110, 0.009),
    "full": Model("openai", "gpt-5", 1_250, 10_000, 1_350, 88, 0.012),
    "flash": Model("gemini", "gemini-2.5-flash", 300, 2_500, 340, 190, 0.015),
}

FAULTS: Final = (
    ("upstream_overloaded", 503),
    ("upstream_rate_limited", 429),
    ("upstream_timeout", 504),
)
"""The errors that a made-up request ends with, and their status."""

APPLICATIONS: Final = (
    Application(
        "support assistant",
        "demo/support",
        0.42,
        ("small", "small", "mini", "flash"),
        at_night=False,
        tokens=(1_400, 260),
        daily_limit_usd=4.0,
    ),
    Application(
        "code review",
        "demo/review",
        0.24,
        ("large", "large", "full"),
        at_night=False,
        tokens=(9_500, 900),
        weekly_limit_usd=120.0,
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


def write_traffic(data_dir: Path, key_ids: dict[str, str], now: datetime | None = None) -> int:
    """Puts the records into the spool; returns how many. `key_ids` are the keys' by application."""
    lines = [orjson.dumps(record) for record in demo_records(key_ids, now or datetime.now(UTC))]
    folder = data_dir / "spool"
    folder.mkdir(mode=0o700, exist_ok=True)
    partial = folder / "demo-00000000.part"
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(b"\n".join(lines) + b"\n")
    partial.rename(folder / "demo-00000000.ndjson")
    return len(lines)


def demo_records(key_ids: dict[str, str], now: datetime) -> Iterator[dict[str, Any]]:
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
                    yield _record(dice, app, key_ids.get(app.name), moment, number)
        at += step


def _busy(at: datetime, *, at_night: bool) -> float:
    """How busy an application is at a time of day, 1 on average."""
    hour = at.hour + at.minute / 60
    if at_night:
        return 6.0 if 1 <= hour < 5 else 0.0
    wave = max(0.12, math.sin((hour - 6) / 15 * math.pi) * 1.9) if 6 <= hour <= 21 else 0.12
    return wave * (0.35 if at.weekday() >= 5 else 1.0)


def _record(
    dice: random.Random, app: Application, key_id: str | None, moment: datetime, number: int
) -> dict[str, Any]:
    model = MODELS[dice.choice(app.models)]
    course = _course(dice, app, model, moment)
    is_support = app.tag == "demo/support"
    tokens_in, tokens_out, is_hit = course.tokens_in, course.tokens_out, course.is_hit
    return {
        "request_id": f"req_demo{number:08d}",
        "ts_ms": int(moment.timestamp() * 1000),
        "worker_id": "demo",
        "principal_kind": "key",
        "key_id": key_id,
        "session_tag": app.tag,
        "session_id": None,
        "endpoint": "chat",
        "method": "POST",
        "path": "/v1/chat/completions",
        "model": f"{model.provider}/{model.name}",
        "provider": model.provider,
        "connection_id": None,
        "upstream_model": model.name,
        "stream": app.tag in ("demo/support", "demo/search"),
        "status": course.status,
        "outcome": "completed" if course.fault is None else "upstream_failed",
        "error_kind": course.fault,
        "tokens_input": tokens_in,
        "tokens_output": tokens_out,
        "tokens_cached": course.tokens_cached,
        "tokens_reasoning": tokens_out // 3 if model.name == "gpt-5" else 0,
        "tokens_cache_write": 0,
        "cost_usd_micros": 0 if is_hit else course.cost_usd_micros,
        "latency_ms": course.latency_ms,
        "ttft_ms": course.ttft_ms,
        "attempts": course.attempts,
        "chosen_ms": 0.4,
        "failed_attempts": _failures(model, course),
        "bytes_request": tokens_in * 4 + 300,
        "bytes_response": tokens_out * 5 + 400,
        "no_log": False,
        "cache": "hit" if is_hit else "miss" if is_support else None,
        "cache_kind": "exact" if is_hit else None,
        "cost_saved_usd_micros": course.cost_usd_micros if is_hit else None,
        "combo": "support" if is_support else None,
        "strategy": "priority" if is_support else None,
        "guardrails": "pii-masker;found=email;action=warn"
        if is_support and dice.random() < 0.02
        else None,
    }


@dataclass(frozen=True, slots=True)
class Course:
    """How one made-up request went. `fault` is the kind of its error; `lost` counts the attempts that failed."""

    fault: str | None
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


def _course(dice: random.Random, app: Application, model: Model, moment: datetime) -> Course:
    # One evening a provider was in trouble.
    trouble = 30.0 if model.provider == "openai" and _in_trouble(moment) else 1.0
    failed = dice.random() < model.failing * trouble
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
        fault, status = dice.choice(FAULTS)
        return Course(fault, status, is_hit, 0, 0, 0, 0, first_ms, last_ms, attempts=3, lost=3)
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


def _failures(model: Model, course: Course) -> str | None:
    """The failed attempts in the form of a relay's record: each of them before the first byte."""
    kind, lost, first_ms = course.fault or "upstream_overloaded", course.lost, course.first_ms
    attempts = [
        f"{model.provider};{kind};{round(first_ms * number / (lost + 1), 3)};{model.name}"
        for number in range(1, lost + 1)
    ]
    return ",".join(attempts) or None


def _in_trouble(moment: datetime) -> bool:
    return moment.weekday() == 2 and 15 <= moment.hour < 17


def _poisson(dice: random.Random, expected: float) -> int:
    """How many of rare things happen (Knuth's method)."""
    limit, many, product = math.exp(-expected), 0, dice.random()
    while product > limit:
        many += 1
        product *= dice.random()
    return many
