"""Providers as the snapshot holds them: active connections, the models that they serve, and prices."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import structlog

from fairlead.gateway.cloud_credentials.table import awaited_connections
from fairlead.gateway.models.table import ProviderModel, models_of
from fairlead.gateway.nodes.table import all_nodes
from fairlead.gateway.pricing.table import Price, read_overrides
from fairlead.gateway.providers.apis import chat_api
from fairlead.gateway.providers.catalogue import CatalogueModel, CatalogueProvider, catalogue
from fairlead.gateway.providers.endpoint import Endpoint, Provider, endpoint_of
from fairlead.gateway.providers.fact_tables import FactTables, base_table, overrides_of
from fairlead.gateway.providers.limits import compile_limits
from fairlead.gateway.providers.models import known_models, override_model, stated_endpoints, typed
from fairlead.gateway.providers.obtained_kinds import obtained_kind
from fairlead.gateway.providers.price import in_snapshot
from fairlead.gateway.providers.table import Connection, active_connections
from fairlead.store.file import Connection as Database

# Providers that answer 400 to a call of a tool without the `reasoning_content` before it.
WANT_REASONING = frozenset({"deepseek", "moonshot", "siliconflow"})

log = structlog.get_logger("fairlead.gateway")


def compile_connections(con: Database) -> dict[str, Any]:
    """The sections `connections`, `models`, `prices` and `facts` of the snapshot.

    A model is listed once, under its provider's first prefix; it has a price under each prefix. If connections
    of one provider have different data on a model, those of the most preferred connection count.
    """
    nodes = all_nodes(con)
    model_settings: dict[str, dict[str, ProviderModel]] = {}
    for row in models_of(con):
        model_settings.setdefault(row.provider, {})[row.model_id] = row
    overrides = read_overrides(con)
    tables = FactTables()
    connections: list[dict[str, Any]] = []
    models: dict[str, dict[str, Any]] = {}
    prices: dict[str, dict[str, Any]] = {}
    awaited = awaited_connections(con)
    for connection in active_connections(con):
        if connection.id in awaited:
            # Its credential has not been obtained yet.
            continue
        provider = catalogue().get(connection.provider) or nodes.get(connection.provider)
        if provider is None:
            # An upgrade removed the provider from the catalogue, so there is no address to dial.
            continue
        try:
            one = _compile(
                provider,
                connection,
                model_settings.get(provider.id, {}),
                overrides.get(connection.provider, {}),
                tables,
            )
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            # One damaged record must not block every later snapshot.
            log.error("a connection is left out", id=connection.id, error=type(error).__name__)
            continue
        connections.append(one.connection)
        for name, model in one.models.items():
            models.setdefault(name, model)
        for name, price in one.prices.items():
            prices.setdefault(name, price)
    return {
        "connections": connections,
        "models": [models[name] for name in sorted(models)],
        "prices": [{"model": name, **prices[name]} for name in sorted(prices)],
        "facts": tables.named(connections),
    }


@dataclass(frozen=True, slots=True)
class _Compiled:
    """One connection's part of the snapshot: itself, its models and its prices by name."""

    connection: dict[str, Any]
    models: dict[str, dict[str, Any]]
    prices: dict[str, dict[str, Any]]


def _compile(
    provider: Provider,
    connection: Connection,
    model_settings: dict[str, ProviderModel],
    overrides: dict[str, Price],
    tables: FactTables,
) -> _Compiled:
    endpoint = endpoint_of(provider, connection.auth_type, connection.provider_specific)
    known = known_models(provider, connection)
    templated = _templated(provider, connection, known)
    facts = _facts(provider, connection, endpoint, model_settings, tables)
    stated = _stated(provider, model_settings)
    record = {**_connection(connection, endpoint), **templated, **stated, **facts}
    compiled = _Compiled(record, {}, {})
    names = {model["id"] for model in known}
    custom = [
        typed(provider, {"id": name})
        for name, row in model_settings.items()
        if row.is_custom and name not in names
    ]
    for model in [*known, *custom]:
        row = model_settings.get(model["id"])
        if row is not None and row.settings.get("is_hidden"):
            continue
        model = override_model(provider, row, model)  # noqa: PLW2901 - the same model, better known
        listed = f"{endpoint.prefixes[0]}/{model['id']}"
        compiled.models.setdefault(listed, _model(listed, connection.provider, endpoint, model))
    for model_id, price in (*overrides.items(), *known_prices(provider, connection)):
        for prefix in endpoint.prefixes:
            compiled.prices.setdefault(f"{prefix}/{model_id}", in_snapshot(price))
    return compiled


def _stated(provider: Provider, model_settings: dict[str, ProviderModel]) -> dict[str, Any]:
    """The operator's caps of output and accepted calls, by the names of models, listed or not."""
    caps = {
        name: row.settings.get("max_output_token_override") for name, row in model_settings.items()
    }
    endpoints, usual = stated_endpoints(provider, model_settings)
    return {
        "output_caps": {name: cap for name, cap in caps.items() if cap is not None},
        "endpoints": endpoints,
        "usual_endpoints": usual,
    }


