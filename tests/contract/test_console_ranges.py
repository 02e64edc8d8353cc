"""Any time and any cut: ranges, filters, links that narrow, orders and downloads of usage and of the log."""

from __future__ import annotations

import asyncio
import csv
import html
import io
import re
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from fairlead.moment import now_ms
from tests.contract.test_console import MARKUP, make_key
from tests.contract.test_console import admin as admin  # noqa: PLC0414 - a fixture
from tests.contract.test_console_reasons import ENCODED, SAID, WORDS, text_of
from tests.support.records import usage_record

pytestmark = pytest.mark.anyio

DAY_MS = 86_400_000


async def settle(control, *records: dict[str, Any]) -> None:
    """Puts records into the log, and waits until they are listed."""
    folder = control.data_dir / "spool"
    folder.mkdir(exist_ok=True)
    name = f"w-{now_ms()}"
    before = (await control.client.get("/api/usage/logs", params={"limit": 1})).json()["total"]
    (folder / f"{name}.part").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
    (folder / f"{name}.part").rename(folder / f"{name}.ndjson")
    until = time.monotonic() + 20
    while time.monotonic() < until:
        answer = await control.client.get("/api/usage/logs", params={"limit": 1})
        if answer.json()["total"] >= before + len(records):
            return
        await asyncio.sleep(0.05)
    raise AssertionError("the records are not in the log")


def noon(days_ago: int) -> int:
    today = now_ms() - now_ms() % DAY_MS
    return today - days_ago * DAY_MS + DAY_MS // 2


def links_of(page: str) -> list[str]:
    return [html.unescape(each) for each in re.findall(r'href="([^"]*)"', page)]


async def page(control, who, path: str, **params: str) -> str:
    answer = await control.client.get(path, params=params or None, headers=who)
    assert answer.status_code == 200, (path, answer.text)
    return answer.text


async def fill_week(control) -> tuple[dict, dict]:
    """A dear key yesterday, and a cheap one on each day."""
    dear, cheap = await make_key(control, "dear"), await make_key(control, "cheap")
    await settle(
        control,
        *(
            usage_record(f"d{at}", ts_ms=noon(1), key_id=dear["id"], cost_usd_micros=2_000_000)
            for at in range(3)
        ),
        *(
            usage_record(f"c{days}", ts_ms=noon(days), key_id=cheap["id"], cost_usd_micros=1_000)
            for days in range(1, 9)
        ),
    )
    return dear, cheap


async def test_yesterdays_dearest_key_is_found_by_links_alone(control, admin) -> None:
    dear, _ = await fill_week(control)
    first = await page(control, admin, "/dashboard/usage")
    yesterday = next(each for each in links_of(first) if "window=yesterday" in each)
    second = await page(control, admin, f"/dashboard/usage{yesterday}")
    by_key = next(each for each in links_of(second) if "by=key" in each)
    assert "window=yesterday" in by_key
    third = await page(control, admin, f"/dashboard/usage{by_key}")
    rows = re.findall(r'<tr><th scope="row" class="name">.*?</tr>', third, re.DOTALL)
    assert "dear" in rows[0]
    assert "$6.00" in text_of(rows[0])
    assert "cheap" in rows[1]
    narrowed = next(each for each in links_of(rows[0]) if f"keyId={dear['id']}" in each)
    fourth = await page(control, admin, f"/dashboard/usage{narrowed}")
    assert 'class="chips"' in fourth
    assert "$6.00" in text_of(fourth)
    assert "Key: dear" in text_of(fourth)


