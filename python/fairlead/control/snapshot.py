"""Compiles the snapshot: the whole routing configuration of the state database as one document."""

from __future__ import annotations

from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import orjson

from fairlead.coding_tools.acp.provider import AcpProvider
from fairlead.gateway.cache.snapshot import compile_cache
from fairlead.gateway.combos.snapshot import compile_combos
from fairlead.gateway.context.snapshot import compile_context
from fairlead.gateway.guardrails.actions import guardrail_actions
from fairlead.gateway.ip_filter.table import compile_filter
from fairlead.gateway.keys.snapshot import compile_keys
from fairlead.gateway.outbound.table import compile_proxies
from fairlead.gateway.providers.snapshot import compile_connections
from fairlead.gateway.resilience.table import add_persisted_states, compile_resilience
from fairlead.gateway.session_leases.table import add_leases
from fairlead.groups.snapshot import compile_groups
from fairlead.identity.sessions import compile_sessions
from fairlead.identity.tokens import compile_tokens
from fairlead.moment import now_ms
from fairlead.search.table import dearest_search
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta, write_meta
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.snapshots import store_snapshot
from fairlead.usage.token_limits.table import compile_token_limits

VERSION = "snapshot_version"


@dataclass(frozen=True, slots=True)
class NodePart:
    """The part of a snapshot that is in no database: the node's own token, and its coding tools as a connection."""

    local_token_hash: str
    acp: AcpProvider | None

    def complete(self, document: dict[str, Any]) -> bytes:
        """The JSON of a snapshot of the database, with this node's part."""
        document["local_token_hash"] = self.local_token_hash
        if self.acp is not None:
            document["connections"].append(self.acp.connection())
            models = [*document["models"], *self.acp.models()]
            document["models"] = sorted(models, key=itemgetter("id"))
        return orjson.dumps(document)

    def adopt(self, document: bytes) -> bytes:
        """The JSON of a snapshot that another control has compiled, with this node's part."""
        return self.complete(orjson.loads(document))


def compile_snapshot(node: NodePart, con: Connection, floor: int) -> tuple[int, bytes]:
    """Compiles version and JSON, in the writer. The version is above every earlier one and above `floor`."""
    version, document = _compile(con, floor)
    return version, node.complete(document)


def compile_for_all(node: NodePart, con: Connection, floor: int) -> tuple[int, bytes]:
    """Compiles for this node, and stores the snapshot for the other controls of the database."""
    version, document = _compile(con, floor)
    store_snapshot(con, version, orjson.dumps(document))
    return version, node.complete(document)


def _compile(con: Connection, floor: int) -> tuple[int, dict[str, Any]]:
    version = max(int(read_meta(con, VERSION) or 0), floor) + 1
    write_meta(con, VERSION, str(version))
    settings = read_operator_settings(con)
    document: dict[str, Any] = {
        "version": version,
        "compiled_at_ms": now_ms(),
        "settings": {
            "require_login": settings.require_login,
            "cors_origins": settings.cors_origins,
            "unpriced_models": settings.unpriced_models,
            "bare_models": settings.bare_models,
        },
        "account_strategies": {
            "default": settings.account_strategy,
            "providers": settings.account_strategies,
        },
        "cache": compile_cache(settings),
        "capture": {
            "is_for_all": settings.capture_bodies,
            "body_bytes": settings.capture_body_kb * 1024,
        },
        "guardrails": guardrail_actions(settings),
        "context": compile_context(con, settings),
        "ip_filter": compile_filter(con),
        "keys": _keys(con),
        "groups": compile_groups(con),
        "sessions": compile_sessions(con),
        "tokens": compile_tokens(con),
        "resilience": compile_resilience(con),
        **compile_connections(con),
        **compile_combos(con),
        "search_usd_micros": dearest_search(con),
    }
    add_persisted_states(con, document["connections"])
    add_leases(con, document["connections"], document["compiled_at_ms"])
    compile_proxies(con, document)
    return version, document


def _keys(con: Connection) -> list[dict[str, Any]]:
    """Keys with all their limits, from every table that sets one."""
    keys, token_limits = compile_keys(con), compile_token_limits(con)
    for key in keys:
        key["limits"] += token_limits.get(key["id"], [])
    return keys
