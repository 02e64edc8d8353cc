"""Every route that takes a provider accepts its id and its prefix, and answers 400 to any other name."""

from __future__ import annotations

from typing import Any, Final

import httpx
import pytest

from tests.support.processes import Gateway, Lane

PRICE: Final = {"input": 1, "output": 2}
# Method, path, and what carries the name: a parameter of the query, or a member of this body.
DOORS: Final[list[tuple[str, str, dict[str, Any] | None]]] = [
    ("GET", "/api/pricing", None),
    ("GET", "/api/provider-models", None),
    ("GET", "/api/models/catalog", None),
    ("GET", "/api/cache/entries", None),
    ("DELETE", "/api/cache/entries", None),
    ("GET", "/api/cache/reasoning", None),
    ("DELETE", "/api/cache/reasoning", None),
    ("GET", "/api/usage/history", None),
    ("GET", "/api/usage/logs", None),
    ("GET", "/api/usage/request-logs", None),
    ("GET", "/api/usage/model-latency-stats", None),
    ("DELETE", "/api/resilience/model-cooldowns", {"model": "m"}),
    ("POST", "/api/resilience/reset", {}),
]


def ask(
    gateway: Gateway, method: str, path: str, fields: dict[str, Any] | None, name: str
) -> httpx.Response:
    if fields is None:
        return gateway.admin.request(method, path, params={"provider": name})
    return gateway.admin.request(method, path, json={**fields, "provider": name})


@pytest.mark.parametrize(("method", "path", "fields"), DOORS, ids=lambda one: str(one)[:40])
def test_a_door_accepts_both_names_and_no_other(
    gateway: Gateway, lane: Lane, method: str, path: str, fields: dict[str, Any] | None
) -> None:
    for name in (lane.node["id"], lane.prefix):
        answer = ask(gateway, method, path, fields, name)
        assert answer.status_code in (200, 204), (name, answer.text)
    refused = ask(gateway, method, path, fields, "nobody")
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["param"] == "provider"


def test_prices_are_set_by_both_names_and_no_other(gateway: Gateway, lane: Lane) -> None:
    for name in (lane.node["id"], lane.prefix):
        answer = gateway.admin.put("/api/pricing", json={name: {"m": PRICE}})
        assert answer.status_code == 200, answer.text
        taken = gateway.admin.delete("/api/pricing", params={"provider": name})
        assert taken.json()["deleted"] == 1, taken.text
    for method in ("GET", "DELETE"):
        refused = gateway.admin.request(method, "/api/pricing", params={"provider": "nobody"})
        assert refused.status_code == 400, refused.text
    assert gateway.admin.put("/api/pricing", json={"nobody": {"m": PRICE}}).status_code == 400
