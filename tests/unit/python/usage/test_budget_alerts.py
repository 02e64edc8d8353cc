"""Alerts of budgets: which are due, that each is raised once in a window, and in whose time zone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.events import CATALOGUE
from fairlead.gateway.keys.fields import NewKey
from fairlead.gateway.keys.table import StoredKey, insert_key
from fairlead.moment import iso, moment_of, now_ms
from fairlead.records.budgets import KINDS, Budget
from fairlead.records.webhook_endpoints import insert_endpoint, new_endpoint
from fairlead.store.database import Database
from fairlead.store.state import State
from fairlead.usage.budgets.budget_alerts import Payers, due_alerts, raise_alerts
from fairlead.usage.budgets.spending import Spending
from fairlead.usage.ingestion.ingest import Ingest
from fairlead.usage.ingestion.segment_store import SegmentStore

DAY_MS = 86_400_000
MONTH = KINDS[2]


def spending(spent: int, limit: int, *percents: int) -> Spending:
    budget = Budget("key", "k", "laptop", MONTH, limit, "UTC", percents)
    return Spending(budget, 0, 30 * DAY_MS, spent, 0)


def test_a_percent_is_due_from_the_moment_that_it_is_reached() -> None:
    at_ms = 29 * DAY_MS
    for spent, due in ((0, []), (499, []), (500, [50]), (799, [50]), (800, [50, 80])):
        assert list(due_alerts(spending(spent, 1000, 80, 50, 100), at_ms)) == due
    assert list(due_alerts(spending(1000, 1000, 80, 50, 100), at_ms)) == [50, 80, 100]
    assert list(due_alerts(spending(1000, 1000), at_ms)) == []


def test_a_forecast_is_due_between_the_first_tenth_of_the_month_and_the_limit() -> None:
    assert list(due_alerts(spending(400, 1000, 50), 2 * DAY_MS)) == [], "too early to say"
    assert list(due_alerts(spending(400, 1000, 50), 3 * DAY_MS)) == [None]
    assert list(due_alerts(spending(400, 1000, 50), 12 * DAY_MS)) == [], "just enough"
    assert list(due_alerts(spending(1000, 1000, 50), 12 * DAY_MS)) == [50], "no forecast any more"
    assert list(due_alerts(spending(400, 1000), 3 * DAY_MS)) == [], "nobody wants to know"


@given(
    spent=st.integers(0, 10**15),
    limit=st.integers(0, 10**15),
    percents=st.sets(st.integers(1, 100), max_size=10),
    at_ms=st.integers(0, 30 * DAY_MS - 1),
)
def test_due_are_just_the_percents_that_are_reached(
    spent: int, limit: int, percents: set[int], at_ms: int
) -> None:
    due = list(due_alerts(spending(spent, limit, *percents), at_ms))
    assert {one for one in due if one} == {one for one in percents if spent * 100 >= one * limit}
    assert due.count(None) <= (spent < limit and bool(percents))


async def listen(state: State, event: str) -> None:
    endpoint = new_endpoint("gateway", "http://10.0.0.1/", [event], now_ms())
    secret = "whsec_" + "QUJD" * 8
    await state.record(lambda con: insert_endpoint(con, state.sealer, endpoint, secret))


async def prepare(state: State, **fields: Any) -> None:
    key = StoredKey("k", "hash", "preview", 0, 0, NewKey(name="laptop", **fields))
    await state.database.write(lambda con: insert_key(con, key))


async def raised(state: State) -> list[tuple[str, dict[str, Any]]]:
    rows = await state.read(
        lambda con: con.execute("SELECT event, body FROM webhook_messages ORDER BY id").fetchall()
    )
    found = [(event, orjson.loads(body)["data"]) for event, body in rows]
    for event, data in found:
        assert set(data) == set(CATALOGUE["gateway"][event].data)
    return found


async def spend(usage: Database, spool: Path, content: bytes) -> None:
    number = await usage.read(lambda con: con.execute("SELECT count(*) FROM requests").fetchone())
    (spool / f"w-{number[0]:08}.ndjson").write_bytes(content)
    await Ingest(SegmentStore(usage, spool), spool).ingest()


@pytest.mark.anyio
async def test_each_alert_is_raised_once_in_a_window_and_again_for_another_limit(
    state: State, usage: Database, spool: Path, lines: Any
) -> None:
    await listen(state, "budget.reached")
    at_ms = now_ms()
    await prepare(
        state, usageLimitEnabled=True, dailyUsageLimitUsd=0.001, monthlyUsageLimitUsd=1000
    )
    await spend(usage, spool, lines("1", key_id="k", cost_usd_micros=850, ts_ms=at_ms))
    unpriced = lines("2", key_id="k", cost_usd_micros=0, ts_ms=at_ms, price_tiers="unpriced")
    await spend(usage, spool, unpriced)
    for _ in range(2):
        await raise_alerts(state, usage, Payers(["k"]), at_ms)
    found = await raised(state)
    assert [(data["field"], data["percent"]) for _, data in found] == [
        ("dailyUsageLimitUsd", 50),
        ("dailyUsageLimitUsd", 80),
    ]
    assert (found[0][1]["spentUsdMicros"], found[0][1]["unpricedRequests"]) == (850, 1)

    # What was delivered is deleted after a while; what was told of stays told.
    await state.database.write(lambda con: con.execute("DELETE FROM webhook_messages"))
    await raise_alerts(state, usage, Payers(["k"]), at_ms)
    assert await raised(state) == []
    await state.database.write(
        lambda con: con.execute("UPDATE keys SET daily_usage_limit_usd_micros = 1600")
    )
    await raise_alerts(state, usage, Payers(["k"]), at_ms)
    assert [data["limitUsdMicros"] for _, data in await raised(state)] == [1600]


@pytest.mark.anyio
async def test_a_budget_counts_from_midnight_of_its_zone(
    state: State, usage: Database, spool: Path, lines: Any
) -> None:
    await listen(state, "budget.reached")
    budget = Budget("key", "k", "laptop", KINDS[0], 1000, "Pacific/Kiritimati", (50,))
    at_ms = now_ms()
    starts_ms, ends_ms = budget.window(at_ms)
    assert starts_ms % DAY_MS == 10 * 3_600_000, "14 hours before Greenwich"
    await prepare(state, usageLimitEnabled=True, dailyUsageLimitUsd=0.001, usageLimitTz=budget.tz)
    before = lines("1", key_id="k", cost_usd_micros=900, ts_ms=starts_ms - 10_000_000)
    await spend(usage, spool, before)
    await raise_alerts(state, usage, Payers(["k"]), at_ms)
    assert await raised(state) == []
    await spend(usage, spool, lines("2", key_id="k", cost_usd_micros=500, ts_ms=at_ms))
    await raise_alerts(state, usage, Payers(["k"]), at_ms)
    ((_, data),) = await raised(state)
    assert (data["percent"], data["spentUsdMicros"]) == (50, 500)
    assert data["resetsAt"] == iso(moment_of(ends_ms))