def _facts(
    provider: Provider,
    connection: Connection,
    endpoint: Endpoint,
    model_settings: dict[str, ProviderModel],
    tables: FactTables,
) -> dict[str, Any]:
    """The snapshot's members that name tables of facts: the connection's own, and its APIs with theirs."""
    stated = overrides_of(provider, connection.provider_specific, model_settings)
    own = tables.add(base_table(provider), stated)
    apis = [{**api.in_snapshot(), "facts": tables.add(api.facts, stated)} for api in endpoint.apis]
    chats = [name for name, row in model_settings.items() if row.settings.get("api_type") == "chat"]
    if endpoint.dialect == "openai-responses" and chats:
        # At a provider with the dialect of responses, these models are called by chat completions.
        apis.append(chat_api(chats, endpoint.base_url, own))
    return {"facts": own, "apis": apis}


def _connection(connection: Connection, endpoint: Endpoint) -> dict[str, Any]:
    sealed = connection.credentials_sealed
    # A refreshed token is the same account: what was learnt of the connection stays.
    is_renewed = connection.auth_type == "oauth" or obtained_kind(connection.auth_type) is not None
    account = {"account": connection.id} if is_renewed else {}
    prompt_cache = connection.provider_specific.get("prompt_cache")
    return {
        **account,
        **({} if prompt_cache is None else {"prompt_cache": prompt_cache}),
        "id": connection.id,
        "name": connection.name,
        "provider": connection.provider,
        "prefixes": list(endpoint.prefixes),
        "dialect": endpoint.dialect,
        "base_url": endpoint.base_url,
        "chat_path": endpoint.chat_path,
        **(
            {"api_version": endpoint.api_version, "deployments": endpoint.deployments}
            if endpoint.api_version or endpoint.deployments
            else {}
        ),
        "auth": endpoint.auth,
        "aws": endpoint.aws,
        "paths": endpoint.paths,
        "credentials_sealed": None if sealed is None else base64.b64encode(sealed).decode(),
        "priority": connection.priority,
        "weight": connection.weight,
        "timeouts": endpoint.timeouts,
        "limits": compile_limits(connection),
        "quota_thresholds": connection.quota_window_thresholds or {},
        "inexpressible": connection.provider_specific.get("inexpressible"),
        "replays_reasoning": _replays_reasoning(connection, endpoint),
        "revision": connection.updated_at_ms,
    }


def _replays_reasoning(connection: Connection, endpoint: Endpoint) -> bool:
    """Whether tool calls are sent back to it together with the reasoning before them."""
    if endpoint.dialect != "openai":
        # Other dialects have separate fields for it, which callers send themselves.
        return False
    setting = connection.provider_specific.get("reasoning_replay")
    return connection.provider in WANT_REASONING if setting is None else bool(setting)


def _templated(
    provider: Provider, connection: Connection, known: list[dict[str, Any]]
) -> dict[str, Any]:
    """The snapshot's members that name the models whose reasoning is switched in the chat template:
    all, or those listed. Only self-hosted inference servers have such templates.
    """
    own = (
        provider.auth == "none"
        if isinstance(provider, CatalogueProvider)
        else (provider.type == "openai-compatible")
    )
    pinned = connection.provider_specific.get("reasoning_control")
    names: list[str] = []
    if own and pinned is None:
        names = [each["id"] for each in known if each.get("reasoning_control")]
    return {
        "chat_template_all": own and pinned == "chat-template",
        "chat_template_models": names,
    }


def _model(listed: str, provider: str, endpoint: Endpoint, model: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": listed,
        "provider": provider,
        "created": model.get("created") or 0,
        "owned_by": model.get("owned_by") or endpoint.prefixes[0],
        "context_length": model.get("context_length"),
        "max_output_tokens": model.get("max_output_tokens"),
        "name": model.get("name"),
        "mode": model.get("mode") or "",
        "capabilities": model.get("capabilities"),
    }


def known_prices(
    provider: Provider, connection: Connection
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Prices without the overrides of `/api/pricing`: the connection's own first, then the catalogue's, then
    those that the provider itself listed.
    """
    yield from (connection.provider_specific.get("prices") or {}).items()
    if isinstance(provider, CatalogueProvider):
        for entry in provider.models:
            if entry.price is not None:
                yield entry.id, entry.price.model_dump()
                yield from _shorter(provider, entry)
    for model in connection.models or ():
        if model.get("price"):
            yield model["id"], model["price"]


def _shorter(
    provider: CatalogueProvider, entry: CatalogueModel
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The price of a model under its name without the prefix that its API leaves out."""
    api = provider.api_of(entry.id)
    if api is not None and api.strip and entry.id.startswith(api.strip) and entry.price is not None:
        yield entry.id.removeprefix(api.strip), entry.price.model_dump()
