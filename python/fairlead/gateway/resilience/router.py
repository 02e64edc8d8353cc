"""`/api/resilience`: thresholds, and the states of providers, connections and models."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import Field, StrictBool, StrictStr

from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.health.credentials import StoredConnection, read_connections
from fairlead.gateway.health.reports import lockouts_of, merge_providers, merge_reports
from fairlead.gateway.resilience.fields import ResilienceSettings
from fairlead.gateway.resilience.states import ConnectionStates
from fairlead.gateway.resilience.table import (
    Clear,
    PersistedState,
    add_clear,
    read_persisted_states,
    read_settings,
    write_settings,
)
from fairlead.gateway.resilience.views import (
    BreakerView,
    ConnectionStateView,
    ModelCooldowns,
    ModelCooldownView,
    ResilienceView,
    WindowView,
)
from fairlead.moment import moment_of, now_ms
from fairlead.records.provider_names import provider_id
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Success, Wire

router = APIRouter(prefix="/api/resilience", tags=["resilience"])

Id = Annotated[StrictStr, Field(min_length=1, max_length=300)]


class Reset(Wire):
    """The scope of a reset; without a name it applies to everything. `provider` is a catalogue id, a node's id or a
    node's prefix.
    """

    provider: Id | None = None
    connection: Id | None = None


class Cleared(Wire):
    """Which cooldown is ended: of one model, or with `all` of every one."""

    provider: Id | None = None
    connection: Id | None = None
    model: Id | None = None
    all: StrictBool = False


@router.get("", summary="Thresholds of resilience, and current states")
async def show(services: ServicesDep) -> ResilienceView:
    def read_state(
        con: Connection,
    ) -> tuple[ResilienceSettings, list[StoredConnection], dict[str, PersistedState]]:
        return read_settings(con), read_connections(con), read_persisted_states(con)

    settings, connections, persisted = await services.state.read(read_state)
    return _view(services, settings, connections, persisted)


@router.patch("", summary="Change thresholds; others keep their value")
async def change(body: ResilienceSettings, services: ServicesDep) -> ResilienceView:
    """In force in every relay worker when it is answered."""

    def update(
        con: Connection,
    ) -> tuple[ResilienceSettings, list[StoredConnection], dict[str, PersistedState]]:
        after = read_settings(con).changed(body)
        write_settings(con, after)
        return after, read_connections(con), read_persisted_states(con)

    settings, connections, persisted = await services.state.commit(update)
    return _view(services, settings, connections, persisted)


@router.post("/reset", summary="Reset failures: states, circuit breakers and model lockouts")
async def reset(services: ServicesDep, body: Reset | None = None) -> Success:
    """Resets every connection, those of one provider, or a single one. Disabled connections stay disabled."""
    clear = Clear(provider=body.provider, connection=body.connection) if body else Clear()
    await _clear(services, clear)
    return Success()


@router.get("/model-cooldowns", summary="Models in cooldown, and until when")
async def model_cooldowns(services: ServicesDep) -> ModelCooldowns:
    connections = {each.id: each for each in await services.state.read(read_connections)}
    reports = merge_reports(each for each in services.workers() if each.live)
    at_ms = now_ms()
    cooldowns = [
        ModelCooldownView.model_construct(
            provider=connections[connection_id].provider,
            connection=connection_id,
            model=one["model"],
            failures=one["failures"],
            until=moment_of(one["until_ms"]),
            remaining_ms=one["until_ms"] - at_ms,
        )
        for connection_id, each in sorted(reports.items())
        if connection_id in connections
        for one in lockouts_of(each)
        if one["until_ms"] > at_ms
    ]
    return ModelCooldowns.model_construct(cooldowns=cooldowns, total=len(cooldowns))


@router.delete("/model-cooldowns", summary="End the cooldown of one model, or of all")
async def clear_model_cooldowns(body: Cleared, services: ServicesDep) -> Success:
    """`{provider, connection?, model}`, or `{all: true}`."""
    if body.all:
        if body.model_fields_set != {"all"}:
            raise InvalidRequest("Send all alone, or provider and model.", param="all")
        await _clear(services, Clear(model="*"))
        return Success()
    if body.provider is None or body.model is None:
        param = "provider" if body.provider is None else "model"
        raise InvalidRequest(f"{param} is required unless all is true.", param=param)
    await _clear(services, Clear(body.provider, body.connection, body.model))
    return Success()


async def _clear(services: Services, clear: Clear) -> None:
    def insert(con: Connection) -> None:
        stored = read_connections(con)
        provider = clear.provider
        if provider is not None:
            provider = provider_id(con, provider)
        if clear.connection is not None and clear.connection not in {each.id for each in stored}:
            raise NotFound("There is no provider connection with this id.", param="connection")
        if provider is not None and provider not in {each.provider for each in stored}:
            raise NotFound("There is no connection of this provider.", param="provider")
        add_clear(con, replace(clear, provider=provider))

    await services.state.commit(insert)


def _view(
    services: Services,
    settings: ResilienceSettings,
    connections: list[StoredConnection],
    persisted: dict[str, PersistedState],
) -> ResilienceView:
    states = ConnectionStates(services, persisted)
    providers = merge_providers(each for each in services.workers() if each.live)
    return ResilienceView.model_construct(
        **{name: getattr(settings, name) for name in ResilienceSettings.model_fields},
        breakers=[_breaker(one) for _, one in sorted(providers.items()) if one["failures"]],
        connections=[_connection(each, states) for each in connections],
    )


def _breaker(breaker: dict[str, Any]) -> BreakerView:
    return BreakerView.model_construct(
        provider=breaker["id"],
        state=breaker["phase"],
        failures=breaker["failures"],
        until=None if breaker["until_ms"] is None else moment_of(breaker["until_ms"]),
    )


def _connection(stored: StoredConnection, states: ConnectionStates) -> ConnectionStateView:
    condition = states.of(stored.id, is_active=stored.is_active)
    return ConnectionStateView.model_construct(
        id=stored.id,
        name=stored.name,
        provider=stored.provider,
        state=condition.state,
        reason=condition.reason,
        until=None if condition.until_ms is None else moment_of(condition.until_ms),
        quota=[show_window(each) for each in condition.quota],
    )


def show_window(window: dict[str, Any]) -> WindowView:
    """A rate-limit window from a worker's report."""
    resets_at_ms = window.get("resets_at_ms")
    return WindowView.model_construct(
        name=window["name"],
        remaining_percent=round(window["remaining"] * 100, 2),
        resets_at=None if resets_at_ms is None else moment_of(resets_at_ms),
        is_quota=window["is_quota"],
    )
