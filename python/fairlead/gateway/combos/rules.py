"""Rules of a combo beside its steps and its strategy: for targets, for time, for answers, and shadows."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt

from fairlead import _core
from fairlead.errors import InvalidRequest
from fairlead.gateway.fields import ModelId, Spelled, Text
from fairlead.wire import Wire

COOLDOWN_WAIT_MAX_MS: Final = 300_000

TimeoutMs = Annotated[StrictInt, Field(ge=1, le=600_000)]
Words = Annotated[Text, Field(min_length=1, max_length=1_000)]
SystemMessage = Annotated[Text, Field(min_length=1, max_length=50_000)]
Pattern = Annotated[Text, Field(min_length=1, max_length=1_000)]
Prefix = Annotated[
    Text,
    Field(min_length=1, max_length=100),
    Spelled(r"[^\x00-\x20\x7f/*]+", "must be a provider's prefix, without `/` and `*`"),
]
Family = Annotated[
    Text,
    Field(min_length=1, max_length=100),
    Spelled(r"[A-Za-z0-9][A-Za-z0-9._-]*", "must be how models' names begin, as `gpt` or `claude`"),
]


class ContextRequirements(Wire):
    """The context windows that targets must have. The request's own size counts too."""

    min_context_window: Annotated[StrictInt, Field(ge=1, le=10_000_000)] | None = Field(
        None, description="Tokens."
    )
    prefer_large_context: StrictBool = Field(
        False, description="Whether larger windows come first, whatever the strategy says."
    )
    context_filter_mode: Literal["strict", "lenient"] = Field(
        "lenient",
        description="`strict` leaves out targets whose window is too small or not known, "
        "`lenient` tries those that are too small last.",
    )


class JsonPathPredicate(Wire):
    """A condition on the JSON that an answer's text is."""

    path: Annotated[
        Text,
        Field(min_length=1, max_length=300),
        Spelled(r"[^.\s]+(\.[^.\s]+)*", "must be names and places with dots between, as `items.0`"),
    ]
    condition: Literal["exists", "nonEmpty", "equals", "notEquals"]
    value: str | StrictInt | StrictFloat | StrictBool | None = Field(
        None, description="`equals`, `notEquals`: with what it is compared."
    )


class ResponseValidation(Wire):
    """Rules for the text of an answer; one that breaks them goes to the next target. Answers with
    calls of tools are not judged.
    """

    forbidden_substrings: list[Words] = Field(default=[], max_length=50)
    required_substrings: list[Words] = Field(default=[], max_length=50)
    min_content_length: Annotated[StrictInt, Field(ge=0, le=100_000)] = Field(
        0, description="Characters."
    )
    json_path_predicates: list[JsonPathPredicate] = Field(default=[], max_length=50)
    streams: Literal["hold", "pass"] = Field(
        "hold",
        description="`hold`: a stream is held back, without comments, until its text has passed the "
        "checks: its beginning if only `minContentLength` and `requiredSubstrings` are "
        "set, else all of it, up to 8 MiB. `pass`: streams are not checked.",
    )


class ShadowRouting(Wire):
    """Models that are asked beside the combo's own, for comparison alone: no caller sees or pays
    for their answers.
    """

    enabled: StrictBool = True
    targets: Annotated[list[ModelId], Field(min_length=1, max_length=20)]
    sample_rate: Annotated[float, Field(ge=0, le=1)] = Field(
        0.1, description="The share of requests that are shadowed."
    )
    max_targets: Annotated[StrictInt, Field(ge=1, le=10)] = Field(
        1, description="Shadows of one request."
    )
    timeout_ms: TimeoutMs = 60_000


class TimeLimits(Wire):
    """Deadlines and repetitions of a combo; what is not set is as the defaults say."""

    target_timeout_ms: TimeoutMs | None = Field(
        None,
        description="How long one target has: for a whole answer, or for the head of a stream.",
    )
    combo_timeout_ms: Annotated[StrictInt, Field(ge=0, le=3_600_000)] | None = Field(
        None,
        description="How long all targets together have from the request's arrival; 0: no limit.",
    )
    max_retries: Annotated[StrictInt, Field(ge=0, le=10)] | None = Field(
        None,
        description="Retries of one target before the next one, after a transient failure: no answer, "
        "an empty answer, a server error.",
    )
    retry_delay_ms: Annotated[StrictInt, Field(ge=0, le=60_000)] | None = Field(
        None, description="Before each of those; 2000 if not set."
    )
    max_set_retries: Annotated[StrictInt, Field(ge=0, le=10)] | None = Field(
        None, description="How often all targets are tried again when none has answered."
    )
    set_retry_delay_ms: Annotated[StrictInt, Field(ge=0, le=60_000)] | None = Field(
        None, description="Before each of those; 2000 if not set."
    )
    cooldown_wait_ms: Annotated[StrictInt, Field(ge=0, le=COOLDOWN_WAIT_MAX_MS)] | None = Field(
        None,
        description="If every target is in cooldown, wait for the first one while the request is "
        "younger than this; 0 or not set: no wait.",
    )
    queue_depth: Annotated[StrictInt, Field(ge=0, le=10_000)] | None = Field(
        None,
        description="How many requests may wait for a target's connection that is at its limits; 0: "
        "try the next target at once. Not set: the connection's value.",
    )
    queue_timeout_ms: TimeoutMs | None = Field(
        None,
        description="How long a request waits so at most, in all. Not set: as the connection says, "
        "or else 10000.",
    )


def check_tool_filter(pattern: str | None) -> None:
    """`InvalidRequest` for what the relay cannot read as a pattern."""
    fault = None if pattern is None else _core.pattern_fault(pattern)
    if fault is not None:
        raise InvalidRequest(
            f"toolFilterRegex is no pattern ({fault}): it is read without look-around and back "
            "references; `^(get|list)_` keeps the tools whose names begin so.",
            param="toolFilterRegex",
        )


def check_model(model: str, param: str) -> None:
    """`InvalidRequest` for a model without its provider's prefix, or with a `*`."""
    if "/" not in model.strip("/") or "*" in model or model.startswith("combo/"):
        raise InvalidRequest(
            f"{param} `{model}` is no model: write `<prefix>/<model>`.", param=param
        )


def check_targets(targets: list[str], param: str) -> None:
    """Applies `check_model` to each model."""
    for at, model in enumerate(targets):
        check_model(model, f"{param}.{at}")


def compile_validation(validation: ResponseValidation) -> dict[str, Any]:
    """As the snapshot holds it."""
    return {
        "holds_streams": validation.streams == "hold",
        "forbidden_substrings": validation.forbidden_substrings,
        "required_substrings": validation.required_substrings,
        "min_content_length": validation.min_content_length,
        "predicates": [
            predicate.model_dump(exclude_none=True) for predicate in validation.json_path_predicates
        ],
    }


def compile_context(context: ContextRequirements) -> dict[str, Any]:
    """As the snapshot holds it."""
    return {
        "min_window": context.min_context_window or 0,
        "prefers_large": context.prefer_large_context,
        "is_strict": context.context_filter_mode == "strict",
    }
