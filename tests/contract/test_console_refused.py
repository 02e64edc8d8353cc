"""The console shows callers who were refused: on the page of requests, and on a page of their own."""

from __future__ import annotations

import pytest

from fairlead.moment import now_ms
from fairlead.records import refused_callers
from fairlead.records.refused_callers import (
    RETENTION_MS,
    RefusedCallers,
    RefusedCallersFilter,
    delete_counts_before,
    read_counts,
    replace_counts,
)
from tests.contract.test_console import admin as admin  # noqa: PLC0414 - a fixture
from tests.contract.test_console_reasons import text_of

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

MINUTE_MS = 60_000


def count(minutes_ago: int = 0, **fields) -> RefusedCallers:
    minute_ms = now_ms() // MINUTE_MS * MINUTE_MS - minutes_ago * MINUTE_MS
    known = {
        "minute_ms": minute_ms,
        "address": "192.0.2.7",
        "method": "POST",
        "path": "/v1/chat/completions",
        "status": 401,
        "kind": "unauthenticated",
        "message": "The API key is not known here.",
        "requests": 3,
    }
    return RefusedCallers.model_validate(known | fields)


async def store(control, worker: str, *counts: RefusedCallers) -> None:
    await control.app.state.services.state.database.write(
        lambda con: replace_counts(con, worker, counts)
    )


async def stored(control) -> list[RefusedCallers]:
    everything = RefusedCallersFilter(0, now_ms() + MINUTE_MS)
    return await control.app.state.services.state.read(
        lambda con: read_counts(con, everything, 100_000)
    )


async def test_the_page_of_requests_says_how_many_and_leads_to_them(control, admin) -> None:
    shown = text_of((await control.client.get("/dashboard/logs", headers=admin)).text)
    assert "because of the caller" not in shown
    hostile = "<script>alert(1)</script>"
    await store(control, "a1", count(), count(1, message=hostile, requests=1_200))
    await store(control, "b2", count(requests=2))
    answer = await control.client.get("/dashboard/logs", headers=admin)
    assert "1,205 requests were refused because of the caller's key or address" in text_of(
        answer.text
    )
    assert 'href="/dashboard/logs/refused?window=7d"' in answer.text
    page = await control.client.get("/dashboard/logs/refused", headers=admin)
    assert page.status_code == 200
    assert hostile not in page.text
    shown = text_of(page.text)
    for words in ("192.0.2.7", "POST /v1/chat/completions", "401", "The API key is not known here"):
        assert words in shown
    assert "1,205 requests in the last 24 hours" in shown


async def test_counts_of_all_workers_are_added_and_a_later_report_replaces(control) -> None:
    await store(control, "a1", count(requests=1), count(1, requests=5))
    await store(control, "b2", count(requests=2))
    await store(control, "a1", count(requests=4))
    assert [each.requests for each in await stored(control)] == [6, 5]


async def test_old_counts_are_deleted(control, monkeypatch) -> None:
    week = RETENTION_MS // MINUTE_MS
    await store(control, "a1", count(), count(week + 1))

    def sweep(con) -> None:
        delete_counts_before(con, now_ms() - RETENTION_MS)

    await control.app.state.services.state.database.write(sweep)
    assert len(await stored(control)) == 1
    monkeypatch.setattr(refused_callers, "ROWS_MAX", 5)
    await store(control, "a1", *(count(minutes) for minutes in range(9)))
    await control.app.state.services.state.database.write(sweep)
    newest = sorted({each.minute_ms for each in await stored(control)})
    assert len(newest) == 5
    assert newest[-1] == count().minute_ms
