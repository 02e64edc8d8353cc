"""What nodes of one database show of each other, and the exchange of the key of their secrets."""

from __future__ import annotations

import base64
import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import httpx
import psycopg
import pytest

from fairlead.store.sealer import Sealer
from tests.support.command import fairlead
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect, start_gateway
from tests.support.upstream import Upstream

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))
SECRETS = 450


@pytest.fixture
def url(postgresql: PostgresqlServer) -> Iterator[str]:
    made = postgresql.migrated()
    yield made
    postgresql.drop(made)


@pytest.fixture
def pair(url: str, tmp_path: Path) -> Iterator[tuple[Gateway, Gateway]]:
    settings = {
        "FAIRLEAD_DATABASE_URL": url,
        "FAIRLEAD_SECRET_KEY": OLD,
        # A call that was on its way to a node when that was told to stop is served.
        "FAIRLEAD_DRAIN_DELAY_MS": "2000",
    }
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(start_gateway(tmp_path, **settings)) for _ in range(2))
        yield first, second


def cluster(gateway: Gateway) -> dict[str, Any]:
    return expect(gateway.admin.get("/api/cluster"), 200)


def test_a_node_by_itself_is_a_cluster_of_one(gateway: Gateway) -> None:
    told = cluster(gateway)
    if told["store"] == "postgresql":
        pytest.skip("embedded only: the store of this run is shared")
    assert told["complete"]
    assert [node["isThis"] for node in told["nodes"]] == [True]
    node = told["nodes"][0]
    assert node["snapshotVersion"] <= told["snapshotVersion"]
    assert node["report"]["usageBehind"] is None
    assert node["report"]["workers"] == 1


def test_every_node_shows_every_node_until_it_is_stopped(
    pair: tuple[Gateway, Gateway],
) -> None:
    first, second = pair

    def both(gateway: Gateway) -> dict[str, Any] | None:
        told = cluster(gateway)
        reports = [node["report"] for node in told["nodes"]]
        is_all = len(reports) == 2 and all(
            each and each["workers"] == 1 and each["usageBehind"] == 0 for each in reports
        )
        return told if is_all else None

    for gateway in pair:
        told = eventually(lambda gateway=gateway: both(gateway), "both are shown", within_s=20)
        assert told["store"] == "postgresql"
        assert len(told["versions"]) == len(told["sealKeys"]) == 1
        assert [node["isThis"] for node in told["nodes"]].count(True) == 1
    status = fairlead("status", "--data-dir", str(first.data_dir), "--url", first.url)
    assert status.returncode == 0, status.stderr
    assert "usage behind" in status.stdout
    assert "(this)" in status.stdout

    assert second.stop() == 0
    eventually(lambda: len(cluster(first)["nodes"]) == 1, "it is gone", within_s=20)


class Calls:
    """Calls at whichever node is up, on and on; a context manager."""

    def __init__(self, nodes: tuple[Gateway, ...], lane: Lane, key: str) -> None:
        self.nodes = list(nodes)
        self.served = 0
        self.failed: list[str] = []
        self._lane, self._key = lane, key
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._call)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _call(self) -> None:
        headers = {"authorization": f"Bearer {self._key}"}
        while not self._stop.is_set():
            for node in list(self.nodes):
                if node not in self.nodes:
                    # Taken out during the call before.
                    continue
                try:
                    answer = httpx.post(
                        f"{node.url}/v1/chat/completions",
                        json=self._lane.body(),
                        headers=headers,
                        timeout=30,
                    )
                except httpx.HTTPError as error:
                    self.failed.append(f"{node.port} {type(error).__name__}")
                    continue
                if answer.status_code == 200:
                    self.served += 1
                else:
                    self.failed.append(f"{node.port} {answer.status_code} {answer.text[:200]}")
            time.sleep(0.02)


def restart(calls: Calls, node: Gateway, **environment: str | None) -> None:
    """As behind a balancer: no call is sent to a node that is being restarted."""
    calls.nodes.remove(node)
    node.stop()
    for name, value in environment.items():
        if value is None:
            node._environment.pop(name, None)
        else:
            node._environment[name] = value
    node.start()
    calls.nodes.append(node)


@pytest.mark.slow
def test_the_key_of_secrets_is_exchanged_while_calls_go_on(
    pair: tuple[Gateway, Gateway], url: str, upstream: Upstream
) -> None:
    first, second = pair
    lane = first.add_lane(upstream)
    key = first.create_key(name="calls")["key"]
    sealer = Sealer(base64.b64decode(OLD))
    with psycopg.connect(url) as raw:
        for number in range(SECRETS):
            row_id = f"secret-{number}"
            raw.execute(
                "INSERT INTO fairlead.webhook_secrets VALUES (%s, 'gone', %s, '', 0, NULL)",
                [row_id, sealer.seal(row_id, b"whsec")],
            )
    with Calls(pair, lane, key) as calls:
        for node in pair:
            restart(calls, node, FAIRLEAD_OTHER_SECRET_KEY=NEW)
        restart(calls, first, FAIRLEAD_SECRET_KEY=NEW, FAIRLEAD_OTHER_SECRET_KEY=OLD)
        refused = first.admin.post("/api/settings/reseal")
        assert refused.status_code == 409, refused.text
        assert "FAIRLEAD_OTHER_SECRET_KEY" in refused.text
        assert len(cluster(first)["sealKeys"]) == 2
        # What either node seals meanwhile, both can open.
        later = second.add_lane(upstream)
        headers = {"authorization": f"Bearer {key}"}
        for node in pair:
            answer = httpx.post(
                f"{node.url}/v1/chat/completions", json=later.body(), headers=headers, timeout=30
            )
            assert answer.status_code == 200, answer.text
        restart(calls, second, FAIRLEAD_SECRET_KEY=NEW, FAIRLEAD_OTHER_SECRET_KEY=OLD)
        eventually(
            lambda: len(cluster(first)["sealKeys"]) == 1, "both have the new key", within_s=20
        )
        step = expect(first.admin.post("/api/settings/reseal"), 200)
        assert step["resealed"] == 200
        assert step["left"] > SECRETS - 200
        first.control.signal(signal.SIGKILL)
        eventually(first.manages, "control is back", within_s=60, every_s=0.2)
        done = fairlead("reseal", "--data-dir", str(first.data_dir), "--url", first.url)
        assert done.returncode == 0, done.stderr
        for node in pair:
            restart(calls, node, FAIRLEAD_OTHER_SECRET_KEY=None)
        served = calls.served
        eventually(lambda: calls.served > served + 10, "calls are served", within_s=30)
    assert not calls.failed
    new = Sealer(base64.b64decode(NEW))
    with psycopg.connect(url) as raw:
        rows = raw.execute("SELECT id, sealed FROM fairlead.webhook_secrets").fetchall()
    assert len(rows) == SECRETS
    assert all(new.unseal(row_id, sealed) == b"whsec" for row_id, sealed in rows)
