"""An instance of two nodes with two relay workers each, on one PostgreSQL and one Redis, behind HAProxy.

    with start_balanced(folder) as gateway:
        key = gateway.create_key(name="laptop")  # at either node
        gateway.caller.post(...)                 # at either worker of either node

It is called as a gateway of one node is. A test that looks into one process is skipped with what it looked for, since
the next call may be another's.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

import httpx
import pytest

from tests.support.balancer import Balancer, start_balancer
from tests.support.databases import CHOSEN_STORE
from tests.support.polling import eventually
from tests.support.process import Process, free_port
from tests.support.processes import DEFAULTS, FRONTS, Gateway, expect
from tests.support.records import camel, spooled_records
from tests.support.shared_store import PASSWORD, SharedStore, shared_store
from tests.support.tls import NO_AUTHORITIES

KEY: Final = "bm9kZXMgb2Ygb25lIGRhdGFiYXNlIHNoYXJlIGEga2U="
WORKERS: Final = 2
# A node hears of the usage of another every few seconds.
SHOWN_WITHIN_S: Final = 20.0
TOLD_WITHIN_S: Final = 3.0
# A worker gives back what it leased of a limit and did not use for a second.
ROOM_WITHIN_S: Final = 5.0


class BalancedGateway(Gateway):
    """Made by `start_balanced`."""

    shown_within_s = SHOWN_WITHIN_S
    told_within_s = TOLD_WITHIN_S
    room_within_s = ROOM_WITHIN_S

    def __init__(self, folder: Path, nodes: Sequence[Gateway], balancer: Balancer) -> None:
        super().__init__(folder, balancer.port, {})
        self.nodes = nodes
        self.balancer = balancer
        self.canaries.append(PASSWORD)
        for node in nodes:
            node.canaries = self.canaries

    # --- its life

    def is_running(self) -> bool:
        return all(node.is_running() for node in self.nodes)

    def remember_processes(self) -> None:
        for node in self.nodes:
            node.remember_processes()

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()
        self._clients.clear()

    def is_whole(self) -> bool:
        """Whether every node knows of every other, and both have all of their workers."""
        for node in self.nodes:
            shown = expect(node.admin.get("/api/cluster"), 200)["nodes"]
            workers = [each["report"]["workers"] for each in shown if each["report"]]
            if workers != [WORKERS] * len(self.nodes):
                return False
        return True

    def is_even(self) -> bool:
        """Whether every node has the newest snapshot in force at all of its workers."""
        told = expect(self.nodes[0].admin.get("/api/cluster"), 200)
        return {node["snapshotVersion"] for node in told["nodes"]} == {told["snapshotVersion"]}

    # --- what is of one node

    @property
    def data_dir(self) -> Path:
        _skip("a data directory")

    @property
    def log_path(self) -> Path:
        _skip("a log file")

    @property
    def popen(self) -> NoReturn:
        _skip("a process")

    @property
    def front(self) -> str:
        _skip("a front")

    @front.setter
    def front(self, name: str) -> None:
        _skip("a front")

    def _plane(self, name: str) -> Process:
        _skip(f"a process of {name}")

    def launch(self) -> None:
        _skip("a start")

    def stop(self) -> int:
        _skip("a stop")

    @property
    def log(self) -> str:
        return "".join(node.log for node in self.nodes)

    # --- calling it

    @property
    def cli_token(self) -> str:
        _skip("a local token")

    @property
    def admin(self) -> httpx.Client:
        """A client that may do everything, by an access token: a balancer's requests are not of this machine."""
        if self._admin is None or self._admin.is_closed:
            transport = AdminTransport(self)
            headers = {"Authorization": f"Bearer {self.access_token}"}
            self._admin = self.client(headers=headers, transport=transport)
        return self._admin

    @functools.cached_property
    def access_token(self) -> str:
        """A token of the scope `admin`."""
        wanted = {"name": "tests", "scope": "admin"}
        made = expect(self.nodes[0].admin.post("/api/auth/tokens", json=wanted), 201)
        self.canaries.append(made["token"])
        return str(made["token"])

    def client(self, **options: Any) -> httpx.Client:
        return super().client(**{"event_hooks": {"request": [_skip_metrics]}, **options})

    # --- what it recorded

    def shown_records(self, **filters: str) -> list[dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for node in self.nodes:
            found |= {one["requestId"]: one for one in node.shown_records(**filters)}
        return sorted(found.values(), key=lambda one: str(one["timestamp"]), reverse=True)

    def records(self, **filters: str) -> list[dict[str, Any]]:
        spooled = [
            {camel(name): value for name, value in one.items()}
            for node in self.nodes
            for one in spooled_records(node.data_dir)
            if all(str(one[name]) == value for name, value in filters.items())
        ]
        known = {one["requestId"] for one in spooled}
        return spooled + [
            one for one in self.shown_records(**filters) if one["requestId"] not in known
        ]

    def shown_record(self, request_id: str) -> dict[str, Any]:
        """The record, once every node shows it."""

        def find(node: Gateway) -> list[dict[str, Any]]:
            return [one for one in node.shown_records() if one["requestId"] == request_id]

        for node in self.nodes:
            what = f"the record of {request_id} is shown at {node.url}"
            found = eventually(partial(find, node), what, within_s=SHOWN_WITHIN_S, every_s=0.1)
            assert len(found) == 1, found
        return found[0]

    def assert_keeps_secrets(self) -> None:
        for node in self.nodes:
            node.assert_keeps_secrets()


class AdminTransport(httpx.HTTPTransport):
    """Through the balancer; what an access token may not do is asked of a node, with its local token, in turn. A change
    that is not in force everywhere when it is answered, which its answer says, is waited for.
    """

    def __init__(self, instance: BalancedGateway) -> None:
        super().__init__(verify=NO_AUTHORITIES, trust_env=False)
        self._instance = instance
        self._nodes = itertools.cycle(instance.nodes)
        self._shown = f"Bearer {instance.access_token}"

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._ask(request)
        if answer.headers.get("X-Gateway-Snapshot") == "pending":
            eventually(self._instance.is_even, "the change is in force", within_s=15, every_s=0.05)
        return answer

    def _ask(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        is_refused = answer.status_code in (401, 403)
        if not is_refused or request.headers.get("Authorization") != self._shown:
            return answer
        answer.close()
        node = next(self._nodes)
        request.url = request.url.copy_with(port=node.port)
        request.headers["Host"] = f"127.0.0.1:{node.port}"
        request.headers["X-Gateway-Cli-Token"] = node.cli_token
        del request.headers["Authorization"]
        return super().handle_request(request)


def _skip(what: str) -> NoReturn:
    pytest.skip(f"one node only: the test looks for {what}, of which this instance has several")


def _skip_metrics(request: httpx.Request) -> None:
    if request.url.path == "/metrics":
        _skip("metrics")


@contextlib.contextmanager
def start_balanced(folder: Path, **environment: str) -> Iterator[BalancedGateway]:
    """An instance with a fresh database; `environment` as `start_gateway` takes it, of both nodes."""
    folder = folder / f"instance-{secrets.token_hex(3)}"
    (folder / "files").mkdir(parents=True)
    cli_token = secrets.token_hex(32)
    server = CHOSEN_STORE.server()
    with contextlib.ExitStack() as stack:
        store = stack.enter_context(shared_store(folder / "store"))
        url = server.migrated()
        stack.callback(server.drop, url)
        port = free_port()
        shared = _shared(folder, url, store)
        settings = DEFAULTS | shared | _behind_balancer(port, environment)
        nodes: list[Gateway] = []
        for front in FRONTS:
            data_dir = folder / front
            data_dir.mkdir(mode=0o700)
            # One token of the command line that counts at both.
            (data_dir / "cli-token").touch(mode=0o600)
            (data_dir / "cli-token").write_text(cli_token)
            own = settings | {"FAIRLEAD_FRONT": environment.get("FAIRLEAD_FRONT", front)}
            node = Gateway(data_dir, free_port(), own, "--workers", str(WORKERS))
            stack.callback(node.stop)
            node.launch()
            nodes.append(node)
        for node in nodes:
            node.wait_until_ready()
        one, two = (node.port for node in nodes)
        balancer = stack.enter_context(start_balancer(folder, port, one, two))
        gateway = BalancedGateway(folder, nodes, balancer)
        stack.callback(gateway.close_clients)
        eventually(gateway.is_whole, "both nodes have all workers", within_s=30, every_s=0.1)
        yield gateway


def _shared(folder: Path, database_url: str, store: SharedStore) -> dict[str, str]:
    """What both nodes use."""
    return {
        "FAIRLEAD_DATABASE_URL": database_url,
        "FAIRLEAD_SECRET_KEY": KEY,
        "FAIRLEAD_SHARED_URL": store.url,
        "FAIRLEAD_FILES_URL": f"file://{folder / 'files'}",
    }


def _behind_balancer(port: int, environment: Mapping[str, str]) -> dict[str, str]:
    """What a node is told of the balancer at a port, which it believes; and of a test that is a proxy before that."""
    settings = {
        "SERVICE_TRUST_PROXY": "true",
        "SERVICE_PUBLIC_BASE_URL": f"http://127.0.0.1:{port}",
        **environment,
    }
    if "SERVICE_TRUST_PROXY" in environment:
        proxies = int(environment.get("SERVICE_TRUSTED_PROXIES", "1")) + 1
        settings["SERVICE_TRUSTED_PROXIES"] = str(proxies)
    return settings
