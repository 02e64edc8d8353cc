"""The models of a connection, from its provider's own list or else from the catalogue.

A model is a plain object, as it is stored: `id`, and where known `created` (UTC seconds),
`owned_by`, `context_length`, `max_output_tokens` (tokens), `price` (as in the catalogue), `mode`
(its type, as in the catalogue), `capabilities` (as in the catalogue), `endpoints` (the calls that an operator
says it takes) and `reasoning_control` (`chat-template` where the list shows that an inference server serves it whose
chat templates take reasoning's switches).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, DecimalException
from typing import Any

from fairlead.gateway.models.table import ProviderModel
from fairlead.gateway.providers.catalogue import CatalogueProvider
from fairlead.gateway.providers.endpoint import Provider, dialect_of, serves_type
from fairlead.gateway.providers.model_types import stated_type, type_of
from fairlead.gateway.providers.table import Connection

MAX_MODELS = 5_000
MAX_ID_CHARS = 300
LARGEST = 2**53 - 1
# Gateways in front of an inference server wrap its entry in an object named `openai`.
MAX_ENVELOPES = 3

# Members that hold the list: of OpenAI and most others, of Gemini and Cohere, of Bedrock.
_LIST_NAMES = ("data", "models", "modelSummaries")

# Names that servers give to the sizes of the context and of the answer.
_CONTEXT_NAMES = (
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
    "inputTokenLimit",
)
_OUTPUT_NAMES = ("max_output_tokens", "max_completion_tokens", "outputTokenLimit")

# OpenRouter's names of prices, in USD per token.
_PRICE_NAMES = {
    "input": "prompt",
    "output": "completion",
    "cached_input": "input_cache_read",
    "cache_write": "input_cache_write",
}
# Names that lists give to what a model can do.
_INPUT_CAPABILITIES = {
    "image": "vision",
    "audio": "audio_input",
    "video": "video_input",
    "file": "documents",
}
_OUTPUT_CAPABILITIES = {"audio": "audio_output"}
_PARAMETER_CAPABILITIES = {
    "tools": "tools",
    "parallel_tool_calls": "parallel_tools",
    "reasoning": "reasoning",
    "structured_outputs": "structured_output",
}
_FLAG_CAPABILITIES = {"function_calling": "tools", "vision": "vision", "audio": "audio_input"}
_MICROS_PER_MILLION = Decimal(10) ** 12
# The types of all models of a node, by the node's `apiType`, and of a model, by a call that it takes.
NODE_TYPES = {
    "embeddings": "embedding",
    "audio-transcriptions": "transcription",
    "audio-speech": "speech",
    "images-generations": "image",
    "rerank": "rerank",
}
ENDPOINT_TYPES = {
    "chat": "chat",
    "responses": "chat",
    "messages": "chat",
    "completions": "completion",
    "embeddings": "embedding",
    "images": "image",
    "audio": "transcription",
    "moderations": "moderation",
    "rerank": "rerank",
    "ocr": "ocr",
}
# The calls that a model accepts whose type an operator states.
TYPE_ENDPOINTS = {
    "chat": ["chat", "completions"],
    "completion": ["completions"],
    "embedding": ["embeddings"],
    "image": ["images"],
    "speech": ["audio", "music"],
    "transcription": ["audio"],
    "realtime": ["audio"],
    "rerank": ["rerank"],
    "moderation": ["moderations"],
    "ocr": ["ocr"],
    "video": ["video"],
}


class NotAList(ValueError):
    """The answer is not a list of models in any known form."""


def parse_models(answer: object) -> list[dict[str, Any]]:
    """The models of a provider's answer: a list, bare or under one of the names of `_LIST_NAMES`.

    Entries without a usable id are left out; `NotAList` when there is no list at all.
    """
    entries = answer
    if isinstance(answer, dict):
        entries = next((answer[name] for name in _LIST_NAMES if name in answer), None)
    if not isinstance(entries, list):
        raise NotAList
    found: dict[str, dict[str, Any]] = {}
    for entry in entries:
        model = _parse_model(entry) if isinstance(entry, dict) else None
        if model is None or len(found) >= MAX_MODELS:
            continue
        first = found.setdefault(model["id"], model)
        if first.get("reasoning_control") != model.get("reasoning_control"):
            first.pop("reasoning_control", None)
    return list(found.values())


def known_models(provider: Provider, connection: Connection) -> list[dict[str, Any]]:
    """The models that the provider listed, else those of the catalogue, as far as the connection's address serves
    them; in any case the default model and those with a price. Each has its type.
    """
    deployments = connection.provider_specific.get("deployments")
    models = connection.models
    if deployments and isinstance(provider, CatalogueProvider):
        models = _deployed(provider, deployments)
    elif models is None:
        models = catalogue_models(provider)
    elif isinstance(provider, CatalogueProvider):
        # A provider's own list often leaves the sizes out.
        sizes = {entry["id"]: entry for entry in catalogue_models(provider)}
        models = [_better_known(sizes.get(model["id"], {}), model) for model in models]
        models += _in_regions(provider, sizes, {model["id"] for model in models})
    models = [typed(provider, model) for model in models]
    models = [
        model
        for model in models
        if serves_type(
            provider, connection.provider_specific, model["id"], model.get("mode") or "chat"
        )
    ]
    names = {model["id"] for model in models}
    extra = [connection.default_model, *(connection.provider_specific.get("prices") or ())]
    named = [
        typed(provider, {"id": name}) for name in dict.fromkeys(extra) if name and name not in names
    ]
    return [*models, *named]


def _deployed(provider: CatalogueProvider, deployments: dict[str, str]) -> list[dict[str, Any]]:
    """The models that the operator has deployed: the cloud's own list has all that could be."""
    shipped = {entry["id"]: entry for entry in catalogue_models(provider)}
    return [shipped.get(name, {"id": name}) for name in deployments]


