"""The form of a combo: its fields in groups, and its steps as rows that can be added, moved and removed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import Control, Field, Group, make_control, nested, read_values
from fairlead.dashboard.page import Failure, FormFields

STRATEGIES: Final = tuple(
    (name, f"{name}: {words}")
    for name, words in (
        ("priority", "the first of the list"),
        ("fill-first", "the first of the list that has room"),
        ("weighted", "by chance, in proportion to the weights"),
        ("round-robin", "each in turn"),
        ("p2c", "of two by chance, the less loaded"),
        ("random", "each as likely"),
        ("strict-random", "by chance, each once before any comes again"),
        ("least-used", "fewest open requests"),
        ("cost-optimized", "cheapest for the request"),
        ("context-optimized", "largest context window"),
        ("cache-optimized", "where the prompt is likely cached"),
        ("headroom", "most quota left"),
        ("reset-aware", "quota that would be lost soon"),
        ("reset-window", "soonest reset of a window"),
        ("lkgp", "the last that served"),
        ("context-relay", "the first, until its quota is nearly used"),
        ("auto", "the best score of price, latency, health, quota"),
        ("fusion", "all at once, and a judge"),
        ("pipeline", "each step in turn"),
    )
)
PACKS: Final = (
    ("", "not set"),
    *(
        (name, name)
        for name in (
            "balanced",
            "ship-fast",
            "cost-saver",
            "quality-first",
            "offline-friendly",
            "reliability-first",
        )
    ),
)
WINDOWS: Final = (("session", "session"), ("weekly", "weekly"), ("monthly", "monthly"))
CONDITIONS: Final = ("exists", "nonEmpty", "equals", "notEquals")
STEPS_MAX: Final = 100
PREFIX: Final = "combo/"
_PREDICATES: Final = "config.responseValidation.jsonPathPredicates"
_SHADOWS: Final = "config.shadowRouting"
_STREAMS: Final = (("hold", "are held back until they are judged"), ("pass", "are not judged"))

GROUPS: Final = (
    Group(
        "What it is",
        (
            Field("name", "Name", most=100, is_required=True, example="fast"),
            Field("description", "Description", most=2000),
            Field("strategy", "Which is tried first", "choice", options=STRATEGIES),
            Field("isActive", "Active", "switch", "One that is not is refused."),
        ),
        is_open=True,
    ),
    Group(
        "Parameters of the strategy",
        (
            Field(
                "config.stickyLimit",
                "A winner stays for",
                "whole",
                "weighted, round-robin.",
                "calls",
            ),
            Field(
                "config.concurrencyPerModel",
                "At once on one target",
                "whole",
                "fill-first.",
                "calls",
            ),
            Field(
                "config.windows", "Whose reset counts", "choices", "reset-window.", options=WINDOWS
            ),
            Field(
                "config.handoffThreshold",
                "A session moves on at",
                "decimal",
                "context-relay: the share of the quota that is used, 0 to 1.",
            ),
            Field(
                "config.handoffModel",
                "Who writes the hand-over note",
                hint="context-relay; empty: the next target.",
                example="openai/gpt-4o-mini",
            ),
            Field(
                "config.maxMessagesForSummary",
                "The note is about the last",
                "whole",
                "context-relay: 1 to 200; empty: 30.",
                "messages",
            ),
            Field("config.pack", "Weights", "choice", "auto.", options=PACKS),
            Field(
                "config.judgeModel",
                "Judge",
                hint="fusion: who merges the answers; else the first step.",
                example="openai/gpt-4o",
            ),
            Field(
                "config.minPanel",
                "Answers before the grace",
                "whole",
                "fusion: 1 to 20.",
                "answers",
            ),
            Field("config.stragglerGraceMs", "Grace for stragglers", "whole", "fusion.", "ms"),
            Field("config.panelTimeoutMs", "The whole panel has", "whole", "fusion.", "ms"),
            Field(
                "config.hedging",
                "A slow target is joined by the next",
                "switch",
                "The first to answer wins; both may cost. Not for fusion and pipeline.",
            ),
            Field("config.hedgeDelayMs", "It is waited for alone", "whole", "Empty: 500.", "ms"),
        ),
        hint="Each says which strategies read it.",
    ),
    Group(
        "Who may serve it",
        (
            Field(
                "allowedProviders",
                "Only these providers",
                "lines",
                "Prefixes, one in a line. None: all.",
                example="openai",
            ),
            Field(
                "allowedModelFamilies",
                "Only these families",
                "lines",
                "How names of models begin, one in a line. None: all.",
                example="gpt",
            ),
            Field("contextLength", "It takes", "whole", "Longer requests are refused.", "tokens"),
            Field(
                "contextCacheProtection",
                "A conversation stays where it was",
                "switch",
                "While the target of its last turn is able: its provider may have it in its cache.",
            ),
            Field(
                "config.contextRequirements.minContextWindow",
                "Window at least",
                "whole",
                "",
                "tokens",
            ),
            Field(
                "config.contextRequirements.contextFilterMode",
                "Windows that are too small",
                "choice",
                options=(("lenient", "are tried last"), ("strict", "are left out")),
            ),
            Field(
                "config.contextRequirements.preferLargeContext",
                "Larger windows come first",
                "switch",
                "Whatever the strategy says.",
            ),
        ),
    ),
    Group(
        "What is sent",
        (
            Field(
                "systemMessage",
                "Said before the caller's own instructions",
                "prose",
                most=50_000,
            ),
            Field(
                "toolFilterRegex",
                "Only tools whose names match",
                hint="A regular expression, without look-around.",
                most=1000,
                example="^(get|list)_",
            ),
        ),
    ),
    Group(
        "Deadlines and repetitions",
        (
            Field(
                "config.targetTimeoutMs",
                "One target has",
                "whole",
                "For a whole answer, or the head of a stream.",
                "ms",
            ),
            Field(
                "config.comboTimeoutMs",
                "All together have",
                "whole",
                "From the request's arrival; 0: no limit.",
                "ms",
            ),
            Field(
                "config.maxRetries",
                "One is asked again",
                "whole",
                "0 to 10: after a failure that may pass, before the next.",
                "times",
            ),
            Field("config.retryDelayMs", "Pause before that", "whole", "Empty: 2000.", "ms"),
            Field("config.maxSetRetries", "All are tried again", "whole", "0 to 10.", "times"),
            Field("config.setRetryDelayMs", "Pause before that", "whole", "Empty: 2000.", "ms"),
            Field(
                "config.cooldownWaitMs",
                "Waits for the first that rests",
                "whole",
                "While the request is younger than this; 0: not.",
                "ms",
            ),
            Field("config.queueDepth", "Wait at a target", "whole", "0: asks the next.", "calls"),
            Field("config.queueTimeoutMs", "They wait at most", "whole", "", "ms"),
        ),
        hint="Empty: as the defaults of all combos say.",
    ),
    Group(
        "What an answer must be like",
        (
            Field(
                "config.responseValidation.minContentLength", "At least", "whole", "", "characters"
            ),
            Field(
                "config.responseValidation.requiredSubstrings",
                "It has all of these",
                "lines",
                "One in a line.",
            ),
            Field(
                "config.responseValidation.forbiddenSubstrings",
                "It has none of these",
                "lines",
                "One in a line.",
            ),
            Field(
                _PREDICATES,
                "Its JSON",
                "lines",
                "One in a line: a path, then exists, nonEmpty, equals or notEquals, then a value as JSON.",
                example='items.0.name nonEmpty\nstatus equals "ok"',
            ),
            Field("config.responseValidation.streams", "Streams", "choice", options=_STREAMS),
        ),
        hint="One that breaks these goes to the next target.",
    ),
    Group(
        "Shadows",
        (
            Field(f"{_SHADOWS}.enabled", "Models are asked beside, for comparison", "switch"),
            Field(f"{_SHADOWS}.targets", "Which", "lines", "One in a line.", example="groq/llama"),
            Field(f"{_SHADOWS}.sampleRate", "Share of requests", "decimal", "0 to 1; empty: 0.1."),
            Field(f"{_SHADOWS}.maxTargets", "Of one request", "whole", "Empty: 1.", "shadows"),
            Field(f"{_SHADOWS}.timeoutMs", "Each has", "whole", "Empty: 60000.", "ms"),
        ),
        hint="No caller sees or pays for their answers.",
    ),
)
FIELDS: Final = [field for group in GROUPS for field in group.fields]
_STEP: Final = ("model", "connectionId", "weight", "label", "prompt")


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of the form, by its place from 0 on."""

    place: int
    controls: tuple[Control, ...]


