"""Connections to providers that an operator named: kept, and never lent from one host to another."""

from __future__ import annotations

import asyncio
from typing import Self

import httpx
import pytest

from fairlead.net import operator_egress
from fairlead.net.operator_egress import EgressTransport


async def _here(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


class _Server:
    """Notes the `Host` of each request, by connection."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") -> None:
        self._answer = answer
        self.hosts: list[list[str]] = []
        self._served: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await asyncio.wait_for(asyncio.gather(*self._served), 10)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._served.append(asyncio.create_task(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        mine: list[str] = []
        self.hosts.append(mine)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                mine.append(head.split(b"Host: ")[1].split(b":")[0].decode())
                writer.write(self._answer)
        except asyncio.IncompleteReadError:
            writer.close()
            await writer.wait_closed()


async def _asked(names: list[str]) -> list[list[str]]:
    async with _Server() as server, httpx.AsyncClient(transport=EgressTransport(_here)) as client:
        for name in names:
            answer = await client.get(f"http://{name}:{server.port}/")
            assert answer.text == "ok"
    return server.hosts


def test_a_connection_of_one_host_is_not_used_for_another_at_the_same_address() -> None:
    assert asyncio.run(_asked(["one.test", "two.test", "one.test", "two.test"])) == [
        ["one.test", "one.test"],
        ["two.test", "two.test"],
    ]


def test_pools_that_nobody_uses_are_closed_the_oldest_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operator_egress, "POOLS_MAX", 2)
    hosts = asyncio.run(_asked(["one.test", "two.test", "three.test", "two.test", "one.test"]))
    assert hosts == [["one.test"], ["two.test", "two.test"], ["three.test"], ["one.test"]]


def test_a_pool_with_an_open_answer_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_egress, "POOLS_MAX", 1)

    async def ask() -> str:
        transport = EgressTransport(_here)
        async with (
            _Server() as server,
            httpx.AsyncClient(transport=transport) as client,
            client.stream("GET", f"http://one.test:{server.port}/") as first,
        ):
            await client.get(f"http://two.test:{server.port}/")
            await client.get(f"http://three.test:{server.port}/")
            return (await first.aread()).decode()

    assert asyncio.run(ask()) == "ok"


@pytest.mark.parametrize(
    "target", ["data:text/html,x", "mailto:a@b.example", "http:x", "http:///x", "x:"]
)
def test_a_redirect_to_what_has_no_host_is_an_answer(target: str) -> None:
    async def ask() -> int:
        answer = f"HTTP/1.1 302 Found\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n".encode()
        async with (
            _Server(answer) as server,
            httpx.AsyncClient(transport=EgressTransport(_here), trust_env=False) as client,
        ):
            return (await client.get(f"http://one.example:{server.port}/")).status_code

    assert asyncio.run(ask()) == 302
