"""Two nodes whose connections for messages the database ends: what one of them writes is seen at the other all the
same, and both hear of each other again soon, however often it happens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.support.owner import OWNER_PASSWORD
from tests.support.polling import eventually
from tests.support.processes import Gateway, expect, start_gateway

KEY = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="
LOSSES = 6
# Others forget a node that they have not heard of for twelve seconds, and then do not wait for it.
BACK_WITHIN_S = 8.0

Pair = tuple[Gateway, Gateway]


@pytest.fixture
def pair(database_url: str, tmp_path: Path) -> Iterator[Pair]:
    settings = {
        "FAIRLEAD_DATABASE_URL": database_url,
        "FAIRLEAD_SECRET_KEY": KEY,
        "INITIAL_PASSWORD": OWNER_PASSWORD,
    }
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(start_gateway(tmp_path, **settings)) for _ in range(2))
        yield first, second


@pytest.fixture
def server(database_url: str, pair: Pair) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as con:
        eventually(lambda: listeners(con) == 2, "both listen", within_s=20, every_s=0.1)
        yield con


def listeners(con: psycopg.Connection) -> int:
    """How many nodes hear messages and are seen."""
    found = con.execute(
        "SELECT count(*) FROM pg_stat_activity "
        "WHERE application_name = 'fairlead listener' AND datname = current_database()"
    ).fetchone()
    return found[0] if found else 0


def end_listeners(con: psycopg.Connection) -> None:
    con.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
        "WHERE application_name = 'fairlead listener' AND datname = current_database()"
    )


def signed_in(pair: Pair) -> tuple[httpx.Client, httpx.Client]:
    """The owner's session, at both nodes."""
    clients = tuple(node.client(headers={"origin": node.url}) for node in pair)
    expect(clients[0].post("/api/auth/login", json={"password": OWNER_PASSWORD}), 200)
    clients[1].cookies.update(clients[0].cookies)
    return clients[0], clients[1]


def test_a_page_shows_what_was_written_at_another_node_though_no_message_came(
    pair: Pair, server: psycopg.Connection
) -> None:
    first, second = signed_in(pair)
    node = pair[0].add_node("named", "https://models.example/v1")
    pair[0].add_connection(node["id"], "sk-of-a-page")
    for number in range(3):
        eventually(lambda: listeners(server) == 2, "both listen", within_s=20, every_s=0.05)
        # The names that the page shows have been read before.
        assert first.get("/dashboard/limits").status_code == 200
        end_listeners(server)
        name = f"renamed-{number}"
        expect(second.put(f"/api/provider-nodes/{node['id']}", json={"name": name}), 200)
        assert name in first.get("/dashboard/limits").text


@pytest.mark.slow
def test_a_node_is_heard_of_again_soon_however_often_its_connection_was_lost(
    pair: Pair, server: psycopg.Connection
) -> None:
    for _ in range(LOSSES):
        end_listeners(server)
        eventually(
            lambda: listeners(server) == 2, "both listen", within_s=BACK_WITHIN_S, every_s=0.05
        )
    told = expect(pair[0].admin.get("/api/cluster"), 200)
    assert len(told["nodes"]) == 2
