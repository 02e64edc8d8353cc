"""By which connections a key may have a model's videos made, the most preferred first.

The relay does not see these calls' models, so the rules of a key for models and connections are held
here, as `rust/core/src/policy.rs` holds them there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fairlead import _core
from fairlead.errors import Forbidden, InvalidRequest, ModelNotFound
from fairlead.gateway.google import bare_model
from fairlead.gateway.keys.fields import NewKey
from fairlead.gateway.keys.table import find_key
from fairlead.gateway.models.table import models_of
from fairlead.gateway.pricing.table import read_overrides
from fairlead.gateway.providers.credentials import Credentials, open_credentials
from fairlead.gateway.providers.endpoint import Endpoint, Provider, endpoint_of, find_provider
from fairlead.gateway.providers.models import known_models
from fairlead.gateway.providers.snapshot import known_prices
from fairlead.gateway.providers.table import Connection, active_connections, find_connection
from fairlead.gateway.resilience.table import read_held
from fairlead.store.file import Connection as Database
from fairlead.store.sealer import Sealer

DIALECT: Final = "gemini"
# Vertex has other addresses for operations.
_OTHER_AUTH: Final = "google-service-account"


@dataclass(frozen=True, slots=True)
class Lane:
    """One connection with what is needed to call it. `model` is as the provider knows it."""

    connection_id: str
    provider: str
    model: str
    endpoint: Endpoint
    credentials: Credentials
    usd_micros_per_second: int


def lanes_for(con: Database, sealer: Sealer, owner: str, model: str) -> list[Lane]:
    """At least one. `model` is its one name. `ModelNotFound` where no connection that makes videos
    serves the model, `Forbidden` where the key may not call it, `InvalidRequest` where no address
    can name it.
    """
    key = find_key(con, owner)
    if key is None:
        raise Forbidden("The API key is gone.")
    found: list[Lane] = []
    forbidden: Forbidden | None = None
    refused: InvalidRequest | None = None
    for connection in active_connections(con):
        provider = find_provider(con, connection.provider)
        endpoint = None if provider is None else _endpoint(provider, connection)
        if provider is None or endpoint is None:
            continue
        listed = _listed(con, provider, connection)
        name = _own_name(endpoint, listed, model)
        if name is None:
            continue
        try:
            _core.model_address(name)
        except ValueError as rule:
            refused = InvalidRequest(f"`model` {rule}.", param="model")
            continue
        try:
            if key.fields.disable_non_public_models and name not in listed:
                raise _refused(model)
            _admit(key.fields, model, [f"{prefix}/{name}" for prefix in endpoint.prefixes])
            _admit_connection(key.fields, connection.id)
        except Forbidden as error:
            forbidden = error
            continue
        price = _per_second(con, provider, connection, name)
        credentials = open_credentials(sealer, connection)
        found.append(Lane(connection.id, connection.provider, name, endpoint, credentials, price))
    if found:
        # One that is held against something is asked when the others have refused.
        held = read_held(con)
        return sorted(found, key=lambda lane: lane.connection_id in held)
    if forbidden is not None:
        raise forbidden
    if refused is not None:
        raise refused
    raise ModelNotFound(
        f"No connection in Gemini's dialect serves `{model[:200]}`: videos are made by those alone.",
        param="model",
    )


def lane_of(con: Database, sealer: Sealer, connection_id: str) -> Lane | None:
    """The connection that began a video; None where it is gone."""
    connection = find_connection(con, connection_id)
    provider = None if connection is None else find_provider(con, connection.provider)
    endpoint = None if connection is None or provider is None else _endpoint(provider, connection)
    if connection is None or endpoint is None:
        return None
    credentials = open_credentials(sealer, connection)
    return Lane(connection.id, connection.provider, "", endpoint, credentials, 0)


def _endpoint(provider: Provider, connection: Connection) -> Endpoint | None:
    try:
        endpoint = endpoint_of(provider, connection.auth_type, connection.provider_specific)
    except (InvalidRequest, LookupError):
        return None
    is_ours = endpoint.dialect == DIALECT and endpoint.auth != _OTHER_AUTH
    return endpoint if is_ours else None


def _own_name(endpoint: Endpoint, listed: set[str], model: str) -> str | None:
    """The model's name at this connection, which is called by a prefix, or, of one that is listed,
    without.
    """
    for prefix in endpoint.prefixes:
        if model.startswith(f"{prefix}/") and len(model) > len(prefix) + 1:
            return model[len(prefix) + 1 :]
    return model if model in listed else None


def _listed(con: Database, provider: Provider, connection: Connection) -> set[str]:
    said = models_of(con, provider.id)
    hidden = {row.model_id for row in said if row.settings.get("is_hidden")}
    custom = {row.model_id for row in said if row.is_custom}
    known = {str(each["id"]) for each in known_models(provider, connection)} | custom
    return {bare_model(name) for name in known - hidden}


def _admit(key: NewKey, called: str, names: list[str]) -> None:
    spelled = [called, *names]
    forced = key.forced_model
    # Compared without the folder, as the call's own name is.
    if forced is not None and not any(
        _core.model_is_named(forced, name, any_case=False) for name in spelled
    ):
        raise _refused(called)
    if any(
        _core.model_is_named(pattern, name, any_case=True)
        for pattern in key.blocked_models
        for name in spelled
    ):
        raise _refused(called)
    if key.model_access_mode == "restricted" and not any(
        _core.model_is_named(pattern, name, any_case=False)
        for pattern in key.allowed_models
        for name in spelled
    ):
        raise _refused(called)


def _refused(model: str) -> Forbidden:
    return Forbidden(f"This API key may not use the model `{model[:200]}`.", param="model")


def _admit_connection(key: NewKey, connection_id: str) -> None:
    is_restricted = key.connection_access_mode == "restricted"
    if is_restricted and connection_id not in key.allowed_connections:
        raise Forbidden("This API key may not use a connection that serves the model.")


def _per_second(con: Database, provider: Provider, connection: Connection, model: str) -> int:
    own = read_overrides(con).get(connection.provider, {}).items()
    # A spelling that has no price of its own would be free, and the provider may take it.
    for name, price in (*own, *known_prices(provider, connection)):
        if bare_model(name).lower() == model.lower() and price is not None:
            return int(price.get("per_second") or 0)
    return 0
