"""The console's form of a combo has every field of one, so that saving it drops none."""

from __future__ import annotations

import types
import typing
from collections import Counter
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from fairlead.dashboard.combo_fields import FIELDS
from fairlead.dashboard.combo_form import changed_body, flat, read_combo, step_rows
from fairlead.dashboard.form import Field, make_control
from fairlead.gateway.combos.fields import ComboStep, ModelStep, NewCombo
from fairlead.gateway.combos.rules import JsonPathPredicate

# A step is a row, and a condition a line.
ROWS = (ModelStep, ComboStep, JsonPathPredicate)


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The records that a field may hold itself; those of a list are rows."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from _models_in(typing.get_args(annotation)[0])
    elif origin in (typing.Union, types.UnionType):
        for each in typing.get_args(annotation):
            yield from _models_in(each)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation


def leaves(record: type[BaseModel], before: str = "") -> Iterator[str]:
    """The dotted names of what can be set of a combo, as its JSON has them."""
    for name, field in record.model_fields.items():
        path = f"{before}{field.alias or name}"
        inner = list(_models_in(field.annotation))
        if not inner:
            yield path
        for each in inner:
            yield from leaves(each, f"{path}.")


def test_every_field_of_a_combo_is_in_its_form_once() -> None:
    fields = set(leaves(NewCombo)) - {"models"}
    assert "config.responseValidation.streams" in fields
    assert "config.shadowRouting.targets" in fields
    assert Counter(field.name for field in FIELDS) == Counter(fields)


def test_every_field_of_a_step_is_in_its_row() -> None:
    (row,) = step_rows([{"kind": "model", "model": "a/m"}], [], None)
    named = {control.field.name.removeprefix("models.0.") for control in row.controls}
    for record in (ModelStep, ComboStep):
        wanted = {field.alias or name for name, field in record.model_fields.items()}
        # A combo is named by the prefix `combo/` of a model.
        assert wanted - {"kind", "comboName"} <= named


def _typed(field: Field, record: dict[str, Any]) -> dict[str, str]:
    """What a browser sends of a field that nobody touched."""
    control = make_control(field, record, None)
    if field.kind == "switch":
        return {field.name: "on"} if control.chosen else {}
    if field.kind == "choices":
        return {f"{field.name}:{each}": "on" for each in control.chosen}
    return {field.name: control.text}


RECORD: dict[str, Any] = {
    "name": "full",
    "description": "all of it",
    "strategy": "context-relay",
    "isActive": True,
    "systemMessage": "Be kind.\nBe short.",
    "toolFilterRegex": "^get_",
    "allowedProviders": ["openai"],
    "allowedModelFamilies": ["gpt", "claude"],
    "contextLength": 9000,
    "contextCacheProtection": True,
    "models": [
        {"kind": "model", "model": "a/m", "connectionId": None, "weight": 3, "label": "first", "prompt": "Do"},
        {"kind": "combo-ref", "comboName": "other", "weight": 0, "label": None},
    ],
    "config": {
        "stickyLimit": 2,
        "concurrencyPerModel": 3,
        "windows": ["session", "monthly"],
        "handoffThreshold": 0.5,
        "handoffModel": "a/notes",
        "maxMessagesForSummary": 12,
        "pack": "ship-fast",
        "judgeModel": "a/judge",
        "minPanel": 3,
        "stragglerGraceMs": 900,
        "panelTimeoutMs": 9000,
        "hedging": True,
        "hedgeDelayMs": 70,
        "targetTimeoutMs": 5000,
        "comboTimeoutMs": 0,
        "maxRetries": 0,
        "retryDelayMs": 0,
        "maxSetRetries": 2,
        "setRetryDelayMs": 10,
        "cooldownWaitMs": 20,
        "queueDepth": 0,
        "queueTimeoutMs": 30,
        "contextRequirements": {
            "minContextWindow": 1000, "preferLargeContext": True, "contextFilterMode": "strict",
        },
        "responseValidation": {
            "forbiddenSubstrings": ["sorry"],
            "requiredSubstrings": ["ok"],
            "minContentLength": 2,
            "jsonPathPredicates": [
                {"path": "items.0", "condition": "nonEmpty", "value": None},
                {"path": "status", "condition": "equals", "value": "a b"},
            ],
            "streams": "pass",
        },
        "shadowRouting": {
            "enabled": False, "targets": ["b/m"], "sampleRate": 0.0, "maxTargets": 2, "timeoutMs": 100,
        },
    },
}  # fmt: skip


def test_a_form_that_nobody_touched_changes_nothing() -> None:
    record = flat(RECORD)
    named = set(leaves(NewCombo))
    assert named == {
        *(name for name in RECORD if name != "config"),
        *(
            f"config.{name}{inner}"
            for name, value in RECORD["config"].items()
            for inner in ([f".{each}" for each in value] if isinstance(value, dict) else [""])
        ),
    }, "the record has every field"
    typed = {name: value for field in FIELDS for name, value in _typed(field, record).items()}
    for row in step_rows(RECORD["models"], [], None):
        typed |= {control.field.name: control.text for control in row.controls}
    body, _ = read_combo(typed)
    assert changed_body(body, RECORD) == {}
