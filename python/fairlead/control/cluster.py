"""This control among those of one database: what it hears of the others, and what it says of itself."""

from __future__ import annotations

from functools import partial
from typing import Final

from fairlead.control.background import Background
from fairlead.control.publisher import Publisher
from fairlead.control.snapshot import NodePart
from fairlead.control.workers import Workers
from fairlead.gateway.cluster.report import report_of
from fairlead.gateway.responses.intake import response_intake
from fairlead.store.postgresql.nodes import Nodes
from fairlead.store.runner import Runner
from fairlead.store.services import Services
from fairlead.store.snapshots import newer_snapshot

# The others forget a node that says nothing for twelve seconds, and then tell a change to be in force without it. So it
# must not wait for longer than the database is away, however long that was.
RECONNECT_MAX_S: Final = 2.0


class LocalNode:
    """`fairlead.store.postgresql.nodes.LocalNode`: this control, as the others see it."""

    def __init__(
        self, services: Services, publisher: Publisher, workers: Workers, node: NodePart
    ) -> None:
        self._services = services
        self._publisher = publisher
        self._workers = workers
        self._node = node

    def applied_version(self) -> int:
        """Without a live relay, nobody here is served by an older snapshot than the newest."""
        applied = self._workers.applied_version()
        return self._publisher.current.version if applied is None else applied

    def report(self) -> str:
        """This node as every node shows it."""
        return report_of(self._services).model_dump_json(by_alias=True)

    async def wait_for_poll(self, within_s: float) -> None:
        await self._workers.wait_for_poll(within_s)

    def state_changed(self) -> None:
        """Caches are stale, and there may be work."""
        self._services.state.note_change()
        for runner in self._services.instances(Runner):  # type: ignore[type-abstract]
            runner.wake()

    async def store_responses(self) -> None:
        """Stores the responses that the relays here have answered."""
        await response_intake(self._services).catch_up_here()

    async def published(self, version: int) -> None:
        """Takes the newest snapshot over, if another control has compiled it."""
        known = self._publisher.current.version
        if version <= known:
            return
        found = await self._services.state.read(partial(newer_snapshot, version=known))
        if found is not None:
            newest, document = found
            await self._publisher.adopt(newest, self._node.adopt(document))


def join(
    url: str,
    services: Services,
    publisher: Publisher,
    here: LocalNode,
    background: Background,
) -> Nodes:
    """Makes this control one of several; its tasks are stopped with `background`."""
    nodes = Nodes(url, services.process, here)
    publisher.peers = services.peers = nodes
    for name, run in (
        ("control.nodes", nodes.run),
        ("control.locks", nodes.locks.run),
        ("control.leases", nodes.leases.run),
    ):
        background.start(name, run, backoff_max_s=RECONNECT_MAX_S)
    return nodes
