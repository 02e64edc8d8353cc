"""The connections that may make a video, in the order in which the relay chose them.

The relay enforces the key's limits and knows the price of the model; its choice comes in a header
that only the relay can send.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from fairlead.errors import Internal, InvalidRequest, ModelNotFound
from fairlead.gateway.outbound.table import DIRECT, proxy_for, proxy_named
from fairlead.gateway.providers.credentials import Credentials, open_credentials
from fairlead.gateway.providers.endpoint import Endpoint, Provider, endpoint_of, find_provider
from fairlead.gateway.providers.table import Connection, find_connection
from fairlead.store.file import Connection as Database
from fairlead.store.sealer import Sealer

CHOICE_HEADER: Final = "x-fairlead-lanes"
GEMINI: Final = "gemini"
OPENAI: Final = "openai"
# Vertex has other addresses for operations, Amazon other words.
_OTHER_AUTHS: Final = ("google-service-account", "aws-sigv4")


class RelayChoice(BaseModel):
    """One connection that the relay chose, and the model's name at its provider."""

    connection_id: str
    model: str
    proxy: str = DIRECT


_CHOICE: Final = TypeAdapter(list[RelayChoice])


@dataclass(frozen=True, slots=True)
class VideoTarget:
    """A connection with its endpoint and credential. `model` is the name at the provider, `index`
    the position in the relay's choice, `proxy_id` the proxy that the relay chose.
    """

    connection_id: str
    provider: str
    model: str
    endpoint: Endpoint
    credentials: Credentials
    index: int = 0
    proxy_id: str = DIRECT


def read_choice(header: str) -> list[RelayChoice]:
    """The connections that the relay chose, in its order."""
    try:
        return _CHOICE.validate_json(base64.b64decode(header, validate=True))
    except (ValueError, ValidationError):
        raise Internal("The relay's choice of connections cannot be read.") from None


def targets_of(con: Database, sealer: Sealer, choice: Sequence[RelayChoice]) -> list[VideoTarget]:
    """The chosen connections that still exist, at least one; `ModelNotFound` where there is none."""
    found = []
    for index, chosen in enumerate(choice):
        target = target_of(con, sealer, chosen.connection_id, chosen.proxy)
        if target is not None:
            found.append(replace(target, model=chosen.model, index=index, proxy_id=chosen.proxy))
    if not found:
        raise ModelNotFound(
            "No connection that makes videos serves the model any more.", param="model"
        )
    return found


def target_of(
    con: Database, sealer: Sealer, connection_id: str, proxy_id: str | None
) -> VideoTarget | None:
    """A connection that makes videos, or began one, through this proxy; None where one of them no longer
    exists. Without a proxy's id the provider's own counts.
    """
    connection = find_connection(con, connection_id)
    provider = None if connection is None else find_provider(con, connection.provider)
    endpoint = None if connection is None or provider is None else _endpoint(provider, connection)
    if connection is None or endpoint is None:
        return None
    credentials = open_credentials(sealer, connection)
    try:
        proxy = (
            proxy_for(con, sealer, connection.provider)
            if proxy_id is None
            else proxy_named(con, sealer, proxy_id)
        )
    except LookupError:
        # A call that should use a proxy is not sent once the proxy is gone.
        return None
    endpoint = replace(endpoint, proxy=proxy)
    return VideoTarget(connection.id, connection.provider, "", endpoint, credentials)


def _endpoint(provider: Provider, connection: Connection) -> Endpoint | None:
    try:
        endpoint = endpoint_of(provider, connection.auth_type, connection.provider_specific)
    except (InvalidRequest, LookupError):
        return None
    is_ours = endpoint.dialect in (GEMINI, OPENAI) and endpoint.auth not in _OTHER_AUTHS
    return endpoint if is_ours else None
