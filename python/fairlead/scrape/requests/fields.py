"""Building blocks of scraping request bodies: their base and field types."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

Selector = Annotated[StrictStr, Field(min_length=1, max_length=1000)]
Url = Annotated[
    StrictStr, Field(min_length=1, max_length=2048, json_schema_extra={"format": "uri"})
]
ModelName = Annotated[StrictStr, Field(min_length=1, max_length=300)]
SessionId = Annotated[
    Annotated[StrictStr, Field(min_length=1, max_length=64)] | None,
    Field(description="A browser session of yours, in whose tab the page is read."),
]
A = TypeVar("A", bound=BaseModel)


def lowered_to(most: int) -> AfterValidator:
    """Lowers a number above `most` to it, for bounds that callers may not know."""

    def lower(number: float) -> float:
        return min(number, most)

    return AfterValidator(lower)


PauseMs = Annotated[StrictInt, Field(gt=0), lowered_to(30_000)]
StepMs = Annotated[StrictInt | StrictFloat, Field(ge=0), lowered_to(30_000)]
KeptS = Annotated[StrictInt, Field(gt=0), lowered_to(30 * 86_400)]


class RequestBody(BaseModel):
    """The base of bodies of the scraping API: camelCase names, no unknown fields."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


def one_of(body: A, first: str, second: str) -> A:
    """The body, if it has exactly one of these two fields."""
    if (getattr(body, first) is None) == (getattr(body, second) is None):
        raise PydanticCustomError(
            "no_valid_fields",
            "Send either {first} or {second}.",
            {"first": first, "second": second},
        )
    return body


Count = Annotated[StrictInt, Field(gt=0)]
Depth = Annotated[StrictInt, Field(ge=0)]
Pattern = Annotated[StrictStr, Field(min_length=1, max_length=200)]
Patterns = Annotated[list[Pattern], Field(max_length=25)]
Retries = Annotated[StrictInt, Field(ge=0, le=10)]
Prompt = Annotated[StrictStr, Field(min_length=1, max_length=5000)]
