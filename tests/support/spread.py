"""Which process of `pytest -n` runs which file, so that few gateways are started: `pytest --dist loadfile`.

All tests of one file run in one process: a fixture of a module is made once. Files that lease the same gateway of the
pool run in the same process, one after the other. A gateway starts in four seconds of a core, and would otherwise be
started in every process. Files with most work come first, so that no process is left with a long one at the end.

The process that distributes the tests does not collect them. The first worker writes what each file needs into a file
(`Notes`), and the scheduler reads it.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

NOTES = "fairlead_notes"
"""The member of a worker's input that has the path of the notes."""
EVERYWHERE = "tests.conftest:gateway"
"""The gateway that most files use: every process starts it."""
START_WEIGHT = 40
"""A test that starts a gateway for itself takes as long as so many others."""


@dataclass
class Need:
    """What the tests of one file need."""

    gateways: list[str] = field(default_factory=list)
    """Fixtures that lease a gateway from the pool, each with the place of its definition."""
    weight: int = 0


def needs_of(items: Iterable[pytest.Item]) -> dict[str, Need]:
    """What each file needs, by the file as it is written in the ids of its tests."""
    needs: defaultdict[str, Need] = defaultdict(Need)
    for item in items:
        need = needs[item.nodeid.partition("::")[0]]
        fixtures: list[str] = getattr(item, "fixturenames", [])
        leased = [each for name in fixtures if (each := _leased(item, name)) is not None]
        need.gateways = sorted({*need.gateways, *leased})
        need.weight += START_WEIGHT if "gateways" in fixtures else 1
    return dict(needs)


def _leased(item: pytest.Item, name: str) -> str | None:
    """The fixture with its place, if it leases a gateway from the pool."""
    info: Any = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.get(name) if info is not None else None
    if not definitions or "gateway_pool" not in definitions[-1].argnames:
        return None
    return f"{definitions[-1].func.__module__}:{name}"


def write_needs(path: Path, items: Iterable[pytest.Item]) -> None:
    notes = {name: asdict(need) for name, need in needs_of(items).items()}
    path.write_text(json.dumps(notes))


def read_needs(path: Path) -> dict[str, Need]:
    return {name: Need(**need) for name, need in json.loads(path.read_text()).items()}


class Spread(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """Gives a worker the files whose gateways it has, then those whose gateways nobody has, then the others."""

    def __init__(self, config: pytest.Config, log: Any, notes: Path) -> None:
        super().__init__(config, log)
        self._notes = notes
        self._needs: Mapping[str, Need] | None = None
        self._held: defaultdict[WorkerController, set[str]] = defaultdict(set)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self._needs is None:
            self._needs = read_needs(self._notes)
        others = {each for other in self.nodes if other is not node for each in self._held[other]}
        file = next_file(self.workqueue, self._needs, self._held[node], others)
        self._held[node] |= _own(self._needs, file)
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)


def next_file(
    waiting: Iterable[str], needs: Mapping[str, Need], held: set[str], held_elsewhere: set[str]
) -> str:
    """The file that a worker runs next, of those that wait. `held` are the gateways that it has."""

    def order(file: str) -> tuple[int, int]:
        wanted = _own(needs, file)
        if wanted & held:
            rank = 0
        elif wanted and not wanted & held_elsewhere:
            rank = 1
        else:
            rank = 3 if wanted else 2
        return rank, -needs.get(file, Need()).weight

    return min(waiting, key=order)


def _own(needs: Mapping[str, Need], file: str) -> set[str]:
    """The gateways of a file that not every worker has."""
    return set(needs.get(file, Need()).gateways) - {EVERYWHERE}


def new_notes() -> Path:
    """An empty file for what the tests need."""
    with tempfile.NamedTemporaryFile(prefix="fairlead-needs-", delete=False) as file:
        file.write(b"{}")
    return Path(file.name)
