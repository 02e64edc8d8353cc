"""By which connections a video is made: those that the relay has chosen for its key, in their order.

The relay holds the key's rules and the price of the model; what it chose comes in a header that it
alone can send.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from fairlead.errors import Internal, InvalidRequest, ModelNotFound
from fairlead.gateway.providers.credentials import Credentials, open_credentials
from fairlead.gateway.providers.endpoint import Endpoint, Provider, endpoint_of, find_provider
from fairlead.gateway.providers.table import Connection, find_connection
from fairlead.store.file import Connection as Database
from fairlead.store.sealer import Sealer

LANES: Final = "x-fairlead-lanes"
DIALECT: Final = "gemini"
# Vertex has other addresses for operations.
_OTHER_AUTH: Final = "google-service-account"


class Chosen(BaseModel):
    """One connection of the relay's choice, and the model as its provider knows it."""

    connection_id: str
    model: str


_CHOICE: Final = TypeAdapter(list[Chosen])


@dataclass(frozen=True, slots=True)
class Lane:
    """One connection with what is needed to call it. `model` is as the provider knows it, `place`
    where the lane stands in the relay's choice.
    """

    connection_id: str
    provider: str
    model: str
    endpoint: Endpoint
    credentials: Credentials
    place: int = 0


def read_choice(header: str) -> list[Chosen]:
    """What the relay has chosen, in its order."""
    try:
        return _CHOICE.validate_json(base64.b64decode(header, validate=True))
    except (ValueError, ValidationError):
        raise Internal("The relay's choice of connections cannot be read.") from None


def chosen_lanes(con: Database, sealer: Sealer, choice: Sequence[Chosen]) -> list[Lane]:
    """At least one of the choice; `ModelNotFound` where none of the connections is there any more."""
    found = []
    for place, chosen in enumerate(choice):
        lane = lane_of(con, sealer, chosen.connection_id)
        if lane is not None:
            found.append(replace(lane, model=chosen.model, place=place))
    if not found:
        raise ModelNotFound(
            "No connection in Gemini's dialect serves the model any more.", param="model"
        )
    return found


def lane_of(con: Database, sealer: Sealer, connection_id: str) -> Lane | None:
    """A connection that makes videos, or began one; None where it is gone."""
    connection = find_connection(con, connection_id)
    provider = None if connection is None else find_provider(con, connection.provider)
    endpoint = None if connection is None or provider is None else _endpoint(provider, connection)
    if connection is None or endpoint is None:
        return None
    credentials = open_credentials(sealer, connection)
    return Lane(connection.id, connection.provider, "", endpoint, credentials)


def _endpoint(provider: Provider, connection: Connection) -> Endpoint | None:
    try:
        endpoint = endpoint_of(provider, connection.auth_type, connection.provider_specific)
    except (InvalidRequest, LookupError):
        return None
    is_ours = endpoint.dialect == DIALECT and endpoint.auth != _OTHER_AUTH
    return endpoint if is_ours else None