def step_rows(
    steps: Iterable[Mapping[str, Any]],
    connections: Iterable[Mapping[str, Any]],
    failure: Failure | None,
) -> list[StepRow]:
    """The rows of a record's steps, or those that were typed; at least one."""
    options = tuple((each["id"], each["name"]) for each in connections)
    rows = list(map(_row_of, steps)) if failure is None else _typed_rows(failure.typed)
    rows = rows or [dict.fromkeys(_STEP, "")]
    values = {"models": {str(place): row for place, row in enumerate(rows)}}
    named = {each for each, _ in options} | {""}
    return [
        StepRow(
            place,
            tuple(
                make_control(field, values, failure)
                for field in _step_fields(place, options, row.get("connectionId", ""), named)
            ),
        )
        for place, row in enumerate(rows)
    ]


def edit_rows(typed: FormFields, edit: str) -> FormFields:
    """The typed fields with a row added, moved or removed: `add`, or `up`, `down` or `drop` with the
    row's place behind a colon. Anything else leaves the rows as they are.
    """
    rows = _typed_rows(typed)
    word, _, number = edit.partition(":")
    at = int(number) if number.isdecimal() and len(number) < 4 else -1
    if word == "add" and len(rows) < STEPS_MAX:
        rows.append(dict.fromkeys(_STEP, ""))
    elif at < 0 or at >= len(rows):
        pass
    elif word == "drop":
        rows.pop(at)
    elif word in ("up", "down"):
        to = min(max(at + (1 if word == "down" else -1), 0), len(rows) - 1)
        rows.insert(to, rows.pop(at))
    others = {name: value for name, value in typed.items() if not name.startswith("models.")}
    steps = {
        f"models.{place}.{name}": value
        for place, row in enumerate(rows)
        for name, value in row.items()
    }
    return {**others, **steps}


