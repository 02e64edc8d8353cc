"""The form of what an operator states about a model, apart from the facts that requests are written by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.dashboard.fact_fields import KNOWN, LABELS, fact_text
from fairlead.dashboard.form import Field, Group, read_values
from fairlead.dashboard.page import FormFields

KINDS: Final = (
    "chat",
    "completion",
    "embedding",
    "image",
    "transcription",
    "speech",
    "rerank",
    "moderation",
    "ocr",
    "video",
    "realtime",
)
CAPABILITIES: Final = (
    "audio_input",
    "audio_output",
    "computer_use",
    "documents",
    "parallel_tools",
    "prompt_cache",
    "reasoning",
    "structured_output",
    "tools",
    "video_input",
    "vision",
    "web_search",
)
_API_TYPES: Final = (
    ("chat", "chat completions"),
    ("responses", "responses"),
    ("embeddings", "embeddings"),
    ("audio-transcriptions", "transcriptions"),
    ("audio-speech", "speech"),
    ("images-generations", "images"),
    ("rerank", "reranking"),
)
_CALLS: Final = (
    ("chat", "Chat, in every dialect"),
    ("completions", "Text completions"),
    ("responses", "Responses"),
    ("messages", "Messages"),
    ("embeddings", "Embeddings"),
    ("images", "Images"),
    ("audio", "Audio"),
    ("moderations", "Moderations"),
    ("rerank", "Reranking"),
    ("ocr", "OCR"),
)
# No field of the API: whether the list of capabilities is sent at all.
_IS_LISTED: Final = "capabilitiesListed"
SETTINGS: Final = (
    Group(
        "Overrides",
        (
            Field("modelName", "Shown as", most=200),
            Field("isHidden", "Left out of lists", "switch", "It can still be called."),
            Field(
                "contextWindowOverride", "Window", "whole", "Empty: the provider's value.", "tokens"
            ),
            Field(
                "maxOutputTokenOverride",
                "Output at most",
                "whole",
                "Applies to every request. Empty: no cap.",
                "tokens",
            ),
        ),
        is_open=True,
    ),
    Group(
        "What it is for",
        (
            Field("type", "Type", "choice", options=(KNOWN, *((kind, kind) for kind in KINDS))),
            Field(
                "apiType",
                "API",
                "choice",
                "The first two only at providers of OpenAI's dialects.",
                options=(KNOWN, *_API_TYPES),
            ),
            Field(
                "supportsVision",
                "Sees pictures",
                "choice",
                options=(KNOWN, ("true", "yes"), ("false", "no")),
            ),
            Field(
                "supportedEndpoints",
                "Calls that it accepts",
                "choices",
                "No selection: by its type.",
                options=_CALLS,
            ),
            Field(_IS_LISTED, "Capabilities are only these", "switch", "Off: as known."),
            Field(
                "capabilities",
                "Capabilities",
                "choices",
                options=tuple((each, each.replace("_", " ")) for each in CAPABILITIES),
            ),
        ),
    ),
)
_FIELDS: Final = tuple(field for group in SETTINGS for field in group.fields)
_USES: Final = {
    "type": "Type",
    "supportedEndpoints": "Calls that it accepts",
    "capabilities": "Capabilities",
    "supportsVision": "Sees pictures",
    "contextLength": "Window",
    "maxOutputTokens": "Output at most",
}
_ORIGINS: Final = {
    "name": "its name",
    "catalogue": "catalogue",
    "family": "catalogue, family",
    "provider": "the provider's list",
    "node": "set on the endpoint",
    "connection": "set on the connection",
    "model": "set here",
}


def settings_values(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The stored settings as the form has them."""
    sees = settings.get("supportsVision")
    return {
        **settings,
        "supportsVision": None if sees is None else str(sees).lower(),
        _IS_LISTED: settings.get("capabilities") is not None,
    }


def read_settings(typed: FormFields) -> dict[str, Any]:
    """The body that was typed."""
    values = read_values(_FIELDS, typed)
    if not values.pop(_IS_LISTED):
        values["capabilities"] = None
    values["supportedEndpoints"] = values["supportedEndpoints"] or None
    if values.get("supportsVision") is not None:
        values["supportsVision"] = values["supportsVision"] == "true"
    return values


def fact_rows(answer: Mapping[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows of the table of facts that somebody states, and the labels of those that nobody states."""
    labels = {**LABELS, **_USES}
    rows, silent = [], []
    for fact in (*answer["uses"], *answer["facts"]):
        label = labels[fact["name"]]
        if fact["origin"] not in _ORIGINS:
            silent.append(label)
            continue
        value = fact["value"]
        rows.append(
            {
                "label": label,
                "value": "-" if value is None else fact_text(value),
                "origin": _ORIGINS[fact["origin"]],
                "is_set": fact["origin"] in ("node", "connection", "model"),
                "source": fact["source"],
                "patterns": ", ".join(fact["patterns"] or ()),
            }
        )
    return rows, silent
