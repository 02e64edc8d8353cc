"""Compiles the snapshot: the whole routing configuration of the state database as one document."""

from __future__ import annotations

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
from fairlead.groups.snapshot import compile_groups
from fairlead.identity.sessions import compile_sessions
from fairlead.identity.tokens import compile_tokens
from fairlead.moment import now_ms
from fairlead.search.table import dearest_search
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta, write_meta
from fairlead.store.operator_settings import read_operator_settings
from fairlead.usage.token_limits.table import compile_token_limits

VERSION = "snapshot_version"


def compile_snapshot(
    local_token_hash: str, acp: AcpProvider | None, con: Connection, floor: int
) -> tuple[int, bytes]:
    """Compiles version and JSON, in the writer. The version is above every earlier one and above `floor`. `acp` is
    the connection that no database holds.
    """
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
        },
        "account_strategies": {
            "default": settings.account_strategy,
            "providers": settings.account_strategies,
        },
        "cache": compile_cache(settings),
        "guardrails": guardrail_actions(settings),
        "context": compile_context(con, settings),
        "ip_filter": compile_filter(con),
        "local_token_hash": local_token_hash,
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
    compile_proxies(con, document)
    if acp is not None:
        document["connections"].append(acp.connection())
        document["models"] = sorted([*document["models"], *acp.models()], key=itemgetter("id"))
    return version, orjson.dumps(document)


def _keys(con: Connection) -> list[dict[str, Any]]:
    """Keys with all their limits, from every table that sets one."""
    keys, token_limits = compile_keys(con), compile_token_limits(con)
    for key in keys:
        key["limits"] += token_limits.get(key["id"], [])
    return keys
