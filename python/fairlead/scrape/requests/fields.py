"""Building blocks of scraping request bodies: their base and field types."""

from __future__ import annotations

from typing import Annotated, Any, Self, TypedDict, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)
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


class LoweredValue(TypedDict):
    """A number that was lowered to our bound: its place in the body, and the value that was sent."""

    path: str
    requested: float
    applied: float


class RequestBody(BaseModel):
    """The base of bodies of the scraping API: camelCase names, no unknown fields."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")

    _lowered: list[LoweredValue] = PrivateAttr(default_factory=list)

    @model_validator(mode="wrap")
    @classmethod
    def _note_lowered(cls, sent: Any, read: ModelWrapValidatorHandler[Self]) -> Self:
        body = read(sent)
        if isinstance(sent, dict):
            for name, field in cls.model_fields.items():
                _compare(
                    body, sent.get(field.alias or name), getattr(body, name), field.alias or name
                )
        return body

    @property
    def lowered(self) -> dict[str, list[LoweredValue]]:
        """The member `lowered` of an answer, if numbers of this body were above our bounds."""
        return {"lowered": self._lowered} if self._lowered else {}


def _compare(body: RequestBody, sent: Any, value: Any, path: str) -> None:
    if isinstance(value, RequestBody):
        body._lowered += [{**each, "path": f"{path}.{each['path']}"} for each in value._lowered]  # noqa: SLF001
    elif isinstance(sent, int | float) and isinstance(value, int | float) and value < sent:
        body._lowered.append({"path": path, "requested": sent, "applied": value})  # noqa: SLF001


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
Retries = Annotated[StrictInt, Field(ge=0), lowered_to(10)]
Prompt = Annotated[StrictStr, Field(min_length=1, max_length=5000)]
