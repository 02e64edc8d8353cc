"""The console's form of a model's facts has every fact, so that saving it drops none."""

from __future__ import annotations

from collections import Counter
from typing import Any, get_args

from fairlead.dashboard.fact_fields import FACTS, FIELDS, LABELS, form_values, read_facts
from fairlead.dashboard.form import make_control, read_values
from fairlead.dashboard.model_settings import (
    CAPABILITIES,
    KINDS,
    SETTINGS,
    read_settings,
    settings_values,
)
from fairlead.gateway.models.fields import ModelSettings
from fairlead.gateway.nodes.fields import ApiType
from fairlead.gateway.providers.catalogue import Capability, Mode
from fairlead.gateway.providers.facts import FactValues, NameRule
from fairlead.gateway.providers.stated_facts import Endpoint, FactOverrides
from tests.unit.python.providers.test_stated_facts import FACTS as EVERY_FACT


def _typed(fields: Any, values: dict[str, Any]) -> dict[str, str]:
    """What a browser sends of a form that nobody touched."""
    typed: dict[str, str] = {}
    for field in fields:
        control = make_control(field, values, None)
        if field.kind == "switch":
            typed |= {field.name: "on"} if control.chosen else {}
        elif field.kind == "choices":
            typed |= {f"{field.name}:{each}": "on" for each in control.chosen}
        else:
            typed[field.name] = control.text
    return typed


def test_every_fact_is_in_the_form_once() -> None:
    wanted = ["refuses"]
    for name in FactOverrides.model_json_schema()["properties"]:
        rule = [f"facts.{name}.{part}" for part in NameRule.model_fields]
        wanted += rule if name in ("toolNames", "callIds") else [f"facts.{name}"]
    assert Counter(field.name for field in FIELDS) == Counter(wanted)
    assert len(EVERY_FACT) == len(FactValues.model_fields)
    assert sum(len(group.fields) for group in FACTS) == len(FIELDS)
    assert LABELS.keys() == EVERY_FACT.keys() | {"apiType", "refuses"}


def test_choices_are_those_of_the_api() -> None:
    properties = FactOverrides.model_json_schema()["properties"]
    for field in FIELDS:
        name = field.name.removeprefix("facts.")
        if field.kind != "choice" or name not in properties:
            continue
        (shown, _) = properties[name]["anyOf"]
        offered = [value for value, _ in field.options if value]
        assert offered == (["true", "false"] if shown["type"] == "boolean" else shown["enum"]), name
    options = {field.name: field.options for group in SETTINGS for field in group.fields}
    assert set(KINDS) == set(get_args(Mode))
    assert set(CAPABILITIES) == set(get_args(Capability))
    assert {value for value, _ in options["apiType"]} == {"", *get_args(ApiType)}
    assert {value for value, _ in options["supportedEndpoints"]} == set(get_args(Endpoint))
    fields = {info.alias for info in ModelSettings.model_fields.values()}
    assert fields - {"facts", "refuses"} == options.keys() - {"capabilitiesListed"}


def test_a_form_that_nobody_touched_changes_nothing() -> None:
    for settings in ({}, {"facts": EVERY_FACT, "refuses": []}, {"refuses": ["seed"]}):
        typed = _typed(FIELDS, form_values(settings))
        assert read_facts(read_values(FIELDS, typed), settings) == {}
    fields = [field for group in SETTINGS for field in group.fields]
    for stated in (
        {"supportsVision": False, "capabilities": [], "type": "chat", "isHidden": True},
        {"supportsVision": True, "capabilities": ["tools"], "supportedEndpoints": ["chat"]},
        {},
    ):
        sent = read_settings(_typed(fields, settings_values(stated)))
        kept = {name: value for name, value in sent.items() if value not in (None, False)}
        assert kept == {name: value for name, value in stated.items() if value is not False}
        assert sent["supportsVision"] == stated.get("supportsVision")
        assert sent["capabilities"] == stated.get("capabilities")


def test_only_what_was_changed_is_sent() -> None:
    settings = {"facts": EVERY_FACT, "refuses": ["seed"]}
    typed = _typed(FIELDS, form_values(settings))
    typed |= {
        "facts.userMost": "",
        "facts.system": "false",
        "facts.efforts": "-",
        "facts.toolNames.most": "",
        "facts.toolNames.letters": "",
        "facts.callIds.most": "8",
        "refuses": "top_k\r\nseed",
    }
    assert read_facts(read_values(FIELDS, typed), settings) == {
        "refuses": ["top_k", "seed"],
        "facts": {
            "userMost": None,
            "system": False,
            "efforts": [],
            "toolNames": None,
            "callIds": {"most": 8, "letters": "alphanumeric"},
        },
    }
