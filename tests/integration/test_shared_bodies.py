"""Bodies of requests at two nodes of one PostgreSQL and one store of files: read, purged and deleted at either."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.chat import chat_with_key
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect, start_gateway
from tests.support.s3_server import SETTINGS, S3Server
from tests.support.upstream import Plain

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

KEY = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="
# A sweep is a minute after the one before it.
SWEPT_WITHIN_S = 90


@dataclass
class Pair:
    """Two nodes, and the folder that they share if there is one."""

    nodes: tuple[Gateway, Gateway]
    files: Path | None
    lane: Lane

    def capture(self, node: Gateway, key: str) -> str:
        """A call at a node whose bodies are kept; returns its request id."""
        answer = chat_with_key(node, key, self.lane.body())
        assert answer.status_code == 200, answer.text
        return answer.headers["x-gateway-request-id"]

    def stored(self) -> list[Path]:
        """The bodies in the folder that the nodes share."""
        assert self.files is not None
        return sorted((self.files / "bodies").rglob("*.body"))


@contextlib.contextmanager
def started(url: str, folder: Path, **settings: str) -> Iterator[tuple[Gateway, Gateway]]:
    settings = {"FAIRLEAD_DATABASE_URL": url, "FAIRLEAD_SECRET_KEY": KEY, **settings}
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(start_gateway(folder, **settings)) for _ in range(2))
        yield first, second


@pytest.fixture(scope="module")
def plain() -> Iterator[Plain]:
    with Plain() as running:
        yield running


@pytest.fixture(scope="module")
def pair(
    postgresql: PostgresqlServer, plain: Plain, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    url, folder = postgresql.migrated(), tmp_path_factory.mktemp("bodies")
    (folder / "files").mkdir()
    with started(url, folder, FAIRLEAD_FILES_URL=f"file://{folder / 'files'}") as nodes:
        yield Pair(nodes, folder / "files", nodes[0].add_lane(plain))
    postgresql.drop(url)


def bodies(node: Gateway, request_id: str) -> dict[str, Any]:
    """What a node shows of a request, once it is settled and brought."""

    def find() -> dict[str, Any] | None:
        answer = node.admin.get(f"/api/usage/logs/{request_id}/body")
        assert answer.status_code in (200, 404), answer.text
        return answer.json() if answer.status_code == 200 else None

    found: dict[str, Any] = eventually(find, f"bodies of {request_id}", within_s=20, every_s=0.1)
    return found


def test_what_is_said_at_one_node_is_read_at_the_other(pair: Pair) -> None:
    first, second = pair.nodes
    key = first.create_key(name="loud", captureBodies=True)["key"]
    for served, shown in ((first, second), (second, first)):
        request_id = pair.capture(served, key)
        assert "hello" in str(bodies(shown, request_id)["response"]["body"])
        path = f"/api/usage/logs/{request_id}/headers"
        told = expect(shown.admin.get(path), 200)["response"]
        assert told["x-gateway-request-id"] == request_id
        assert shown.shown_record(request_id)["hasBodies"] is True
        assert bodies(served, request_id) == bodies(shown, request_id)
        eventually(
            lambda node=served: not list((node.data_dir / "spool" / "bodies").iterdir()),
            "it is brought",
            within_s=10,
        )
        assert not (served.data_dir / "bodies").exists()
    assert len(pair.stored()) == 2


def test_a_purge_at_one_node_deletes_what_the_other_served(pair: Pair) -> None:
    first, second = pair.nodes
    key = first.create_key(name="purged", captureBodies=True)["key"]
    ids = [pair.capture(second, key) for _ in range(3)]
    for request_id in ids:
        bodies(first, request_id)
    eventually(lambda: len(pair.stored()) >= 3, "all are brought", within_s=10)
    purged = expect(first.admin.post("/api/settings/purge-request-history", json={}), 200)
    assert purged["deletedBodies"] >= 3
    assert pair.stored() == []
    for node in pair.nodes:
        for request_id in ids:
            expect(node.admin.get(f"/api/usage/logs/{request_id}/body"), 404)


@pytest.mark.slow
def test_bodies_of_a_key_that_is_deleted_are_gone_within_the_sweep(pair: Pair) -> None:
    first, second = pair.nodes
    gone = first.create_key(name="gone", captureBodies=True)
    stays = first.create_key(name="stays", captureBodies=True)
    lost, kept = pair.capture(second, gone["key"]), pair.capture(second, stays["key"])
    for request_id in (lost, kept):
        bodies(first, request_id)
    eventually(lambda: len(pair.stored()) >= 2, "both are brought", within_s=10)
    assert first.admin.delete(f"/api/keys/{gone['id']}").status_code in (200, 204)
    for node in pair.nodes:
        expect(node.admin.get(f"/api/usage/logs/{lost}/body"), 404)

    def are_swept() -> bool:
        return not any(lost in path.name for path in pair.stored())

    eventually(are_swept, "they are swept", within_s=SWEPT_WITHIN_S, every_s=0.5)
    assert any(kept in path.name for path in pair.stored())
    assert bodies(second, kept)


def test_a_bucket_that_is_away_costs_no_call_and_what_waited_survives_a_kill(
    postgresql: PostgresqlServer, plain: Plain, tmp_path: Path
) -> None:
    url = postgresql.migrated()
    with (
        S3Server() as server,
        started(url, tmp_path, FAIRLEAD_FILES_URL=server.url, **SETTINGS) as nodes,
    ):
        first, second = nodes
        pair = Pair(nodes, None, first.add_lane(plain))
        key = first.create_key(name="loud", captureBodies=True)["key"]
        before = pair.capture(second, key)
        bodies(first, before)
        server.failures = 10**9
        ids = [pair.capture(second, key) for _ in range(5)]
        eventually(lambda: "kept bodies wait" in second.log, "the log says it", within_s=20)
        assert second.admin.get(f"/api/usage/logs/{ids[0]}/body").status_code == 200, "its own"
        assert first.admin.get(f"/api/usage/logs/{before}/body").status_code == 503
        first.shown_record(ids[0])
        second.kill_all()
        server.failures = 0
        second.start()
        for request_id in ids:
            bodies(first, request_id)
        assert len(server.below("bodies")) == 6
    postgresql.drop(url)
