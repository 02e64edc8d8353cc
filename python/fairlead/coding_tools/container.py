"""Whether a file lies in a container's own file system, which is gone with the container.

A container is known by the marks that runtimes leave. Within one, a file outlasts it only on a mount that came from
the host: the mount table (proc_pid_mountinfo(5)) says which mount a path is on. The container's own root, file systems
in memory and volumes of the runtime, which the host's tools do not see, do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MARKS: Final = (Path("/.dockerenv"), Path("/run/.containerenv"))
_CGROUP: Final = re.compile(r"/(docker|kubepods|containerd|crio|libpod|lxc|podman)[-/.]")
_OWN_FILE_SYSTEMS: Final = frozenset(
    {"overlay", "aufs", "tmpfs", "ramfs", "rootfs", "fuse-overlayfs"}
)
_VOLUME: Final = re.compile(r"/(docker|containers/storage)/volumes/|/kubelet/pods/.*/empty-dir/")
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of the mount table: where it is mounted, what of its file system, and of which type that is."""

    point: Path
    root: str
    file_system: str


def is_container(environment: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Whether this process runs in a container. `root` is where the marks are looked for."""
    if environment.get("container") or environment.get("KUBERNETES_SERVICE_HOST"):
        return True
    if any((root / mark.relative_to("/")).exists() for mark in _MARKS):
        return True
    try:
        groups = (root / "proc/1/cgroup").read_text("utf-8", "replace")
    except OSError:
        return False
    return _CGROUP.search(groups) is not None


def mount_table(text: str | None = None) -> list[Mount]:
    """The mounts that this process sees, in the order in which they were made."""
    if text is None:
        text = Path("/proc/self/mountinfo").read_text("utf-8", "replace")
    return list(_mounts(text))


def _mounts(text: str) -> Iterator[Mount]:
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) < 9 or "-" not in fields[6:]:
            continue
        kind = fields[fields.index("-", 6) + 1]
        yield Mount(Path(_plain(fields[4])), _plain(fields[3]), kind)


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def mount_of(path: Path, mounts: list[Mount]) -> Mount | None:
    """The mount that a path lies on: the deepest one, and of those the newest."""
    found: Mount | None = None
    for mount in mounts:
        is_deeper = found is None or len(mount.point.parts) >= len(found.point.parts)
        if is_deeper and path.is_relative_to(mount.point):
            found = mount
    return found


def is_from_host(path: Path, mounts: list[Mount]) -> bool:
    """Whether a path of a container lies on a mount that came from the host."""
    # Missing folders are created below the deepest existing one.
    mount = mount_of(path.resolve(), mounts)
    if mount is None or mount.point == Path("/") or mount.file_system in _OWN_FILE_SYSTEMS:
        return False
    return _VOLUME.search(mount.root) is None
