"""Facts about what a provider's models accept, as the catalogue records them and as the relay gets them.

The catalogue names a source beside each group of facts. `families` holds facts of the models whose names match
a pattern, where they differ from the provider's own; the first family that matches applies. `like` names
another provider with the same models. An absent fact means the plain form of the dialect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

Level = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Count = Annotated[int, Field(strict=True, ge=0, le=1_000_000_000)]
Word = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Words = Annotated[tuple[Word, ...], Field(max_length=100)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NameRule(_Section):
    """The names or ids that are accepted: at most so many characters, and which."""

    most: Count
    letters: Literal["any", "alphanumeric", "word", "identifier"]


class FactValues(_Section):
    """The facts that the catalogue and operators state alike. The relay's type documents their meaning:
    `rust/core/src/facts.rs`.
    """

    cap_member: Literal["max_tokens", "max_completion_tokens"] | None = None
    output_least: Count | None = None
    seed_member: Word | None = None
    stop_most: Count | None = None
    user_most: Count | None = None
    tool_names: NameRule | None = None
    call_ids: NameRule | None = None
    refused_in_turns: tuple[str, ...] | None = None
    thinking: (
        Literal["never", "always", "budget", "adaptive", "effort", "switch", "enable_thinking"]
        | None
    ) = None
    efforts: Annotated[tuple[Level, ...], Field(max_length=7)] | None = None
    budget_least: Count | None = None
    budget_most: Count | None = None
    thinks_by_default: StrictBool | None = None
    tools_need_thinking_off: StrictBool | None = None
    thinking_needs_stream: StrictBool | None = None
    samplers: Literal["accepted", "one", "without_thinking", "refused"] | None = None
    parameters_required: StrictBool | None = None
    forced_tools: Literal["accepted", "without_thinking", "refused"] | None = None
    prefill: Literal["accepted", "prefix", "refused"] | None = None
    blank_texts: Literal["accepted", "refused"] | None = None
    schemas: Literal["any", "closed", "json_object"] | None = None
    logprobs: Literal["flag", "count"] | None = None
    metadata_needs_store: StrictBool | None = None
    cache_marks: Count | None = None
    cache_least: Count | None = None
    prompt_cache_key_most: Count | None = None
    cache_retentions: Words | None = None
    service_tiers: Words | None = None
    streaming_usage: Literal["on_request", "always"] | None = None
    media: Words | None = None
    media_urls: StrictBool | None = None
    system: StrictBool | None = None
    tools_with_schema: StrictBool | None = None
    outputs: (
        Annotated[tuple[Literal["text", "image", "audio"], ...], Field(max_length=3)] | None
    ) = None
    binds_thinking: StrictBool | None = None


class Facts(FactValues):
    """The facts of the catalogue, with their source. Operators state the other three by fields with names that they
    know: `apiType` and `refuses`.
    """

    source: str = Field(min_length=1)
    api_type: Literal["chat", "responses"] | None = None
    refused: tuple[str, ...] | None = None
    strips_refused: StrictBool | None = None


class FamilyFacts(Facts):
    """Facts of the models whose names match one of the patterns, where `*` is any text."""

    models: tuple[str, ...] = Field(min_length=1)


class FactSection(Facts):
    """All facts of a provider."""

    like: str | None = None
    families: tuple[FamilyFacts, ...] = ()


def in_snapshot(section: FactSection, other: Callable[[str], FactSection]) -> dict[str, Any]:
    """A provider's facts for the relay. `other` finds those of the provider that `like` names."""
    own = _members(section)
    if section.like is None:
        return own
    inherited = in_snapshot(other(section.like), other)
    return {**inherited, **own, "families": own["families"] + inherited["families"]}


def _members(section: FactSection) -> dict[str, Any]:
    own = section.model_dump(mode="json", exclude_none=True, exclude={"source", "like", "families"})
    families = [
        family.model_dump(mode="json", exclude_none=True, exclude={"source"})
        for family in section.families
    ]
    return {**own, "families": families}
