"""A running fairlead: `fairlead serve` as an operator starts it, on a free port, with a data directory of its own.

    with start_gateway(tmp_path, REQUIRE_API_KEY="true") as gateway:
        lane = gateway.add_lane(upstream)
        key = gateway.create_key(name="laptop")

Everything that was started is ended at the end of the `with`, by its process id, whatever happened before.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.support.databases import CHOSEN_STORE, place_files
from tests.support.polling import eventually
from tests.support.process import Process, children_of, command_line, descendants_of, free_port
from tests.support.records import camel, spooled_records
from tests.support.shared_store import shared_store
from tests.support.tls import NO_AUTHORITIES
from tests.support.upstream import Upstream

READY_WITHIN_S = 90.0
FRONTS = ("granian", "native")
"""Who may have the relay's socket: `fairlead serve --front`."""
PROMPT = "a prompt-canary that is for the provider alone"


# ------------------------------------------------------------------------------------ the gateway


@dataclass
class Lane:
    """A way through a gateway to a scripted upstream: one node with a prefix of its own, one or more connections."""

    gateway: Gateway
    upstream: Upstream
    prefix: str
    node: dict[str, Any]
    connections: list[dict[str, Any]] = field(default_factory=list)
    secrets: list[str] = field(default_factory=list)
    """The connections' credentials, in the order of their priority."""

    @property
    def model(self) -> str:
        return f"{self.prefix}/m"

    def body(self, **fields: Any) -> dict[str, Any]:
        """A chat request on this lane."""
        return {"model": self.model, "messages": [{"role": "user", "content": PROMPT}], **fields}

    def forget_keys(self) -> None:
        """Leaves the connections without credentials, so that the node may be pointed at another host."""
        for connection in self.connections:
            path = f"/api/providers/{connection['id']}"
            expect(self.gateway.admin.put(path, json={"authType": "none"}), 200)


