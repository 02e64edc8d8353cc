"""Why a request failed: its page says what the caller received, the list has it in a column, and a filter finds it."""

from __future__ import annotations

import html
import re

import pytest

from fairlead import _core
from fairlead.dashboard.reason import _ADVICE, kinds
from fairlead.usage.routes.views import show_request_log_row
from tests.contract.test_console import admin as admin  # noqa: PLC0414 - a fixture
from tests.contract.test_console import fill_log, make_connection, make_key
from tests.support.records import usage_record

pytestmark = pytest.mark.anyio

KINDS = [str(each["kind"]) for each in _core.error_kinds()]
SAID = "The provider failed (500)."
WORDS = 'It broke, <b>100 %</b>; "sorry", ask org-1'
ENCODED = "It broke%2C <b>100 %25</b>%3B %22sorry%22%2C ask org-1"


def text_of(page: str) -> str:
    """The words of a page, as a browser shows them."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page)))


def test_every_kind_of_error_has_advice() -> None:
    assert set(_ADVICE) == set(KINDS) == {code for code, _ in kinds()}


@pytest.mark.parametrize("kind", KINDS)
async def test_the_page_of_a_request_says_what_the_caller_received(control, admin, kind) -> None:
    said = f"A sentence of the gateway about {kind}: `lab/<m>` & 3 more."
    (record, *_) = await fill_log(
        control, outcome="refused", status=400, error_kind=kind, error_message=said, attempts=0
    )
    page = await control.client.get(f"/dashboard/logs/{record['request_id']}", headers=admin)
    assert page.status_code == 200
    shown = text_of(page.text)
    assert said in shown
    assert _ADVICE[kind].words in shown
    assert "<m>" not in page.text, "it is shown as text"
    # It is the first thing on the page, before the figures.
    assert page.text.index("Why it failed") < page.text.index("The request in figures")


async def test_what_the_provider_answered_is_shown_as_text_beside_a_link_to_its_connection(
    control,
    admin,
) -> None:
    connection = await make_connection(control)
    (record, *_) = await fill_log(
        control,
        outcome="upstream_failed",
        status=502,
        error_kind="upstream_status",
        error_message=SAID,
        connection_id=connection,
        failed_attempts=f"{connection};upstream_status;12.5;big%3Bmodel;500;internal;server_error;req_77;{ENCODED}",
    )
    page = (await control.client.get(f"/dashboard/logs/{record['request_id']}", headers=admin)).text
    shown = text_of(page)
    for words in (SAID, WORDS, "500", "internal", "server_error", "req_77", "big;model"):
        assert words in shown, words
    assert "<b>100" not in page
    assert f'href="/dashboard/providers/{connection}"' in page


async def test_a_refusal_by_a_limit_leads_to_the_key(control, admin) -> None:
    key = await make_key(control)
    (record, *_) = await fill_log(
        control,
        outcome="refused",
        status=429,
        error_kind="budget_exceeded",
        error_message="The limit of 0.150000 USD in each day is reached.",
        key_id=key["id"],
    )
    page = await control.client.get(f"/dashboard/logs/{record['request_id']}", headers=admin)
    assert f'href="/dashboard/keys/{key["id"]}"' in page.text
    assert "a refusal by the gateway" in text_of(page.text)


async def test_a_request_without_a_stored_message_says_what_its_kind_means(control, admin) -> None:
    (record, *_) = await fill_log(
        control, outcome="refused", status=503, error_kind="no_route", error_message=None
    )
    page = await control.client.get(f"/dashboard/logs/{record['request_id']}", headers=admin)
    assert "The model's provider has no usable connection." in text_of(page.text)


async def test_the_list_has_the_reason_and_finds_it(control, admin) -> None:
    await fill_log(
        control,
        outcome="upstream_failed",
        error_kind="upstream_status",
        error_message=SAID,
        failed_attempts=f"c;upstream_status;12.5;m;500;;;;{ENCODED}",
    )
    page = await control.client.get("/dashboard/logs", params={"window": "30d"}, headers=admin)
    assert SAID in text_of(page.text)
    for words, many in (("FAILED (500)", 30), ("sorry", 30), ("something else", 0)):
        query = {"window": "30d", "errorText": words}
        rows = await control.client.get("/api/usage/logs", params={"errorText": words})
        assert rows.json()["total"] == many, words
        listed = await control.client.get("/dashboard/logs", params=query, headers=admin)
        assert (SAID in text_of(listed.text)) == bool(many), words


def test_a_caller_that_is_confined_to_its_own_rows_sees_no_words_of_the_provider() -> None:
    attempts = f"c;upstream_status;12.5;m;500;internal;kind;req_77;{ENCODED}"
    row = usage_record("r", error_message=SAID, failed_attempts=attempts)
    (mine,) = show_request_log_row(row, has_bodies=False, is_confined=True).failed_attempts
    (whole,) = show_request_log_row(row, has_bodies=False).failed_attempts
    assert (whole.provider_message, whole.provider_request_id) == (WORDS, "req_77")
    assert (mine.provider_status, mine.provider_code, mine.provider_type) == (500, None, None)
    assert (mine.provider_message, mine.provider_request_id) == (None, None)


def test_a_rejection_has_its_reason_and_member() -> None:
    attempts = f"c;invalid_request;12.5;m;400;;;;{ENCODED};translation.refused;tools[0].name"
    row = usage_record("r", failed_attempts=attempts)
    (whole,) = show_request_log_row(row, has_bodies=False).failed_attempts
    assert whole.provider_message == WORDS
    assert (whole.rejection_reason, whole.rejected_member) == (
        "translation.refused",
        "tools[0].name",
    )
    (mine,) = show_request_log_row(row, has_bodies=False, is_confined=True).failed_attempts
    assert (mine.rejection_reason, mine.rejected_member) == ("translation.refused", None)


def test_records_of_older_form_are_read() -> None:
    row = usage_record("r", failed_attempts="c;upstream_status;12.5;a%3Bb,d;upstream_timeout;20;m")
    first, second = show_request_log_row(row, has_bodies=False).failed_attempts
    assert (first.model, first.provider_status, first.provider_message) == ("a;b", None, None)
    assert (second.connection_id, second.ended_ms) == ("d", 20)
