"""Nodes of relays that this control serves, as they last said that they are."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from fairlead.wire import Wire

# They say so at least twice a second.
LIVE_S: Final = 3.0
NODES_MAX: Final = 1024


class RelayNodeView(Wire):
    """A node with the role `relay`. `segmentsLeft` counts segments of usage that it has not brought yet."""

    id: str
    host: str
    version: str
    workers: int
    snapshot_version: int
    segments_left: int
    seen_ms_ago: int


@dataclass(slots=True)
class _Node:
    host: str
    version: str
    workers: int
    snapshot_version: int
    segments_left: int
    heard_at: float
    times_even: int
    """How often in a row it has said that nothing is left."""


class RelayNodes:
    """The nodes that were heard of in the last seconds."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._news = asyncio.Event()

    # Many parameters: what a node says of itself.
    def heard(
        self,
        node_id: str,
        *,
        host: str,
        version: str,
        workers: int,
        snapshot_version: int,
        segments_left: int,
    ) -> None:
        """Records what a node said of itself."""
        before = self._live().get(node_id)
        times = before.times_even + 1 if before is not None else 1
        if node_id in self._nodes or len(self._nodes) < NODES_MAX:
            self._nodes[node_id] = _Node(
                host,
                version,
                workers,
                snapshot_version,
                segments_left,
                time.monotonic(),
                times if segments_left == 0 else 0,
            )
        self._news.set()
        self._news = asyncio.Event()

    def views(self) -> list[RelayNodeView]:
        """The live nodes, by host."""
        now = time.monotonic()
        return sorted(
            (
                RelayNodeView.model_construct(
                    id=node_id,
                    host=node.host,
                    version=node.version,
                    workers=node.workers,
                    snapshot_version=node.snapshot_version,
                    segments_left=node.segments_left,
                    seen_ms_ago=int((now - node.heard_at) * 1000),
                )
                for node_id, node in self._live().items()
            ),
            key=lambda view: (view.host, view.id),
        )

    async def are_even(self, within_s: float) -> bool:
        """Waits until each live node has said twice from now on that it has brought everything: the first time it may
        have looked before now. False where one did not, or none is heard of.
        """
        begun = {node_id: node.times_even for node_id, node in self._live().items()}
        try:
            async with asyncio.timeout(within_s):
                while not begun or not self._have_said_it(begun):
                    await self._news.wait()
                    for node_id in self._live():
                        begun.setdefault(node_id, 0)
        except TimeoutError:
            return False
        return True

    def _have_said_it(self, begun: dict[str, int]) -> bool:
        live = self._live()
        for node_id, node in live.items():
            if node.times_even < begun.get(node_id, 0):
                # It had something meanwhile, and counts from there.
                begun[node_id] = 0
        return all(
            node.times_even >= begun.get(node_id, 0) + 2 for node_id, node in live.items()
        ) and bool(live)

    def _live(self) -> dict[str, _Node]:
        old = time.monotonic() - LIVE_S
        self._nodes = {i: node for i, node in self._nodes.items() if node.heard_at > old}
        return self._nodes