def _in_regions(
    provider: CatalogueProvider, shipped: dict[str, dict[str, Any]], listed: set[str]
) -> list[dict[str, Any]]:
    """The catalogue's models with a prefix of a region that a provider's own list has without it: Bedrock lists models
    there, and many of them are called only by the names of their inference profiles.
    """
    prefixes = (*provider.region_prefixes, "global.")
    return [
        model
        for name, model in shipped.items()
        if name not in listed and any(_without(name, prefix) in listed for prefix in prefixes)
    ]


def _without(name: str, prefix: str) -> str | None:
    return name.removeprefix(prefix) if name.startswith(prefix) else None


def typed(provider: Provider, model: dict[str, Any]) -> dict[str, Any]:
    """The model with its type: of the node that it is at, where the operator gave it one; else as the catalogue or a
    list has it. "Chat" is what many lists say of every model, so the model's name goes before it.
    """
    stated = model.get("mode")
    if not isinstance(provider, CatalogueProvider) and provider.api_type in NODE_TYPES:
        stated = NODE_TYPES[provider.api_type]
    elif stated in (None, "", "chat"):
        stated = type_of(model["id"]) or stated
    return {**model, "mode": stated} if stated else model


def _better_known(shipped: dict[str, Any], listed: dict[str, Any]) -> dict[str, Any]:
    """One model of both sources: the provider's own word goes before the catalogue's, and
    capabilities are those that either knows.
    """
    able = {*shipped.get("capabilities", ()), *listed.get("capabilities", ())}
    both = {**shipped, **listed}
    if listed.get("mode") == "chat" and shipped.get("mode"):
        # Lists that name the methods of a model say so of one that draws, too.
        both["mode"] = shipped["mode"]
    return both | {"capabilities": sorted(able)} if "capabilities" in both else both


def catalogue_models(provider: Provider) -> list[dict[str, Any]]:
    """The models of a built-in provider that are not retired; none of a node."""
    if not isinstance(provider, CatalogueProvider):
        return []
    today = datetime.now(UTC).date()
    return [
        entry.model_dump(
            mode="json",
            include={"id", "mode", "context_length", "max_output_tokens"}
            | ({"capabilities"} if entry.capabilities else set()),
            exclude_none=True,
        )
        for entry in provider.models
        if entry.retires_on is None or entry.retires_on > today
    ]


def override_model(
    provider: Provider, row: ProviderModel | None, model: dict[str, Any]
) -> dict[str, Any]:
    """A known model with what the operator states about its node, and then about itself."""
    if not isinstance(provider, CatalogueProvider):
        stated = {"api_type": provider.api_type} if provider.api_type in NODE_TYPES else {}
        model = with_stated(provider, {**stated, **provider.stated}, model)
    return model if row is None else with_stated(provider, row.settings, model)


def with_stated(
    provider: Provider, stated: Mapping[str, Any], model: dict[str, Any]
) -> dict[str, Any]:
    """A model with stored fields of an operator: those of `StatedFacts` and `ModelSettings`."""
    api_type = stated.get("api_type")
    endpoints = stated.get("supported_endpoints")
    kind = stated.get("type") or _type_for(endpoints)
    kind = kind or (api_type and NODE_TYPES.get(api_type, "chat"))
    if endpoints is None and kind is not None:
        endpoints = _endpoints_for(provider, kind)
    overrides = {
        "name": stated.get("model_name"),
        "context_length": stated.get("context_window_override"),
        "max_output_tokens": stated.get("max_output_token_override"),
        "mode": kind,
        "endpoints": endpoints,
        "capabilities": _stated_capabilities(stated, model),
    }
    return {**model, **{name: value for name, value in overrides.items() if value is not None}}


def stated_endpoints(
    provider: Provider, rows: Mapping[str, ProviderModel]
) -> tuple[dict[str, list[str]], list[str] | None]:
    """The calls that models accept as the operator states: of single models by name, and of all others."""
    own = {
        name: endpoints
        for name, row in rows.items()
        if (endpoints := with_stated(provider, row.settings, {}).get("endpoints")) is not None
    }
    return own, override_model(provider, None, {}).get("endpoints")


