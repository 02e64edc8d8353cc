"""Shared building blocks of management request and response bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError


class Wire(BaseModel):
    """A body in camelCase that refuses unknown fields."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


class NamedWire(Wire):
    """A body whose fields are accepted by their Python names too."""

    model_config = ConfigDict(populate_by_name=True)


def renamed(body: Any, names: Mapping[str, str]) -> Any:
    """The body with other names of its fields replaced by ours; a field sent under both names is refused."""
    if not isinstance(body, dict):
        return body
    for other, ours in names.items():
        if other in body and ours in body:
            raise PydanticCustomError(
                "named_twice",
                "{other} and {ours} are one field: send one of them",
                {"other": other, "ours": ours},
            )
    return {names.get(name, name): value for name, value in body.items()}


class ChangeWire(Wire):
    """A body that changes a record: any of its fields, at least one."""

    other_names: ClassVar[Mapping[str, str]] = {}
    """Names that the reference system has for fields, and ours; docs/reference/compatibility.md lists them."""

    def sent(self) -> dict[str, Any]:
        """The fields that the body contains, by their Python names."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    @model_validator(mode="before")
    @classmethod
    def _has_a_field(cls, body: Any) -> Any:
        body = renamed(body, cls.other_names)
        names = {field.alias for field in cls.model_fields.values()}
        if cls.model_config.get("populate_by_name"):
            names |= cls.model_fields.keys()
        if isinstance(body, dict) and not body.keys() & names:
            raise PydanticCustomError("no_valid_fields", "No valid fields to update")
        return body


# Without a docstring: it would become a description in the published API.
class Success(Wire):
    success: StrictBool = True


class Message(Wire):
    """A response that carries only a message."""

    message: str


def changed_names(change: Wire) -> list[str]:
    """The fields that a body set, in their JSON spelling, sorted."""
    return sorted(to_camel(name) for name in change.model_fields_set)


def _visible(text: str) -> str:
    text = text.strip()
    if not text or not text.isprintable():
        raise PydanticCustomError("name", "must have a character, and no control characters")
    return text


# A display name; surrounding blanks are dropped.
Name = Annotated[str, Field(strict=True, min_length=1, max_length=200), AfterValidator(_visible)]

# Pagination of a list.
Limit = Annotated[int, Query(ge=1, le=500)]
Offset = Annotated[int, Query(ge=0, le=2**31)]
