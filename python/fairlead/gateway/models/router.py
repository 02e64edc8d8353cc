"""`/api/provider-models`: custom models, and overrides of what providers say of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic.alias_generators import to_camel

from fairlead.errors import Conflict, InvalidRequest, NotFound
from fairlead.gateway.models.fields import ModelFields, ModelSettings, NewModel, Visibility
from fairlead.gateway.models.table import (
    ProviderModel,
    changed,
    delete_model,
    find_model,
    models_of,
    put_model,
)
from fairlead.gateway.providers.credentials import Credentials, open_credentials
from fairlead.gateway.providers.endpoint import (
    Endpoint,
    check_api_type,
    reached_endpoint,
    resolve_provider,
)
from fairlead.gateway.providers.obtained_probe import probe_obtained
from fairlead.gateway.providers.probe import Finding
from fairlead.gateway.providers.stated_facts import merge_facts, show_facts
from fairlead.gateway.providers.table import Connection, connections_of, find_connection
from fairlead.gateway.unused_fields import ineffective, refuse_unused
from fairlead.moment import Time, moment_of, now_ms
from fairlead.store.file import Connection as Database
from fairlead.store.services import ServicesDep
from fairlead.store.table import read_number
from fairlead.wire import Message, Wire

router = APIRouter(prefix="/api/provider-models", tags=["models"])

MAX_MODELS = 10_000


class ModelRow(ModelSettings):
    """A model with its settings; `isCustom` tells whether the operator added it, `ineffective` names stored
    fields that have no effect.
    """

    provider: str
    model_id: str
    is_custom: bool
    ineffective: list[str]
    created_at: Time
    updated_at: Time


class ModelRows(Wire):
    """`models` are the custom ones, `modelCompatOverrides` the overrides of the others. `modelOutputOverrides` has
    every cap of output tokens by model, custom or not.
    """

    models: list[ModelRow]
    model_compat_overrides: list[ModelRow]
    model_output_overrides: dict[str, int]
    total: int


class OneModel(Wire):
    model: ModelRow


class Registered(OneModel):
    """`listed` tells whether the provider lists it, null when it was not asked."""

    listed: bool | None
    warning: str | None


class Changed(Wire):
    success: bool = True
    changed: int


@router.get("", summary="Custom models, and overrides of others")
async def list_all(
    services: ServicesDep, provider: Annotated[str | None, Query(max_length=200)] = None
) -> ModelRows:
    def read_models(con: Database) -> list[ProviderModel]:
        return models_of(con, None if provider is None else resolve_provider(con, provider).id)

    rows = await services.state.read(read_models)
    caps = {row.model_id: row.settings.get("max_output_token_override") for row in rows}
    return ModelRows.model_construct(
        models=[_shown(row) for row in rows if row.is_custom],
        model_compat_overrides=[_shown(row) for row in rows if not row.is_custom],
        model_output_overrides={name: cap for name, cap in caps.items() if cap is not None},
        total=len(rows),
    )


@router.post("", status_code=201, summary="Add a custom model")
async def add(new: ModelFields, services: ServicesDep) -> OneModel:
    row = await services.state.commit(lambda con: _register(con, new))
    return OneModel.model_construct(model=_shown(row))


@router.put("", summary="Override what a provider says of a model, or change a custom one")
async def override(fields: ModelFields, services: ServicesDep) -> OneModel:
    sent = _settings(fields)
    if not sent:
        raise InvalidRequest("No valid fields to update")

    def store(con: Database) -> ProviderModel:
        provider = resolve_provider(con, fields.provider).id
        before = find_model(con, provider, fields.model_id)
        if before is None:
            _check_capacity(con)
            before = _blank(provider, fields.model_id)
        after = _overridden(con, before, sent)
        put_model(con, after)
        return after

    return OneModel.model_construct(model=_shown(await services.state.commit(store)))


@router.patch("", summary="Hide models from lists, or show them")
async def show_or_hide(change: Visibility, services: ServicesDep) -> Changed:
    def store(con: Database) -> int:
        provider = resolve_provider(con, change.provider).id
        names = dict.fromkeys(change.model_ids)
        for name in names:
            row = find_model(con, provider, name) or _blank(provider, name)
            put_model(con, changed(row, {"is_hidden": change.is_hidden or None}, now_ms()))
        _check_capacity(con, free_models=0)
        return len(names)

    return Changed.model_construct(changed=await services.state.commit(store))


@router.delete("", summary="Delete a custom model, or all that is overridden of another")
async def delete(
    services: ServicesDep,
    provider: Annotated[str, Query(min_length=1, max_length=200)],
    model: Annotated[str, Query(min_length=1, max_length=240)],
) -> Message:
    def delete_row(con: Database) -> None:
        if not delete_model(con, resolve_provider(con, provider).id, model):
            raise NotFound(
                "This provider's model has no settings of the operator's.", param="model"
            )

    await services.state.commit(delete_row)
    return Message(message="The overrides of the model were deleted.")


@router.post(
    "/validate-and-add", status_code=201, summary="Ask the provider for a model, then add it"
)
async def validate_and_add(new: NewModel, services: ServicesDep) -> Registered:
    """Nothing is stored unless the connection works and, with `strict`, lists the model."""
    sealer = services.state.sealer

    def find_endpoint(con: Database) -> tuple[Endpoint, Credentials, str, dict[str, Any]]:
        provider = resolve_provider(con, new.provider)
        connection = _connection_of(con, provider.id, new.connection_id)
        endpoint = reached_endpoint(
            con, sealer, provider, connection.auth_type, connection.provider_specific
        )
        credentials = open_credentials(sealer, connection)
        return endpoint, credentials, connection.auth_type, connection.provider_specific

    finding = await probe_obtained(*await services.state.read(find_endpoint))
    listed = _is_listed(finding, new.model_id)
    if new.strict and listed is False:
        raise InvalidRequest(
            "modelId is not among the models that the provider lists: correct it, or send "
            "`strict: false`.",
            param="modelId",
        )
    row = await services.state.commit(lambda con: _register(con, new))
    warning = None if listed else finding.warning or "The provider does not list this model."
    return Registered.model_construct(model=_shown(row), listed=listed, warning=warning)


def _connection_of(con: Database, provider: str, connection_id: str | None) -> Connection:
    if connection_id is not None:
        connection = find_connection(con, connection_id)
        if connection is None or connection.provider != provider:
            raise NotFound("The provider has no connection with this id.", param="connectionId")
        return connection
    active = [each for each in connections_of(con, provider) if each.is_active]
    if not active:
        raise Conflict("The provider has no active connection that could be asked: make one.")
    return min(active, key=lambda each: (each.priority, each.id))


def _is_listed(finding: Finding, model_id: str) -> bool | None:
    if not finding.valid:
        raise InvalidRequest(
            f"The provider cannot be asked: {finding.error}",
            param="provider",
            extra={"diagnosis": {"type": finding.diagnosis}},
        )
    if finding.models is None:
        return None
    return any(model["id"] == model_id for model in finding.models)


def _register(con: Database, new: ModelFields) -> ProviderModel:
    provider = resolve_provider(con, new.provider).id
    before = find_model(con, provider, new.model_id)
    if before is not None and before.is_custom:
        raise Conflict("The provider has a custom model of this id: change it with PUT.")
    _check_capacity(con)
    row = _overridden(con, before or _blank(provider, new.model_id), _settings(new))
    row = ProviderModel(
        provider, new.model_id, True, row.settings, row.created_at_ms, row.updated_at_ms
    )
    put_model(con, row)
    return row


def _check_capacity(con: Database, free_models: int = 1) -> None:
    if read_number(con, "SELECT count(*) FROM provider_models") + free_models > MAX_MODELS:
        raise Conflict(f"There are {MAX_MODELS} custom models and overrides: delete some first.")


def _blank(provider: str, model_id: str) -> ProviderModel:
    made_at_ms = now_ms()
    return ProviderModel(provider, model_id, False, {}, made_at_ms, made_at_ms)


def _overridden(con: Database, before: ProviderModel, sent: dict[str, Any]) -> ProviderModel:
    """The row with the fields that were sent."""
    refuse_unused(_unused(sent), _unused(before.settings))
    if sent.get("api_type") is not None:
        check_api_type(resolve_provider(con, before.provider), sent["api_type"])
    if "facts" in sent:
        sent = {**sent, "facts": merge_facts(before.settings.get("facts"), sent["facts"])}
    return changed(before, sent, now_ms())


def _unused(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {to_camel(name): value for name, value in settings.items()}


def _settings(fields: ModelSettings) -> dict[str, Any]:
    names = fields.model_fields_set & ModelSettings.model_fields.keys()
    return {name: getattr(fields, name) for name in names}


def _shown(row: ProviderModel) -> ModelRow:
    return ModelRow.model_construct(
        provider=row.provider,
        model_id=row.model_id,
        is_custom=row.is_custom,
        ineffective=ineffective(_unused(row.settings)),
        created_at=moment_of(row.created_at_ms),
        updated_at=moment_of(row.updated_at_ms),
        **{**row.settings, "facts": show_facts(row.settings.get("facts"))},
    )