async def test_dates_of_ones_own_narrow_usage_the_log_and_home(control, admin) -> None:
    await fill_week(control)
    day = f"{datetime.now(UTC) - timedelta(days=3):%Y-%m-%d}"
    asked = {"from": day, "to": day}
    usage = await page(control, admin, "/dashboard/usage", by="key", **asked)
    shown = text_of(usage)
    assert "cheap" in shown
    assert "dear" not in shown
    log = await page(control, admin, "/dashboard/logs", **asked)
    assert "1 request matches" in text_of(log)
    assert '/dashboard/logs/c3"' in log
    home = await page(control, admin, "/dashboard", **asked)
    assert "1 in all" in text_of(home)
    for path in ("/dashboard", "/dashboard/usage", "/dashboard/logs", "/dashboard/logs/refused"):
        wrong = await page(control, admin, path, **{"from": "2026-02-30"})
        assert "A date must be written as" in text_of(wrong), path
        assert 'role="alert"' in wrong


async def test_every_column_row_and_figure_is_a_link_that_narrows(control, admin) -> None:
    await fill_week(control)
    usage = await page(control, admin, "/dashboard/usage", window="7d", by="day")
    day = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%d}"
    assert f"from={day}T00%3A00" in usage
    (row,) = re.findall(rf'<tr><th scope="row" class="name"><a href="([^"]*)"><bdi>{day}', usage)
    hours = await page(control, admin, f"/dashboard/usage{html.unescape(row)}")
    assert "by=hour" in html.unescape(row)
    assert f"{day} 12:00" in text_of(hours)
    columns = re.findall(r'<a href="([^"]*)" tabindex="-1"><g class="column"', usage)
    assert len(columns) == 7
    narrowed = await page(control, admin, f"/dashboard/usage{html.unescape(columns[5])}")
    assert "$6.00" in text_of(narrowed)
    # The keyboard has the same links in the table.
    assert html.unescape(columns[5]) in links_of(usage[usage.index("As a table") :])


async def test_sums_have_two_dimensions_and_any_filter(control, admin) -> None:
    dear, cheap = await fill_week(control)
    pair = await page(control, admin, "/dashboard/usage", window="30d", by="key", then="model")
    assert '<th scope="col">Key</th><th scope="col">Model</th>' in pair
    filtered = await page(
        control, admin, "/dashboard/usage", window="30d", by="model", keyId=cheap["id"]
    )
    assert "$0.0080" in text_of(filtered)
    answer = await control.client.get(
        "/dashboard/usage/download.csv",
        params={"window": "30d", "by": "key", "then": "model", "keyId": dear["id"]},
        headers=admin,
    )
    head, *lines = csv.reader(io.StringIO(answer.text))
    assert head[:2] == ["Key", "Model"]
    assert [line[0] for line in lines] == ["dear"]
    # A removed filter leaves the rest of the address.
    (without,) = re.findall(r'aria-label="Remove the filter Key: cheap"', filtered)
    assert without
    assert any("by=model" in each and "keyId" not in each for each in links_of(filtered))


async def test_another_period_is_a_dashed_line_and_changes_every_figure(control, admin) -> None:
    await fill_week(control)
    day = f"{datetime.now(UTC) - timedelta(days=8):%Y-%m-%d}"
    asked = {"window": "yesterday", "by": "key", "measure": "requests"}
    plain = await page(control, admin, "/dashboard/usage", **asked)
    assert 'class="line compared"' not in plain
    compared = await page(control, admin, "/dashboard/usage", **asked, vs=day)
    assert 'class="line compared"' in compared
    assert f"the time from {day}" in text_of(compared)
    assert "+300 % against" in text_of(compared), "4 requests, and 1 a week before"


