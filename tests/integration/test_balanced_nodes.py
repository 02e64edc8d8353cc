"""Two nodes of one database behind HAProxy, as `deploy/` configures it: replaced in turn, and no caller notices."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.support.balancer import Balancer, start_balancer
from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.processes import FRONTS, Gateway, expect, start_gateway
from tests.support.side_work import SideWork
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import Plain

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

# HAProxy looks twice a second.
DRAIN_DELAY_MS = "3000"
KEY = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="


@pytest.fixture
def plain() -> Iterator[Plain]:
    with Plain() as running:
        yield running


@pytest.fixture
def pair(postgresql: PostgresqlServer, tmp_path: Path) -> Iterator[tuple[Gateway, Gateway]]:
    url = postgresql.migrated()
    settings = {
        "FAIRLEAD_DATABASE_URL": url,
        "FAIRLEAD_SECRET_KEY": KEY,
        "FAIRLEAD_DRAIN_DELAY_MS": DRAIN_DELAY_MS,
        "SERVICE_TRUST_PROXY": "true",
    }
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(start_gateway(tmp_path, **settings, FAIRLEAD_FRONT=front))
            for front in FRONTS
        )
        yield first, second
    postgresql.drop(url)


@pytest.fixture
def balancer(pair: tuple[Gateway, Gateway], tmp_path: Path) -> Iterator[Balancer]:
    first, second = pair
    with start_balancer(tmp_path, free_port(), first.port, second.port) as running:
        yield running


def are_draining(gateway: Gateway) -> list[bool]:
    """Of each node in order of age, whether it says that it drains."""
    told = expect(gateway.admin.get("/api/cluster"), 200)
    return [bool(node["report"] and node["report"]["draining"]) for node in told["nodes"]]


class Callers(SideWork):
    """Call through the balancer on and on, half of them streams."""

    def __init__(self, url: str, key: str, model: str) -> None:
        self.served = 0
        self.failed: list[str] = []
        self._url, self._key, self._model = url, key, model
        super().__init__(*(partial(self._call, at) for at in range(4)))

    def wait_for_more(self, count: int) -> None:
        wanted = self.served + count
        eventually(lambda: self.served >= wanted, f"{count} more are served", within_s=60)

    def _call(self, at: int) -> None:
        body = {"model": self._model, "messages": [{"role": "user", "content": "hi"}]}
        body |= {"stream": True} if at % 2 else {}
        headers = {"authorization": f"Bearer {self._key}"}
        with httpx.Client(
            base_url=self._url, headers=headers, timeout=30, verify=NO_AUTHORITIES
        ) as client:
            # As fast as people with agents call, and not as fast as the machine can: the nodes are measured elsewhere.
            while not self.is_over.wait(0.02):
                try:
                    answer = client.post("/v1/chat/completions", json=body)
                except httpx.HTTPError as error:
                    self.failed.append(repr(error))
                    continue
                is_whole = "[DONE]" in answer.text if at % 2 else "hello" in answer.text
                if answer.status_code == 200 and is_whole:
                    self.served += 1
                else:
                    self.failed.append(f"{answer.status_code} {answer.text[:300]}")


def test_a_node_that_is_told_to_stop_drains_without_a_failed_request(
    pair: tuple[Gateway, Gateway], balancer: Balancer, plain: Plain
) -> None:
    """A bare SIGTERM: HAProxy notices before the node takes nothing more, and so do the other nodes."""
    first, second = pair
    key = first.create_key(name="balanced")
    model = first.add_lane(plain).model
    eventually(lambda: are_draining(second) == [False, False], "both are shown", within_s=20)
    with Callers(balancer.url, key["key"], model) as callers:
        callers.wait_for_more(20)
        first.popen.send_signal(signal.SIGTERM)
        eventually(lambda: are_draining(second) == [True, False], "it drains", within_s=10)
        assert first.wait() == 0
        callers.wait_for_more(20)
    assert not callers.failed


def test_a_caller_does_not_say_how_the_instance_is_reached(balancer: Balancer) -> None:
    """A node believes it of the balancer; a token would be asked of whom the caller names."""
    forged = {
        "X-Forwarded-Host": "evil.example",
        "X-Forwarded-Proto": "https",
        "CF-Visitor": '{"scheme":"https"}',
    }
    url = f"{balancer.url}/.well-known/oauth-authorization-server"
    answer = httpx.get(url, headers=forged, timeout=20, verify=NO_AUTHORITIES)
    assert answer.is_error, answer.text
    assert "SERVICE_PUBLIC_BASE_URL" in answer.text
    assert "evil.example" not in answer.text


@pytest.mark.slow
def test_nodes_are_replaced_one_after_the_other_without_a_failed_request(
    pair: tuple[Gateway, Gateway], balancer: Balancer, plain: Plain
) -> None:
    first, second = pair
    model = first.add_lane(plain).model
    key = first.create_key(name="balanced")
    with Callers(balancer.url, key["key"], model) as callers:
        callers.wait_for_more(40)
        for node, other, name in ((first, second, "one"), (second, first, "two")):
            assert node.stop() == 0
            callers.wait_for_more(20)
            # The instance is managed meanwhile.
            expect(other.admin.post("/api/keys", json={"name": "meanwhile"}), 201)
            node.start()
            eventually(
                lambda name=name: balancer.sends_to(name),
                "HAProxy has it back",
                within_s=20,
            )
            callers.wait_for_more(40)
    assert not callers.failed

    def counted(gateway: Gateway) -> int:
        told = expect(gateway.admin.get("/api/usage/history", params={"groupBy": "key"}), 200)
        return sum(row["requests"] for row in told["history"] if row["keyId"] == key["id"])

    # What was served is on record at both.
    for gateway in pair:
        eventually(
            lambda gateway=gateway: counted(gateway) >= callers.served,
            "all is counted",
            within_s=30,
        )
