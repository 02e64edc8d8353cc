"""`GET /metrics`: what Prometheus reads, added up over workers, and for whom."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from fairlead.usage.telemetry.metric_families import FAMILIES
from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane
from tests.support.prometheus import Family, read_metrics
from tests.support.upstream import (
    DONE,
    Upstream,
    completion,
    delta,
    finish,
    reply,
    stream,
    usage_event,
)

pytestmark = pytest.mark.one_node(reason="metrics are each node's own")

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def scrape(gateway: Gateway) -> dict[str, Family]:
    answer = httpx.get(f"{gateway.url}/metrics", trust_env=False)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return read_metrics(answer.text)


def grown(gateway: Gateway, before: dict[str, Family], name: str, by: float, **labels: str) -> None:
    """Fails unless a counter comes to have grown by exactly so much."""

    def probe() -> bool:
        return scrape(gateway)[name].value(**labels) - before[name].value(**labels) == by

    eventually(probe, f"{name}{labels} grew by {by}", within_s=8, every_s=0.1)


def test_every_family_is_told_as_the_reference_says(gateway: Gateway) -> None:
    found = scrape(gateway)
    assert {(f.name, f.kind, f.help) for f in found.values()} == {
        (f.name, f.kind, f.help) for f in FAMILIES
    }
    labels = {family.name: set(family.labels) for family in FAMILIES}
    for family in found.values():
        for _, own in family.samples:
            assert {name for name, _ in own} - {"le"} == labels[family.name]
    documented = re.findall(r"^\| `(fairlead_\w+)`", REFERENCE.read_text(), re.MULTILINE)
    assert documented == [family.name for family in FAMILIES]


def test_calls_are_counted_by_outcome_provider_and_kind(gateway: Gateway, lane: Lane) -> None:
    provider = lane.node["id"]
    before = scrape(gateway)
    lane.upstream.script(
        reply(completion(tokens_in=11, tokens_out=5)),
        stream(delta("a"), finish(), usage_event(7, 3), DONE),
        reply({"error": {"message": "no"}}, 400),
    )
    assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200
    assert gateway.caller.post(CHAT, json=lane.body(stream=True)).status_code == 200
    assert gateway.caller.post(CHAT, json=lane.body()).status_code == 400
    assert gateway.caller.post(CHAT, json={"model": "nowhere/m", "messages": []}).status_code >= 400

    grown(
        gateway,
        before,
        "fairlead_provider_requests_total",
        2,
        provider=provider,
        outcome="completed",
    )
    after = scrape(gateway)
    failed = {"provider": provider, "outcome": "upstream_failed"}
    assert after["fairlead_provider_requests_total"].value(**failed) == 1
    assert after["fairlead_tokens_total"].value(provider=provider, kind="input") == 18
    assert after["fairlead_tokens_total"].value(provider=provider, kind="output") == 8
    assert after["fairlead_unpriced_requests_total"].value(provider=provider) == 2, (
        "no price is set"
    )
    count = after["fairlead_provider_duration_seconds"].samples[
        "fairlead_provider_duration_seconds_count", frozenset({("provider", provider)})
    ]
    assert count == 3
    grown(gateway, before, "fairlead_requests_total", 1, endpoint="chat", outcome="refused")
    grown(gateway, before, "fairlead_http_requests_total", 2, endpoint="chat", status="2xx")
    assert after["fairlead_workers_live"].value() == 1
    assert after["fairlead_build_info"].value() == 1


def test_what_is_refused_at_the_gate_is_counted(gateway: Gateway) -> None:
    before = scrape(gateway)
    assert gateway.client().get("/v1/models").status_code == 401
    assert gateway.client().get("/api/keys").status_code == 401
    assert gateway.client().get("/nothing/here").status_code == 404
    grown(gateway, before, "fairlead_http_requests_total", 1, endpoint="models", status="4xx")
    grown(gateway, before, "fairlead_http_requests_total", 1, endpoint="other", status="4xx")


def test_counters_outlive_the_worker_that_counted(gateway: Gateway, lane: Lane) -> None:
    before = scrape(gateway)
    so_far = before["fairlead_requests_total"].value(outcome="completed")
    for _ in range(3):
        assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200
    grown(gateway, before, "fairlead_requests_total", 3, outcome="completed")
    gateway.relay.kill()

    def answers() -> bool:
        try:
            return gateway.caller.post(CHAT, json=lane.body()).status_code == 200
        except httpx.HTTPError:
            return False

    eventually(answers, "the next worker answers", within_s=15, every_s=0.1)

    def counted() -> bool:
        return scrape(gateway)["fairlead_requests_total"].value(outcome="completed") >= so_far + 4

    eventually(counted, "both workers' calls are in the sum", within_s=10, every_s=0.2)


def test_a_new_control_process_is_told_all_that_was_counted(
    loopback_gateway: Gateway, upstream: Upstream
) -> None:
    """A poll tells what has changed since the last; a control that has heard nothing is told everything."""
    gateway = loopback_gateway
    lane = gateway.add_lane(upstream)
    before = scrape(gateway)
    so_far = before["fairlead_requests_total"].value(outcome="completed")
    for _ in range(3):
        assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200
    grown(gateway, before, "fairlead_requests_total", 3, outcome="completed")
    gateway.control.kill()

    def counted() -> bool:
        try:
            found = scrape(gateway)
        except (AssertionError, httpx.HTTPError):
            return False
        return found["fairlead_requests_total"].value(outcome="completed") == so_far + 3

    eventually(counted, "what rests is told again", within_s=20, every_s=0.2)
    before = scrape(gateway)
    assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200
    grown(gateway, before, "fairlead_requests_total", 1, outcome="completed")


def test_from_elsewhere_a_management_credential_is_needed(gateway: Gateway) -> None:
    # A proxy on this machine may add nothing; it was called by some name all the same.
    for host in ("gw.example", "192.168.0.2:20128", "localhost.evil.example"):
        answer = httpx.get(f"{gateway.url}/metrics", headers={"Host": host}, trust_env=False)
        assert answer.status_code == 401, host
    away = {"X-Forwarded-For": "203.0.113.7"}
    client = gateway.client()
    assert client.get("/metrics", headers=away).status_code == 401
    assert client.get("/metrics", headers={"Origin": "https://evil.example"}).status_code == 401
    plain = {"Authorization": f"Bearer {gateway.key}"}
    assert client.get("/metrics", headers=away | plain).status_code == 403
    manager = gateway.create_key(scopes=["manage"])["key"]
    shown = client.get("/metrics", headers=away | {"Authorization": f"Bearer {manager}"})
    assert shown.status_code == 200
    read_metrics(shown.text)