async def test_errors_are_counted_by_reason(control, admin) -> None:
    failed = {"outcome": "upstream_failed", "status": 502, "cost_usd_micros": 0}
    recent = now_ms() - 60_000
    await settle(
        control,
        *(
            usage_record(f"f{at}", ts_ms=recent, error_kind="upstream_status", **failed)
            for at in range(3)
        ),
        usage_record("r", ts_ms=recent, error_kind="rate_limited", outcome="refused", status=429),
        usage_record("ok", ts_ms=recent),
    )
    asked = {"groupBy": "reason", "from": str(recent - 1), "orderBy": "errors"}
    rows = (await control.client.get("/api/usage/history", params=asked)).json()["history"]
    assert {row["errorKind"]: row["errors"] for row in rows} == {
        "upstream_status": 3,
        "rate_limited": 1,
        None: 0,
    }
    one = asked | {"groupBy": "total", "errorKind": "rate_limited"}
    (row,) = (await control.client.get("/api/usage/history", params=one)).json()["history"]
    assert row["requests"] == 1
    usage = await page(
        control, admin, "/dashboard/usage", window="24h", by="reason", measure="errors"
    )
    table = text_of(usage[usage.index("<tbody>", usage.index('aria-label="By Reason"')) :])
    assert table.index("upstream status") < table.index("rate limited")
    assert "completed" not in table
    home = await page(control, admin, "/dashboard")
    assert "/dashboard/logs?errorKind=upstream_status&window=24h" in links_of(home)
    assert "Errors by reason" in home


async def test_the_log_is_searched_by_reason_and_by_id(control, admin) -> None:
    recent = now_ms() - 60_000
    failed = {"outcome": "upstream_failed", "status": 502, "error_kind": "upstream_status"}
    attempts = f"c;upstream_status;12.5;m;500;;;;{ENCODED}"
    await settle(
        control,
        usage_record("one", ts_ms=recent, error_message=SAID, failed_attempts=attempts, **failed),
        usage_record("two", ts_ms=recent, session_tag="talk-7", trace_id="abc"),
    )
    for words, expected in (
        ("SORRY", ["one"]),
        ("failed (500)", ["one"]),
        ("one", ["one"]),
        ("talk-7", ["two"]),
        ("abc", ["two"]),
        ("nowhere", []),
    ):
        found = await control.client.get("/api/usage/logs", params={"search": words})
        assert [row["requestId"] for row in found.json()["logs"]] == expected, words
        listed = await page(control, admin, "/dashboard/logs", search=words)
        for each in expected:
            assert f'/dashboard/logs/{each}"' in listed


async def test_the_log_is_sorted_by_what_it_shows(control, admin) -> None:
    recent = now_ms() - 60_000
    await settle(
        control,
        usage_record("slow", ts_ms=recent, latency_ms=900, cost_usd_micros=1, tokens_input=1),
        usage_record("dear", ts_ms=recent + 1, latency_ms=10, cost_usd_micros=99, tokens_input=2),
        usage_record("long", ts_ms=recent + 2, latency_ms=20, cost_usd_micros=2, tokens_input=900),
    )
    for order, first in (
        ("latency", "slow"),
        ("cost", "dear"),
        ("tokens", "long"),
        ("time", "long"),
    ):
        answer = await control.client.get("/api/usage/logs", params={"orderBy": order})
        assert answer.json()["logs"][0]["requestId"] == first, order
        listed = await page(control, admin, "/dashboard/logs", sort=order)
        ids = re.findall(r'href="/dashboard/logs/(\w+)" data-drawer', listed)
        assert ids[0] == first, order
        assert listed.count('aria-sort="descending"') == 1
    refused = await control.client.get(
        "/api/usage/logs", params={"orderBy": "cost", "after": "1-x"}
    )
    assert refused.status_code == 400
    second = await control.client.get(
        "/api/usage/logs", params={"orderBy": "cost", "offset": 1, "limit": 1}
    )
    assert second.json()["next"] is None
    assert second.json()["logs"][0]["requestId"] == "long"


