"""Fields of forms: how a value of the API is shown in one, and how typed text becomes a value of the API."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from fairlead.dashboard.api import Refused
from fairlead.dashboard.page import Failure, FormFields

Kind = Literal[
    "text",
    "prose",
    "secret",
    "whole",
    "decimal",
    "switch",
    "choice",
    "choices",
    "lines",
    "pairs",
    "moment",
]
Options = tuple[tuple[str, str], ...]
DIGITS_MAX: Final = 15


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a body, by its JSON name; `unit` is shown after it, `hint` below it."""

    name: str
    label: str
    kind: Kind = "text"
    hint: str = ""
    unit: str = ""
    options: Options = ()
    is_required: bool = False
    most: int | None = None
    """Characters of a text, or the largest number."""
    least: int | None = None
    example: str = ""
    is_nullable: bool = True
    """Whether an empty text is null, and not a text without letters."""
    suggestions: str = ""
    """The id of the page's list of values that may be typed."""


@dataclass(frozen=True, slots=True)
class Group:
    """Fields under a heading; `is_open` shows them at once."""

    title: str
    fields: tuple[Field, ...]
    is_open: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Control:
    """A field as it is drawn: its text or chosen options, and what is wrong with it."""

    field: Field
    text: str
    chosen: frozenset[str]
    error: str | None

    @property
    def id(self) -> str:
        """For its label."""
        return f"f-{self.field.name.replace('.', '-')}"


@dataclass(frozen=True, slots=True)
class Form:
    """A form that is ready to be drawn."""

    action: str
    groups: tuple[tuple[Group, tuple[Control, ...], bool], ...]
    hidden: Mapping[str, str]


def make_form(
    action: str,
    groups: Iterable[Group],
    values: Mapping[str, Any],
    failure: Failure | None = None,
    **hidden: str,
) -> Form:
    """The form with the values of a record, or as it was typed when it was refused."""
    failed = failure if failure is not None and failure.action == action else None
    drawn = []
    for group in groups:
        controls = tuple(make_control(field, values, failed) for field in group.fields)
        drawn.append((group, controls, group.is_open or any(each.error for each in controls)))
    return Form(action, tuple(drawn), hidden)


def read_values(fields: Iterable[Field], typed: FormFields) -> dict[str, Any]:
    """The body that was typed. An empty text or number is null, a field that the form lacks is left
    out. `Refused` for what is no such value.
    """
    return {
        field.name: _read(field, typed)
        for field in fields
        if field.name in typed or field.is_required or field.kind in ("switch", "choices")
    }


def changed_values(values: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """The values that differ from those of the record."""
    return {
        name: value for name, value in values.items() if _same(value) != _same(dig(record, name))
    }


def dig(record: Mapping[str, Any], name: str) -> Any:
    """The member that a dotted name stands for, None where there is none."""
    value: Any = record
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """A body whose dotted names have become objects."""
    body: dict[str, Any] = {}
    for name, value in values.items():
        *outer, last = name.split(".")
        inner = body
        for part in outer:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return body


def whole_number(text: str) -> int:
    """The number that was typed. `ValueError` for what is none, or has more digits than JSON keeps."""
    number = int(text)
    if abs(number) >= 10**DIGITS_MAX:
        raise ValueError
    return number


def decimal_number(text: str) -> float:
    """The number that was typed. `ValueError` for what is none, as `nan` and what JSON cannot say."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError
    return number


def _same(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 18 and value[10:11] == "T":
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return value
    return sorted(value) if isinstance(value, list) and _are_texts(value) else value


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(each, str) for each in values)


def _is_about(param: str, name: str) -> bool:
    return param == name or param.startswith((f"{name}.", f"{name}["))


def make_control(field: Field, values: Mapping[str, Any], failed: Failure | None) -> Control:
    """A field with its value in a record, or with what was typed when a form was refused."""
    error = None
    if failed is not None and failed.param is not None and _is_about(failed.param, field.name):
        error = failed.message
    if failed is not None:
        prefix = f"{field.name}:"
        chosen = frozenset(
            name.removeprefix(prefix) for name in failed.typed if name.startswith(prefix)
        )
        if field.kind == "switch" and field.name in failed.typed:
            chosen = frozenset({"on"})
        text = "" if field.kind == "secret" else failed.typed.get(field.name, "")
        return Control(field, text, chosen, error)
    value = dig(values, field.name)
    if field.kind == "choices":
        return Control(field, "", frozenset(value or ()), error)
    if field.kind == "switch":
        return Control(field, "", frozenset({"on"} if value else ()), error)
    return Control(field, _text(field, value), frozenset(), error)


def _text(field: Field, value: Any) -> str:
    if value is None or field.kind == "secret":
        return ""
    if field.kind == "lines":
        return "\n".join(str(each) for each in value)
    if field.kind == "pairs":
        return "\n".join(f"{name} = {each}" for name, each in sorted(value.items()))
    if field.kind == "moment":
        return f"{datetime.fromisoformat(value).astimezone(UTC):%Y-%m-%dT%H:%M}"
    return str(value).removesuffix(".0")


def _read(field: Field, typed: FormFields) -> Any:
    if field.kind == "prose":
        # Browsers use different line breaks.
        return typed.get(field.name, "").replace("\r\n", "\n")
    text = typed.get(field.name, "").strip()
    if field.kind == "switch":
        return field.name in typed
    if field.kind == "choices":
        return [value for value, _ in field.options if f"{field.name}:{value}" in typed]
    if field.kind == "lines":
        return [line.strip() for line in text.splitlines() if line.strip()]
    if field.kind == "pairs":
        return _pairs(field, text)
    if not text:
        if field.is_required:
            raise Refused(400, f"{field.label} is required: fill it in.", field.name)
        return None if field.is_nullable else ""
    try:
        if field.kind == "whole":
            return whole_number(text)
        if field.kind == "decimal":
            return decimal_number(text)
        if field.kind == "moment":
            return f"{datetime.fromisoformat(text):%Y-%m-%dT%H:%M}:00Z"
    except ValueError:
        wanted = {"whole": "a whole number", "decimal": "a number"}.get(
            field.kind, "a date and time"
        )
        if text.lstrip("+-").isdecimal():
            wanted += f" of at most {DIGITS_MAX} digits"
        raise Refused(400, f"{field.label} must be {wanted}.", field.name) from None
    _check_text(field, text)
    return text


def _check_text(field: Field, text: str) -> None:
    """`Refused` for what no browser sends of the field: the gateway knows the bounds of most of them, not of all."""
    if field.most is not None and len(text) > field.most:
        words = f"{field.label} must have at most {field.most:,} characters."
        raise Refused(400, words, field.name)
    if field.kind == "choice" and field.options and text not in dict(field.options):
        raise Refused(400, f"{field.label} must be one of its choices.", field.name)


def _pairs(field: Field, text: str) -> dict[str, str]:
    """Names with their values, one `name = value` in a line."""
    pairs: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, sign, value = line.partition("=")
        if not sign or not name.strip():
            raise Refused(
                400,
                f"{field.label} must be lines of `name = value`: not {line[:80]!r}.",
                field.name,
            )
        pairs[name.strip()] = value.strip()
    return pairs
