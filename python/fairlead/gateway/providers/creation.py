"""Creation of a connection, from one body or from a list."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from fairlead.errors import Conflict, InvalidRequest
from fairlead.gateway.cloud_credentials.table import want_obtained
from fairlead.gateway.nodes.table import Node
from fairlead.gateway.providers.credential_rules import (
    auth_type_of,
    check_credential,
    merge_credentials,
    refuse_new_sign_in,
)
from fairlead.gateway.providers.credentials import (
    Credentials,
    open_headers,
    seal_credentials,
    shown_tail,
)
from fairlead.gateway.providers.endpoint import (
    Provider,
    endpoint_of,
    find_provider,
    is_at_node,
    resolve_provider,
)
from fairlead.gateway.providers.fields import ConnectionFields, NewConnection
from fairlead.gateway.providers.limits import LIMITS, check_limits
from fairlead.gateway.providers.obtained_kinds import obtained_kind
from fairlead.gateway.providers.specific_data import merge_specific
from fairlead.gateway.providers.table import Connection, insert_connection
from fairlead.moment import now_ms
from fairlead.store.file import Connection as Database
from fairlead.store.outbox import Event, emit
from fairlead.store.sealer import Sealer

# Fields of the body with a column of the same name.
PLAIN = (
    "name",
    "display_name",
    "priority",
    "weight",
    "is_active",
    "default_model",
    "quota_window_thresholds",
    *LIMITS,
)


def draft_connection(con: Database, sealer: Sealer, new: NewConnection) -> Connection:
    """The connection as it would be stored; `InvalidRequest` for a field that is missing or wrong."""
    connection_id, made_at_ms = str(uuid4()), now_ms()
    provider = resolve_provider(con, new.provider)
    auth_type = auth_type_of(new)
    refuse_new_sign_in(auth_type, None, sends_key=False)
    specific = merge_specific({}, new.provider_specific_data)
    credentials = first_credentials(sealer, provider, new, auth_type, specific)
    endpoint_of(provider, auth_type, specific)
    drafted = Connection(
        id=connection_id,
        provider=provider.id,
        auth_type=auth_type,
        **{name: getattr(new, name) for name in PLAIN},
        provider_specific=specific,
        credentials_sealed=seal_credentials(sealer, connection_id, credentials),
        api_key_tail=None if new.api_key is None else shown_tail(new.api_key),
        test_status=None,
        last_error=None,
        last_error_at_ms=None,
        last_tested_at_ms=None,
        models=None,
        created_at_ms=made_at_ms,
        updated_at_ms=made_at_ms,
    )
    check_limits(drafted)
    return drafted


def add_connection(con: Database, sealer: Sealer, new: NewConnection) -> Connection:
    """Stores a new connection and emits its event, in the writer."""
    connection = draft_connection(con, sealer, new)
    insert_connection(con, connection)
    if obtained_kind(connection.auth_type) is not None:
        want_obtained(con, connection.id)
    emit(con, Event("provider.created", event_data(connection)))
    return connection


def first_credentials(
    sealer: Sealer,
    provider: Provider,
    fields: ConnectionFields,
    auth_type: str,
    specific: dict[str, Any],
) -> Credentials:
    """The credential of a new connection."""
    headers = own_headers(sealer, provider, specific)
    credentials = merge_credentials(Credentials(headers=headers), fields, auth_type)
    check_credential(provider, auth_type, credentials)
    return credentials


def own_headers(sealer: Sealer, provider: Provider, specific: dict[str, Any]) -> dict[str, str]:
    """The node's headers for a connection with this address; `InvalidRequest` when they would go to
    another host than the node's.
    """
    headers = open_headers(sealer, provider) if isinstance(provider, Node) else {}
    if headers and isinstance(provider, Node) and not is_at_node(provider, specific):
        raise InvalidRequest(
            "providerSpecificData.baseUrl must be at the node's host, because the node has "
            "customHeaders, which are for that host: make a separate node for this address.",
            param="providerSpecificData.baseUrl",
        )
    return headers


def provider_of(con: Database, connection: Connection) -> Provider:
    """The provider of a stored connection; `Conflict` when it is gone."""
    provider = find_provider(con, connection.provider)
    if provider is None:
        raise Conflict(
            f"The provider `{connection.provider}` is no longer in the catalogue: "
            "delete the connection."
        )
    return provider


def event_data(connection: Connection) -> dict[str, Any]:
    """The data of an event about a connection."""
    return {"id": connection.id, "name": connection.name, "provider": connection.provider}
