"""The address of a connection's calls, from the catalogue or the node and the connection's own
data.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from fairlead.errors import InvalidRequest
from fairlead.gateway.nodes.table import Node, all_nodes, find_node, find_node_by_name
from fairlead.gateway.nodes.timeouts import effective_timeouts
from fairlead.gateway.outbound.table import Proxy, proxy_for
from fairlead.gateway.providers.apis import Api, ApiSection
from fairlead.gateway.providers.azure import azure_endpoint, refuse_azure_fields
from fairlead.gateway.providers.catalogue import PATHS, CatalogueProvider, catalogue
from fairlead.gateway.providers.obtained_kinds import check_host, obtained_kind
from fairlead.net.secret_origin import origin_of
from fairlead.net.url import split_url
from fairlead.store.file import Connection as Database
from fairlead.store.sealer import Sealer
from fairlead.text.near_names import did_you_mean

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
    """The addresses and the authentication of a connection. `prefixes` are the prefixes by which
    its models may be named; the first is the one that is listed.
    """

    prefixes: tuple[str, ...]
    dialect: str
    base_url: str
    auth: str
    chat_path: str | None
    # None where the provider lists no models.
    models_url: str | None
    check_url: str | None
    timeouts: dict[str, int]
    # The service and region in the scope of an Amazon signature.
    aws: dict[str, str] | None = None
    # Paths on the host of calls that the provider has elsewhere, by the dialect's own.
    paths: dict[str, str] = field(default_factory=dict)
    # The APIs by which some models are called instead.
    apis: tuple[Api, ...] = ()
    # Azure: the version of its API, and the deployments by model.
    api_version: str | None = None
    deployments: dict[str, str] = field(default_factory=dict)
    # The route of control's own calls; the relay gets it from the snapshot.
    proxy: Proxy | None = None

    @property
    def addresses(self) -> tuple[str, ...]:
        """Every address that the connection's credential is sent to."""
        apis = (api.base_url for api in self.apis)
        urls = (self.base_url, self.models_url, self.check_url, *apis)
        return tuple(url for url in urls if url is not None)


def find_provider(con: Database, name: str) -> Provider | None:
    """The provider of a stored connection: a catalogue id or a node's id."""
    return catalogue().get(name) or find_node(con, name)


def resolve_provider(con: Database, name: str) -> Provider:
    """The provider that a caller means: a catalogue id, a node's id or a node's prefix."""
    provider = catalogue().get(name) or find_node_by_name(con, name)
    if provider is None:
        known = [*catalogue(), *(node.prefix for node in all_nodes(con).values())]
        raise InvalidRequest(
            f"There is no provider `{name}`: send a catalogue id, a node's id or a node's prefix."
            f"{did_you_mean(name, known)}",
            param="provider",
        )
    return provider


def dialect_of(provider: Provider) -> str:
    """The dialect in which a provider is called, except for models that another API serves."""
    if isinstance(provider, CatalogueProvider):
        return provider.dialect
    dialect = _DIALECTS[provider.type]
    is_responses = dialect == "openai" and provider.api_type == "responses"
    return "openai-responses" if is_responses else dialect


def endpoint_of(provider: Provider, auth_type: str, specific: dict[str, Any]) -> Endpoint:
    """The endpoint of a connection with this authentication and `providerSpecificData` (stored
    form).
    """
    own = specific.get("timeouts") or {}
    base_url = specific.get("base_url")
    check_host(auth_type, specific)
    if isinstance(provider, CatalogueProvider) and provider.has_deployments:
        own_url = specific.get("base_url")
        usual = own_url or filled(provider, provider.base_url, specific)
        address = azure_endpoint(usual, specific.get("api_version"))
        placed = {**specific, "base_url": address.base_url}
        endpoint = _built_in(provider, auth_type, placed)
        return replace(
            endpoint,
            models_url=address.models_url,
            api_version=address.api_version,
            deployments=dict(specific.get("deployments") or {}),
        )
    refuse_azure_fields(provider.name, specific)
    if isinstance(provider, CatalogueProvider):
        return _built_in(provider, auth_type, specific)
    dialect = dialect_of(provider)
    return Endpoint(
        prefixes=(provider.prefix, provider.id),
        dialect=dialect,
        base_url=base_url or provider.base_url,
        auth={"apikey": _AUTHS[dialect], "oauth": "bearer"}.get(auth_type, "none"),
        chat_path=provider.chat_path,
        models_url=(base_url or provider.base_url) + (provider.models_path or "/models"),
        check_url=None,
        timeouts=effective_timeouts(own, provider.timeouts),
    )


def check_api_type(provider: Provider, api_type: str) -> None:
    """`InvalidRequest` if models of the provider cannot be called by this one of OpenAI's APIs."""
    if api_type not in ("chat", "responses"):
        return
    has_path = not isinstance(provider, CatalogueProvider) and provider.chat_path is not None
    if not dialect_of(provider).startswith("openai"):
        raise InvalidRequest(
            f"apiType `{api_type}` would have no effect: {provider.name} does not have OpenAI's APIs. "
            "Leave it out, or send null.",
            param="apiType",
        )
    if has_path and (dialect_of(provider), api_type) == ("openai", "responses"):
        raise InvalidRequest(
            "apiType `responses` would have no effect: the node's chatPath is the path of every call. "
            "Remove chatPath first (PUT /api/provider-nodes/<id>), or leave apiType out.",
            param="apiType",
        )


