"""The owner of gateways that several test files share."""

from __future__ import annotations

from typing import Final

import httpx

from tests.support.polling import eventually
from tests.support.processes import Gateway, expect

OWNER_PASSWORD: Final = "correct horse battery staple"


def demo_owner_of(gateway: Gateway) -> httpx.Client:
    """The session of the owner of a demo, when its made-up traffic is in the log."""
    client = gateway.client()
    expect(client.post("/api/auth/login", json={"password": OWNER_PASSWORD}), 200)
    client.headers["origin"] = gateway.url

    def is_filled() -> bool:
        told = expect(client.get("/api/usage/logs", params={"limit": 1}), 200)
        return bool(told["total"] >= 5_000)

    eventually(is_filled, "the demo is filled", within_s=30)
    return client
