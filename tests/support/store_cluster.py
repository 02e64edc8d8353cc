"""A cluster of `redis-server` processes of a test's own: three that have the keys between them, and replicas."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.shared_store import PASSWORD, SharedStore

PRIMARIES = 3
# Without an answer for so long, a server is replaced by its replica.
NODE_TIMEOUT_MS = 1_000


class StoreCluster:
    """Made by `store_cluster`."""

    def __init__(self, servers: list[SharedStore]) -> None:
        self.servers = servers

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers[:PRIMARIES])
        return f"redis://:{PASSWORD}@{hosts}"

    def primary_of(self, key: str) -> SharedStore:
        """The server that has this key now. The others say where it is."""
        for server in self.servers:
            if server.ask("EXISTS", key) == ":1":
                return server
        raise AssertionError(f"no server has {key}")

    def move_slot_of(self, key: str) -> None:
        """Moves the slot of this key to the next of the primaries, one key after the other, as resharding does."""
        source = self.primary_of(key)
        primaries = [each for each in self.servers if _run(each, "ROLE")[0] == "master"]
        target = primaries[(primaries.index(source) + 1) % len(primaries)]
        (slot,) = _run(source, "CLUSTER", "KEYSLOT", key)
        (source_id,), (target_id,) = (_run(each, "CLUSTER", "MYID") for each in (source, target))
        _run(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        _run(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        while keys := _run(source, "CLUSTER", "GETKEYSINSLOT", slot, "1"):
            to = ["127.0.0.1", str(target.port), "", "0", "5000", "AUTH", PASSWORD]
            _run(source, "MIGRATE", *to, "KEYS", *keys)
        for each in (target, source, *primaries):
            _run(each, "CLUSTER", "SETSLOT", slot, "NODE", target_id)

    def join(self) -> None:
        hosts = [f"127.0.0.1:{server.port}" for server in self.servers]
        replicas = str(len(hosts) // PRIMARIES - 1)
        _run_cli("--cluster", "create", *hosts, "--cluster-replicas", replicas, "--cluster-yes")
        for server in self.servers:
            eventually(partial(_knows, server), "it knows the others", within_s=20)


def _run_cli(*words: str) -> str:
    program = shutil.which("redis-cli")
    assert program is not None, "redis-cli is not installed"
    command = [program, "-e", "-a", PASSWORD, "--no-auth-warning", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _run(server: SharedStore, *words: str) -> list[str]:
    """The lines of the answer to one command."""
    return [line for line in _run_cli("-p", str(server.port), *words).splitlines() if line]


def _knows(server: SharedStore) -> bool:
    """Whether it has the key, or says who has it."""
    answer = server.ask("EXISTS", "k") or ""
    return answer.startswith((":", "-MOVED"))


@contextmanager
def store_cluster(directory: Path, *, replicas: int = 0) -> Iterator[StoreCluster]:
    """A running cluster."""
    servers: list[SharedStore] = []
    try:
        for number in range(PRIMARIES * (1 + replicas)):
            folder = directory / str(number)
            folder.mkdir(parents=True)
            options = ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]
            options += ["--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--masterauth", PASSWORD]
            servers.append(SharedStore(folder, *options))
            # Before the next one looks for free ports.
            servers[-1].start()
        cluster = StoreCluster(servers)
        cluster.join()
        yield cluster
    finally:
        for server in servers:
            server.stop()
