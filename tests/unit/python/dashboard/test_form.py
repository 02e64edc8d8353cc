"""Forms: values out of a record, into a body, and back as they were typed."""

from __future__ import annotations

import pytest

from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import (
    Field,
    Group,
    changed_values,
    make_form,
    nested,
    read_values,
)
from fairlead.dashboard.page import Failure

FIELDS = (
    Field("name", "Name", is_required=True),
    Field("limit", "Limit", "whole"),
    Field("cost", "Cost", "decimal"),
    Field("isOn", "On", "switch"),
    Field("kinds", "Kinds", "choices", options=(("a", "A"), ("b", "B"))),
    Field("lines", "Lines", "lines"),
    Field("at", "At", "moment"),
    Field("inner.value", "Inner"),
    Field("key", "Key", "secret"),
    Field("prompt", "Prompt", "prose"),
    Field("suffix", "Suffix", is_nullable=False),
)
RECORD = {
    "name": "n",
    "limit": 3,
    "cost": 120.0,
    "isOn": True,
    "kinds": ["b"],
    "lines": ["x", "y"],
    "at": "2027-01-31T12:30:00.000Z",
    "inner": {"value": "v"},
    "key": "***1234",
    "prompt": "  Be\nbrief. ",
    "suffix": "",
}


def texts(form) -> dict[str, tuple[str, frozenset[str]]]:
    return {
        each.field.name: (each.text, each.chosen)
        for _, controls, _ in form.groups
        for each in controls
    }


@pytest.mark.parametrize(
    ("field", "typed", "words"),
    [
        (Field("n", "N", "whole"), "seven", "N must be a whole number."),
        (Field("n", "N", "whole"), "9" * 24, "N must be a whole number of at most 15 digits."),
        (Field("n", "N", "whole"), f"-{'9' * 5_000}", "of at most 15 digits."),
        (Field("n", "N", "decimal"), "nan", "N must be a number."),
        (Field("n", "N", "decimal"), "1e999", "N must be a number."),
        (Field("n", "N", "moment"), "yesterday", "N must be a date and time."),
        (Field("n", "N", most=3), "four", "N must have at most 3 characters."),
        (Field("n", "N", "choice", options=(("a", "A"),)), "b", "N must be one of its choices."),
        (Field("n", "N", is_required=True), "  ", "N is required: fill it in."),
    ],
)
def test_what_is_no_value_of_a_field_is_refused_by_its_name(
    field: Field, typed: str, words: str
) -> None:
    with pytest.raises(Refused, match=words) as caught:
        read_values([field], {field.name: typed})
    assert caught.value.param == field.name


def test_a_record_that_is_sent_back_changes_nothing() -> None:
    shown = texts(make_form("change", (Group("g", FIELDS),), RECORD))
    assert shown["cost"] == ("120", frozenset())
    assert shown["at"][0] == "2027-01-31T12:30"
    assert shown["key"] == ("", frozenset()), "a secret is never drawn"
    typed = {
        name: text for name, (text, _) in shown.items() if name not in ("isOn", "kinds", "key")
    }
    typed |= {"isOn": "on", "kinds:b": "on", "prompt": typed["prompt"].replace("\n", "\r\n")}
    assert changed_values(read_values(FIELDS, typed), RECORD) == {}


def test_what_is_typed_becomes_values_of_the_api() -> None:
    typed = {
        "name": " m ",
        "limit": "",
        "cost": "0.25",
        "lines": "x\n\n y ",
        "at": "",
        "inner.value": "w",
    }
    values = read_values(FIELDS, typed)
    assert changed_values(values, RECORD) == {
        "name": "m",
        "limit": None,
        "cost": 0.25,
        "isOn": False,
        "kinds": [],
        "at": None,
        "inner.value": "w",
    }
    assert nested({"inner.value": 1, "inner.other": 2, "x": 3}) == {
        "inner": {"value": 1, "other": 2},
        "x": 3,
    }


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("limit", "1.5", "Limit must be a whole number."),
        ("cost", "lots", "Cost must be a number."),
        ("at", "soon", "At must be a date and time."),
        ("name", "  ", "Name is required: fill it in."),
    ],
)
def test_what_is_no_value_is_told_of_its_field(name: str, text: str, words: str) -> None:
    with pytest.raises(Refused) as refused:
        read_values(FIELDS, {"name": "n", name: text})
    assert (refused.value.message, refused.value.param) == (words, name)


def test_a_refused_form_is_as_it_was_typed_and_opens_at_the_fault() -> None:
    failure = Failure(
        "change", "no", "inner.value", {"name": "typed", "inner.value": "bad", "key": "s"}
    )
    groups = (Group("one", FIELDS[:2]), Group("two", FIELDS[2:]))
    form = make_form("change", groups, RECORD, failure, seen="1")
    assert [is_open for _, _, is_open in form.groups] == [False, True]
    assert texts(form)["name"][0] == "typed"
    assert texts(form)["key"][0] == ""
    other = make_form("test", groups, RECORD, failure)
    assert texts(other)["name"][0] == "n", "another form of the page is as it was"


def test_pairs_are_lines_of_names_and_values() -> None:
    field = Field("strategies", "Strategies", "pairs")
    form = make_form("change", (Group("", (field,)),), {"strategies": {"b": "sticky", "a": "p2c"}})
    assert form.groups[0][1][0].text == "a = p2c\nb = sticky"
    typed = {"strategies": " a=p2c \n\nb = sticky"}
    assert read_values([field], typed) == {"strategies": {"a": "p2c", "b": "sticky"}}
    assert read_values([field], {"strategies": ""}) == {"strategies": {}}
    with pytest.raises(Refused, match="name = value"):
        read_values([field], {"strategies": "sticky"})
