"""The fields of a combo: steps, strategy, and the strategy's parameters."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from fairlead.errors import InvalidRequest
from fairlead.gateway.combos.foreign_fields import IN_COMBOS, IN_CONFIG, refuse_foreign
from fairlead.gateway.combos.rules import (
    ContextRequirements,
    Family,
    Pattern,
    Prefix,
    ResponseValidation,
    ShadowRouting,
    SystemMessage,
    TimeLimits,
    check_model,
    check_targets,
    check_tool_filter,
)
from fairlead.gateway.fields import ModelId, Spelled, Text
from fairlead.gateway.keys.access_fields import ConnectionId
from fairlead.wire import ChangeWire, NamedWire

Strategy = Literal[
    "priority",
    "fill-first",
    "weighted",
    "round-robin",
    "p2c",
    "random",
    "strict-random",
    "least-used",
    "cost-optimized",
    "context-optimized",
    "cache-optimized",
    "headroom",
    "reset-aware",
    "reset-window",
    "lkgp",
    "context-relay",
    "fusion",
    "pipeline",
    "auto",
]
STRATEGIES: tuple[str, ...] = get_args(Strategy)

# Names that other gateways give to our strategies.
_SYNONYMS = {
    "usage": "least-used",
    "context": "context-optimized",
    "weekly-reset": "reset-window",
    "reset-window-order": "reset-window",
}
PREFIX = "combo/"
MAX_STEPS = 100

ComboName = Annotated[
    Text,
    Field(min_length=1, max_length=100),
    Spelled(
        r"(?!combo/)[A-Za-z0-9_./\[\]-]([A-Za-z0-9 _./\[\]-]*[A-Za-z0-9_./\[\]-])?",
        "must be letters, digits, blanks and - _ / . [ ], without a blank at either end "
        "and without `combo/` before it",
    ),
]


def _canonical_strategy(value: object) -> object:
    return _SYNONYMS.get(value, value) if isinstance(value, str) else value


Spelling = Annotated[Strategy, BeforeValidator(_canonical_strategy)]


class ModelStep(NamedWire):
    """One model with its prefix, or a pattern of such names with `*`; over one connection or all
    that serve it.
    """

    kind: Literal["model"] = "model"
    model: ModelId
    connection_id: ConnectionId | None = None
    weight: StrictInt = Field(0, ge=0, le=100)
    label: Annotated[Text, Field(max_length=200)] | None = None
    prompt: Annotated[Text, Field(min_length=1, max_length=10_000)] | None = Field(
        None, description="`pipeline`: the prompt of this step."
    )


class ComboStep(NamedWire):
    """Another combo, by its name; it decides by its own strategy."""

    kind: Literal["combo-ref"]
    combo_name: ComboName
    weight: StrictInt = Field(0, ge=0, le=100)
    label: Annotated[Text, Field(max_length=200)] | None = None


def _step(value: object) -> object:
    """A text is a model, or, with `combo/` before it, a combo."""
    if isinstance(value, str):
        if value.startswith(PREFIX):
            return {"kind": "combo-ref", "comboName": value.removeprefix(PREFIX)}
        return {"kind": "model", "model": value}
    if isinstance(value, dict) and "model" in value:
        return {"kind": "model", **_with_prefix(value)}
    return value


def _with_prefix(step: dict[str, Any]) -> dict[str, Any]:
    """Steps of the reference system name the provider beside the model: `{"provider": "openai", "model": "gpt-4o"}`."""
    names = [name for name in ("provider", "providerId") if name in step]
    rest = {name: value for name, value in step.items() if name not in names}
    if not names:
        return step
    prefixes = {step[name] for name in names}
    prefix, model = next(iter(prefixes)), step["model"]
    if len(prefixes) > 1 or not isinstance(prefix, str) or not isinstance(model, str):
        raise PydanticCustomError(
            "step", "must have one provider, by its prefix: write `model` as `<prefix>/<model>`"
        )
    return {**rest, "model": model if model.startswith(f"{prefix}/") else f"{prefix}/{model}"}


_StepObject = Annotated[ModelStep | ComboStep, Field(discriminator="kind")]
Step = Annotated[_StepObject, BeforeValidator(_step)]

Milliseconds = Annotated[StrictInt, Field(ge=1, le=600_000)]


class Config(TimeLimits, NamedWire):
    """Parameters of a strategy besides its steps, and rules of the combo. Unset ones take the relay's
    defaults.
    """

    @model_validator(mode="before")
    @classmethod
    def _is_ours(cls, body: Any) -> Any:
        return refuse_foreign(body, IN_CONFIG, "config.")

    sticky_limit: Annotated[StrictInt, Field(ge=1, le=1000)] | None = Field(
        None, description="weighted, round-robin: a winner stays for this many requests."
    )
    concurrency_per_model: Annotated[StrictInt, Field(ge=1, le=10_000)] | None = Field(
        None,
        description="Requests at once on one target. fill-first goes on to the next from then on; "
        "round-robin lets no more through: a further one waits as queueDepth (20 if not set) and "
        "queueTimeoutMs (30000) say, then goes to the next.",
    )
    windows: (
        Annotated[list[Literal["session", "weekly", "monthly"]], Field(min_length=1, max_length=3)]
        | None
    ) = Field(None, description="reset-window: whose reset counts.")
    handoff_threshold: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="context-relay: share of the quota after which a session moves on."
    )
    handoff_model: ModelId | None = Field(
        None,
        description="context-relay: who writes the hand-over note; the next target if not set.",
    )
    max_messages_for_summary: Annotated[StrictInt, Field(ge=1, le=200)] | None = Field(
        None, description="context-relay: the number of messages for the note; 30 if not set."
    )
    pack: (
        Literal[
            "balanced",
            "ship-fast",
            "cost-saver",
            "quality-first",
            "offline-friendly",
            "reliability-first",
        ]
        | None
    ) = Field(None, description="auto: which weights.")
    judge_model: ModelId | None = Field(None, description="fusion: who merges the answers.")
    min_panel: Annotated[StrictInt, Field(ge=1, le=20)] | None = Field(
        None, description="fusion: answers before the grace for stragglers begins."
    )
    straggler_grace_ms: Milliseconds | None = Field(None, description="fusion.")
    panel_timeout_ms: Milliseconds | None = Field(None, description="fusion: the whole panel.")
    hedging: StrictBool | None = Field(
        None,
        description="Whether a target that takes long is joined by the next one: the first to "
        "answer wins. For answers in one piece.",
    )
    hedge_delay_ms: Milliseconds | None = Field(
        None, description="hedging: how long the first is waited for alone; 500 if not set."
    )
    context_requirements: ContextRequirements | None = None
    response_validation: ResponseValidation | None = None
    shadow_routing: ShadowRouting | None = None


_ONE_BY_ONE = tuple(each for each in STRATEGIES if each not in ("fusion", "pipeline"))

# Strategies in which a conversation may be held on one target, whatever they say.
_HOLDING = tuple(each for each in _ONE_BY_ONE if each != "context-relay")

# The strategies that read each parameter.
_READ_BY: dict[str, tuple[str, ...]] = {
    "sticky_limit": ("weighted", "round-robin"),
    "concurrency_per_model": ("fill-first", "round-robin"),
    "windows": ("reset-window",),
    "handoff_threshold": ("context-relay",),
    "handoff_model": ("context-relay",),
    "max_messages_for_summary": ("context-relay",),
    "pack": ("auto",),
    "judge_model": ("fusion",),
    "min_panel": ("fusion",),
    "straggler_grace_ms": ("fusion",),
    "panel_timeout_ms": ("fusion",),
    "hedging": _ONE_BY_ONE,
    "hedge_delay_ms": _ONE_BY_ONE,
    "response_validation": _ONE_BY_ONE,
    "shadow_routing": _ONE_BY_ONE,
}

# The fields of a configuration that are parameters of a strategy; the others are rules of the combo.
_RULES = {
    *TimeLimits.model_fields,
    "context_requirements",
    "response_validation",
    "shadow_routing",
}
PARAMETERS = frozenset(Config.model_fields) - _RULES


class ComboFields(NamedWire):
    """Everything but the name."""

    @model_validator(mode="before")
    @classmethod
    def _is_ours(cls, body: Any) -> Any:
        return refuse_foreign(body, IN_COMBOS)

    description: Annotated[Text, Field(max_length=2000)] | None = None
    strategy: Spelling = "priority"
    models: Annotated[list[Step], Field(min_length=1, max_length=MAX_STEPS)]
    config: Config = Config()
    is_active: StrictBool = True
    system_message: SystemMessage | None = Field(
        None, description="Said in conversations before the caller's own instructions."
    )
    tool_filter_regex: Pattern | None = Field(
        None, description="Only tools whose names it matches are sent to a target."
    )
    allowed_providers: list[Prefix] = Field(
        default=[], max_length=100, description="Prefixes of those that may serve it; none: all."
    )
    allowed_model_families: list[Family] = Field(
        default=[],
        max_length=100,
        description="How the names of models that may serve it begin; none: any.",
    )
    context_length: Annotated[StrictInt, Field(ge=1_000, le=2_000_000)] | None = Field(
        None,
        description="The context length in tokens: it is listed, and longer requests are refused.",
    )
    context_cache_protection: StrictBool = Field(
        False,
        description="A conversation stays with the target that served its last turn, whose provider "
        "may have it in its prompt cache, while that one is able.",
    )


class NewCombo(ComboFields):
    """The body that creates a combo."""

    name: ComboName

    def changed(self, change: ComboChange) -> Self:
        """This record with the fields that `change` contains."""
        return self.model_copy(update=change.sent())


class ComboChange(ComboFields, ChangeWire):
    """The body that changes a combo: any of the fields, at least one."""

    name: ComboName = ""
    models: list[Step] = Field(default=[], min_length=1, max_length=MAX_STEPS)


def check_rules(combo: NewCombo) -> None:
    """The rules between fields, on the whole record; `InvalidRequest` names the field to change."""
    for name in combo.config.model_fields_set:
        if getattr(combo.config, name) is None:
            continue
        readers = _READ_BY.get(name)
        if readers is None:
            continue
        alias = Config.model_fields[name].alias
        if combo.strategy not in readers:
            raise InvalidRequest(
                f"config.{alias} is for the strategy {_either(readers)}, not `{combo.strategy}`: "
                "leave it out, or change the strategy.",
                param=f"config.{alias}",
            )
    if combo.context_cache_protection and combo.strategy not in _HOLDING:
        raise InvalidRequest(
            f"contextCacheProtection is not for the strategy `{combo.strategy}`, which says itself "
            "which targets see a conversation: switch it off, or change the strategy.",
            param="contextCacheProtection",
        )
    check_tool_filter(combo.tool_filter_regex)
    for param, model in (
        ("config.judgeModel", combo.config.judge_model),
        ("config.handoffModel", combo.config.handoff_model),
    ):
        if model is not None:
            check_model(model, param)
    if combo.config.shadow_routing is not None:
        check_targets(combo.config.shadow_routing.targets, "config.shadowRouting.targets")
    for at, step in enumerate(combo.models):
        if isinstance(step, ModelStep):
            _check_model(combo, at, step)


def _check_model(combo: NewCombo, at: int, step: ModelStep) -> None:
    if "/" not in step.model.strip("/"):
        raise InvalidRequest(
            f"models.{at}.model `{step.model}` has no provider prefix: write `<prefix>/<model>`, "
            "or `combo/<name>` for a combo.",
            param=f"models.{at}.model",
        )
    if step.prompt is not None and combo.strategy != "pipeline":
        raise InvalidRequest(
            f"models.{at}.prompt is for the strategy `pipeline`, not `{combo.strategy}`: "
            "leave it out, or change the strategy.",
            param=f"models.{at}.prompt",
        )


def references(combo: NewCombo) -> list[tuple[int, str]]:
    """The combos that the steps name, each with the step's place."""
    return [
        (at, step.combo_name) for at, step in enumerate(combo.models) if isinstance(step, ComboStep)
    ]


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(f"`{name}`" for name in names)
