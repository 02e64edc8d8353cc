"""A fixture that fails wholly is green nowhere: Home, Health, the list of providers, limits."""

from __future__ import annotations

import re
import time

import pytest

from fairlead.dashboard.connection_state import connection_state_of
from fairlead.dashboard.recent_failures import failing_of
from tests.contract.test_console import admin as admin  # noqa: PLC0414 - a fixture
from tests.contract.test_console import fill_log, make_connection
from tests.contract.test_console_reasons import SAID, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]


async def fail_wholly(control, **changed) -> str:
    """Thirty requests that failed just now, all of one connection; its id."""
    connection = await make_connection(control)
    (node,) = (await control.client.get("/api/provider-nodes")).json()["nodes"]
    await fill_log(
        control,
        **{
            "ts_ms": int(time.time() * 1000) - 5_000,
            "provider": node["id"],
            "connection_id": connection,
            "outcome": "upstream_failed",
            "status": 502,
            "error_kind": "upstream_status",
            "error_message": SAID,
            **changed,
        },
    )
    return connection


@pytest.mark.one_control(False)
async def test_home_says_first_that_everything_fails_and_what_was_said(control, admin) -> None:
    await fail_wholly(control)
    page = (await control.client.get("/dashboard", headers=admin)).text
    shown = text_of(page)
    assert "100 % of the requests of the last 15 minutes failed (30 of 30)." in shown
    assert SAID in shown
    assert "No faults" not in shown
    assert page.index("Needs attention") < page.index('aria-label="Now"')
    assert re.search(r'class="figure bad">\s*<p class="label"><a[^>]*>Failed', page)
    href = re.search(r'href="(/dashboard/logs\?provider=[^"]*)"', page)
    assert href is not None
    listed = await control.client.get(href.group(1).replace("&amp;", "&"), headers=admin)
    assert SAID in text_of(listed.text)


@pytest.mark.one_control(False)
async def test_health_providers_and_limits_are_not_green(control, admin) -> None:
    await fail_wholly(control)
    health = (await control.client.get("/dashboard/health", headers=admin)).text
    assert "0 of 1" in text_of(health)
    assert re.search(r'class="figure bad">\s*<p class="label"><a[^>]*>Requests', health)
    for path in ("/dashboard/health", "/dashboard/providers", "/dashboard/limits"):
        page = (await control.client.get(path, headers=admin)).text
        assert '<span class="badge bad">failing</span>' in page, path
        assert '<span class="badge good">active</span>' not in page, path


@pytest.mark.one_control(False)
async def test_refusals_of_everything_need_attention_too(control, admin) -> None:
    refused = {"provider": None, "connection_id": None, "outcome": "refused", "status": 503}
    await fail_wholly(control, **refused, error_kind="no_route", error_message="No connection.")
    shown = text_of((await control.client.get("/dashboard", headers=admin)).text)
    assert "Refused by the gateway: 100 %" in shown
    assert "No connection." in shown


async def test_an_instance_without_providers_claims_nothing(control, admin) -> None:
    shown = text_of((await control.client.get("/dashboard", headers=admin)).text)
    assert "No faults" not in shown
    assert "Start here" in shown


def row(outcome: str, provider: str = "p") -> dict[str, str | None]:
    return {"provider": provider, "outcome": outcome, "errorMessage": None}


def sums(requests: int, errors: int, provider: str = "p") -> dict[str, object]:
    return {"provider": provider, "requests": requests, "errors": errors}


def test_a_provider_is_failing_until_a_request_succeeds() -> None:
    bad, good = row("upstream_failed"), row("completed")
    assert failing_of([sums(4, 4)], [bad] * 4) == []
    (all_of_five,) = failing_of([sums(5, 5)], [bad] * 5)
    assert all_of_five.fails_always
    (since_then,) = failing_of([sums(1_000, 5)], [*[bad] * 5, *[good] * 100])
    assert since_then.fails_always
    assert failing_of([sums(1_000, 5)], [good, *[bad] * 5, good]) == []
    (some,) = failing_of([sums(100, 6)], [good, bad])
    assert not some.fails_always
    assert failing_of([sums(100, 5)], [good, bad]) == []
    assert failing_of([sums(1_000, 6)], [row("client_gone")] * 6) == []


def test_only_a_connection_that_serves_is_green() -> None:
    failing = failing_of([sums(5, 5)], [row("upstream_failed")] * 5)
    circuit = [{"provider": "p", "state": "open", "failures": 5, "until": None}]
    closed = [{"provider": "p", "state": "closed", "failures": 1, "until": None}]
    assert connection_state_of("active", "p", [], []).mood == "good"
    assert connection_state_of("active", "p", closed, []).mood == "good"
    assert connection_state_of("active", "p", circuit, []) == ("circuit open", "bad")
    assert connection_state_of("active", "p", [], failing) == ("failing", "bad")
    assert connection_state_of("active", "q", circuit, failing).mood == "good"
    for state in ("cooling", "quota-exhausted", "terminal", "policy-blocked", "degraded", "new"):
        assert connection_state_of(state, "p", [], []).mood in ("warn", "bad"), state
