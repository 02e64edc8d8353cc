"""What tests of the scraping API share: a gateway that may read pages on this machine, a site to read, and a caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.support.gateway_pool import operator_settings
from tests.support.processes import Gateway, expect


@pytest.fixture(scope="module")
def gateway(loopback_gateway: Gateway) -> Gateway:
    return loopback_gateway


@pytest.fixture
def change_settings(gateway: Gateway) -> Iterator[Callable[..., None]]:
    """Changes the operator's settings for one test."""
    before = operator_settings(gateway)
    changed: dict[str, Any] = {}

    def change(**settings: Any) -> None:
        changed.update(settings)
        expect(gateway.admin.patch("/api/settings", json=settings), 200)

    yield change
    restored = {name: before[name] for name in changed}
    expect(gateway.admin.patch("/api/settings", json=restored), 200)


@pytest.fixture
def caller(gateway: Gateway) -> httpx.Client:
    """A client with a key of its own, so that no test finds what another one has kept."""
    key = gateway.create_key(name="reader")["key"]
    return gateway.client(headers={"X-API-Key": key}, timeout=90.0)
