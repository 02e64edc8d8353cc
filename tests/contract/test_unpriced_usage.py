"""A cost that is not known is a word, and never zero: in the log, in sums, on pages and in downloads."""

from __future__ import annotations

import csv
import io
import time

import polars as pl
import pytest

from fairlead.moment import iso, moment_of, now_ms
from tests.contract.test_console import admin as admin  # noqa: PLC0414 - a fixture
from tests.contract.test_console import fill_log, make_connection, make_key
from tests.contract.test_console_reasons import text_of

pytestmark = pytest.mark.anyio


async def fill(control, **changed) -> str:
    """Thirty requests just now of one model; the id of one of them."""
    now_ms = int(time.time() * 1000) - 5_000
    fields = {"ts_ms": now_ms, "provider": "lab", "model": "lab/m", "upstream_model": "m"}
    fields |= {"outcome": "completed", "status": 200, "error_kind": None, "cache": None}
    records = await fill_log(control, **fields, **changed)
    return str(records[0]["request_id"])


async def test_what_has_no_price_costs_no_zero(control, admin) -> None:
    request_id = await fill(control, price_tiers="unpriced", cost_usd_micros=0)
    (row,) = (await control.client.get("/api/usage/logs", params={"limit": 1})).json()["logs"]
    assert (row["isUnpriced"], row["costUsdMicros"]) == (True, 0)
    unpriced = (await control.client.get("/api/usage/unpriced")).json()
    assert unpriced == {
        "groupBy": "model",
        "groups": [{"value": "m", "requests": 30}],
        "total": 30,
    }
    for path in ("/dashboard/logs", f"/dashboard/logs/{request_id}", "/dashboard/usage?window=24h"):
        shown = text_of((await control.client.get(path, headers=admin)).text)
        assert "no price" in shown.lower(), path
        assert "It cost nothing" not in shown, path
    for place in ("usage/download.csv?by=model", "usage/download.parquet?by=model"):
        answer = await control.client.get(f"/dashboard/{place}&window=24h", headers=admin)
        if "csv" in place:
            (line,) = csv.DictReader(io.StringIO(answer.text))
            assert (line["cost_usd"], line["unpriced_requests"]) == ("no price", "30")
        else:
            assert pl.read_parquet(answer.content)["unpriced_requests"].to_list() == [30]


async def test_a_cost_that_leaves_something_out_says_so(control, admin) -> None:
    await fill(control, price_tiers="flex,unpriced", cost_usd_micros=1_500_000)
    shown = text_of((await control.client.get("/dashboard/logs", headers=admin)).text)
    assert "$1.50 + no price" in shown


@pytest.mark.parametrize("group", ["provider", "key", "endpoint", "connection", "combo", "day"])
async def test_groups_are_those_of_the_history(control, group) -> None:
    await fill(control, price_tiers="unpriced", cost_usd_micros=0)
    unpriced = await control.client.get("/api/usage/unpriced", params={"groupBy": group})
    history = await control.client.get("/api/usage/history", params={"groupBy": group})
    names = {"key": "keyId", "connection": "connectionId", "day": "bucket"}
    values = {row[names.get(group, group)] for row in history.json()["history"]}
    assert {each["value"] for each in unpriced.json()["groups"]} == values


async def test_what_has_a_price_is_not_among_them(control, admin) -> None:
    await fill(control, price_tiers="cached_input", cost_usd_micros=0)
    assert (await control.client.get("/api/usage/unpriced")).json()["total"] == 0
    shown = text_of((await control.client.get("/dashboard/usage", headers=admin)).text)
    assert "no price" not in shown


TOTALS = {
    "/dashboard": "Cost today",
    "/dashboard/usage?by=key&window=24h": "Cost",
    "/dashboard/usage?by=day&window=24h": "Cost",
    "/dashboard/keys": "one",
    "/dashboard/keys/{key}": "This month",
    "/dashboard/limits": "one",
    "/dashboard/groups/{group}": "Used",
    "/dashboard/combos": "ours",
    "/dashboard/combos/{combo}": "Cost",
    "/dashboard/providers": "Requests, 24 h",
}


