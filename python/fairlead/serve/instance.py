"""The settings of one start as plain values, and their way into the supervisor.

The command reads and checks settings with pydantic, which takes a third of a second and 16 MB, and then becomes the
supervisor by `exec`: one process id, but an interpreter that has imported nothing of it. The values go along in an
open file without a name, because a command line can be read by every user of the machine.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass, fields
from typing import Any, NoReturn


@dataclass(frozen=True, slots=True)
class Instance:
    """The plain values that the supervisor works with. Secrets are in clear; paths are absolute.

    `drain_ms` is how long relays may take to stop.
    `is_protected` is whether the address is one that only an owner with a password may open to others. `control`,
    `relay`, `listener` and `acp` (None where no coding tool may be started) are the documents of
    docs/explanation/contracts.md without what is made for each start (`Planes` adds it). `tunnel` is that
    of a node whose `role` is not `all`.
    """

    data_dir: str
    host: str
    port: int
    front: str
    workers: int
    max_open_streams: int
    drain_ms: int
    control_silence_ms: int
    demo: bool
    require_api_key: bool
    is_protected: bool
    are_passwords_off: bool
    tls_certificate: str | None
    tls_key: str | None
    secret_key: str | None
    other_secret_key: str | None
    initial_password: str | None
    control: dict[str, Any]
    relay: dict[str, Any]
    listener: dict[str, Any]
    acp: dict[str, Any] | None
    role: str = "all"
    tunnel: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return "Instance(***)"


def become_supervisor(instance: Instance) -> NoReturn:
    """Replaces this program by the supervisor; the process, its umask and ignored signals stay."""
    descriptor = _nameless_file()
    with os.fdopen(descriptor, "wb", closefd=False) as file:
        file.write(json.dumps(asdict(instance)).encode())
    os.set_inheritable(descriptor, True)
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, "-P", "-m", "fairlead.serve.supervisor", str(descriptor)]
    # Only for people who read a list of processes.
    command += ["--port", str(instance.port), "--data-dir", instance.data_dir]
    os.execv(sys.executable, command)  # noqa: S606 - our own interpreter, no shell


def take_instance(descriptor: int) -> Instance:
    """The values that `become_supervisor` left in an open file, which is closed."""
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        document = json.load(file)
    return Instance(**{each.name: document[each.name] for each in fields(Instance)})


def _nameless_file() -> int:
    if sys.platform == "linux":
        descriptor = os.memfd_create("fairlead-settings")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    return descriptor
