"""Where a connection's calls go, put together from catalogue or node and the connection's own
data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlead.errors import InvalidRequest
from fairlead.gateway.nodes.table import Node, find_node, find_node_by_name
from fairlead.gateway.nodes.timeouts import effective_timeouts
from fairlead.gateway.providers.catalogue import CatalogueProvider, catalogue
from fairlead.store.file import Connection as Database

_DIALECTS = {
    "openai-compatible": "openai",
    "anthropic-compatible": "anthropic",
    "gemini-compatible": "gemini",
}
_AUTHS = {
    "openai": "bearer",
    "openai-responses": "bearer",
    "anthropic": "x-api-key",
    "gemini": "x-goog-api-key",
}

# A provider is either built in or an operator's node.
Provider = CatalogueProvider | Node


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`prefixes` are the names by which a model may address it, the one that is listed first."""

    prefixes: tuple[str, ...]
    dialect: str
    base_url: str
    auth: str
    chat_path: str | None
    models_path: str
    check_path: str | None
    timeouts: dict[str, int]


def find_provider(con: Database, name: str) -> Provider | None:
    """The provider of a stored connection: a catalogue id or a node's id."""
    return catalogue().get(name) or find_node(con, name)


def resolve_provider(con: Database, name: str) -> Provider:
    """The provider that a caller means: a catalogue id, a node's id or a node's prefix."""
    provider = catalogue().get(name) or find_node_by_name(con, name)
    if provider is None:
        raise InvalidRequest(
            "There is no such provider: send a catalogue id, a node's id or a node's prefix.",
            param="provider",
        )
    return provider


def endpoint_of(provider: Provider, auth_type: str, specific: dict[str, Any]) -> Endpoint:
    """The endpoint of a connection with this authentication and `providerSpecificData` (stored
    form).
    """
    own = specific.get("timeouts") or {}
    base_url = specific.get("base_url")
    if isinstance(provider, CatalogueProvider):
        return Endpoint(
            prefixes=(provider.id,),
            dialect=provider.dialect,
            base_url=base_url or provider.base_url,
            auth=provider.auth if auth_type == "apikey" else "none",
            chat_path=None,
            models_path="/models",
            # Another address is another service: the list of models is all that is known of it.
            check_path=None if base_url else provider.check_path,
            timeouts=effective_timeouts(own),
        )
    dialect = _DIALECTS[provider.type]
    if dialect == "openai" and provider.api_type == "responses":
        dialect = "openai-responses"
    return Endpoint(
        prefixes=(provider.prefix, provider.id),
        dialect=dialect,
        base_url=base_url or provider.base_url,
        auth=_AUTHS[dialect] if auth_type == "apikey" else "none",
        chat_path=provider.chat_path,
        models_path=provider.models_path or "/models",
        check_path=None,
        timeouts=effective_timeouts(own, provider.timeouts),
    )
