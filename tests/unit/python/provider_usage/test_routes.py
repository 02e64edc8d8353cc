"""What a provider tells of a connection's usage: asked for by hand and by the clock, shown, and forgotten with
its credential.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.gateway.provider_usage.task import MINUTE_MS, PAUSE_MAX_MS, due_ms, read_due
from fairlead.gateway.providers.catalogue import UsageRead, UsageSection, catalogue
from fairlead.moment import now_ms
from fairlead.records.provider_usage import ProviderUsage, put_provider_usage
from tests.support.management import Management
from tests.support.upstream import Upstream, reply

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

KEY = "sk-admin-canary-of-usage"
TOLD = {"data": {"usage": 25.5, "limit": 100, "limit_remaining": 74.5}}
FIGURE = {
    "name": "key",
    "unit": "USD",
    "usedMicros": 25_500_000,
    "limitMicros": 100_000_000,
    "remainingMicros": 74_500_000,
    "remainingPercent": 74.5,
    "since": None,
}


@pytest.fixture(autouse=True)
def on_loopback(monkeypatch: pytest.MonkeyPatch, upstream: Upstream) -> None:
    """The usage routes of two providers, whose addresses are the scripted one's."""

    def place(provider: str, read: UsageRead, path: str) -> None:
        section = UsageSection.model_construct(
            source="its documentation",
            reads=(read.model_copy(update={"url": f"{upstream.url}{path}"}),),
        )
        changed = catalogue()[provider].model_copy(update={"usage": section})
        monkeypatch.setitem(catalogue()._read, provider, changed)

    openrouter, openai = catalogue()["openrouter"].usage, catalogue()["openai"].usage
    assert openrouter is not None
    assert openai is not None
    place("openrouter", openrouter.reads[0], "/key")
    place("openai", openai.reads[0], "/costs?start_time={month_s}&month={month}&limit=31")


async def connect(management: Management, provider: str, **more: Any) -> str:
    body = {"provider": provider, "name": "c", "apiKey": "sk-a", **more}
    return str(
        (await management.ask("POST", "/api/providers", body, expect=201))["connection"]["id"]
    )


async def test_a_provider_is_asked_and_its_figures_are_shown(
    management: Management, upstream: Upstream
) -> None:
    upstream.script(reply(TOLD))
    connection_id = await connect(management, "openrouter")
    before = await management.ask("GET", f"/api/providers/{connection_id}/usage")
    assert (before["source"], before["needsKey"], before["hasKey"]) == (
        "its documentation",
        False,
        False,
    )
    assert (before["usage"]["figures"], before["usage"]["askedAt"]) == ([], None)
    assert upstream.requests == []
    assert (await management.ask("GET", f"/api/usage/{connection_id}"))["providerUsage"] is None

    shown = (await management.ask("POST", f"/api/providers/{connection_id}/usage"))["usage"]
    assert shown["figures"] == [FIGURE]
    assert shown["readAt"] == shown["askedAt"]
    (asked,) = upstream.requests
    assert (asked.method, asked.target, dict(asked.headers)["authorization"]) == (
        "GET",
        "/v1/key",
        "Bearer sk-a",
    )
    usage = (await management.ask("GET", f"/api/usage/{connection_id}"))["providerUsage"]
    assert usage == shown

    # What was told stays, with what went wrong since.
    upstream.script(reply({"error": "canary of the provider"}, status=403))
    after = (await management.ask("POST", f"/api/providers/{connection_id}/usage"))["usage"]
    assert (after["figures"], after["readAt"]) == ([FIGURE], shown["readAt"])
    assert after["failures"] == 1
    assert after["error"] == "The provider does not tell its usage to this credential (403)."

    # Of another credential nothing is known.
    await management.ask("PUT", f"/api/providers/{connection_id}", {"apiKey": "sk-b"})
    after = (await management.ask("GET", f"/api/providers/{connection_id}/usage"))["usage"]
    assert (after["figures"], after["askedAt"], after["error"]) == ([], None, None)


async def test_an_administrators_key_is_kept_apart(
    management: Management, upstream: Upstream
) -> None:
    connection_id = await connect(management, "openai")
    place = f"/api/providers/{connection_id}/usage"
    message, param = await management.refused("POST", place)
    assert (param, f"PUT {place}" in message) == ("usageKey", True)
    sent = await management.ask("PUT", place, {"usageKey": KEY})
    assert (sent["needsKey"], sent["hasKey"]) == (True, True)
    assert KEY not in str(sent) + str(management.snapshot())

    page = {"data": [{"results": [{"amount": {"value": 0.5}}]}]}
    upstream.script(reply({**page, "next_page": "page_2"}), reply({**page, "next_page": None}))
    (figure,) = (await management.ask("POST", place))["usage"]["figures"]
    assert (figure["name"], figure["usedMicros"]) == ("costs of the month", 1_000_000)
    assert figure["since"].endswith("-01T00:00:00.000Z")
    first, second = upstream.requests
    assert dict(first.headers)["authorization"] == f"Bearer {KEY}"
    assert "{" not in first.target
    assert first.target + "&page=page_2" == second.target.replace("%3A", ":")
    entries = (await management.ask("GET", "/api/audit"))["entries"]
    assert any(place in str(entry) for entry in entries)
    assert KEY not in str(entries)

    # A provider that ends no list is not followed for ever, and its sum is not taken for the whole.
    upstream.requests.clear()
    upstream.script(reply({**page, "next_page": "again"}))
    told = (await management.ask("POST", place))["usage"]
    assert told["error"] == "The provider's usage has more than 10 pages."
    assert len(upstream.requests) == 10
    assert told["figures"] == [figure]

    assert (await management.ask("PUT", place, {"usageKey": None}))["hasKey"] is False
    assert (await management.ask("GET", place))["usage"]["figures"] == []


