"""What `fairlead doctor` asks a running gateway: its parts, its clock, its configuration and its providers."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.failure import CommandFailed
from fairlead.cli.finding import Finding, failure, fine, warning

if TYPE_CHECKING:
    from fairlead.cli.instance import Instance

_AT_ONCE: Final = 8
_SKEW_S: Final = 30
_SILENT_MS: Final = 30_000
_SPOOL_S: Final = 60


def gateway_findings(instance: Instance, *, with_providers: bool) -> Iterator[Finding]:
    """Everything that the gateway can be asked."""
    try:
        code, _ = instance.probe("/readyz")
    except CommandFailed as failed:
        yield failure("gateway", failed.sentence, "start it with `fairlead serve`")
        return
    if code != 200:
        yield failure(
            "gateway",
            f"{instance.url} is not ready ({code})",
            "read its log; `fairlead status` shows what is missing",
        )
        return
    try:
        health = instance.get("/api/monitoring/health")
    except CommandFailed as failed:
        yield failure("gateway", failed.sentence, "sign in with `fairlead login`")
        return
    yield from _parts(health)
    yield from _shared_store(health)
    yield _skew(health)
    yield from _snapshot(health)
    if instance.address.is_local:
        yield from _proxy_variables(instance)
    if with_providers:
        yield from _providers(instance)


def _parts(health: dict[str, Any]) -> Iterator[Finding]:
    from fairlead import __version__

    yield fine("gateway", f"version {health['version']} is {health['status']}")
    if health["version"] != __version__:
        yield warning(
            "gateway",
            f"the gateway is version {health['version']}, this command is {__version__}",
            "install the same version of both, or restart the gateway after an upgrade",
        )
    for database, fault in health["storage"].items():
        if fault is not None:
            yield failure(
                "storage", f"{database}: {fault}", "make room on the disk, then restart it"
            )
    for task in health["tasks"]:
        if not task["running"]:
            yield failure(
                "tasks",
                f"{task['name']} is down: {task['lastError']}",
                "read the gateway's log, and restart it",
            )
    spool = health["spool"]
    if spool.get("rejected"):
        yield warning(
            "usage",
            f"{spool['rejected']} files of usage records were set aside",
            "look into spool/rejected in the data directory",
        )
    if (spool["oldestAgeSeconds"] or 0) > _SPOOL_S:
        yield warning(
            "usage",
            f"usage records wait for {spool['oldestAgeSeconds']:.0f} s",
            "look at the task usage.ingest in `fairlead health --json`",
        )


def _shared_store(health: dict[str, Any]) -> Iterator[Finding]:
    """Whether every worker reaches the store in which limits are held together, where there is one."""
    workers = [worker for worker in health["workers"] if worker["live"] and worker.get("leases")]
    if not workers:
        return
    without = [worker["id"] for worker in workers if not worker["leases"]["connected"]]
    if without:
        yield failure(
            "shared store",
            f"the shared store does not answer {len(without)} of {len(workers)} workers, so each counts "
            "the limits of keys separately",
            "check FAIRLEAD_SHARED_URL, and that the server runs and can be reached; the gateway's log "
            "has the cause",
        )
    else:
        yield fine("shared store", "every worker holds limits together with the others")


def _skew(health: dict[str, Any]) -> Finding:
    theirs = datetime.fromisoformat(str(health["timestamp"]))
    skew_s = abs((datetime.now(UTC) - theirs).total_seconds())
    if skew_s > _SKEW_S:
        return failure(
            "clock",
            f"this machine and the gateway differ by {skew_s:.0f} s",
            "set both clocks by NTP (`timedatectl set-ntp true`)",
        )
    return fine("clock", "this machine and the gateway agree on the time")


def _snapshot(health: dict[str, Any]) -> Iterator[Finding]:
    """Whether every worker has the newest configuration."""
    version = health["snapshotVersion"]
    live = [worker for worker in health["workers"] if worker["live"]]
    if not live:
        yield failure("snapshot", "no relay worker is connected", "restart the gateway")
        return
    behind = [worker for worker in live if worker["appliedVersion"] < version]
    for worker in behind:
        yield failure(
            "snapshot",
            f"worker {worker['id']} has configuration {worker['appliedVersion']} of {version}",
            "wait a second and look again; if it stays, restart the gateway",
        )
    for worker in live:
        if worker["heardMsAgo"] > _SILENT_MS:
            yield warning(
                "snapshot",
                f"worker {worker['id']} was last heard {worker['heardMsAgo'] // 1000} s ago",
                "look at its load with `fairlead top`",
            )
    if not behind:
        yield fine("snapshot", f"every worker has the newest configuration ({version})")


def _proxy_variables(instance: Instance) -> Iterator[Finding]:
    """Variables of this shell that a newcomer may expect the gateway to follow."""
    from fairlead.net.proxy_variables import PAGE, ignored_proxies, proxy_warning

    proxies = ignored_proxies()
    if proxies and instance.get("/api/settings/proxy")["proxy"] is None:
        yield warning("proxy", proxy_warning(proxies), f"set an outbound proxy as in {PAGE}")


def _providers(instance: Instance) -> Iterator[Finding]:
    """Asks each active connection's provider, some at once."""
    from fairlead.cli.names import provider_names

    try:
        connections = instance.list_all("/api/providers", "connections")
        names = provider_names(instance)
    except CommandFailed as failed:
        yield failure("providers", failed.sentence, "sign in with a token of the scope `write`")
        return
    active = [each for each in connections if each["isActive"]]
    if not active:
        yield warning(
            "providers", "there is no active connection", "run `fairlead providers add <provider>`"
        )
        return
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(lambda each: _provider(instance, each, names), active)


def _provider(instance: Instance, connection: dict[str, Any], names: dict[str, str]) -> Finding:
    provider = names.get(connection["provider"], connection["provider"])
    name = f"{connection['name']} ({provider})"
    try:
        result = instance.post(f"/api/providers/{connection['id']}/test", {})
    except CommandFailed as failed:
        return failure("providers", f"{name}: {failed.sentence}", "read the gateway's log")
    if result["valid"]:
        return fine("providers", f"{name} answers after {result['latencyMs']} ms")
    # Another credential helps only where the provider refused this one.
    fix = (
        f"give it another credential: `fairlead providers edit {connection['id']} --from-file apiKey=PATH`"
        if result["diagnosis"]["type"] == "auth"
        else f"fix the cause, then run `fairlead providers test {connection['id']}`"
    )
    return failure("providers", f"{name}: {result['error']}", fix)
