"""What integration tests share beside the running gateways of tests/conftest.py."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.support.gateway_pool import GatewayPool
from tests.support.owner import OWNER_PASSWORD, demo_owner_of
from tests.support.processes import Gateway, expect
from tests.support.site import BRISK, READS_LOOPBACK, Site
from tests.support.upstream import Upstream

if TYPE_CHECKING:
    # These clients take seconds to import, and most files here need none of them.
    import anthropic
    import openai
    from google import genai

HOST_NAMES = {
    "SERVICE_PUBLIC_BASE_URL": "https://gateway.example/",
    "FAIRLEAD_HOST_NAMES": "fairlead, gateway.lan",
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Pages on this machine that a test scripts."""
    with Site() as running:
        yield running


@pytest.fixture(scope="module")
def loopback_gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    """A gateway that reads pages and calls listeners on this machine, pages as fast as it can.

    A test may kill its control plane where it waits until it is back; one that kills it again and again, or wants
    other settings, starts a gateway for itself.
    """
    with gateway_pool.lease(settings=BRISK, **READS_LOOPBACK) as running:
        yield running
        # A control plane that was killed has come back as another process.
        running.remember_processes()


@pytest.fixture(scope="module")
def owned_gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    """A gateway whose owner has a password. From one address it takes ten sign-ins a minute."""
    with gateway_pool.lease(INITIAL_PASSWORD=OWNER_PASSWORD) as running:
        yield running
        # A control plane that was killed has come back as another process.
        running.remember_processes()


@pytest.fixture(scope="module")
def owner(owned_gateway: Gateway) -> httpx.Client:
    """The API by the session of the owner of `owned_gateway`."""
    client = owned_gateway.client()
    expect(client.post("/api/auth/login", json={"password": OWNER_PASSWORD}), 200)
    client.headers["origin"] = owned_gateway.url
    return client


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium by playwright, for tests that skip where one of the two is missing."""
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        # In a container there is no other user than root, whom Chromium's sandbox refuses.
        launched = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), chromium_sandbox=os.geteuid() != 0
        )
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def proxied_gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    """A gateway behind a proxy that it trusts, so that a test can call from any address."""
    with gateway_pool.lease(SERVICE_TRUST_PROXY="true") as running:
        yield running


@pytest.fixture(scope="module")
def keyless_gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    """A gateway that asks callers for no key, and has names."""
    with gateway_pool.lease(REQUIRE_API_KEY="false", **HOST_NAMES) as running:
        yield running


@pytest.fixture(scope="module")
def demo_gateway(gateway_pool: GatewayPool) -> Iterator[Gateway]:
    """A gateway with the stand-in and five weeks of made-up traffic."""
    with gateway_pool.lease("--demo", INITIAL_PASSWORD=OWNER_PASSWORD) as running:
        yield running


@pytest.fixture(scope="module")
def demo_owner(demo_gateway: Gateway) -> httpx.Client:
    """The session of its owner, when the made-up traffic is in the log."""
    return demo_owner_of(demo_gateway)


@pytest.fixture
def built_in(gateway: Gateway, upstream: Upstream) -> Iterator[Any]:
    """Adds connections of built-in providers whose address is the upstream's."""
    made: list[str] = []

    def add(provider: str, **specific: Any) -> str:
        data = {"baseUrl": upstream.url, **specific}
        secret = f"sk-{provider}-canary-{len(made)}-0123456789"
        record = gateway.add_connection(provider, secret, providerSpecificData=data)
        made.append(record["id"])
        return str(record["id"])

    yield add
    for connection_id in made:
        assert gateway.admin.delete(f"/api/providers/{connection_id}").is_success


@pytest.fixture
def up(upstream: Upstream) -> Upstream:
    """The scripted upstream, in place of a cloud."""
    return upstream


@pytest.fixture
def openais(gateway: Gateway) -> Iterator[openai.OpenAI]:
    """OpenAI's client with the gateway's unlimited key."""
    from tests.support.sdk_clients import openai_client

    with openai_client(gateway) as made:
        yield made


@pytest.fixture
def anthropics(gateway: Gateway) -> Iterator[anthropic.Anthropic]:
    """Anthropic's client with the gateway's unlimited key."""
    from tests.support.sdk_clients import anthropic_client

    with anthropic_client(gateway) as made:
        yield made


@pytest.fixture
def gemini(gateway: Gateway) -> Iterator[genai.Client]:
    """Google's client with the gateway's unlimited key."""
    from tests.support.sdk_clients import genai_client

    made = genai_client(gateway)
    yield made
    made.close()
