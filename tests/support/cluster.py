"""Two controls and two relays on one PostgreSQL and one Redis, each over links of its own that can be cut.

with start_cluster(folder) as cluster:
    cluster.relays[0].admin ...

Over `TcpLinks`, a cut holds back the bytes of connections that stand. Over `PacketLinks` it loses packets.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, Self

import httpx
import orjson
import psycopg

from tests.support.authority import Authority, Issued
from tests.support.clock import WallClock
from tests.support.packet_link import NETWORK, PacketLinks
from tests.support.polling import eventually
from tests.support.postgresql import PostgresqlServer
from tests.support.process import free_port
from tests.support.processes import DEFAULTS, Gateway
from tests.support.shared_store import PASSWORD, SharedStore, shared_store
from tests.support.tcp_link import TcpLink

KEY: Final = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="
TOKEN: Final = "a-node-token-of-this-test-only-0123456789"
CLI_TOKEN: Final = "c1" * 32
DATABASE: Final = "cluster"


class Link(Protocol):
    """The way from a node to a port of another process. A context manager."""

    host: str
    port: int
    delay_s: float
    answered_s: float

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def cut(self) -> None: ...

    def mend(self) -> None: ...


class TcpLinks:
    """Links whose connections end in the test's own process."""

    listen = "127.0.0.1"
    """Where the processes behind them listen."""

    def link(self, port: int) -> TcpLink:
        return TcpLink(port)


Links = TcpLinks | PacketLinks
OVER_TCP: Final = TcpLinks()


@dataclass
class Cluster:
    """The nodes, what they share, and the links between them: `to_control[relay][control]`, `to_database[control]` (one
    for each server of the database), `to_store[relay]`.
    """

    controls: list[Gateway]
    relays: list[Gateway]
    servers: list[PostgresqlServer]
    store: SharedStore
    clock: WallClock
    """Of the second control and the second relay."""
    to_control: list[list[Link]]
    to_database: list[list[Link]]
    to_store: list[Link]

    @property
    def database_url(self) -> str:
        """The address of the database past the links, at whichever server is the primary."""
        return _url([("127.0.0.1", server.port) for server in self.servers])

    def logged(self) -> Counter[str]:
        """How often each request is in the log of usage."""
        with psycopg.connect(self.database_url) as con:
            found = con.execute("SELECT data FROM fairlead.usage_segments").fetchall()
        lines = (line for (data,) in found for line in zlib.decompress(data).splitlines())
        return Counter(_request_id(line) for line in lines)

    def is_even(self) -> bool:
        """Whether both relays reach a control, and every node has the newest snapshot."""
        for relay in self.relays:
            try:
                told = relay.admin.get("/api/cluster", timeout=5)
            except httpx.HTTPError:
                return False
            if told.status_code != 200:
                return False
            nodes = told.json()["nodes"]
            versions = [node["snapshotVersion"] for node in nodes]
            relays = [each for node in nodes if node["report"] for each in node["report"]["relays"]]
            if (
                len(nodes) != 2
                or len(relays) < 2
                or set(versions) != {told.json()["snapshotVersion"]}
            ):
                return False
        return True

    def control_of(self, relay: Gateway) -> int:
        """Which control a relay uses."""
        links = self.to_control[self.relays.index(relay)]
        return max(range(len(links)), key=lambda at: links[at].answered_s)

    def links(self) -> list[Link]:
        lists = [*self.to_control, *self.to_database, self.to_store]
        return [link for each in lists for link in each]


def _request_id(line: bytes) -> str:
    return str(orjson.loads(line)["request_id"])


def _url(places: Sequence[tuple[str, int]]) -> str:
    hosts = ",".join(f"{host}:{port}" for host, port in places)
    return f"postgresql://postgres@{hosts}/{DATABASE}?target_session_attrs=read-write"


