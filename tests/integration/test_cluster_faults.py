"""Faults of a cluster under load: whatever breaks, nothing that was acknowledged is lost or counted twice, and no key
that was revoked passes after its write answered. One cluster goes through all of them.

`FAIRLEAD_FAULT_SECONDS` is how long a link stays cut and a node stands still: unless it is given 24, more than a lease.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.cluster import Cluster, start_cluster
from tests.support.cluster_faults import (
    Fault,
    cut_a_control_from_the_database,
    cut_a_relay_from_its_control,
    cut_a_relay_from_the_store,
    fault_seconds,
    lasting,
    slow_every_link,
)
from tests.support.cluster_load import Load, assert_all_is_logged_once
from tests.support.polling import eventually
from tests.support.process import Process, children_of, command_line
from tests.support.processes import Gateway
from tests.support.upstream import Plain

# Several faults one after the other, each with the time that a full machine takes to be whole again.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# Longer than a lease.
FAULT_S: Final = fault_seconds(24)
REVOKED_MIN: Final = 200


@pytest.fixture(scope="module")
def plain() -> Iterator[Plain]:
    with Plain() as running:
        yield running


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with start_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


def plane(node: Gateway, name: str) -> Process:
    for pid in children_of(node.popen.pid):
        if f"-m fairlead.serve {name} " in f"{command_line(pid)} ":
            return Process.of(pid)
    raise AssertionError(f"there is no {name} process")


# ------------------------------------------------------------------------------------ the faults


def kill_each_control(cluster: Cluster, load: Load) -> None:
    for node in cluster.controls:
        plane(node, "control").kill()
        load.wait_for_more(30, 0)
        eventually(cluster.is_even, "all is even", within_s=60, every_s=0.3)


def kill_each_tunnel(cluster: Cluster, load: Load) -> None:
    for node in (*cluster.controls, *cluster.relays):
        plane(node, "tunnel").kill()
        load.wait_for_more(30, 0)
        eventually(cluster.is_even, "all is even", within_s=60, every_s=0.3)


def kill_each_relay(cluster: Cluster, load: Load) -> None:
    for node in (*cluster.relays, *cluster.controls):
        plane(node, "relay").kill()
        load.wait_for_more(30, 0)
        eventually(cluster.is_even, "all is even", within_s=60, every_s=0.3)


def lose_a_machine_of_each_role(cluster: Cluster, load: Load) -> None:
    for node in (cluster.controls[0], cluster.relays[0]):
        node.kill_all()
        time.sleep(3)
        node.start()
        load.wait_for_more(30, 0)


def restart_the_database(cluster: Cluster, load: Load) -> None:
    cluster.servers[0].stop("immediate")
    load.wait_for_more(30, 0)
    cluster.servers[0].launch()


def empty_the_store(cluster: Cluster, load: Load) -> None:
    cluster.store.stop()
    load.wait_for_more(30, 0)
    cluster.store.start()


def pause_a_control(cluster: Cluster, load: Load) -> None:
    paused = plane(cluster.controls[cluster.control_of(cluster.relays[0])], "control")
    paused.signal(signal.SIGSTOP)
    try:
        time.sleep(FAULT_S)
    finally:
        paused.signal(signal.SIGCONT)


def pause_a_relay(cluster: Cluster, load: Load) -> None:
    """What it is asked meanwhile it answers at once when it comes back, by what it knew before."""
    load.excused = (1, math.inf)
    processes = [plane(cluster.relays[1], name) for name in ("relay", "tunnel")]
    for process in processes:
        process.signal(signal.SIGSTOP)
    try:
        time.sleep(FAULT_S)
    finally:
        for process in processes:
            process.signal(signal.SIGCONT)
        load.excused = (1, time.monotonic() + 3)


def set_the_clocks_apart(cluster: Cluster, load: Load) -> None:
    for seconds in (300, -300):
        cluster.clock.put(seconds)
        load.wait_for_more(60, 10)
    cluster.clock.put(0)


def fill_a_disk(cluster: Cluster, load: Load) -> None:
    folder = cluster.relays[0].data_dir
    if not os.path.ismount(folder):
        pytest.skip("only root can mount a small disk")
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(64 * 1024)):
            pass
    time.sleep(FAULT_S / 2)
    filler.unlink()


def fail_over_to_the_replica(cluster: Cluster, load: Load) -> None:
    cluster.servers[0].stop("immediate")
    cluster.servers[1].promote()


# What neither relays nor their links suffer must not be seen by any caller.
UNSEEN: Final[tuple[Fault, ...]] = (
    kill_each_control,
    kill_each_tunnel,
    restart_the_database,
    empty_the_store,
    lasting(cut_a_relay_from_its_control, FAULT_S),
    lasting(cut_a_control_from_the_database, FAULT_S),
    lasting(cut_a_relay_from_the_store, FAULT_S),
    lasting(slow_every_link, FAULT_S / 2),
    pause_a_control,
    set_the_clocks_apart,
)
SEEN: Final[tuple[Fault, ...]] = (
    kill_each_relay,
    lose_a_machine_of_each_role,
    pause_a_relay,
    fill_a_disk,
)
revocations: list[int] = []


@pytest.mark.parametrize(
    "fault", [*UNSEEN, *SEEN, fail_over_to_the_replica], ids=lambda fault: fault.__name__
)
def test_nothing_is_lost_and_no_revoked_key_passes(
    cluster: Cluster, plain: Plain, fault: Fault
) -> None:
    with Load(cluster, plain) as load:
        load.wait_for_more(20, 0)
        load.begin_revoking()
        fault(cluster, load)
        eventually(cluster.is_even, "all is even again", within_s=90, every_s=0.5)
        load.wait_for_more(20, 3)
    revocations.append(load.revoked)
    print(  # shown where it fails
        f"{fault.__name__}: {len(load.acknowledged)} acknowledged, {len(load.failed)} failed, {load.revoked} revoked"
    )
    assert not load.passed
    if fault in UNSEEN:
        assert not load.failed
    assert_all_is_logged_once(cluster, load)


def test_enough_keys_were_revoked_during_it_all(cluster: Cluster) -> None:
    if len(revocations) < len(UNSEEN) + len(SEEN):
        pytest.skip("only with all faults before")
    assert sum(revocations) >= REVOKED_MIN
    assert cluster.is_even()
