"""Facts about models that an operator states for a node, a connection or one model. They override the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, ConfigDict, Field, StrictBool
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from fairlead.errors import InvalidRequest
from fairlead.gateway.fields import Spelled, Text
from fairlead.gateway.providers.catalogue import Capability
from fairlead.gateway.providers.facts import FactValues
from fairlead.wire import Wire

Endpoint = Literal[
    "chat",
    "completions",
    "responses",
    "messages",
    "embeddings",
    "images",
    "audio",
    "moderations",
    "rerank",
    "ocr",
]
# Without these members there is no request.
_ESSENTIAL: Final = frozenset({"model", "messages", "input", "contents", "prompt", "stream"})


def _dispensable(name: str) -> str:
    if name in _ESSENTIAL:
        raise PydanticCustomError(
            "essential_member",
            "must not contain `{name}`, which every request needs",
            {"name": name},
        )
    return name


Member = Annotated[
    Text,
    Spelled(r"[A-Za-z_][A-Za-z0-9_]{0,99}", "must be the name of a member of a request"),
    AfterValidator(_dispensable),
]


class FactOverrides(FactValues):
    """Facts that replace those of the catalogue. In a change, a fact that is not sent stays and null restores the
    catalogue's. The page on dialects describes each fact.
    """

    model_config = ConfigDict(alias_generator=to_camel)


class RequestFacts(Wire):
    """The facts by which requests are written. In a change, a field that is not sent stays and null clears it."""

    refuses: Annotated[list[Member], Field(max_length=50)] | None = Field(
        None,
        description="Members of a request that the provider refuses, named as in its dialect; replaces the "
        "catalogue's list. They are left out, also where the caller has the provider's dialect; a member that "
        "changes the answer is handled as `inexpressible` says.",
    )
    facts: FactOverrides | None = Field(
        None, description="Other facts that requests are written by, in place of the catalogue's."
    )


class StatedFacts(RequestFacts):
    """An operator's facts about models. In a change, a field that is not sent stays and null clears it."""

    supported_endpoints: Annotated[list[Endpoint], Field(min_length=1, max_length=10)] | None = (
        Field(
            None,
            description="The calls that the model accepts; others are refused before its provider is "
            "called. Without `type` they also set what it is for.",
        )
    )
    supports_vision: StrictBool | None = Field(
        None,
        description="Whether it sees pictures: adds `vision` to its capabilities, or takes it away. `auto` counts it.",
    )
    capabilities: Annotated[list[Capability], Field(max_length=12)] | None = Field(
        None, description="In place of what its provider or the catalogue says."
    )


def merge_facts(
    stored: Mapping[str, Any] | None, sent: FactOverrides | None, place: str = "facts"
) -> dict[str, Any] | None:
    """The stored facts after a change, None without any. `place` is the field's name in JSON, for errors."""
    if sent is None:
        return None
    values = sent.model_dump(mode="json", by_alias=False, include=sent.model_fields_set)
    both = {**(stored or {}), **values}
    facts = {name: value for name, value in both.items() if value is not None}
    least, most = facts.get("budget_least"), facts.get("budget_most")
    if least is not None and most is not None and least > most:
        raise InvalidRequest(
            f"{place}.budgetLeast must be at most {place}.budgetMost, which is {most}: lower it, or raise the other.",
            param=f"{place}.budgetLeast",
        )
    return facts or None


def merge_stated(stored: Mapping[str, Any], sent: StatedFacts) -> dict[str, Any]:
    """Stored fields of `StatedFacts` after a change: fields that were not sent stay, null clears."""
    names = sent.model_fields_set & StatedFacts.model_fields.keys()
    values = {name: getattr(sent, name) for name in names}
    if "facts" in values:
        values["facts"] = merge_facts(stored.get("facts"), values["facts"])
    return {name: value for name, value in {**stored, **values}.items() if value is not None}


def show_facts(stored: Mapping[str, Any] | None) -> FactOverrides | None:
    """Stored facts in the API's form."""
    return None if stored is None else FactOverrides.model_validate(dict(stored), by_name=True)


def relay_facts(stated: Mapping[str, Any]) -> dict[str, Any]:
    """The facts among stored fields, by the relay's names."""
    facts = dict(stated.get("facts") or {})
    if stated.get("refuses") is not None:
        facts |= {"refused": list(stated["refuses"]), "strips_refused": True}
    if stated.get("api_type") in ("chat", "responses"):
        facts["api_type"] = stated["api_type"]
    return facts