@pytest.fixture
async def records(control) -> dict[str, str]:
    """A key in a group with limits, a combo and a connection: their ids, for the fields of records."""
    group = {"name": "team", "dailyUsageLimitUsd": 50}
    group_id = (await control.client.post("/api/groups", json=group)).json()["id"]
    limits = {"usageLimitEnabled": True, "dailyUsageLimitUsd": 5, "allowUsageCommand": True}
    key = await make_key(control, groupId=group_id, **limits)
    connection_id = await make_connection(control)
    combo = await control.client.post("/api/combos", json={"name": "ours", "models": ["n/one"]})
    return {
        "key": key["id"],
        "group": group_id,
        "combo": combo.json()["id"],
        "connection": connection_id,
    }


async def fill_for(control, records: dict[str, str], **changed) -> None:
    owners = {"key_id": records["key"], "group_path": records["group"], "combo": "ours"}
    owners |= {"connection_id": records["connection"], "session_tag": "s-1"}
    await fill(control, **owners, **changed)


@pytest.mark.parametrize(
    ("tiers", "micros", "words"),
    [
        ("unpriced", 0, "30 requests without a price"),
        ("flex,unpriced", 100_000, "$3.00 + 30 requests without a price"),
    ],
)
async def test_every_total_of_the_console_says_what_it_leaves_out(
    control, admin, records, tiers, micros, words
) -> None:
    await fill_for(control, records, price_tiers=tiers, cost_usd_micros=micros)
    for path, beside in TOTALS.items():
        answer = await control.client.get(path.format(**records), headers=admin)
        shown = text_of(answer.text)
        assert beside in shown, path
        assert words in shown, path
        assert f"$0 + {words}" not in shown, path


async def test_totals_with_a_price_say_nothing_of_prices(control, admin, records) -> None:
    await fill_for(control, records, price_tiers=None, cost_usd_micros=100_000)
    for path in TOTALS:
        shown = text_of((await control.client.get(path.format(**records), headers=admin)).text)
        assert "without a price" not in shown, path
        assert "$3.00" in shown, path


async def test_every_total_of_the_api_counts_what_it_leaves_out(control, records) -> None:
    await fill_for(control, records, price_tiers="unpriced", cost_usd_micros=0)

    async def read(path: str, who: dict[str, str] | None = None, **query: str):
        answer = await control.client.get(path, params=query, headers=who or {})
        assert answer.status_code == 200, answer.text
        return answer.json()

    recent = {"from": iso(moment_of(now_ms() - 60_000))}
    for query in ({"groupBy": "key"}, {"groupBy": "total"}, {"groupBy": "session"}, recent):
        rows = (await read("/api/usage/history", **{"groupBy": "total", **query}))["history"]
        assert [row["unpricedRequests"] for row in rows] == [30], query
    query = {"groupBy": "model", "totals": "true", "series": "hour"}
    history = await read("/api/usage/history", **query)
    assert history["totals"]["unpricedRequests"] == 30
    assert sum(history["series"]["groups"][0]["unpricedRequests"]) == 30
    (session,) = (await read("/api/sessions"))["sessions"]
    assert session["unpricedRequests"] == 30
    (combo,) = (await read("/api/combos/metrics"))["metrics"]
    assert (combo["unpricedRequests"], combo["targets"][0]["unpricedRequests"]) == (30, 30)
    connection = await read(f"/api/usage/{records['connection']}")
    assert connection["total"]["unpricedRequests"] == 30
    assert connection["byModel"][0]["unpricedRequests"] == 30
    assert sum(point["unpricedRequests"] for point in connection["series"]) == 30
    spending = await read(f"/api/groups/{records['group']}/spending")
    assert spending["levels"][0]["limits"][0]["unpricedRequests"] == 30
    own = control.as_principal("key", records["key"])
    assert (await read("/v1/me/status", own))["usage"]["daily"]["unpriced_requests"] == 30
    quota = await read("/api/usage/om-usage", own, format="json")
    assert quota["personal"]["dailyUnpricedRequests"] == 30
    text = (await control.client.get("/api/usage/om-usage", headers=own)).text
    assert "daily: $0.00 of $5.00 spent + 30 requests without a price" in text
