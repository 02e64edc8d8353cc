"""The types of single fields in the bodies of the board and in the inputs and outputs of its tools."""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError


def _line(text: str) -> str:
    text = text.strip()
    if not text or any(ord(each) < 32 or 127 <= ord(each) < 160 for each in text):
        raise PydanticCustomError(
            "line", "must have a character other than blanks, and no line breaks"
        )
    return text


def _prose(text: str) -> str:
    text = text.replace("\r\n", "\n")
    if any(ord(each) < 32 and each not in "\n\t" for each in text):
        raise PydanticCustomError("prose", "must have no control characters but line breaks")
    return text


def _color(text: str) -> str:
    if re.fullmatch(r"#[0-9a-fA-F]{6}", text) is None:
        raise PydanticCustomError("color", "must be a colour such as #1a7f37")
    return text.lower()


def _day(value: object) -> object:
    if isinstance(value, date):
        return value
    if isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise PydanticCustomError("day", "must be a date such as 2027-01-31")


Name = Annotated[str, Field(strict=True, min_length=1, max_length=100), AfterValidator(_line)]
Title = Annotated[str, Field(strict=True, min_length=1, max_length=200), AfterValidator(_line)]
Prose = Annotated[str, Field(strict=True, max_length=20_000), AfterValidator(_prose)]
TagName = Annotated[str, Field(strict=True, min_length=1, max_length=40), AfterValidator(_line)]
TagNames = Annotated[list[TagName], Field(max_length=20)]
Color = Annotated[
    str,
    Field(strict=True),
    AfterValidator(_color),
    WithJsonSchema({"type": "string", "pattern": "^#[0-9a-fA-F]{6}$"}),
]
Day = Annotated[
    date,
    BeforeValidator(_day),
    PlainSerializer(date.isoformat, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date"}),
]
Id = Annotated[str, Field(strict=True, min_length=1, max_length=64)]
Version = Annotated[
    int,
    Field(
        strict=True,
        ge=1,
        description="The version that the change was made on; refused if there is a newer one. "
        "Left out, the change is made whatever came between.",
    ),
]

Status = Literal["backlog", "todo", "in_progress", "review", "done"]
SprintStatus = Literal["planned", "active", "closed"]
MemberRole = Literal["viewer", "contributor", "maintainer"]
