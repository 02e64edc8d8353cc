"""A cost that is not known is a word, and never zero: in the log, in sums, on pages and in downloads."""

from __future__ import annotations

import csv
import io
import time

import polars as pl
import pytest

from tests.contract.test_console import admin as admin  # noqa: PLC0414 - a fixture
from tests.contract.test_console import fill_log
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
