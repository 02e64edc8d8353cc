"""Gateways that somebody signed in at, by name, with their credentials: one file that its owner alone may read.

The file is replaced whole, under a lock, so that a reader finds the old or the new one and two writers lose nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from fairlead.cli.chosen import LOCAL
from fairlead.cli.failure import CommandFailed

_PRIVATE_FILE: Final = 0o600
_PRIVATE_FOLDER: Final = 0o700


@dataclass(frozen=True, slots=True)
class GatewayContext:
    """One gateway: its address, the credential for it, and how its certificate is checked."""

    url: str
    token: str = field(repr=False)
    api_key: str | None = field(default=None, repr=False)
    """The key for calling models, if the token can only manage."""
    ca_file: str | None = None
    """PEM file with the authorities to trust in place of the system's."""
    insecure: bool = False
    """Whether its certificate is not checked at all."""


@dataclass(slots=True)
class Contexts:
    """All of them; `current` is where commands work when they name none, None for this machine's instance."""

    current: str | None = None
    by_name: dict[str, GatewayContext] = field(default_factory=dict)

    def find(self, name: str) -> GatewayContext:
        """The context of this name. Raises `CommandFailed`."""
        if name not in self.by_name:
            raise CommandFailed(
                f"there is no context {name}: `fairlead contexts list` shows them, and "
                "`fairlead login <address>` makes one."
            )
        return self.by_name[name]

    def at(self, url: str) -> GatewayContext | None:
        """A context with this address."""
        return next((each for each in self.by_name.values() if each.url == url), None)


def contexts_path() -> Path:
    """In the user's folder for configuration, which XDG_CONFIG_HOME may move."""
    from typer import get_app_dir

    return Path(get_app_dir("fairlead")) / "contexts.json"


def read_contexts() -> Contexts:
    """The stored contexts; nothing if there is no file. Raises `CommandFailed`."""
    path = contexts_path()
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read()
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read ({error.strerror}).") from None
    if mode & 0o077:
        raise CommandFailed(
            f"{path} holds credentials and others may read it: run `chmod 600 {path}`, and make new "
            "tokens if somebody did."
        )
    try:
        return _parse(json.loads(content))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CommandFailed(
            f"{path} is not what `fairlead login` writes: move it away and sign in again."
        ) from None


@contextmanager
def changed_contexts() -> Iterator[Contexts]:
    """The stored contexts, for changes; written at the end unless an exception is raised."""
    path = contexts_path()
    try:
        path.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        lock = os.open(path.with_name("contexts.lock"), os.O_RDWR | os.O_CREAT, _PRIVATE_FILE)
    except OSError as error:
        raise CommandFailed(f"{path.parent} cannot be written ({error.strerror}).") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        contexts = read_contexts()
        yield contexts
        _write(path, contexts)
    finally:
        os.close(lock)


def _parse(document: dict[str, Any]) -> Contexts:
    by_name = {
        str(name): GatewayContext(
            str(entry["url"]),
            str(entry["token"]),
            None if entry.get("api_key") is None else str(entry["api_key"]),
            None if entry.get("ca_file") is None else str(entry["ca_file"]),
            insecure=bool(entry.get("insecure", False)),
        )
        for name, entry in document["contexts"].items()
    }
    current = document.get("current")
    return Contexts(current if current in by_name else None, by_name)


def _write(path: Path, contexts: Contexts) -> None:
    document = {
        "current": contexts.current,
        "contexts": {name: asdict(each) for name, each in contexts.by_name.items()},
    }
    fresh = path.with_name(f"contexts.{uuid4().hex}.tmp")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise CommandFailed(f"{path} cannot be written ({error.strerror}).") from None


def context_name(text: str) -> str:
    """The text, if it may name a context. Raises `CommandFailed`."""
    if not text.isprintable() or not text.strip() or len(text) > 100 or text == LOCAL:
        raise CommandFailed(
            f"a context's name must be 1 to 100 printable characters, and not `{LOCAL}`."
        )
    return text