@contextlib.contextmanager
def start_cluster(
    folder: Path, links: Links = OVER_TCP, /, **environment: str
) -> Iterator[Cluster]:
    """A running cluster, whose database is at a primary and a replica that has every commit."""
    with contextlib.ExitStack() as stack:
        servers = _start_servers(stack, links)
        store = stack.enter_context(shared_store(folder / "store", "--bind", links.listen))
        (folder / "clock").mkdir()
        (folder / "files").mkdir()

        def link(port: int) -> Link:
            made: Link = links.link(port)
            return stack.enter_context(made)

        listens = [free_port(), free_port()]
        cluster = Cluster(
            controls=[],
            relays=[],
            servers=servers,
            store=store,
            clock=WallClock(folder / "clock"),
            to_control=[[link(port) for port in listens] for _ in range(2)],
            to_database=[[link(server.port) for server in servers] for _ in range(2)],
            to_store=[link(store.port) for _ in range(2)],
        )
        authority = Authority(folder / "authority")
        usual = DEFAULTS | {
            "FAIRLEAD_NODE_TOKEN": TOKEN,
            "FAIRLEAD_NODE_CA": str(authority.certificate),
            "FAIRLEAD_SECRET_KEY": KEY,
            **environment,
        }
        names = ",".join(
            f"IP:{host}" for host in {e.host for each in cluster.to_control for e in each}
        )
        control, relay = authority.issue("control", names), authority.issue("relay", "DNS:relay")
        for at, port in enumerate(listens):
            settings = _of_control(cluster, at, f"{links.listen}:{port}")
            settings |= _shows(control) | {"FAIRLEAD_FILES_URL": f"file://{folder / 'files'}"}
            _start(stack, cluster.controls, _with_token(folder / f"control{at}"), usual | settings)
        for at in range(2):
            data_dir = folder / f"relay{at}"
            if at == 0:
                _mount_small_disk(stack, data_dir)
            settings = _of_relay(cluster, at) | _shows(relay)
            _start(stack, cluster.relays, _with_token(data_dir), usual | settings)
        eventually(cluster.is_even, "every node has the newest snapshot", within_s=30, every_s=0.2)
        yield cluster


def _start_servers(stack: contextlib.ExitStack, links: Links) -> list[PostgresqlServer]:
    """The primary and the replica."""
    # What was acknowledged must outlive a server that is stopped at once, and be at the replica.
    settings = {"synchronous_commit": "remote_apply", "listen_addresses": links.listen}
    primary = stack.enter_context(PostgresqlServer.start(**settings))
    primary.let_in(NETWORK)
    primary.run(f"CREATE DATABASE {DATABASE} TEMPLATE template0 ENCODING 'UTF8'")
    return [primary, stack.enter_context(primary.replica())]


def _of_control(cluster: Cluster, at: int, listen: str) -> dict[str, str]:
    return {
        "FAIRLEAD_ROLE": "control",
        "FAIRLEAD_CONTROL_LISTEN": listen,
        "FAIRLEAD_DATABASE_URL": _url([(each.host, each.port) for each in cluster.to_database[at]]),
    } | (cluster.clock.environment if at else {})


def _of_relay(cluster: Cluster, at: int) -> dict[str, str]:
    store = cluster.to_store[at]
    urls = [f"https://{each.host}:{each.port}" for each in cluster.to_control[at]]
    return {
        "FAIRLEAD_ROLE": "relay",
        # The first relay begins at the first control, the second at the second, unless chance says otherwise.
        "FAIRLEAD_CONTROL_URLS": ",".join(urls),
        "FAIRLEAD_SHARED_URL": f"redis://:{PASSWORD}@{store.host}:{store.port}/0",
        "FAIRLEAD_FRONT": ("granian", "native")[at],
    } | (cluster.clock.environment if at else {})


def _shows(issued: Issued) -> dict[str, str]:
    """What a node shows to the others."""
    return {
        "FAIRLEAD_NODE_CERTIFICATE": str(issued.certificate),
        "FAIRLEAD_NODE_KEY": str(issued.key),
    }


def _with_token(data_dir: Path) -> Path:
    """The folder of a node at which the command line's token of every node counts."""
    data_dir.mkdir(mode=0o700, exist_ok=True)
    (data_dir / "cli-token").touch(mode=0o600)
    (data_dir / "cli-token").write_text(CLI_TOKEN)
    return data_dir


def _mount_small_disk(stack: contextlib.ExitStack, folder: Path) -> None:
    """Gives a node a disk of its own that a test can fill, where that is allowed."""
    folder.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", "size=32m,mode=700", "none", str(folder)]
    if (
        os.getuid() == 0
        and subprocess.run(command, check=False, capture_output=True).returncode == 0
    ):
        stack.callback(subprocess.run, ["umount", "-l", str(folder)], check=False)


def _start(
    stack: contextlib.ExitStack, nodes: list[Gateway], data_dir: Path, settings: dict[str, Any]
) -> None:
    node = Gateway(data_dir, free_port(), settings)
    node.canaries.append(TOKEN)
    stack.callback(node.stop)
    node.start()
    nodes.append(node)