class Gateway:
    """A running instance. Made by `start_gateway`."""

    shown_within_s = 0.0
    """How long after one node shows usage another may not yet."""
    told_within_s = 0.0
    """How long what one worker tells the others may be on its way."""
    room_within_s = 0.0
    """How long another worker may keep what is left of a limit, after a request that wanted more was refused there."""

    def __init__(
        self,
        data_dir: Path,
        port: int,
        environment: dict[str, str],
        *flags: str,
        log_path: Path | None = None,
    ) -> None:
        self._data_dir = data_dir
        self._log_path = log_path or data_dir.parent / f"{data_dir.name}.log"
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.canaries: list[str] = [PROMPT]
        """Secrets and prompts that must not stand in any log, error or unsealed file."""
        self._environment = environment
        self._flags = flags
        self._popen: subprocess.Popen[bytes] | None = None
        self._known: set[Process] = set()
        self._clients: list[httpx.Client] = []
        self._key: str | None = None
        self._admin: httpx.Client | None = None
        self._caller: httpx.Client | None = None

    @property
    def data_dir(self) -> Path:
        return self._data_dir

    @property
    def log_path(self) -> Path:
        return self._log_path

    # --- its life

    def launch(self) -> None:
        """Starts it without waiting."""
        command = [sys.executable, "-m", "fairlead", "serve", "--port", str(self.port)]
        command += ["--data-dir", str(self.data_dir), *self._flags]
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("FAIRLEAD_", "SERVICE_", "AUTH__", "ISSUER__"))
            and name not in {"REQUIRE_API_KEY", "INITIAL_PASSWORD"}
            and not name.lower().endswith("_proxy")
        }
        with self.log_path.open("ab") as log:
            self._log_from = log.tell()
            self._popen = subprocess.Popen(
                command,
                env=inherited | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def start(self) -> None:
        """Starts it and waits for the line that says it is ready, then remembers its processes."""
        self.launch()
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        eventually(self._is_ready, f"`{self._ready_line}`", within_s=READY_WITHIN_S, every_s=0.02)
        self.remember_processes()

    @property
    def _ready_line(self) -> str:
        return f"fairlead ready {self.url}"

    def _is_ready(self) -> bool:
        assert self._popen is not None
        if (code := self._popen.poll()) is not None:
            raise AssertionError(f"fairlead serve ended with {code}:\n{self.log}")
        return self._ready_line in self.log

    @property
    def log(self) -> str:
        """What this start has written to its standard output and error."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_from)
            return log.read().decode(errors="replace")

    @property
    def popen(self) -> subprocess.Popen[bytes]:
        assert self._popen is not None
        return self._popen

    def is_running(self) -> bool:
        return self.popen.poll() is None

    def remember_processes(self) -> None:
        """Notes every process of the instance, so that it can be ended even when its parent is gone."""
        for pid in [self.popen.pid, *descendants_of(self.popen.pid)]:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                self._known.add(Process.of(pid))

    def wait(self, within_s: float = 15.0) -> int:
        """The exit code, once it has ended by itself."""
        return self.popen.wait(within_s)

    def kill_all(self) -> None:
        """`kill -9` of every process of the instance at once: the power went out."""
        self.remember_processes()
        for process in self._known:
            process.signal(signal.SIGKILL)
        self.popen.wait(10)
        for process in self._known:
            process.kill()
        self._known.clear()

    def stop(self) -> int:
        """SIGTERM, and SIGKILL to whatever is left after a while; the exit code of the supervisor."""
        for client in self._clients:
            client.close()
        self._clients.clear()
        if self._popen is None:
            return 0
        self.remember_processes()
        if self._popen.poll() is None:
            self._popen.send_signal(signal.SIGTERM)
        try:
            code = self._popen.wait(15)
        except subprocess.TimeoutExpired:
            self.kill_all()
            raise AssertionError(f"not ended 15 s after SIGTERM:\n{self.log[-4000:]}") from None
        for process in self._known:
            process.kill()
        self._known.clear()
        return code

    def living_processes(self) -> list[int]:
        """Processes of the instance, as last remembered, that still run."""
        return [process.pid for process in self._known if process.is_alive()]

    # --- its processes

    @property
    def supervisor(self) -> Process:
        return Process.of(self.popen.pid)

    def _plane(self, name: str) -> Process:
        def find() -> Process | None:
            for pid in children_of(self.popen.pid):
                if f"-m fairlead.serve {name} " in command_line(pid):
                    return Process.of(pid)
            return None

        return eventually(find, f"the {name} plane's process")

    @property
    def relay(self) -> Process:
        """The relay plane's process."""
        return self._plane("relay")

    @property
    def front(self) -> str:
        """Who has the relay's socket: `granian` or `native`."""
        return self._environment.get("FAIRLEAD_FRONT", "granian")

    @front.setter
    def front(self, name: str) -> None:
        """From the next start on."""
        self._environment["FAIRLEAD_FRONT"] = name

    @property
    def control(self) -> Process:
        """The control plane's process."""
        return self._plane("control")

    # --- calling it

    @property
    def cli_token(self) -> str:
        return (self.data_dir / "cli-token").read_text().strip()

    def client(self, **options: Any) -> httpx.Client:
        """An HTTP client that is closed with the gateway. It returns when a change that it made is in force."""
        options = {
            "base_url": self.url,
            "trust_env": False,
            "timeout": 20.0,
            "verify": NO_AUTHORITIES,
            "event_hooks": {"response": [self._wait_until_in_force]},
            **options,
        }
        client = httpx.Client(**options)
        self._clients.append(client)
        return client

    def _wait_until_in_force(self, answer: httpx.Response) -> None:
        """On a busy machine a worker may need longer than the second that an answer waits for it."""
        if answer.headers.get("X-Gateway-Snapshot") == "pending":
            eventually(self.is_even, "the change is in force", within_s=15, every_s=0.05)

    def is_even(self) -> bool:
        """Whether every worker of this node has the newest snapshot in force."""
        shown = expect(self.admin.get("/api/cluster"), 200)
        (here,) = (node for node in shown["nodes"] if node["isThis"])
        return bool(here["snapshotVersion"] >= shown["snapshotVersion"])

    @property
    def admin(self) -> httpx.Client:
        """A client that may do everything."""
        if self._admin is None or self._admin.is_closed:
            self._admin = self.client(headers={"X-Gateway-Cli-Token": self.cli_token})
        return self._admin

    def manages(self) -> bool:
        """Whether the management API answers."""
        try:
            return self.admin.get("/api/keys").status_code == 200
        except httpx.HTTPError:
            return False

    @property
    def key(self) -> str:
        """A key without limits, made when it is first asked for."""
        if self._key is None:
            self._key = self.create_key(name="everything")["key"]
        return self._key

    @property
    def caller(self) -> httpx.Client:
        """A client that calls models, with `key`."""
        if self._caller is None or self._caller.is_closed:
            self._caller = self.client(headers={"Authorization": f"Bearer {self.key}"})
        return self._caller

    @property
    def auth(self) -> tuple[str, str]:
        """The header that `caller` sends, for raw clients."""
        return ("Authorization", f"Bearer {self.key}")

    def create_key(self, **fields: Any) -> dict[str, Any]:
        """A fresh API key: its record, with the text in `key`."""
        body = {"name": "test", **fields}
        created: dict[str, Any] = expect(self.admin.post("/api/keys", json=body), 201)
        self.canaries.append(created["key"])
        return created

    def add_node(
        self, prefix: str, base_url: str, *, dialect: str = "openai", **timeouts: int
    ) -> dict[str, Any]:
        """A node of that dialect; timeouts as in its record (`headerMs=300`)."""
        family, _, api = dialect.partition("-")
        body: dict[str, Any] = {"type": f"{family}-compatible", "name": prefix, "prefix": prefix}
        if api:
            body["apiType"] = api
        body["baseUrl"] = base_url
        if timeouts:
            body |= {"timeouts": timeouts}
        node: dict[str, Any] = expect(self.admin.post("/api/provider-nodes", json=body), 201)[
            "node"
        ]
        return node

    def add_connection(self, provider: str, secret: str, **fields: Any) -> dict[str, Any]:
        """A connection with the credential `secret`."""
        body = {"provider": provider, "name": "test", "apiKey": secret, **fields}
        self.canaries.append(secret)
        made: dict[str, Any] = expect(self.admin.post("/api/providers", json=body), 201)
        connection: dict[str, Any] = made["connection"]
        return connection

    def add_lane(
        self,
        upstream: Upstream,
        *,
        connections: int = 1,
        base_url: str | None = None,
        dialect: str = "openai",
        **timeouts: int,
    ) -> Lane:
        """A node with a fresh prefix in front of `upstream`, and its connections, each with a credential of its own."""
        prefix = f"t{secrets.token_hex(4)}"
        node = self.add_node(prefix, base_url or upstream.url, dialect=dialect, **timeouts)
        lane = Lane(self, upstream, prefix, node)
        for priority in range(1, connections + 1):
            secret = f"sk-upstream-canary-{secrets.token_hex(12)}"
            fields = {"name": f"c{priority}", "priority": priority}
            lane.connections.append(self.add_connection(node["id"], secret, **fields))
            lane.secrets.append(secret)
        return lane

    # --- what it recorded

    def shown_records(self, **filters: str) -> list[dict[str, Any]]:
        """The settled requests that control has taken in and shows, newest first, at most 500."""
        params: dict[str, Any] = {"limit": 500, **filters}
        found: list[dict[str, Any]] = expect(
            self.admin.get("/api/usage/request-logs", params=params), 200
        )["logs"]
        return found

    def records(self, **filters: str) -> list[dict[str, Any]]:
        """Settled requests from the spool, where they are at once, and from control, which takes them in each second.

        Fields are named as control shows them. A request that is in both is told once; one that is twice in either is
        told twice.
        """
        spooled = [
            {camel(name): value for name, value in one.items()}
            for one in spooled_records(self.data_dir)
            if all(str(one[name]) == value for name, value in filters.items())
        ]
        known = {one["requestId"] for one in spooled}
        return spooled + [
            one for one in self.shown_records(**filters) if one["requestId"] not in known
        ]

    def record(self, request_id: str) -> dict[str, Any]:
        """The record of one request, once it is settled. Fails if there are two."""

        def find() -> list[dict[str, Any]]:
            return [one for one in self.records() if one["requestId"] == request_id]

        found = eventually(find, f"the record of {request_id}", within_s=8, every_s=0.05)
        assert len(found) == 1, found
        return found[0]

    def shown_record(self, request_id: str) -> dict[str, Any]:
        """The record of one request as control shows it, once it has taken it in. Fails if there are two."""

        def find() -> list[dict[str, Any]]:
            return [one for one in self.shown_records() if one["requestId"] == request_id]

        found = eventually(find, f"the record of {request_id} is shown", within_s=8, every_s=0.1)
        assert len(found) == 1, found
        return found[0]

    def records_of(self, lane: Lane) -> list[dict[str, Any]]:
        """The records of requests for the lane's own model."""
        return self.records(model=lane.model)

    def assert_keeps_secrets(self) -> None:
        """No secret stands in a log, nor in clear in any file of the data directory."""
        files = [self.log_path, *(path for path in self.data_dir.rglob("*") if path.is_file())]
        for path in files:
            try:
                text = path.read_bytes()
            except FileNotFoundError:  # a segment that was sealed or taken in meanwhile
                continue
            for canary in self.canaries:
                assert canary.encode() not in text, f"{canary[:12]}... stands in {path.name}"
        assert not re.search(r"panicked|Traceback \(most recent", self.log), self.log[-6000:]


def expect(answer: httpx.Response, status: int) -> Any:
    """The JSON of an answer that must have this status."""
    assert answer.status_code == status, (
        f"{answer.request.method} {answer.request.url}: {answer.status_code} {answer.text}"
    )
    return answer.json() if answer.content else None


# `FAIRLEAD_FRONT` is what `pytest --front` says (`tests/conftest.py`).
DEFAULTS = {"FAIRLEAD_DRAIN_MS": "1500", "REQUIRE_API_KEY": "true"}


@contextlib.contextmanager
def start_gateway(tmp_path: Path, *flags: str, **environment: str) -> Iterator[Gateway]:
    """A gateway with a fresh data directory under `tmp_path`.

    Unless `environment` says otherwise it asks for keys and is drained within 1.5 s.
    """
    data_dir = tmp_path / f"data-{secrets.token_hex(3)}"
    data_dir.mkdir(mode=0o700)
    with contextlib.ExitStack() as stack:
        store: dict[str, str] = {}
        if "FAIRLEAD_DATABASE_URL" not in environment:
            store = _stores(stack, data_dir)
        if "--demo" not in flags and "FAIRLEAD_DATABASE_URL" not in store | environment:
            # Making them costs a quarter of a second of a core. A demo makes its own, and fills them.
            place_files(data_dir)
        gateway = Gateway(data_dir, free_port(), DEFAULTS | store | environment, *flags)
        stack.callback(gateway.stop)
        gateway.start()
        yield gateway


def _stores(stack: contextlib.ExitStack, data_dir: Path) -> dict[str, str]:
    """What `pytest --store` gives a gateway; none is the embedded store."""
    url = CHOSEN_STORE.url_of(data_dir)
    stores = {} if url is None else {"FAIRLEAD_DATABASE_URL": url}
    if CHOSEN_STORE.name == "cluster":
        store = stack.enter_context(shared_store(data_dir.parent / f"store-{data_dir.name}"))
        stores["FAIRLEAD_SHARED_URL"] = store.url
    return stores
