"""The console's page of a connection: what its provider tells of usage, and the button that begins a sign-in."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from fairlead.moment import now_ms
from fairlead.records.provider_usage import (
    ProviderUsage,
    UsageFigure,
    find_provider_usage,
    put_provider_usage,
)

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

FORM = {"content-type": "application/x-www-form-urlencoded"}
MARKUP = "<script>alert(1)</script>"
KEY = "sk-admin-canary-of-the-console"
SECTION = {
    "clientId": "a-client",
    "authorizationUrl": "https://id.example/authorize",
    "tokenUrl": "https://id.example/token",
}


async def post(control, path: str, **fields: str):
    return await control.client.post(path, content=urlencode(fields), headers=FORM)


async def connect(control, provider: str) -> str:
    body = {"provider": provider, "name": "one", "apiKey": "sk-of-a-connection"}
    answer = await control.client.post("/api/providers", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["connection"]["id"]


async def stored(control, connection_id: str) -> ProviderUsage:
    state = control.app.state.services.state
    return await state.read(lambda con: find_provider_usage(con, connection_id))


async def test_a_page_shows_what_was_told_and_what_is_unknown(control) -> None:
    connection_id = await connect(control, "openrouter")
    place = f"/dashboard/providers/{connection_id}"
    page = (await control.client.get(place)).text
    assert "not read yet" in page
    figures = (
        UsageFigure("key", "USD", 25_500_000, 100_000_000, 74_500_000),
        UsageFigure(MARKUP, "USD", 1_234_567_891),
        UsageFigure("debt", "USD", remaining_micros=-3_500_000),
    )
    told = ProviderUsage(connection_id, figures=figures, read_at_ms=now_ms(), asked_at_ms=now_ms())
    state = control.app.state.services.state
    await state.record(lambda con: put_provider_usage(con, replace(told, last_error=MARKUP)))
    page = (await control.client.get(place)).text
    assert MARKUP not in page
    assert html.escape(MARKUP) in page
    cells = re.findall(r'<td class="number" data-label="[A-Z][a-z]+">([^<]+)', page)
    amounts = [cell.strip() for cell in cells]
    for expected in ("25.50 USD", "100 USD", "74.50 USD", "1,234.567891 USD", "-3.50 USD"):
        assert expected in amounts, amounts
    assert amounts.count("unknown") == 4
    assert "74.5 %" in page or "74 %" in page or "75 %" in page
    # Where nothing is known of such a route, nothing is said.
    other = await connect(control, "groq")
    assert (
        "Usage reported by the provider"
        not in (await control.client.get(f"/dashboard/providers/{other}")).text
    )


async def test_an_administrators_key_is_set_and_forgotten(control) -> None:
    connection_id = await connect(control, "openai")
    place = f"/dashboard/providers/{connection_id}"
    shown = (await control.client.get(place)).text.replace("&#39;", "'")
    assert "reports usage to an administrator's key only" in shown
    saved = await post(control, place, act="usage_key", usageKey=KEY)
    assert saved.status_code == 303, saved.text
    assert (await stored(control, connection_id)).key_sealed is not None
    page = (await control.client.get(place)).text
    assert KEY not in page
    assert "Read now" in page
    wrong = await post(control, place, act="usage_key", usageKey="a b")
    assert wrong.status_code == 400
    assert "printable ASCII" in wrong.text
    assert (await post(control, place, act="usage_key", usageKey="")).status_code == 303
    assert (await stored(control, connection_id)).key_sealed is None
    refused = await post(control, place, act="usage")
    assert refused.status_code == 400


async def test_a_button_leads_to_the_provider(control) -> None:
    new = "/dashboard/providers/new/huggingface"
    assert "Sign in instead" not in (await control.client.get(new)).text
    settings = await control.client.put("/api/oauth/huggingface/settings", json=SECTION)
    assert settings.status_code == 200, settings.text
    assert "Sign in instead" in (await control.client.get(new)).text
    begun = await post(control, new, act="sign_in")
    assert begun.status_code == 200, begun.text
    (url,) = re.findall(r'href="(https://id\.example/authorize[^"]+)"', begun.text)
    query = parse_qs(urlsplit(html.unescape(url)).query)
    assert query["redirect_uri"] == [settings.json()["callbackUrl"]]
    assert query["code_challenge_method"] == ["S256"]
    assert settings.json()["callbackUrl"] in begun.text
    # Of a connection with a key there is nothing to sign in for.
    connection_id = await connect(control, "huggingface")
    page = (await control.client.get(f"/dashboard/providers/{connection_id}")).text
    assert 'value="sign_in"' not in page
    taken = await control.client.post(
        "/api/oauth/huggingface/import", json={"accessToken": "a-token-of-a-person"}
    )
    place = f"/dashboard/providers/{taken.json()['connection']['id']}"
    assert 'value="sign_in"' in (await control.client.get(place)).text
    begun = await post(control, place, act="sign_in")
    assert begun.status_code == 200
    assert "https://id.example/authorize" in begun.text


async def test_a_member_begins_no_sign_in(control) -> None:
    await control.client.put("/api/oauth/huggingface/settings", json=SECTION)
    headers = FORM | control.as_principal("session", "nobody", [])
    answer = await control.client.post(
        "/dashboard/providers/new/huggingface", content="act=sign_in", headers=headers
    )
    assert answer.status_code in (303, 403)
    assert "https://id.example" not in answer.text
