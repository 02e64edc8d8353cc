"""The form of a combo: its fields in groups, and its steps as rows that can be added, moved and removed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.dashboard.api import Refused
from fairlead.dashboard.combo_fields import CONDITIONS, FIELDS, PREDICATES
from fairlead.dashboard.form import Control, Field, make_control, nested, read_values
from fairlead.dashboard.page import Failure, FormFields

STEPS_MAX: Final = 100
PREFIX: Final = "combo/"
_STEP: Final = ("model", "connectionId", "weight", "label", "prompt")


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of the form, by its place from 0 on."""

    position: int
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
    values = {"models": {str(position): row for position, row in enumerate(rows)}}
    named = {each for each, _ in options} | {""}
    return [
        StepRow(
            position,
            tuple(
                make_control(field, values, failure)
                for field in _step_fields(position, options, row.get("connectionId", ""), named)
            ),
        )
        for position, row in enumerate(rows)
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
        f"models.{position}.{name}": value
        for position, row in enumerate(rows)
        for name, value in row.items()
    }
    return {**others, **steps}


def edited_step(rows: FormFields, edit: str) -> int | None:
    """The place of the row that was added or moved, or of the one where another was removed."""
    last = len(_typed_rows(rows)) - 1
    word, _, number = edit.partition(":")
    at = int(number) if number.isdecimal() and len(number) < 4 else 0
    places = {"add": last, "up": at - 1, "down": at + 1, "drop": at}
    return min(max(places[word], 0), last) if word in places else None


def unserved_steps(steps: Iterable[Mapping[str, Any]], catalogue: Mapping[str, Any]) -> list[str]:
    """Sentences about steps whose model nobody is known to serve; `catalogue` has what is connected."""
    providers: dict[str, Mapping[str, Any]] = {}
    for provider in catalogue["providers"]:
        providers[provider["prefix"]] = providers[provider["id"]] = provider
    found = []
    for number, step in enumerate(steps, 1):
        prefix, slash, model = str(step.get("model") or "").partition("/")
        if step.get("kind") == "combo-ref" or not slash or "*" in model:
            continue
        provider = providers.get(prefix)
        if provider is None:
            found.append(f"Step {number}: no connection serves `{prefix}/{model}`.")
        # The models of a custom endpoint are not known.
        elif provider["asOf"] is not None and not _knows(provider, model):
            found.append(
                f"Step {number}: `{prefix}/{model}` is in no list of {provider['name']}'s models. "
                "Requests are sent to it all the same."
            )
    return found


def _knows(provider: Mapping[str, Any], model: str) -> bool:
    name = f"{provider['prefix']}/{model}"
    return any(each["id"] == name for models in provider["models"].values() for each in models)


def read_combo(typed: FormFields) -> tuple[dict[str, Any], list[int]]:
    """The body that was typed, and the row of each of its steps: rows with nothing in them are no
    steps. `Refused` for what is no value.
    """
    body = nested(read_values(FIELDS, typed))
    body["description"] = body.get("description") or None
    body["systemMessage"] = body.get("systemMessage") or None
    body["config"] = _config(body.get("config", {}))
    rows = _typed_rows(typed)
    positions = [position for position, row in enumerate(rows) if any(row.values())]
    body["models"] = [_step(position, rows[position]) for position in positions]
    return body, positions


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


def with_positions(refusal: Refused, positions: list[int]) -> Refused:
    """A refusal whose step is named by its row and field of the form."""
    param = refusal.param
    if param is None or not param.startswith("models"):
        return refusal
    parts = re.split(r"[.\[\]]+", param)
    number = parts[1] if len(parts) > 1 else ""
    at = int(number) if number.isdecimal() else 0
    row = positions[at] if at < len(positions) else 0
    field = next((name for name in reversed(parts) if name in _STEP), "model")
    return Refused(refusal.status, refusal.message, f"models.{row}.{field}")


def _step_fields(
    position: int, options: tuple[tuple[str, str], ...], chosen: str, named: set[str]
) -> tuple[Field, ...]:
    gone = () if chosen in named else ((chosen, f"deleted, {chosen[:8]}"),)
    at = f"models.{position}."
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
            "Connection",
            "choice",
            options=(("", "any that serves it"), *options, *gone),
        ),
        Field(f"{at}weight", "Weight", "whole", "weighted: 0 to 100."),
        Field(f"{at}label", "Label", most=200),
        Field(
            f"{at}prompt",
            "Prompt",
            "prose",
            "For the strategy pipeline: the prompt of this step.",
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
    return [rows[position] for position in sorted(rows)]


def _step(position: int, row: Mapping[str, str]) -> dict[str, Any]:
    weight = row["weight"].strip() or "0"
    if not weight.isdecimal() or len(weight) > 9:
        words = f"The weight of step {position + 1} must be a whole number."
        raise Refused(400, words, f"models.{position}.weight")
    name = row["model"].strip()
    common = {"weight": int(weight), "label": row["label"].strip() or None}
    if name.startswith(PREFIX):
        for field, words in (("connectionId", "connection"), ("prompt", "prompt")):
            if row[field].strip():
                message = f"Step {position + 1} is a combo, which has no {words}: leave it out."
                raise Refused(400, message, f"models.{position}.{field}")
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
        raise Refused(400, words, PREDICATES)
    found: dict[str, Any] = {"path": path, "condition": condition}
    if condition.lower().endswith("equals"):
        try:
            found["value"] = orjson.loads(value)
        except orjson.JSONDecodeError:
            raise Refused(
                400, f"`{value[:80]}` is no value: write it as JSON, a text in quotes.", PREDICATES
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