async def test_the_clock_asks_what_is_due(management: Management, upstream: Upstream) -> None:
    upstream.script(reply(TOLD))
    own = await connect(management, "openrouter")
    await connect(management, "openrouter", isActive=False)
    await connect(management, "openai")  # without the key that its route wants
    await connect(management, "groq")  # documents no such route
    elsewhere = {"providerSpecificData": {"baseUrl": upstream.url}}
    await connect(management, "openrouter", **elsewhere)
    services, at_ms = management.services, now_ms()
    # Until somebody wants it, nobody is asked.
    assert (await management.ask("GET", "/api/settings"))["providerUsageMinutes"] == 0
    assert await read_due(services, at_ms) == []
    assert upstream.requests == []
    await management.ask("PATCH", "/api/settings", {"providerUsageMinutes": 60})
    assert await read_due(services, at_ms) == [own]
    assert len(upstream.requests) == 1
    assert await read_due(services, at_ms + 59 * MINUTE_MS) == []
    upstream.script(reply(b"no", status=500))
    assert await read_due(services, at_ms + 61 * MINUTE_MS) == [own]
    # After a failure the pause is twice as long.
    assert await read_due(services, at_ms + 90 * MINUTE_MS) == []
    assert await read_due(services, at_ms + 130 * MINUTE_MS) == [own]
    await management.ask("PATCH", "/api/settings", {"providerUsageMinutes": 0})
    assert await read_due(services, at_ms + 10**10) == []
    await management.ask("DELETE", f"/api/providers/{own}")
    await management.refused("GET", f"/api/providers/{own}/usage", expect=404)


async def test_one_odd_row_does_not_stop_the_questions_about_others(
    management: Management, upstream: Upstream
) -> None:
    upstream.script(reply(TOLD))
    odd, healthy = [await connect(management, "openrouter") for _ in range(2)]
    state = management.services.state
    spoilt = state.sealer.seal(f"provider-usage:{odd}", b"\xff\xfe")
    await state.record(lambda con: put_provider_usage(con, ProviderUsage(odd, key_sealed=spoilt)))
    await management.ask("PATCH", "/api/settings", {"providerUsageMinutes": 60})
    assert sorted(await read_due(management.services, now_ms())) == sorted([odd, healthy])
    assert len(upstream.requests) == 1
    shown = (await management.ask("GET", f"/api/providers/{healthy}/usage"))["usage"]
    assert shown["figures"] == [FIGURE]


def test_pauses_grow_to_a_day() -> None:
    asked = ProviderUsage("c", asked_at_ms=0)
    assert due_ms(ProviderUsage("c"), 60) == 0
    assert due_ms(asked, 60) == 60 * MINUTE_MS
    failed = ProviderUsage("c", asked_at_ms=0, failures=99)
    assert due_ms(failed, 60) == PAUSE_MAX_MS
    assert due_ms(failed, 10_080) == 10_080 * MINUTE_MS


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (reply(b"<html>"), "The provider's usage route answered something else than JSON."),
        (
            reply(b"", status=302, headers=[("location", "/x")]),
            "The provider's usage route answered 302.",
        ),
        (reply(b"", status=429), "The provider was asked for its usage too often (429)."),
        (
            reply({"data": []}),
            "The provider's answer holds none of the figures that its documentation names.",
        ),
    ],
)
async def test_a_useless_answer_is_told(
    management: Management, upstream: Upstream, answer: Any, error: str
) -> None:
    upstream.script(answer)
    connection_id = await connect(management, "openrouter")
    told = (await management.ask("POST", f"/api/providers/{connection_id}/usage"))["usage"]
    assert (told["figures"], told["readAt"], told["error"], told["failures"]) == (
        [],
        None,
        error,
        1,
    )


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "usageKey"),
        ({"usageKey": ""}, "usageKey"),
        ({"usageKey": "a b"}, "usageKey"),
        ({"usageKey": 7}, "usageKey"),
        ({"usageKey": "x" * 10_001}, "usageKey"),
        ({"usageKey": KEY, "color": "red"}, "color"),
    ],
)
async def test_a_wrong_key_changes_nothing(
    management: Management, body: dict[str, Any], param: str
) -> None:
    connection_id = await connect(management, "openai")
    place = f"/api/providers/{connection_id}/usage"
    assert (await management.refused("PUT", place, body))[1] == param
    assert (await management.ask("GET", place))["hasKey"] is False


async def test_a_provider_without_such_a_route_says_so(management: Management) -> None:
    connection_id = await connect(management, "groq")
    place = f"/api/providers/{connection_id}/usage"
    assert (await management.ask("GET", place))["source"] is None
    assert (await management.refused("POST", place))[1] == "id"
    assert (await management.refused("PUT", place, {"usageKey": KEY}))[1] == "usageKey"
    for method, body in (("GET", None), ("POST", None), ("PUT", {"usageKey": KEY})):
        await management.refused(method, "/api/providers/none/usage", body, expect=404)
