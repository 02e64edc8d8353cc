"""The identity provider is reached at judged addresses only, whatever its documents say."""

from __future__ import annotations

import asyncio
import socket

import pytest

from fairlead.errors import UpstreamOverloaded
from fairlead.identity.oidc.provider import OidcFailed, Provider
from tests.support.oidc import OidcProvider

pytestmark = pytest.mark.anyio


async def test_a_metadata_address_is_never_dialled() -> None:
    provider = Provider("http://169.254.169.254", "id", None)
    with pytest.raises(UpstreamOverloaded, match="AddressForbidden"):
        await provider.endpoints()
    await provider.close()


async def test_nor_one_that_a_document_or_a_name_leads_to(monkeypatch: pytest.MonkeyPatch) -> None:
    with OidcProvider() as server:
        server.discovery = {"token_endpoint": "http://169.254.169.254/token"}
        provider = Provider(server.issuer, "id", "secret")
        with pytest.raises(OidcFailed, match="AddressForbidden"):
            await provider.exchange("code", "verifier", "http://127.0.0.1/back", "nonce")
        await provider.close()

        port = int(server.issuer.rpartition(":")[2])

        async def mixed(host, *_, **__):
            addresses = ("127.0.0.1", "169.254.169.254")
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", mixed)
        provider = Provider(f"http://localhost:{port}", "id", None)
        with pytest.raises(UpstreamOverloaded, match="AddressForbidden"):
            await provider.endpoints()
        await provider.close()
        assert server.paths == ["/.well-known/openid-configuration"]