async def test_the_log_is_downloaded_as_it_is_filtered_with_the_reasons(control, admin) -> None:
    recent = now_ms() - 60_000
    attempts = f"c;upstream_status;12.5;m;500;internal;server_error;req_77;{ENCODED}"
    failed = {"outcome": "upstream_failed", "status": 502, "error_kind": "upstream_status"}
    await settle(
        control,
        usage_record("bad", ts_ms=recent, error_message="=1+1", failed_attempts=attempts, **failed),
        usage_record("good", ts_ms=recent, model=MARKUP),
    )
    answer = await control.client.get(
        "/dashboard/logs/download.csv", params={"outcome": "upstream_failed"}, headers=admin
    )
    assert answer.headers["content-type"].startswith("text/csv")
    (row,) = csv.DictReader(io.StringIO(answer.text))
    assert (row["request_id"], row["reason"]) == ("bad", "upstream_status")
    assert row["message"] == "'=1+1", "no spreadsheet takes it for a formula"
    assert row["provider_status"] == "500"
    assert row["provider_request_id"] == "req_77"
    assert row["provider_message"] == WORDS
    every = await control.client.get("/dashboard/logs/download.csv", headers=admin)
    assert len(list(csv.DictReader(io.StringIO(every.text)))) == 2


async def test_home_shows_each_provider_as_a_strip_that_leads_to_its_failures(
    control, admin
) -> None:
    recent = now_ms() - 30_000
    failed = {"outcome": "upstream_failed", "status": 502, "error_kind": "upstream_status"}
    await settle(
        control,
        *(usage_record(f"a{at}", ts_ms=recent, provider="lab", **failed) for at in range(5)),
        *(usage_record(f"b{at}", ts_ms=recent, provider="calm") for at in range(5)),
    )
    home = await page(control, admin, "/dashboard")
    strips = re.findall(r'<ul class="strips">.*?</ul>', home, re.DOTALL)[0]
    lab = next(each for each in strips.split("<li>") if ">lab<" in each)
    calm = next(each for each in strips.split("<li>") if ">calm<" in each)
    assert '<rect class="bad"' in lab
    assert "100 % of 5 failed" in text_of(lab)
    assert '<rect class="good"' in calm
    assert "100 % of 5 succeeded" in text_of(calm)
    bad = next(each for each in links_of(lab) if "outcome=upstream_failed" in each)
    assert "5 requests match" in text_of(await page(control, admin, bad))


async def test_home_says_what_costs_more_than_last_week(control, admin) -> None:
    key = await make_key(control, "grows")
    await settle(
        control,
        usage_record("old", ts_ms=noon(9), key_id=key["id"], cost_usd_micros=1_000_000),
        usage_record("new", ts_ms=noon(1), key_id=key["id"], cost_usd_micros=3_000_000),
    )
    home = text_of(await page(control, admin, "/dashboard"))
    assert re.search(r"Key grows ?\$3\.00, \+200 %", home)


async def test_the_search_finds_pages_keys_settings_and_requests(control, admin) -> None:
    key = await make_key(control, "Reviewer")
    for words, href in (
        ("reviewer", f"/dashboard/keys/{key['id']}"),
        ("audit", "/dashboard/audit"),
        ("bodies for every key", "/dashboard/settings#f-captureBodies"),
        ("req_123", "/dashboard/logs?search=req_123&window=30d"),
    ):
        found = await page(control, admin, "/dashboard/find", q=words)
        assert href in links_of(found), words
    part = await page(control, admin, "/dashboard/find", q=MARKUP, part="found")
    assert "<script>" not in part
    assert "<html" not in part


async def test_changes_of_the_configuration_are_marks_on_charts_over_time(control, admin) -> None:
    await settle(control, usage_record("one", ts_ms=now_ms() - 60_000))
    answer = await control.client.patch("/api/settings", json={"auditRetentionDays": 77})
    assert answer.status_code == 200, answer.text
    assert (await control.client.post("/api/keys", json={"name": "no change"})).status_code == 201
    entries = (await control.client.get("/api/audit")).json()["entries"]
    (change,) = [each for each in entries if each["path"] == "/api/settings"]
    for path in ("/dashboard?window=24h", "/dashboard/usage?window=24h&by=key"):
        shown = await page(control, admin, path)
        href = f"/dashboard/audit?requestId={change['requestId']}"
        assert shown.count(f'href="{href}"') == 2, "a line, and a link for the keyboard"
        assert "Changed settings" in text_of(shown)
        assert shown.count('class="event"') == 1, path
