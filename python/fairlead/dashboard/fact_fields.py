"""The form of a model's facts: how each fact is shown and typed.

A fact that is left empty comes from the catalogue. An empty list is typed as a dash, since an empty field means
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fairlead.dashboard.form import Field, Group

KNOWN: Final = ("", "as known")
NOTHING: Final = "-"
_LISTED: Final = "One in a line; - for none. Empty: as known."
_LETTERS: Final = (
    KNOWN,
    ("any", "any"),
    ("alphanumeric", "letters and digits"),
    ("word", "letters, digits, _ and -"),
    ("identifier", "letters, digits, _ - . and :"),
)
_FLAGS: Final = (KNOWN, ("true", "yes"), ("false", "no"))


def _choice(name: str, label: str, *values: str, hint: str = "") -> Field:
    options = (KNOWN, *((value, value.replace("_", " ")) for value in values))
    return Field(f"facts.{name}", label, "choice", hint, options=options)


def _flag(name: str, label: str, hint: str = "") -> Field:
    return Field(f"facts.{name}", label, "choice", hint, options=_FLAGS)


def _count(name: str, label: str, unit: str, hint: str = "Empty: as known.") -> Field:
    return Field(f"facts.{name}", label, "whole", hint, unit)


def _list(name: str, label: str, example: str = "") -> Field:
    return Field(f"facts.{name}", label, "lines", _LISTED, example=example)


def _names(name: str, label: str) -> tuple[Field, Field]:
    return (
        _count(f"{name}.most", f"Longest {label}", "characters"),
        Field(f"facts.{name}.letters", f"Letters of {label}s", "choice", options=_LETTERS),
    )


FACTS: Final = (
    Group(
        "Members of a request",
        (
            Field(
                "refuses",
                "Members that the provider refuses",
                "lines",
                f"By the names of its dialect; they are left out. {_LISTED}",
                example="logit_bias",
            ),
            _choice("capMember", "Member for the cap", "max_tokens", "max_completion_tokens"),
            Field("facts.seedMember", "Member for the seed", hint="Empty: as known.", most=200),
            _count("outputLeast", "Least cap of responses", "tokens"),
            _count("stopMost", "Most stop sequences", "sequences"),
            _count("userMost", "Longest user", "characters"),
            *_names("callIds", "call id"),
            _list("refusedInTurns", "Members refused in the assistant's messages", "reasoning"),
            _choice("samplers", "Samplers", "accepted", "one", "without_thinking", "refused"),
            _choice("logprobs", "Form of logprobs", "flag", "count"),
            _flag("metadataNeedsStore", "Metadata needs store"),
            _choice("streamingUsage", "Usage of streams", "on_request", "always"),
        ),
    ),
    Group(
        "Reasoning",
        (
            _choice(
                "thinking",
                "How a request controls it",
                *("never", "always", "budget", "adaptive", "effort", "switch", "enable_thinking"),
            ),
            _list("efforts", "Levels, lowest first", "low\nmedium\nhigh"),
            _count("budgetLeast", "Least budget", "tokens"),
            _count("budgetMost", "Largest budget", "tokens"),
            _flag("thinksByDefault", "Reasons unless switched off"),
            _flag("toolsNeedThinkingOff", "Tools only without reasoning, by chat completions"),
            _flag("thinkingNeedsStream", "Reasons only in streams"),
            _flag("bindsThinking", "Reasoning is bound to its conversation"),
        ),
    ),
    Group(
        "Tools and formats",
        (
            *_names("toolNames", "tool name"),
            _flag("parametersRequired", "Functions need parameters"),
            _choice("forcedTools", "Forced tools", "accepted", "without_thinking", "refused"),
            _choice("schemas", "JSON schemas", "any", "closed", "json_object"),
            _flag("toolsWithSchema", "Tools beside a JSON format"),
        ),
    ),
    Group(
        "Messages and media",
        (
            _flag("system", "System prompts"),
            _choice("prefill", "Last message of the assistant", "accepted", "prefix", "refused"),
            _choice("blankTexts", "Blank texts", "accepted", "refused"),
            _list("media", "Media types", "image/png\naudio/*"),
            _flag("mediaUrls", "Media by their address"),
            _list("outputs", "Outputs that it always makes", "text\nimage"),
        ),
    ),
    Group(
        "Cache and service",
        (
            _count("cacheMarks", "Most cache marks", "marks"),
            _count("cacheLeast", "Shortest prompt that is cached", "tokens"),
            _count("promptCacheKeyMost", "Longest prompt_cache_key", "characters"),
            _list("cacheRetentions", "Values of prompt_cache_retention", "24h"),
            _list("serviceTiers", "Values of service_tier", "auto\nflex"),
        ),
    ),
)
FIELDS: Final = tuple(field for group in FACTS for field in group.fields)
LABELS: Final = {
    "apiType": "API of OpenAI",
    "toolNames": "Tool names",
    "callIds": "Call ids",
    **{
        field.name.removeprefix("facts."): field.label
        for field in FIELDS
        if field.name.count(".") < 2
    },
}


def form_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The stored facts as the form has them."""
    facts = settings.get("facts") or {}
    shown = {name: _shown(value) for name, value in facts.items() if value is not None}
    return {"refuses": _shown(settings.get("refuses")), "facts": shown}


def read_facts(values: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The members of the body that differ from the stored facts, by what was typed."""
    typed: dict[str, Any] = {}
    for field in FIELDS:
        *outer, last = field.name.removeprefix("facts.").split(".")
        value = _value(field, values.get(field.name))
        if outer:
            inner = typed.setdefault(outer[0], {})
            if value is not None:
                inner[last] = value
        else:
            typed[last] = value
    refuses = typed.pop("refuses")
    stored = settings.get("facts") or {}
    changed = {
        name: value or None if isinstance(value, dict) else value
        for name, value in typed.items()
        if (value or None if isinstance(value, dict) else value) != stored.get(name)
    }
    body: dict[str, Any] = {"facts": changed} if changed else {}
    if refuses != settings.get("refuses"):
        body["refuses"] = refuses
    return body


def fact_text(value: Any) -> str:
    """A fact's value in a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        letters = dict(_LETTERS).get(str(value["letters"]), str(value["letters"]))
        return f"at most {value['most']:,} characters: {letters}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(map(str, value)) or "none"
    return str(value)


def shown_list(value: list[str] | None) -> list[str] | None:
    """A list as the lines of a field: an empty one is a dash."""
    return [NOTHING] if value == [] else value


def typed_list(lines: list[str] | None) -> list[str] | None:
    """The list that was typed; None for an empty field."""
    return [] if lines == [NOTHING] else lines or None


def _shown(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return shown_list(value) if isinstance(value, list) else value


def _value(field: Field, typed: Any) -> Any:
    if field.options == _FLAGS:
        return None if not typed else typed == "true"
    return typed_list(typed) if field.kind == "lines" else typed
