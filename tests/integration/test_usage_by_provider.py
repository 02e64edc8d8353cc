"""Usage is found by the prefix that callers write, by the node's id, and when the node is gone."""

from __future__ import annotations

from typing import Any

from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect

PATHS = {
    "/api/usage/history": "history",
    "/api/usage/logs": "logs",
    "/api/usage/request-logs": "logs",
    "/api/usage/model-latency-stats": "entries",
}


def test_usage_of_a_node_by_either_name(gateway: Gateway, lane: Lane) -> None:
    expect(gateway.caller.post("/v1/chat/completions", json=lane.body()), 200)

    def rows(path: str, name: str) -> list[Any]:
        found: list[Any] = expect(gateway.admin.get(path, params={"provider": name}), 200)[
            PATHS[path]
        ]
        return found

    for path in PATHS:
        by_id = eventually(lambda p=path: rows(p, lane.node["id"]), f"{path} has it")
        assert rows(path, lane.prefix) == by_id
        refused = gateway.admin.get(path, params={"provider": "nobody"})
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "provider")
    for connection in lane.connections:
        expect(gateway.admin.delete(f"/api/providers/{connection['id']}"), 200)
    expect(gateway.admin.delete(f"/api/provider-nodes/{lane.node['id']}"), 200)
    assert rows("/api/usage/history", lane.node["id"])
