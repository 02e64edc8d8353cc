"""`/api/providers`: make, list, read, change, delete, test and validate connections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

from fastapi import APIRouter

from fairlead.gateway.cloud_credentials.refresher import CredentialRefresher
from fairlead.gateway.cloud_credentials.table import drop_obtained, want_obtained
from fairlead.gateway.providers.apis import Variable
from fairlead.gateway.providers.connection_test import found_connection, test_connection
from fairlead.gateway.providers.creation import (
    PLAIN,
    add_connection,
    event_data,
    first_credentials,
    own_headers,
    provider_of,
)
from fairlead.gateway.providers.credential_rules import (
    auth_type_of,
    check_credential,
    check_credential_kept,
    merge_credentials,
    refuse_new_sign_in,
)
from fairlead.gateway.providers.credentials import (
    Credentials,
    open_credentials,
    seal_credentials,
    shown_tail,
)
from fairlead.gateway.providers.endpoint import (
    Endpoint,
    Provider,
    addresses_of,
    endpoint_of,
    reached_endpoint,
    resolve_provider,
)
from fairlead.gateway.providers.fields import (
    Candidate,
    ConnectionChange,
    NewConnection,
)
from fairlead.gateway.providers.limits import check_limits
from fairlead.gateway.providers.models import catalogue_models
from fairlead.gateway.providers.obtained_kinds import decisive, obtained_kind
from fairlead.gateway.providers.obtained_probe import probe_obtained
from fairlead.gateway.providers.specific_data import merge_specific
from fairlead.gateway.providers.table import (
    Connection,
    count_connections,
    delete_connection,
    list_connections,
    update_connection,
)
from fairlead.gateway.providers.views import (
    ConnectionList,
    ConnectionView,
    ModelsView,
    OneConnection,
    TestView,
    ValidationView,
    show_connection,
    show_model,
    show_test,
)
from fairlead.gateway.resilience.states import ConnectionStates
from fairlead.gateway.resilience.table import (
    PersistedState,
    drop_persisted_state,
    read_persisted_states,
)
from fairlead.gateway.sign_in.table import drop_sign_in
from fairlead.moment import now_ms
from fairlead.net.secret_origin import new_origin
from fairlead.records.provider_usage import drop_provider_usage, forget_figures
from fairlead.store.file import Connection as Database
from fairlead.store.outbox import Event, emit
from fairlead.store.sealer import Sealer
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Limit, Message, Offset, changed_names

router = APIRouter(prefix="/api/providers", tags=["providers"])


@router.get("", summary="List provider connections")
async def list_all(
    services: ServicesDep,
    limit: Limit = 50,
    offset: Offset = 0,
) -> ConnectionList:
    def read_page(con: Database) -> tuple[list[Connection], int, dict[str, PersistedState]]:
        return (
            list_connections(con, limit, offset),
            count_connections(con),
            read_persisted_states(con),
        )

    found, total, persisted = await services.state.read(read_page)
    states = ConnectionStates(services, persisted)
    return ConnectionList.model_construct(
        connections=[_show(each, states) for each in found],
        total=total,
        limit=limit,
        offset=offset,
    )


@router.post(
    "", status_code=201, summary="Make a connection; its key is sealed and not shown again"
)
async def create(new: NewConnection, services: ServicesDep) -> OneConnection:
    sealer = services.state.sealer
    made = await services.state.commit(lambda con: add_connection(con, sealer, new))
    return await _shown(services, await _with_credential(services, made))


@router.post("/validate", summary="Try a connection without storing it")
async def validate(candidate: Candidate, services: ServicesDep) -> ValidationView:
    auth_type = auth_type_of(candidate)
    refuse_new_sign_in(auth_type, None, sends_key=False)

    def find_endpoint(con: Database) -> tuple[Endpoint, Credentials]:
        provider = resolve_provider(con, candidate.provider)
        specific = merge_specific({}, candidate.provider_specific_data)
        sealer = services.state.sealer
        credentials = first_credentials(sealer, provider, candidate, auth_type, specific)
        return reached_endpoint(con, sealer, provider, auth_type, specific), credentials

    endpoint, credentials = await services.state.read(find_endpoint)
    specific = merge_specific({}, candidate.provider_specific_data)
    finding = await probe_obtained(endpoint, credentials, auth_type, specific)
    return ValidationView.model_construct(
        valid=finding.valid, error=finding.error, warning=finding.warning, method="models"
    )


@router.get("/{connection_id}", summary="One provider connection")
async def read(connection_id: str, services: ServicesDep) -> OneConnection:
    found = await services.state.read(lambda con: found_connection(con, connection_id))
    return await _shown(services, found)


@router.put("/{connection_id}", summary="Change a connection; other fields keep their value")
async def change(
    connection_id: str, change: ConnectionChange, services: ServicesDep
) -> OneConnection:
    def update(con: Database) -> Connection:
        before = found_connection(con, connection_id)
        provider = provider_of(con, before)
        after = _changed(services.state.sealer, provider, before, change)
        update_connection(con, after)
        if after.credentials_sealed != before.credentials_sealed:
            # The stored state belongs to the old credential, not to the new one.
            drop_persisted_state(con, connection_id)
        if _account(after) != _account(before):
            forget_figures(con, connection_id)
        if after.auth_type != "oauth":
            drop_sign_in(con, connection_id)
        _renew(con, before, after, is_new="entra_app" in change.model_fields_set)
        changed = changed_names(change)
        emit(con, Event("provider.updated", {**event_data(after), "changed": changed}))
        return after

    changed = await services.state.commit(update)
    return await _shown(services, await _with_credential(services, changed))


@router.delete("/{connection_id}", summary="Delete a connection and its credential")
async def delete(connection_id: str, services: ServicesDep) -> Message:
    def delete_row(con: Database) -> None:
        connection = found_connection(con, connection_id)
        delete_connection(con, connection_id)
        drop_sign_in(con, connection_id)
        drop_obtained(con, connection_id)
        drop_persisted_state(con, connection_id)
        drop_provider_usage(con, connection_id)
        emit(con, Event("provider.deleted", event_data(connection)))

    await services.state.commit(delete_row)
    return Message(message="The connection is deleted.")


@router.post(
    "/{connection_id}/test", summary="Ask the provider for its models, and keep what it says"
)
async def test(connection_id: str, services: ServicesDep) -> TestView:
    finding, tested_at_ms = await test_connection(services, connection_id, by_operator=True)
    return show_test(finding, tested_at_ms)


@router.get("/{connection_id}/models", summary="The models of a connection")
async def models(connection_id: str, services: ServicesDep) -> ModelsView:
    def find_provider_of(con: Database) -> tuple[Connection, Provider]:
        connection = found_connection(con, connection_id)
        return connection, provider_of(con, connection)

    connection, provider = await services.state.read(find_provider_of)
    listed = connection.models
    known = catalogue_models(provider) if listed is None else listed
    return ModelsView.model_construct(
        provider=connection.provider,
        connection_id=connection.id,
        models=[show_model(model) for model in known],
        source="local_catalog" if listed is None else "upstream",
    )


def _changed(
    sealer: Sealer, provider: Provider, before: Connection, change: ConnectionChange
) -> Connection:
    sent = change.model_fields_set
    columns: dict[str, Any] = {name: getattr(change, name) for name in PLAIN if name in sent}
    specific = before.provider_specific
    if "provider_specific_data" in sent:
        specific = merge_specific(specific, change.provider_specific_data)
    credentials = open_credentials(sealer, before)
    auth_type = auth_type_of(change, otherwise=before.auth_type)
    sends_key = change.api_key is not None and "auth_type" in sent
    refuse_new_sign_in(auth_type, before.auth_type, sends_key=sends_key)
    changed = merge_credentials(credentials, change, auth_type)
    kind = obtained_kind(auth_type)
    source = (auth_type, decisive(specific))
    if kind is not None and source != (before.auth_type, decisive(before.provider_specific)):
        # A credential of another source must not be used.
        cleared: dict[str, Any] = {kind.holder: None}
        changed = replace(changed, **cleared)
    check_credential(provider, auth_type, changed)
    addresses = endpoint_of(provider, auth_type, specific).addresses
    known = addresses_of(provider, before.auth_type, before.provider_specific)
    check_credential_kept(changed, auth_type, sent, known, addresses)
    if new_origin(known, addresses) is not None:
        changed = replace(changed, headers=own_headers(sealer, provider, specific))
    if changed != credentials:
        key = changed.api_key
        columns["credentials_sealed"] = seal_credentials(sealer, before.id, changed)
        columns["api_key_tail"] = None if key is None or kind is not None else shown_tail(key)
    if "credentials_sealed" in columns or _address(specific) != _address(before.provider_specific):
        # With another key or address, the result of an earlier test no longer holds.
        columns.update(test_status=None, last_error=None, last_error_at_ms=None, models=None)
    updated_at_ms = max(now_ms(), before.updated_at_ms + 1)
    after = replace(
        before,
        auth_type=auth_type,
        provider_specific=specific,
        updated_at_ms=updated_at_ms,
        **columns,
    )
    check_limits(after)
    return after


def _renew(con: Database, before: Connection, after: Connection, *, is_new: bool) -> None:
    """Makes the credential of a changed source due, in the writer, or forgets that it was obtained."""
    if obtained_kind(after.auth_type) is None:
        drop_obtained(con, after.id)
    elif is_new or (before.auth_type, decisive(before.provider_specific)) != (
        after.auth_type,
        decisive(after.provider_specific),
    ):
        want_obtained(con, after.id)


async def _with_credential(services: Services, connection: Connection) -> Connection:
    """The connection after its credential was obtained, if the gateway obtains it."""
    if obtained_kind(connection.auth_type) is None or not connection.is_active:
        return connection
    await CredentialRefresher.of(services).refresh_if_due(connection.id)
    return await services.state.read(lambda con: found_connection(con, connection.id))


def _account(connection: Connection) -> tuple[Any, ...]:
    """The facts that decide whose usage a provider tells."""
    return connection.credentials_sealed, _address(connection.provider_specific)


def _address(specific: dict[str, Any]) -> list[Any]:
    return [specific.get(name) for name in ("base_url", "api_version", *get_args(Variable))]


def _show(connection: Connection, states: ConnectionStates) -> ConnectionView:
    return show_connection(connection, states.of(connection.id, is_active=connection.is_active))


async def _shown(services: Services, connection: Connection) -> OneConnection:
    states = ConnectionStates(services, await services.state.read(read_persisted_states))
    return OneConnection.model_construct(connection=_show(connection, states))