def reached_endpoint(
    con: Database, sealer: Sealer, provider: Provider, auth_type: str, specific: dict[str, Any]
) -> Endpoint:
    """The endpoint with the proxy through which control reaches it."""
    endpoint = endpoint_of(provider, auth_type, specific)
    return replace(endpoint, proxy=proxy_for(con, sealer, provider.id))


def addresses_of(provider: Provider, auth_type: str, specific: dict[str, Any]) -> tuple[str, ...]:
    """Every address that a stored connection's credential is sent to; none while a variable of its
    address has no value.
    """
    try:
        return endpoint_of(provider, auth_type, specific).addresses
    except InvalidRequest:
        return ()


def is_at_node(node: Node, specific: dict[str, Any]) -> bool:
    """Whether a connection's calls go to its node's own host, the only one that gets the node's
    headers.
    """
    own = specific.get("base_url")
    return own is None or origin_of(own) == origin_of(node.base_url)


def _built_in(provider: CatalogueProvider, auth_type: str, specific: dict[str, Any]) -> Endpoint:
    own_url = specific.get("base_url")
    if own_url is not None and is_host_alone(provider, own_url):
        # Another host of the same cloud, such as a private endpoint, has the cloud's paths.
        base_url = own_url + split_url(filled(provider, provider.base_url, specific)).path
    else:
        base_url = own_url or filled(provider, provider.base_url, specific)
    models_url: str | None = f"{base_url}/models"
    check_url = None
    if own_url is None:
        # The catalogue's facts hold at its own address; another service is only expected to list models.
        if provider.models_url is not None:
            models_url = filled(provider, provider.models_url, specific)
        elif not provider.lists_models:
            models_url = None
        check_url = provider.check_path and base_url + provider.check_path
    elif is_host_alone(provider, own_url):
        # The clouds list their models on other hosts than those that serve them.
        models_url = None
    aws = None
    kind = obtained_kind(auth_type)
    if auth_type == "aws" or (kind is not None and kind.holder == "aws"):
        region = specific.get("region") or provider.variables["region"]
        aws = {"region": str(region), "service": str(provider.aws_service)}
    return Endpoint(
        prefixes=(provider.id,),
        dialect=provider.dialect,
        base_url=base_url,
        auth=_auth(provider, auth_type),
        chat_path=None,
        models_url=models_url,
        check_url=check_url,
        timeouts=effective_timeouts(specific.get("timeouts") or {}),
        aws=aws,
        paths=_paths(provider) if own_url is None or is_host_alone(provider, own_url) else {},
        apis=_apis(provider, aws, specific),
    )


def _apis(
    provider: CatalogueProvider, aws: dict[str, str] | None, specific: dict[str, Any]
) -> tuple[Api, ...]:
    own_url = specific.get("base_url")
    if own_url is not None and not is_host_alone(provider, own_url):
        return ()

    def made(at: int, section: ApiSection) -> Api:
        base_url = filled(provider, section.base_url, specific)
        if own_url is not None:
            base_url = own_url + split_url(base_url).path
        service = section.aws_service
        scope = {**aws, "service": service} if aws is not None and service is not None else None
        facts = "" if section.facts is None else f"{provider.id}#{at}"
        return Api(section, base_url, facts, scope)

    return tuple(made(at, section) for at, section in enumerate(provider.apis))


def is_host_alone(provider: Provider, own_url: str) -> bool:
    """Whether the operator's address replaces only the host: it has no path, and the provider has several APIs with
    different paths. An address with a path is another service, in the provider's dialect.
    """
    has_apis = isinstance(provider, CatalogueProvider) and bool(provider.apis)
    return has_apis and not split_url(own_url).path


def _paths(provider: CatalogueProvider) -> dict[str, str]:
    serves = (provider.serves or {}).items()
    return {PATHS[mode]: served.path for mode, served in serves if served.path is not None}


def serves_type(provider: Provider, specific: dict[str, Any], model_id: str, mode: str) -> bool:
    """Whether a connection's address serves the model: as the catalogue says of the provider's own address.
    A node, and an address of the operator's own, may serve anything.
    """
    own_url = specific.get("base_url")
    if not isinstance(provider, CatalogueProvider):
        return True
    if own_url is not None and not is_host_alone(provider, own_url):
        return True
    region = specific.get("region") or provider.variables.get("region")
    return provider.is_in_region(model_id, region) and provider.is_served(model_id, mode)


def _auth(provider: CatalogueProvider, auth_type: str) -> str:
    kind = obtained_kind(auth_type)
    if kind is not None:
        return "aws-sigv4" if kind.holder == "aws" else "bearer"
    if auth_type != "apikey":
        special = {
            "aws": "aws-sigv4",
            "service-account": "google-service-account",
            "oauth": "bearer",
        }
        return special.get(auth_type, "none")
    # For a provider whose usual credential is none, or more than a key, a key is sent as a bearer
    # token.
    is_header = provider.auth in {"x-api-key", "x-goog-api-key", "api-key"}
    return provider.auth if is_header else "bearer"


def filled(provider: CatalogueProvider, template: str, specific: dict[str, Any]) -> str:
    """An address with the connection's values, or the usual ones, in place of its variables;
    `InvalidRequest` names a variable without a value.
    """
    parts: dict[str, str] = {}
    for name, usual in provider.variables.items():
        value = specific.get(name) or usual
        if value is None:
            raise InvalidRequest(
                f"providerSpecificData.{name} is required: {provider.name}'s address is "
                f"{template}.",
                param=f"providerSpecificData.{name}",
            )
        parts[name] = value
    for part, derived in provider.derived.items():
        parts[part] = derived.fill(parts)
    return template.format_map(parts)
