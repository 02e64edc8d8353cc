"""A node's own report, stored with its heartbeat and shown by every node."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from fairlead.gateway.cluster.relay_node import RelayNodes, RelayNodeView
from fairlead.store.log_lag import LogLag
from fairlead.store.services import Services
from fairlead.wire import Wire


class SharedLimits(Wire):
    """Limits that relay workers hold together over a Redis or Valkey: how many workers of the node it answers, the
    limits of which they have leases, and how often it was lost.
    """

    connected_workers: int
    limits_in_use: int
    losses: int


class NodeReport(Wire):
    """A node. `sealKey` names the key that seals its secrets: the same at every node, but while keys are exchanged.
    `work` is how many items of each kind it works on under a lease. `usageBehind` counts segments of other nodes' usage
    that it has not taken in. `relays` are nodes with the role `relay` that use this one.
    """

    # A node of another version may say more.
    model_config = ConfigDict(extra="ignore")

    role: str = "all"
    workers: int
    draining: bool
    in_flight: int
    open_streams: int
    seal_key: str
    work: dict[str, int]
    usage_behind: int | None
    shared_limits: SharedLimits | None
    fault: str | None
    relays: list[RelayNodeView] = Field(default_factory=list)


def report_of(services: Services) -> NodeReport:
    """The report of this process, from what it knows without asking anybody."""
    live = [report.stats for report in services.workers() if report.live]
    leases = [stats["leases"] for stats in live if stats.get("leases")]
    lag = services.existing(LogLag)
    relays = services.existing(RelayNodes)
    return NodeReport.model_construct(
        role=services.config.role,
        workers=len(live),
        draining=bool(live) and all(stats.get("draining", False) for stats in live),
        in_flight=sum(stats.get("in_flight", 0) for stats in live),
        open_streams=sum(stats.get("open_streams", 0) for stats in live),
        seal_key=services.state.sealer.key_name,
        work={} if services.peers is None else services.peers.leases.lease_counts(),
        usage_behind=None if lag is None else lag.segments,
        shared_limits=None
        if not leases
        else SharedLimits.model_construct(
            connected_workers=sum(1 for each in leases if each.get("connected")),
            limits_in_use=sum(each.get("limits_in_use", 0) for each in leases),
            losses=sum(each.get("losses", 0) for each in leases),
        ),
        relays=[] if relays is None else relays.views(),
        fault=services.state.database.fault or services.usage.fault,
    )
