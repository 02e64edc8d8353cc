"""The clients of tests return from a change when it is in force, however busy the machine is."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import httpx

from tests.support.processes import Gateway


def test_a_change_that_is_stored_and_not_in_force_is_waited_for(tmp_path: Path) -> None:
    applied = [6, 6, 7]

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path != "/api/cluster":
            return httpx.Response(200, headers={"X-Gateway-Snapshot": "pending"})
        nodes = [
            {"isThis": False, "snapshotVersion": 1},
            {"isThis": True, "snapshotVersion": applied.pop(0)},
        ]
        return httpx.Response(200, json={"snapshotVersion": 7, "nodes": nodes})

    gateway = Gateway(tmp_path, 1, {})
    with closing(gateway.client(transport=httpx.MockTransport(answer))) as client:
        gateway._admin = client
        assert client.patch("/api/settings", json={}).status_code == 200
    assert applied == [], "asked until the worker had applied it"
