"""Faults of the links of a cluster, over whichever kind of link it has; each lasts as long as it is told.

FAULT_S = fault_seconds(24)
FAULTS = (lasting(cut_a_relay_from_its_control, FAULT_S), ...)
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator

from tests.support.cluster import Cluster, Link
from tests.support.cluster_load import Load

Fault = Callable[[Cluster, Load], None]
LastingFault = Callable[[Cluster, float], None]

SLOW_S = 0.5
"""By how much a slow link is late."""


def fault_seconds(usually: float) -> float:
    """How long a link stays cut and a node stands still: `FAIRLEAD_FAULT_SECONDS`, where it is given."""
    return float(os.environ.get("FAIRLEAD_FAULT_SECONDS") or usually)


def lasting(fault: LastingFault, for_s: float) -> Fault:
    """The fault for so many seconds, whatever the load does."""

    @functools.wraps(fault)
    def run(cluster: Cluster, load: Load) -> None:
        fault(cluster, for_s)

    return run


@contextlib.contextmanager
def cut(*links: Link) -> Iterator[None]:
    for link in links:
        link.cut()
    try:
        yield
    finally:
        for link in links:
            link.mend()


def cut_a_relay_from_its_control(cluster: Cluster, for_s: float) -> None:
    used = cluster.control_of(cluster.relays[0])
    with cut(cluster.to_control[0][used]):
        time.sleep(for_s)


def cut_a_control_from_the_database(cluster: Cluster, for_s: float) -> None:
    with cut(*cluster.to_database[0]):
        time.sleep(for_s)


def cut_a_relay_from_the_store(cluster: Cluster, for_s: float) -> None:
    with cut(cluster.to_store[0]):
        time.sleep(for_s)


def slow_every_link(cluster: Cluster, for_s: float) -> None:
    for link in cluster.links():
        link.delay_s = SLOW_S
    try:
        time.sleep(for_s)
    finally:
        for link in cluster.links():
            link.delay_s = 0.0
