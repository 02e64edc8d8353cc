"""A question to a server that stands still, or is cut off without a word, ends when whoever asked has waited enough."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import psycopg
import pytest

from fairlead.store.postgresql.channels import connect_async, fetch
from tests.support.tcp_link import TcpLink

pytestmark = pytest.mark.anyio

SOON_S = 2.0
"""More than a full machine needs, and far less than the ten seconds that psycopg waits for a cancelled statement."""


@pytest.fixture
def link(database_url: str) -> Iterator[TcpLink]:
    port = psycopg.conninfo.conninfo_to_dict(database_url)["port"]
    with TcpLink(int(port or 5432)) as running:
        yield running


async def test_a_bound_holds_where_the_server_stands_still(
    database_url: str, link: TcpLink
) -> None:
    through = psycopg.conninfo.make_conninfo(database_url, host=link.host, port=link.port)
    async with await connect_async(through, "test") as raw:
        assert await fetch(raw, "SELECT $1::INTEGER + 1", [41]) == [(42,)]
        link.cut()
        # The first has the connection, the second waits for it.
        for _ in range(2):
            asked_s = time.monotonic()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await fetch(raw, "SELECT 1")
            assert time.monotonic() - asked_s < SOON_S
        link.mend()
        # What was given up is cancelled at the server, and the connection is whole.
        async with asyncio.timeout(10):
            assert await fetch(raw, "SELECT 2") == [(2,)]
