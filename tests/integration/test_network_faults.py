"""Faults of the network between the nodes of a cluster: packets are lost or late, and no process is told anything.

`test_cluster_faults` holds back the bytes of connections that stand; here none is taken either, and what was sent is
sent again by the kernel, later and later. `FAIRLEAD_FAULT_SECONDS` is how long a fault lasts: unless it is given 30.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.cluster import Cluster, start_cluster
from tests.support.cluster_faults import (
    Fault,
    cut,
    cut_a_control_from_the_database,
    cut_a_relay_from_its_control,
    cut_a_relay_from_the_store,
    fault_seconds,
    lasting,
    slow_every_link,
)
from tests.support.cluster_load import Load, assert_all_is_logged_once
from tests.support.packet_link import PacketLink, PacketLinks
from tests.support.polling import eventually
from tests.support.upstream import Plain

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FAULT_S: Final = fault_seconds(30)
LOSES: Final = 0.1


@pytest.fixture(scope="module")
def links() -> Iterator[PacketLinks]:
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(PacketLinks())
        except OSError as error:
            pytest.skip(f"only root can make a network namespace with a device of its own: {error}")
        yield made


@pytest.fixture(scope="module")
def plain(links: PacketLinks) -> Iterator[Plain]:
    with Plain() as running:
        yield running


@pytest.fixture(scope="module")
def cluster(links: PacketLinks, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with start_cluster(tmp_path_factory.mktemp("cluster"), links) as running:
        yield running


def cut_a_control_off(cluster: Cluster, load: Load) -> None:
    """Like a machine that is gone, and then is back with what it held."""
    at = cluster.control_of(cluster.relays[0])
    with cut(*cluster.to_database[at], *(each[at] for each in cluster.to_control)):
        time.sleep(FAULT_S)


def cut_a_relay_off(cluster: Cluster, load: Load) -> None:
    """It goes on with what it knew before, and is not waited for any more after twelve seconds."""
    load.excused = (1, math.inf)
    with cut(*cluster.to_control[1], cluster.to_store[1]):
        time.sleep(FAULT_S)
    eventually(cluster.is_even, "the relay is back", within_s=60, every_s=0.3)
    load.excused = (1, time.monotonic())


def lose_a_tenth_of_all_packets(cluster: Cluster, load: Load) -> None:
    links = [link for link in cluster.links() if isinstance(link, PacketLink)]
    for link in links:
        link.loses = LOSES
    try:
        time.sleep(FAULT_S)
    finally:
        for link in links:
            link.mend()


FAULTS: Final[tuple[Fault, ...]] = (
    lasting(cut_a_relay_from_its_control, FAULT_S),
    lasting(cut_a_control_from_the_database, FAULT_S),
    lasting(cut_a_relay_from_the_store, FAULT_S),
    cut_a_control_off,
    cut_a_relay_off,
    lasting(slow_every_link, FAULT_S),
    lose_a_tenth_of_all_packets,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_no_call_fails_and_no_revoked_key_passes(
    cluster: Cluster, plain: Plain, fault: Fault
) -> None:
    with Load(cluster, plain) as load:
        load.wait_for_more(20, 0)
        load.begin_revoking()
        fault(cluster, load)
        eventually(cluster.is_even, "all is even again", within_s=90, every_s=0.5)
        load.wait_for_more(20, 3)
    print(  # shown where it fails
        f"{fault.__name__}: {len(load.acknowledged)} acknowledged, {len(load.failed)} failed, {load.revoked} revoked"
    )
    assert not load.passed
    assert not load.failed
    assert_all_is_logged_once(cluster, load)
