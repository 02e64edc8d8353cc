"""The parts that bodies of management requests and answers share, in every room."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


class Wire(BaseModel):
    """A body: camelCase names only, nothing unknown."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


class NamedWire(Wire):
    """A body whose fields are taken by their Python names too."""

    model_config = ConfigDict(populate_by_name=True)


# Without a docstring: it would become a description in the published API.
class Success(Wire):
    success: StrictBool = True


class Message(Wire):
    """An answer that has nothing to show."""

    message: str


def changed_names(change: Wire) -> list[str]:
    """The fields that a body was sent with, as they are spelled in JSON, in order."""
    return sorted(to_camel(name) for name in change.model_fields_set)


def _visible(text: str) -> str:
    text = text.strip()
    if not text or not text.isprintable():
        raise PydanticCustomError("name", "must have a character, and no control characters")
    return text


# A name that people give to a thing of theirs; blanks around it are dropped.
Name = Annotated[str, Field(strict=True, min_length=1, max_length=200), AfterValidator(_visible)]

# The part of a list that is asked for: at most so many entries, after so many that are skipped.
Limit = Annotated[int, Query(ge=1, le=500)]
Offset = Annotated[int, Query(ge=0, le=2**31)]