def read_combo(typed: FormFields) -> tuple[dict[str, Any], list[int]]:
    """The body that was typed, and the row of each of its steps: rows with nothing in them are no
    steps. `Refused` for what is no value.
    """
    body = nested(read_values(FIELDS, typed))
    body["description"] = body.get("description") or None
    body["systemMessage"] = body.get("systemMessage") or None
    body["config"] = _config(body.get("config", {}))
    rows = _typed_rows(typed)
    places = [place for place, row in enumerate(rows) if any(row.values())]
    body["models"] = [_step(place, rows[place]) for place in places]
    return body, places


def changed_body(body: dict[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a body that differ from the record; what is null is not set."""
    return {name: value for name, value in body.items() if _bare(value) != _bare(record.get(name))}


def flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record as the form has it: conditions on JSON as lines."""
    config = dict(record.get("config") or {})
    validation = config.get("responseValidation")
    if validation is not None:
        lines = [_predicate_line(each) for each in validation.get("jsonPathPredicates") or ()]
        config["responseValidation"] = {**validation, "jsonPathPredicates": lines}
    return {**record, "config": config}


def placed(refusal: Refused, places: list[int]) -> Refused:
    """A refusal whose step is named by its row and field of the form."""
    param = refusal.param
    if param is None or not param.startswith("models"):
        return refusal
    parts = re.split(r"[.\[\]]+", param)
    number = parts[1] if len(parts) > 1 else ""
    at = int(number) if number.isdecimal() else 0
    row = places[at] if at < len(places) else 0
    field = next((name for name in reversed(parts) if name in _STEP), "model")
    return Refused(refusal.status, refusal.message, f"models.{row}.{field}")


def _step_fields(
    place: int, options: tuple[tuple[str, str], ...], chosen: str, named: set[str]
) -> tuple[Field, ...]:
    gone = () if chosen in named else ((chosen, f"deleted, {chosen[:8]}"),)
    at = f"models.{place}."
    return (
        Field(
            f"{at}model",
            "Model",
            hint="Or combo/name.",
            example="openai/gpt-4o",
            suggestions="targets",
        ),
        Field(
            f"{at}connectionId",
            "Over",
            "choice",
            options=(("", "any that serves it"), *options, *gone),
        ),
        Field(f"{at}weight", "Weight", "whole", "weighted: 0 to 100."),
        Field(f"{at}label", "Label", most=200),
        Field(
            f"{at}prompt",
            "It is told",
            "prose",
            "For the strategy pipeline: what this step is to do.",
        ),
    )


def _row_of(step: Mapping[str, Any]) -> dict[str, str]:
    model = f"{PREFIX}{step['comboName']}" if step.get("kind") == "combo-ref" else step["model"]
    row = {name: str(step.get(name) or "") for name in _STEP}
    return {**row, "model": model}


def _typed_rows(typed: FormFields) -> list[dict[str, str]]:
    """Rows in the order of their numbers, which may have gaps."""
    rows: dict[int, dict[str, str]] = {}
    for name, value in typed.items():
        parts = name.split(".")
        if len(parts) != 3 or parts[0] != "models" or parts[2] not in _STEP:
            continue
        if parts[1].isdecimal() and len(parts[1]) < 4:
            rows.setdefault(int(parts[1]), dict.fromkeys(_STEP, ""))[parts[2]] = value
    return [rows[place] for place in sorted(rows)]


def _step(place: int, row: Mapping[str, str]) -> dict[str, Any]:
    weight = row["weight"].strip() or "0"
    if not weight.isdecimal() or len(weight) > 9:
        words = f"The weight of step {place + 1} must be a whole number."
        raise Refused(400, words, f"models.{place}.weight")
    name = row["model"].strip()
    common = {"weight": int(weight), "label": row["label"].strip() or None}
    if name.startswith(PREFIX):
        for field, words in (("connectionId", "connection"), ("prompt", "text of its own")):
            if row[field].strip():
                message = f"Step {place + 1} is a combo, which has no {words}: leave it out."
                raise Refused(400, message, f"models.{place}.{field}")
        return {"kind": "combo-ref", "comboName": name.removeprefix(PREFIX), **common}
    prompt = row["prompt"].replace("\r\n", "\n").strip()
    return {
        "kind": "model",
        "model": name,
        "connectionId": row["connectionId"] or None,
        "prompt": prompt or None,
        **common,
    }


def _config(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration without what is not set, so that each part is whole or not there."""
    # A number may be 0, which is equal to False.
    found = {
        name: value
        for name, value in config.items()
        if value is not None and value is not False and value != []
    }
    context = config.get("contextRequirements") or {}
    is_plain = context.get("contextFilterMode") in (None, "lenient")
    if is_plain and not context.get("minContextWindow") and not context.get("preferLargeContext"):
        found.pop("contextRequirements", None)
    validation = config.get("responseValidation") or {}
    found.pop("responseValidation", None)
    if any(value for name, value in validation.items() if name != "streams"):
        predicates = [_predicate(line) for line in validation.get("jsonPathPredicates") or ()]
        least = validation.get("minContentLength") or 0
        found["responseValidation"] = {
            **validation,
            "minContentLength": least,
            "jsonPathPredicates": predicates,
        }
    shadows = {
        name: value
        for name, value in (config.get("shadowRouting") or {}).items()
        if value not in (None, [])
    }
    found.pop("shadowRouting", None)
    if shadows.get("enabled") or set(shadows) - {"enabled"}:
        found["shadowRouting"] = shadows
    return found


def _predicate(line: str) -> dict[str, Any]:
    path, condition, value = (*line.split(None, 2), "", "")[:3]
    if condition not in CONDITIONS:
        words = f'`{line[:80]}` is no condition: write `items.0.name nonEmpty`, or `status equals "ok"`.'
        raise Refused(400, words, _PREDICATES)
    found: dict[str, Any] = {"path": path, "condition": condition}
    if condition.lower().endswith("equals"):
        try:
            found["value"] = orjson.loads(value)
        except orjson.JSONDecodeError:
            raise Refused(
                400, f"`{value[:80]}` is no value: write it as JSON, a text in quotes.", _PREDICATES
            ) from None
    return found


def _predicate_line(predicate: Mapping[str, Any]) -> str:
    words = f"{predicate['path']} {predicate['condition']}"
    if predicate["condition"].lower().endswith("equals"):
        return f"{words} {orjson.dumps(predicate.get('value')).decode()}"
    return words


def _bare(value: Any) -> Any:
    """A value without what is null, as two spellings of one record are compared."""
    if isinstance(value, Mapping):
        return {name: _bare(each) for name, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_bare(each) for each in value]
    return value
