"""A gateway whose state is in PostgreSQL, end to end; and two of them on one database."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.support.polling import eventually
from tests.support.process import descendants_of, free_port
from tests.support.processes import DEFAULTS, Gateway, expect, start_gateway
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import Upstream

if TYPE_CHECKING:
    from tests.support.postgresql import PostgresqlServer

KEY = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="


@pytest.fixture(scope="module")
def shared_url(postgresql: PostgresqlServer) -> Iterator[str]:
    url = postgresql.migrated()
    yield url
    postgresql.drop(url)


@pytest.fixture(scope="module")
def pair(
    shared_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Gateway, Gateway]]:
    """Two gateways on one database, with one key for secrets."""
    folder = tmp_path_factory.mktemp("pair")
    settings = {"FAIRLEAD_DATABASE_URL": shared_url, "FAIRLEAD_SECRET_KEY": KEY}
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(start_gateway(folder, **settings)) for _ in range(2))
        yield first, second


def chat(gateway: Gateway, key: str, body: dict) -> httpx.Response:
    return httpx.post(
        f"{gateway.url}/v1/chat/completions",
        json=body,
        headers={"authorization": f"Bearer {key}"},
        timeout=30,
        verify=NO_AUTHORITIES,
    )


def test_what_one_node_stores_is_in_force_at_the_other(
    pair: tuple[Gateway, Gateway], upstream: Upstream
) -> None:
    """A key that was made at one node opens the other when its write has answered, and closed, nothing."""
    first, second = pair
    lane = first.add_lane(upstream)
    body = lane.body()
    for writer, other in ((first, second), (second, first)):
        key = writer.create_key(name="shared")
        assert chat(other, key["key"], body).status_code == 200
        assert chat(writer, key["key"], body).status_code == 200
        answer = writer.admin.delete(f"/api/keys/{key['id']}")
        assert answer.status_code in (200, 204), answer.text
        assert "x-gateway-snapshot" not in answer.headers
        assert chat(other, key["key"], body).status_code == 401
        assert chat(writer, key["key"], body).status_code == 401


def test_a_revoked_key_passes_at_no_node_after_its_write_answered(
    pair: tuple[Gateway, Gateway], upstream: Upstream
) -> None:
    first, second = pair
    body = first.add_lane(upstream).body()
    keys = [first.create_key(name=f"k{number}") for number in range(10)]
    for number, key in enumerate(keys):
        writer, other = (first, second) if number % 2 else (second, first)
        assert chat(other, key["key"], body).status_code == 200
        expect(writer.admin.patch(f"/api/keys/{key['id']}", json={"isActive": False}), 200)
        assert chat(other, key["key"], body).status_code in (401, 403)


def test_a_name_is_taken_once_whoever_asks_where(pair: tuple[Gateway, Gateway]) -> None:
    """Uniqueness that is checked by a SELECT holds between nodes."""
    for number in range(5):
        body = {
            "type": "openai-compatible",
            "name": "race",
            "prefix": f"race{number}{secrets.token_hex(2)}",
            "baseUrl": "https://models.example/v1",
        }
        with ThreadPoolExecutor(8) as pool:
            answers = list(
                pool.map(
                    lambda at, body=body: (
                        httpx.post(
                            f"{pair[at % 2].url}/api/provider-nodes",
                            json=body,
                            headers=dict(pair[at % 2].admin.headers),
                            timeout=30,
                            verify=NO_AUTHORITIES,
                        ).status_code
                    ),
                    range(8),
                )
            )
        assert answers.count(201) == 1, answers
        assert set(answers) <= {201, 409, 400}, answers


@pytest.mark.slow
def test_a_restart_finds_everything_and_a_dead_node_holds_nobody_up(
    shared_url: str, pair: tuple[Gateway, Gateway], upstream: Upstream, tmp_path: Path
) -> None:
    first, _ = pair
    body = first.add_lane(upstream).body()
    key = first.create_key(name="outlives")
    settings = {"FAIRLEAD_DATABASE_URL": shared_url, "FAIRLEAD_SECRET_KEY": KEY}
    with start_gateway(tmp_path, **settings) as third:
        assert chat(third, key["key"], body).status_code == 200
        third.stop()
        third.start()
        assert chat(third, key["key"], body).status_code == 200
    assert not (third.data_dir / "state.duckdb").exists()
    # A node that ended says so: no write waits for it.
    answer = first.admin.patch(f"/api/keys/{key['id']}", json={"name": "renamed"})
    assert (answer.status_code, answer.headers.get("x-gateway-snapshot")) == (200, None)


@pytest.mark.slow
def test_a_database_that_comes_back_is_used_again(
    postgresql: PostgresqlServer, tmp_path: Path, upstream: Upstream
) -> None:
    """While it is away, calls go on by the last snapshot and a change is refused; nothing acknowledged is lost."""
    # The server of tests answers before a commit is written, and this one is stopped at once.
    url = postgresql.migrated()
    written = f"{url}?options=-csynchronous_commit%3Don"
    with start_gateway(tmp_path, FAIRLEAD_DATABASE_URL=written) as gateway:
        body = gateway.add_lane(upstream).body()
        key = gateway.create_key(name="before")
        postgresql.stop("immediate")
        try:
            assert chat(gateway, key["key"], body).status_code == 200
            refused = gateway.admin.post("/api/keys", json={"name": "meanwhile"})
            assert refused.status_code == 503, refused.text
        finally:
            postgresql.launch()

        def is_taken() -> bool:
            return gateway.admin.post("/api/keys", json={"name": "after"}).status_code == 201

        eventually(is_taken, "a change is stored again", within_s=30, every_s=0.2)
        names = [each["name"] for each in expect(gateway.admin.get("/api/keys"), 200)["keys"]]
        assert "before" in names
        assert "after" in names
        assert chat(gateway, key["key"], body).status_code == 200
    postgresql.drop(url)


def serve(data_dir: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """`fairlead serve` that is expected not to start."""
    command = [sys.executable, "-m", "fairlead", "serve", "--port", str(free_port())]
    return subprocess.run(
        [*command, "--data-dir", str(data_dir)],
        env=dict(os.environ) | DEFAULTS | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_what_stands_in_the_way_is_one_line(tmp_path: Path, shared_url: str, pair: object) -> None:
    port = free_port()
    gone = serve(
        tmp_path / "a", FAIRLEAD_DATABASE_URL=f"postgresql://me:pw-canary@127.0.0.1:{port}/state"
    )
    other_key = serve(tmp_path / "b", FAIRLEAD_DATABASE_URL=shared_url)
    wrong = serve(tmp_path / "c", FAIRLEAD_DATABASE_URL="mysql://me:pw-canary@127.0.0.1/state")
    for answer, word in (
        (gone, f"127.0.0.1:{port}"),
        (other_key, "another key"),
        (wrong, "FAIRLEAD_DATABASE_URL"),
    ):
        assert answer.returncode == 2, answer.stderr
        assert word in answer.stderr
        assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr
        assert "pw-canary" not in answer.stderr + answer.stdout


@pytest.mark.slow
def test_a_node_that_is_killed_holds_up_a_write_for_a_second_at_most(
    shared_url: str, pair: tuple[Gateway, Gateway], tmp_path: Path
) -> None:
    first, _ = pair
    settings = {"FAIRLEAD_DATABASE_URL": shared_url, "FAIRLEAD_SECRET_KEY": KEY}
    with start_gateway(tmp_path, **settings) as third:
        for pid in [third.popen.pid, *descendants_of(third.popen.pid)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        answer = first.admin.post("/api/keys", json={"name": "waits"})
        assert answer.status_code == 201
        assert answer.headers["x-gateway-snapshot"] == "pending"

        def is_forgotten() -> bool:
            told = first.admin.post("/api/keys", json={"name": "waits no more"})
            return "x-gateway-snapshot" not in told.headers

        eventually(is_forgotten, "the dead node is forgotten", within_s=20, every_s=0.2)


def test_usage_of_one_node_is_reported_by_every_node(
    pair: tuple[Gateway, Gateway], upstream: Upstream
) -> None:
    """Reports, and what a key has spent, are the same wherever they are asked for; a purge holds for all."""
    first, second = pair
    body = first.add_lane(upstream).body()
    key = first.create_key(name="counted")
    for gateway in (first, first, second):
        assert chat(gateway, key["key"], body).status_code == 200

    def requests_at(gateway: Gateway) -> int:
        told = expect(gateway.admin.get("/api/usage/history", params={"groupBy": "key"}), 200)
        return sum(row["requests"] for row in told["history"] if row["keyId"] == key["id"])

    for gateway in pair:
        eventually(
            lambda gateway=gateway: requests_at(gateway) == 3,
            "all three calls are known",
            within_s=20,
            every_s=0.1,
        )
    assert [path.name for path in (first.data_dir / "spool" / "outgoing").iterdir()] == []
    expect(first.admin.post("/api/settings/purge-request-history", json={}), 200)

    def logs_at(gateway: Gateway) -> int:
        told = expect(gateway.admin.get("/api/usage/logs", params={"keyId": key["id"]}), 200)
        return len(told["logs"])

    eventually(lambda: logs_at(second) == 0, "the purge is known", within_s=20, every_s=0.1)
    assert requests_at(second) == 3
