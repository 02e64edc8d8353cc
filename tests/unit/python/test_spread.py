"""`tests/support/spread.py`: files that need one gateway run in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.gateway_pool import GatewayPool
from tests.support.spread import EVERYWHERE, Need, needs_of, next_file, read_needs, write_needs

NEEDS = {
    "owner_a": Need(["owned"], 5),
    "owner_b": Need(["owned", EVERYWHERE], 1),
    "demo": Need(["demo"], 3),
    "usual": Need([EVERYWHERE], 300),
    "unit": Need([], 200),
}


@pytest.mark.parametrize(
    ("held", "elsewhere", "expected"),
    [
        (set(), set(), "owner_a"),
        ({"owned"}, set(), "owner_a"),
        ({"demo"}, {"owned"}, "demo"),
        (set(), {"owned"}, "demo"),
        (set(), {"owned", "demo"}, "usual"),
        ({EVERYWHERE}, {"owned", "demo"}, "usual"),
    ],
)
def test_a_worker_goes_where_it_starts_nothing_twice(
    held: set[str], elsewhere: set[str], expected: str
) -> None:
    assert next_file(NEEDS, NEEDS, held, elsewhere) == expected


def test_each_gateway_is_started_once_by_two_workers() -> None:
    waiting = dict(NEEDS)
    held: list[set[str]] = [set(), set()]
    ran: list[list[str]] = [[], []]
    while waiting:
        for worker in (0, 1):
            if not waiting:
                break
            file = next_file(waiting, NEEDS, held[worker], held[1 - worker])
            del waiting[file]
            ran[worker].append(file)
            held[worker] |= set(NEEDS[file].gateways) - {EVERYWHERE}
    assert ran == [["owner_a", "owner_b", "unit"], ["demo", "usual"]]
    assert not held[0] & held[1]


def test_a_file_that_another_worker_could_run_is_not_left() -> None:
    """At the end a worker starts a second gateway rather than waiting."""
    assert next_file(["owner_a"], NEEDS, set(), {"owned"}) == "owner_a"


@pytest.fixture
def over_the_pool(gateway_pool: GatewayPool) -> GatewayPool:
    """A fixture like those that lease a gateway."""
    return gateway_pool


def test_the_fixtures_of_a_test_say_what_it_needs(
    over_the_pool: GatewayPool, request: pytest.FixtureRequest
) -> None:
    (need,) = needs_of([request.node]).values()
    assert need.gateways == [f"{__name__}:over_the_pool"]


def test_needs_are_written_for_the_scheduler(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    write_needs(tmp_path / "needs", [request.node])
    read = read_needs(tmp_path / "needs")
    assert read == needs_of([request.node])
    assert [need.weight for need in read.values()] == [1]
