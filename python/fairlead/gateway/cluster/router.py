"""`GET /api/cluster`: the nodes of this instance."""

from __future__ import annotations

import socket
from typing import Literal

from fastapi import APIRouter

from fairlead import __version__
from fairlead.errors import StorageUnavailable
from fairlead.gateway.cluster.report import NodeReport, report_of
from fairlead.gateway.health.process import uptime_s
from fairlead.moment import Time, moment_of, now_ms
from fairlead.store.peers import NodeRow
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/cluster", tags=["monitoring"])


class NodeView(Wire):
    """A node that was heard of in the last seconds. `snapshotVersion` is what all its relay workers have applied;
    `report` is missing from a node of an older version.
    """

    id: str
    host: str
    version: str
    started_at: Time
    seen_ms_ago: int
    is_this: bool
    snapshot_version: int
    report: NodeReport | None


class ClusterView(Wire):
    """The nodes, the oldest first. `versions` and `sealKeys` have more than one entry during an upgrade and an
    exchange of keys. `complete` is false while the database cannot be asked for the other nodes.
    """

    store: Literal["embedded", "postgresql"]
    snapshot_version: int
    complete: bool
    versions: list[str]
    seal_keys: list[str]
    nodes: list[NodeView]


@router.get("", summary="The nodes of this instance, and how far each has come")
async def cluster(services: ServicesDep) -> ClusterView:
    """A single node shows only itself."""
    is_complete = True
    try:
        rows = [] if services.peers is None else await services.peers.live()
    except StorageUnavailable:
        rows, is_complete = [], False
    nodes = [_view(row, services) for row in rows] or [_itself(services)]
    reports = [node.report for node in nodes if node.report is not None]
    return ClusterView.model_construct(
        store="embedded" if services.peers is None else "postgresql",
        snapshot_version=services.snapshot_version(),
        complete=is_complete,
        versions=sorted({node.version for node in nodes}),
        seal_keys=sorted({report.seal_key for report in reports}),
        nodes=nodes,
    )


def _view(row: NodeRow, services: Services) -> NodeView:
    return NodeView.model_construct(
        id=row.id,
        host=row.host,
        version=row.fairlead_version,
        started_at=moment_of(row.started_at_ms),
        seen_ms_ago=row.seen_ms_ago,
        is_this=row.id == services.process,
        snapshot_version=row.applied_version,
        report=None if row.report is None else NodeReport.model_validate_json(row.report),
    )


def _itself(services: Services) -> NodeView:
    applied = [report.applied_version for report in services.workers() if report.live]
    return NodeView.model_construct(
        id=services.process,
        host=socket.gethostname(),
        version=__version__,
        started_at=moment_of(now_ms() - int(uptime_s() * 1000)),
        seen_ms_ago=0,
        is_this=True,
        snapshot_version=min(applied, default=services.snapshot_version()),
        report=report_of(services),
    )
