"""What limits that several workers hold together add to a request: the time from its admission until its targets were
chosen, or until it was refused, where its keys are far from their limits and where they come to them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from benches.load.plain import WARM_UP_S, load
from tests.support.polling import eventually
from tests.support.processes import Gateway
from tests.support.prometheus import read_metrics

KEYS: Final = 20
FAR: Final = 10_000_000
NEAR: Final = 100
CONNECTIONS: Final = 32
DAY_S: Final = 86_400
# Longer than a worker takes to tell its counters.
SETTLED_S: Final = 3
P99_MAX_MS: Final = 1.0
ROUND_TRIPS_MAX: Final = 20.0
"""Round trips to the shared store for 1,000 requests of keys that are far from their limits."""
OVER_MAX: Final = 1.01
"""How many requests may be let in for each that a limit allows."""


@dataclass(frozen=True, slots=True)
class Admissions:
    """How long admissions took, and what else is held to a bar."""

    far_p50_ms: float
    far_p99_ms: float
    near_p50_ms: float
    near_p99_ms: float
    round_trips: float
    """For 1,000 requests, far from the limits."""
    admitted: float
    """Of what the limits allow."""

    def lines(self) -> Iterator[str]:
        """Each figure with its bar."""
        p99 = f"(p99 at most {P99_MAX_MS:g} ms)"
        for where, p50_ms, p99_ms in (
            ("far from", self.far_p50_ms, self.far_p99_ms),
            ("at", self.near_p50_ms, self.near_p99_ms),
        ):
            yield f"an admission of {KEYS} keys {where} their limits: {p50_ms:.3f} ms, p99 {p99_ms:.3f} ms {p99}"
        yield f"round trips for 1,000 requests far from limits: {self.round_trips:.1f} (at most {ROUND_TRIPS_MAX:g})"
        yield f"admitted at limits: {self.admitted:.4f} x (at most {OVER_MAX})"

    def is_good(self) -> bool:
        return (
            max(self.far_p99_ms, self.near_p99_ms) <= P99_MAX_MS
            and self.round_trips <= ROUND_TRIPS_MAX
            and self.admitted <= OVER_MAX
        )


def measure_admission(gateway: Gateway, base_url: str, seconds: float) -> Admissions:
    """Of a gateway with a shared store, whose workers are loaded with keys of equal limits."""
    node = gateway.add_node("limits", base_url)
    gateway.add_connection(node["id"], "sk-bench")
    url = f"{gateway.url}/v1/chat/completions"
    far = _keys(gateway, FAR)
    # The first calls of new keys wait for the store, and on a full machine in vain.
    load([url], far, "limits/m", CONNECTIONS, WARM_UP_S)
    time.sleep(SETTLED_S)
    before = _round_trips(gateway)
    began = datetime.now(UTC)
    served = load([url], far, "limits/m", CONNECTIONS, seconds).all_answered()
    of_far = _settled(gateway, began, served)
    time.sleep(SETTLED_S)
    round_trips = (_round_trips(gateway) - before) * 1000 / served
    near = _keys(gateway, NEAR)
    began = datetime.now(UTC)
    answers = load([url], near, "limits/m", CONNECTIONS, seconds)
    _settled(gateway, began, answers.served + answers.refused)
    near_ms = statistics.quantiles(_admissions_ms(gateway, began), n=100)
    return Admissions(
        far_p50_ms=of_far["p50ChosenMs"],
        far_p99_ms=of_far["p99ChosenMs"],
        near_p50_ms=near_ms[49],
        near_p99_ms=near_ms[98],
        round_trips=round_trips,
        admitted=answers.served / (KEYS * NEAR),
    )


def _keys(gateway: Gateway, limit: int) -> list[str]:
    limits = [{"limit": limit, "window": DAY_S}]
    return [gateway.create_key(name="limited", rateLimits=limits)["key"] for _ in range(KEYS)]


def _settled(gateway: Gateway, began: datetime, requests: int) -> dict[str, Any]:
    """What the log says of the requests since then, once it has them."""

    def history() -> dict[str, Any] | None:
        asked = {"groupBy": "total", "from": began.isoformat()}
        rows = gateway.admin.get("/api/usage/history", params=asked).json()["history"]
        return rows[0] if rows and rows[0]["requests"] >= requests else None

    return eventually(history, "all requests are in the log", within_s=30, every_s=0.5)


def _admissions_ms(gateway: Gateway, began: datetime) -> list[float]:
    """Of each request since then; where it was refused it is all of its time, so rather too much."""
    found: list[float] = []
    query: dict[str, Any] = {"from": began.isoformat(), "limit": 500}
    while True:
        page = gateway.admin.get("/api/usage/request-logs", params=query).json()
        for row in page["logs"]:
            chosen_ms = row["chosenMs"]
            found.append(row["latencyMs"] if chosen_ms is None else chosen_ms)
        if page["next"] is None:
            return found
        query["after"] = page["next"]


def _round_trips(gateway: Gateway) -> float:
    text = httpx.get(f"{gateway.url}/metrics", trust_env=False, timeout=20).text
    return read_metrics(text)["fairlead_shared_store_round_trips_total"].value()
