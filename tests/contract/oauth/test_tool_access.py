"""What the tool endpoint is told of whoever knocks (RFC 6750, RFC 9728)."""

from __future__ import annotations

import pytest

from fairlead.store.tool_access import ToolRefusal, ToolUser

from .conftest import ORIGIN

pytestmark = pytest.mark.anyio

METADATA = f'resource_metadata="{ORIGIN}/.well-known/oauth-protected-resource/mcp/rpc"'


async def test_without_a_token_the_challenge_says_where_to_look(server) -> None:
    refused = await server.resolve()
    assert refused == ToolRefusal(401, {"www-authenticate": f"Bearer {METADATA}"})


async def test_whatever_does_not_count_is_an_invalid_token(server) -> None:
    for shown in (
        ["Bearer unknown"],
        ["Bearer "],
        ["Bearer"],
        [""],
        ["Basic eDp5"],
        ["Bearer two words"],
        ["Bearer flb_" + "x" * 43],
        ["Bearer a", "Bearer b"],
    ):
        refused = await server.resolve(*shown)
        challenge = f'Bearer error="invalid_token", {METADATA}'
        assert refused == ToolRefusal(401, {"www-authenticate": challenge}), shown


async def test_a_token_is_the_person_who_approved(server, tool, session) -> None:
    issued = await tool.tokens(session)
    user = await server.resolve(f"bearer  {issued['access_token']}")
    assert isinstance(user, ToolUser)
    assert (user.email, user.manages, user.client_id) == ("owner@localhost", True, tool.client_id)
    assert not await server.counts(issued["refresh_token"])


async def test_a_bad_token_is_not_made_good_by_a_cookie(server, session) -> None:
    cookie = f"auth_token={session}"
    refused = await server.resolve("Bearer unknown", cookie=cookie)
    assert isinstance(refused, ToolRefusal)
    assert isinstance(await server.resolve(cookie=cookie), ToolRefusal)
