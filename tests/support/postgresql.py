"""A PostgreSQL server of Debian's package, in a folder of its own, on a free port of this machine alone.

    with PostgresqlServer.start(folder) as server:
        url = server.database("template")
        with server.copy_of("template") as url: ...

The server refuses to run as root: its processes then belong to the user `postgres`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from fairlead.store.postgresql.schema import migrate
from fairlead.store.prepare import MIGRATIONS
from tests.support.process import free_port

STARTS_WITHIN_S = 30
TEMPLATE = "fairlead_template"


def programs() -> Path | None:
    """Where `initdb` and `pg_ctl` are; None where PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    if found:
        return found[-1].parent
    elsewhere = shutil.which("initdb")
    return Path(elsewhere).parent if elsewhere else None


def _version(program: Path) -> int:
    text = program.parts[-3]
    return int(text) if text.isdigit() else 0


@dataclass
class PostgresqlServer:
    """A running server. A context manager; its end stops it and deletes its folder."""

    folder: Path
    port: int
    settings: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @classmethod
    @contextlib.contextmanager
    def start(cls, **settings: str) -> Iterator[PostgresqlServer]:
        """Makes a server's folder and runs it until the end of the `with`; `settings` go beside the usual ones."""
        with cls._in_new_folder(settings) as server:
            server._run("initdb", "-D", str(server.data), "-U", "postgres", "-A", "trust", "-N")
            server.launch()
            yield server

    @contextlib.contextmanager
    def replica(self) -> Iterator[PostgresqlServer]:
        """A second server that follows this one until it is promoted. Commits wait for it while it runs."""
        with self._in_new_folder(self.settings) as server:
            server._run(
                "pg_basebackup", "-D", str(server.data), "-h", "127.0.0.1", "-p", str(self.port),
                "-U", "postgres", "-R", "-X", "stream", "-c", "fast",
            )  # fmt: skip
            server.launch()
            self.run("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
            yield server

    @classmethod
    @contextlib.contextmanager
    def _in_new_folder(cls, settings: dict[str, str]) -> Iterator[PostgresqlServer]:
        """A server that is not made yet; one that runs at the end is stopped."""
        # Not below pytest's folders, which other users may not enter.
        folder = Path(tempfile.mkdtemp(prefix="fairlead-pg-"))
        server = cls(folder, free_port(), settings)
        try:
            if os.getuid() == 0:
                shutil.chown(folder, "postgres", "postgres")
            yield server
        finally:
            try:
                if server.is_running():
                    server.stop("immediate")
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def promote(self) -> None:
        """Makes a replica the primary, which waits for no other."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "promote")
        self.run("ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def is_running(self) -> bool:
        return (self.data / "postmaster.pid").exists()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def launch(self, **changed: str) -> None:
        """Starts the server, with these settings beside the usual ones, and waits until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "synchronous_commit": "off",
            "full_page_writes": "off",
            "max_connections": 200,
            "shared_buffers": "32MB",
            **self.settings,
            **changed,
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        log = str(self.folder / "log")
        self._run(
            "pg_ctl", "-D", str(self.data), "-l", log, "-o", options, "-w",
            "-t", str(STARTS_WITHIN_S), "start",
        )  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        """Stops the server: `fast` ends its sessions, `immediate` is like a crash."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "-m", mode, "stop")

    def let_in(self, network: str) -> None:
        """Lets clients of another network than this machine's own in, at replicas that are made later too."""
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write(f"host all all {network} trust\n")
        self.run("SELECT pg_reload_conf()")

    def url(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def run(self, *statements: str) -> None:
        """Runs statements of the server's administrator."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as admin:
            for statement in statements:
                admin.execute(statement.encode())

    def make_template(self) -> None:
        """Migrates the database that others are copied from."""
        self.run(
            f"CREATE DATABASE {TEMPLATE} TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        migrate(self.url(TEMPLATE), MIGRATIONS / "state")

    def empty(self) -> str:
        """The address of a new database without tables."""
        name = f"empty_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'")
        return self.url(name)

    def migrated(self) -> str:
        """The address of a new database of the newest schema."""
        name = f"state_{next(self._numbers)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Drops a database, whoever is connected."""
        self.run(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]} WITH (FORCE)")

    def _run(self, program: str, *arguments: str) -> None:
        place = programs()
        assert place is not None, "PostgreSQL is not installed"
        as_server = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        command = [*(as_server if os.getuid() == 0 else []), str(place / program), *arguments]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, timeout=60, check=False, text=True
        )
        log = self.folder / "log"
        told = log.read_text(errors="replace")[-2000:] if log.exists() else ""
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}{told}"