def _endpoints_for(provider: Provider, kind: str) -> list[str] | None:
    """The calls that a model of a stated type accepts."""
    if kind == "image" and dialect_of(provider) == "gemini":
        # Google's models draw in conversations.
        return None
    return TYPE_ENDPOINTS[kind]


def _type_for(endpoints: list[str] | None) -> str | None:
    """The type of a model that takes these calls: that of conversations where it takes them."""
    types = [ENDPOINT_TYPES[name] for name in endpoints or ()]
    return "chat" if "chat" in types else next(iter(types), None)


def _stated_capabilities(stated: Mapping[str, Any], model: dict[str, Any]) -> list[str] | None:
    """The capabilities with what the operator states about them; None where the operator states nothing."""
    listed = stated.get("capabilities")
    sees = stated.get("supports_vision")
    if listed is None and sees is None:
        return None
    able = set(model.get("capabilities") or () if listed is None else listed)
    if sees is not None:
        able = able | {"vision"} if sees else able - {"vision"}
    return sorted(able)


def _parse_model(entry: dict[str, Any]) -> dict[str, Any] | None:
    name = entry.get("id") or entry.get("modelId") or entry.get("name")
    if not isinstance(name, str):
        return None
    # Gemini names its models `models/<id>` and expects `<id>`.
    name = name.removeprefix("models/") if "id" not in entry else name
    if not 0 < len(name) <= MAX_ID_CHARS or not name.isprintable() or " " in name:
        return None
    model: dict[str, Any] = {"id": name}
    owner = entry.get("owned_by")
    if isinstance(owner, str) and 0 < len(owner) <= MAX_ID_CHARS and owner.isprintable():
        model["owned_by"] = owner
    if _owners(entry) in ({"vllm"}, {"sglang"}, {"llamacpp"}):
        model["reasoning_control"] = "chat-template"
    size = {**entry, **_object(entry, "top_provider")}
    _put(model, "created", entry.get("created"))
    _put(model, "context_length", *(size.get(each) for each in _CONTEXT_NAMES))
    _put(model, "max_output_tokens", *(size.get(each) for each in _OUTPUT_NAMES))
    if mode := _mode(entry.get("supportedGenerationMethods")) or stated_type(entry):
        model["mode"] = mode
    if capabilities := _capabilities(entry):
        model["capabilities"] = capabilities
    price = _parse_price(_object(entry, "pricing"))
    if price:
        model["price"] = price
    return model


def _mode(methods: object) -> str | None:
    """The use of a model in Gemini's list, from the methods that it has there."""
    if not isinstance(methods, list):
        return None
    for method, mode in (
        ("generateContent", "chat"),
        ("embedContent", "embedding"),
        ("predictLongRunning", "video"),
        ("predict", "image"),
    ):
        if method in methods:
            return mode
    return None


def _capabilities(entry: dict[str, Any]) -> list[str]:
    """The capabilities of a model, where the list tells them: in OpenRouter's words (its inputs and
    parameters) or in Mistral's (`capabilities`, each true or false).
    """
    capabilities: set[str] = set()
    for source, names in (
        (_object(entry, "architecture").get("input_modalities"), _INPUT_CAPABILITIES),
        (_object(entry, "architecture").get("output_modalities"), _OUTPUT_CAPABILITIES),
        (entry.get("supported_parameters"), _PARAMETER_CAPABILITIES),
    ):
        if isinstance(source, list):
            capabilities |= {
                names[each] for each in source if isinstance(each, str) and each in names
            }
    flags = _object(entry, "capabilities")
    capabilities |= {own for theirs, own in _FLAG_CAPABILITIES.items() if flags.get(theirs) is True}
    return sorted(capabilities)


def _owners(entry: dict[str, Any]) -> set[object]:
    """Every owner that the entry and its envelopes name; with more than one, the owner is not
    known.
    """
    owners: set[object] = set()
    level = entry
    for _ in range(1 + MAX_ENVELOPES):
        owner = level.get("owned_by")
        if owner is not None:
            owners.add(owner if isinstance(owner, str) else None)
        inner = level.get("openai")
        if not isinstance(inner, dict):
            break
        level = inner
    return owners


def _object(entry: dict[str, Any], name: str) -> dict[str, Any]:
    value = entry.get(name)
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else {}


def _put(model: dict[str, Any], name: str, *candidates: object) -> None:
    for value in candidates:
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= LARGEST:
            model[name] = value
            return


def _parse_price(pricing: dict[str, Any]) -> dict[str, int] | None:
    price: dict[str, int] = {}
    for name, theirs in _PRICE_NAMES.items():
        text = pricing.get(theirs)
        if not isinstance(text, str):
            continue
        try:
            micros = Decimal(text) * _MICROS_PER_MILLION
        except DecimalException:
            return None
        if not micros.is_finite() or not 0 <= micros <= LARGEST:
            return None
        price[name] = int(micros.to_integral_value())
    return price if {"input", "output"} <= price.keys() else None
