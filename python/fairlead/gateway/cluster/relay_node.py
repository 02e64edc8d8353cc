"""Nodes of relays that this control serves, as they last said that they are."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, Field

from fairlead.wire import Wire

# They say so at least twice a second.
LIVE_S: Final = 3.0
NODES_MAX: Final = 1024


class NodeState(BaseModel):
    """A relay node's state, which it sends with each round of deliveries."""

    node: str = Field(pattern="^[0-9a-f]{1,64}$")
    host: str = Field(max_length=255)
    version: str = Field(max_length=64)
    workers: int = Field(ge=0, le=1024)
    snapshot_version: int = Field(ge=0, le=2**53)
    segments_left: int = Field(ge=0, le=2**53)


class RelayNodeView(Wire):
    """A node with the role `relay`. `segmentsLeft` counts segments of usage that it has not brought yet."""

    id: str
    host: str
    version: str
    workers: int
    snapshot_version: int
    segments_left: int
    seen_ms_ago: int


@dataclass(frozen=True, slots=True)
class _Node:
    state: NodeState
    heard_at: float
    times_empty: int
    """How often in a row it has said that nothing is left."""


class RelayNodes:
    """The nodes that were heard of in the last seconds."""

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._news = asyncio.Event()

    def note(self, state: NodeState) -> None:
        """Records what a node said of itself."""
        before = self._live().get(state.node)
        times = 0 if before is None else before.times_empty
        if before is not None or len(self._nodes) < NODES_MAX:
            times_empty = times + 1 if state.segments_left == 0 else 0
            self._nodes[state.node] = _Node(state, time.monotonic(), times_empty)
        self._news.set()
        self._news = asyncio.Event()

    def views(self) -> list[RelayNodeView]:
        """The live nodes, by host."""
        now = time.monotonic()
        return sorted(
            (
                RelayNodeView.model_construct(
                    id=node_id,
                    seen_ms_ago=int((now - node.heard_at) * 1000),
                    **node.state.model_dump(exclude={"node"}),
                )
                for node_id, node in self._live().items()
            ),
            key=lambda view: (view.host, view.id),
        )

    async def have_brought_all(self, within_s: float) -> bool:
        """Waits until each live node has reported twice from now on that it has sent everything: the first time it
        may have looked before now. False if one did not, or if there is none.
        """
        begun = {node_id: node.times_empty for node_id, node in self._live().items()}
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
            if node.times_empty < begun.get(node_id, 0):
                # It had something meanwhile, and counts from there.
                begun[node_id] = 0
        return all(
            node.times_empty >= begun.get(node_id, 0) + 2 for node_id, node in live.items()
        ) and bool(live)

    def _live(self) -> dict[str, _Node]:
        old = time.monotonic() - LIVE_S
        self._nodes = {i: node for i, node in self._nodes.items() if node.heard_at > old}
        return self._nodes
