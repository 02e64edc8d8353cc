"""The page that a browser comes back to: it ends the sign-in once, and says what went wrong without a change."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.support.management import Management
from tests.support.oauth_server import OAuthServer

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

OAUTH = "/api/oauth/openai"
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def server() -> Iterator[OAuthServer]:
    with OAuthServer() as running:
        yield running


async def begin(management: Management, server: OAuthServer, **target: str) -> str:
    """Where a person signs in, with the gateway's own page to come back to."""
    section = {name: value for name, value in server.section().items() if name != "redirectUri"}
    settings = await management.ask("PUT", f"{OAUTH}/settings", section)
    begun = await management.ask("POST", f"{OAUTH}/authorize", target)
    url = str(begun["authorizationUrl"])
    assert parse_qs(urlsplit(url).query)["redirect_uri"] == [settings["callbackUrl"]]
    assert settings["callbackUrl"].endswith(f"{OAUTH}/callback")
    server.core.redirect_uri = settings["callbackUrl"]
    return url


async def come_back(management: Management, address: str) -> httpx.Response:
    return await management.client.get(address)


async def connections(management: Management) -> list[dict[str, object]]:
    found: list[dict[str, object]] = (await management.ask("GET", "/api/providers"))["connections"]
    return found


async def test_the_browser_comes_back_and_the_connection_is_there(
    management: Management, server: OAuthServer
) -> None:
    back = server.sign_in(await begin(management, server, name=MARKUP))
    parts = urlsplit(back)
    page = await come_back(management, f"{parts.path}?{parts.query}")
    assert page.status_code == 200, page.text
    (connection,) = await connections(management)
    assert (connection["authType"], connection["name"]) == ("oauth", MARKUP)
    assert f'href="/dashboard/providers/{connection["id"]}"' in page.text
    assert MARKUP not in page.text
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "set-cookie" not in page.headers
    assert server.newest_token not in page.text
    # Reloaded, the page ends nothing a second time.
    again = await come_back(management, f"{parts.path}?{parts.query}")
    assert again.status_code == 400
    assert "used or too old" in again.text
    assert len(await connections(management)) == 1


async def test_the_same_connection_is_signed_in_again(
    management: Management, server: OAuthServer
) -> None:
    back = urlsplit(server.sign_in(await begin(management, server)))
    await come_back(management, f"{back.path}?{back.query}")
    (first,) = await connections(management)
    target = {"connectionId": str(first["id"])}
    back = urlsplit(server.sign_in(await begin(management, server, **target)))
    page = await come_back(management, f"{back.path}?{back.query}")
    assert page.status_code == 200
    assert [each["id"] for each in await connections(management)] == [first["id"]]


async def test_a_refusal_ends_the_sign_in(management: Management, server: OAuthServer) -> None:
    url = await begin(management, server)
    state = parse_qs(urlsplit(url).query)["state"][0]
    refused = await come_back(
        management, f"{OAUTH}/callback?error=access_denied{MARKUP}&state={state}"
    )
    assert refused.status_code == 400
    assert "The provider refused the sign-in: access_denied" in refused.text
    assert MARKUP not in refused.text
    back = urlsplit(server.sign_in(url))
    assert (await come_back(management, f"{back.path}?{back.query}")).status_code == 400
    assert await connections(management) == []


async def test_the_provider_may_refuse_the_code(
    management: Management, server: OAuthServer
) -> None:
    back = urlsplit(server.sign_in(await begin(management, server)))
    server.refuse_with = "invalid_grant"
    page = await come_back(management, f"{back.path}?{back.query}")
    assert page.status_code == 400
    assert "invalid_grant" in page.text
    assert await connections(management) == []


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"{OAUTH}/callback", 400),
        (f"{OAUTH}/callback?code=a", 400),
        (f"{OAUTH}/callback?code=a&state=unknown", 400),
        (f"{OAUTH}/callback?code=a&state=", 400),
        (f"{OAUTH}/callback?error=&state=unknown", 400),
        ("/api/oauth/nobody/callback?code=a&state=b", 404),
        (f"{OAUTH}/callback?code={'x' * 9000}&state=b", 400),
    ],
)
async def test_another_address_changes_nothing(
    management: Management, server: OAuthServer, path: str, status: int
) -> None:
    url = await begin(management, server)
    assert (await come_back(management, path)).status_code == status
    assert await connections(management) == []
    # The sign-in that is under way goes on.
    back = urlsplit(server.sign_in(url))
    assert (await come_back(management, f"{back.path}?{back.query}")).status_code == 200


async def test_a_state_is_of_its_provider(management: Management, server: OAuthServer) -> None:
    back = urlsplit(server.sign_in(await begin(management, server)))
    elsewhere = await come_back(management, f"/api/oauth/groq/callback?{back.query}")
    assert elsewhere.status_code == 400
    assert (await come_back(management, f"{back.path}?{back.query}")).status_code == 200
