"""A secret of a provider's sign-in goes to the hosts that it was given for, and to no other, whatever is changed
in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.store.file import Connection
from tests.support.management import Management
from tests.support.oauth_server import OAuthServer

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

OAUTH = "/api/oauth/openai"
REFRESH = "refresh-token-canary"


@pytest.fixture
def server() -> Iterator[OAuthServer]:
    with OAuthServer() as running:
        yield running


@pytest.fixture
def stranger() -> Iterator[OAuthServer]:
    with OAuthServer() as running:
        yield running


async def set_section(management: Management, section: dict[str, Any], status: int = 200) -> Any:
    return await management.ask("PUT", f"{OAUTH}/settings", section, expect=status)


async def signed_in(management: Management, server: OAuthServer) -> str:
    begun = await management.ask("POST", f"{OAUTH}/authorize", {})
    back = server.sign_in(begun["authorizationUrl"])
    made = await management.ask("POST", f"{OAUTH}/exchange", {"code": back})
    return str(made["connection"]["id"])


async def test_the_client_secret_goes_to_no_other_device_service(
    management: Management, server: OAuthServer, stranger: OAuthServer
) -> None:
    await set_section(management, server.section())
    moved = {
        **server.section(),
        "clientSecret": "***",
        "deviceAuthorizationUrl": f"{stranger.url}/device_authorization",
    }
    assert (await set_section(management, moved, 400))["error"]["param"] == "clientSecret"
    await management.ask("POST", f"{OAUTH}/device-code", {})
    assert stranger.heard == []


@pytest.mark.parametrize("field", ["tokenUrl", "deviceAuthorizationUrl"])
async def test_an_address_that_was_empty_in_between_gets_no_secret(
    management: Management, server: OAuthServer, stranger: OAuthServer, field: str
) -> None:
    await set_section(management, server.section())
    empty = {
        **server.section(),
        "clientSecret": "***",
        "tokenUrl": None,
        "deviceAuthorizationUrl": None,
    }
    await set_section(management, empty)
    moved = {**empty, field: f"{stranger.url}/x"}
    assert (await set_section(management, moved, 400))["error"]["param"] == "clientSecret"
    # Back where it was given for, it serves again.
    await set_section(management, {**server.section(), "clientSecret": "***"})
    await management.ask("POST", f"{OAUTH}/device-code", {})
    # Given anew with the new address, it goes there.
    await set_section(management, {**moved, "clientSecret": "another-secret"})
    assert stranger.heard == []


async def test_refresh_tokens_stay_with_who_gave_them(
    management: Management, server: OAuthServer, stranger: OAuthServer
) -> None:
    await set_section(management, server.section())
    connection_id = await signed_in(management, server)
    empty = {**server.section(), "clientSecret": None, "tokenAuth": "none", "tokenUrl": None}
    await set_section(management, empty)
    moved = {**empty, "tokenUrl": f"{stranger.url}/token"}
    assert (await set_section(management, moved, 400))["error"]["param"] == "tokenUrl"
    # The token is checked before each use, whatever address is stored.
    await force_token_url(management, f"{stranger.url}/token")
    refused = await management.refused("POST", f"{OAUTH}/refresh", {"connectionId": connection_id})
    assert "another host" in refused[0]
    assert stranger.heard == []


async def test_secrets_of_an_earlier_version_are_bound_when_an_address_changes(
    management: Management, server: OAuthServer, stranger: OAuthServer
) -> None:
    await set_section(management, server.section())
    connection_id = await signed_in(management, server)
    await management.services.state.record(forget_origins)
    await management.ask("POST", f"{OAUTH}/refresh", {"connectionId": connection_id})
    await management.services.state.record(forget_origins)
    empty = {
        **server.section(),
        "clientSecret": "***",
        "tokenUrl": None,
        "deviceAuthorizationUrl": None,
    }
    await set_section(management, empty)
    moved = {**empty, "tokenUrl": f"{stranger.url}/token"}
    assert (await set_section(management, moved, 400))["error"]["param"] == "clientSecret"
    without = {**moved, "clientSecret": None, "tokenAuth": "none"}
    assert (await set_section(management, without, 400))["error"]["param"] == "tokenUrl"
    assert stranger.heard == []


async def test_a_sign_in_ends_where_it_was_begun(
    management: Management, server: OAuthServer, stranger: OAuthServer
) -> None:
    """The device's code is as good as the tokens, once the person has approved it."""
    await set_section(management, server.section())
    begun = await management.ask("POST", f"{OAUTH}/device-code", {})
    code = await management.ask("POST", f"{OAUTH}/authorize", {})
    moved = {
        **server.section(),
        "clientSecret": "of-the-stranger",
        "tokenUrl": f"{stranger.url}/token",
    }
    await set_section(management, moved)
    await management.services.state.record(
        lambda con: con.execute("UPDATE provider_sign_in_flows SET asked_at_ms = 0").fetchall()
    )
    message, param = await management.refused("POST", f"{OAUTH}/poll", {"state": begun["state"]})
    assert (param, "another host" in message) == ("state", True)
    back = server.sign_in(code["authorizationUrl"])
    message, param = await management.refused("POST", f"{OAUTH}/exchange", {"code": back})
    assert (param, "another host" in message) == ("state", True)
    assert stranger.heard == []


@pytest.mark.parametrize("code", ["https://[?code=x", f"https://a{chr(0x301) * 5000}?code=x"])
async def test_an_address_that_is_none_is_no_code(
    management: Management, server: OAuthServer, code: str
) -> None:
    await set_section(management, server.section())
    message, param = await management.refused("POST", f"{OAUTH}/exchange", {"code": code})
    assert (param, "nor the address" in message or "neither" in message) == ("code", True)


async def test_tokens_that_come_from_elsewhere_are_bound_to_the_address_in_force(
    management: Management, server: OAuthServer, stranger: OAuthServer
) -> None:
    await set_section(management, {**server.section(), "clientSecret": None, "tokenAuth": "none"})
    sent = {"accessToken": "access-token-canary", "refreshToken": REFRESH}
    await management.ask("POST", f"{OAUTH}/import", sent)
    moved = {
        **server.section(),
        "clientSecret": None,
        "tokenAuth": "none",
        "tokenUrl": f"{stranger.url}/token",
    }
    assert (await set_section(management, moved, 400))["error"]["param"] == "tokenUrl"
    assert stranger.heard == []


def forget_origins(con: Connection) -> None:
    con.execute("UPDATE provider_clients SET secret_origins = NULL")
    con.execute("UPDATE provider_sign_ins SET refresh_origins = NULL")


async def force_token_url(management: Management, url: str) -> None:
    """Writes an address past every check, as an old row or a restored backup may have it."""

    def write(con: Connection) -> None:
        con.execute(
            "UPDATE provider_clients SET section = ? WHERE provider = 'openai'",
            [f'{{"client_id": "gateway-client", "token_auth": "none", "token_url": "{url}"}}'],
        )

    await management.services.state.record(write)
