"""The requested fields (`RequestedField`), and their positions in a page (`CssSchema`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, StrictBool, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from fairlead.scrape.requests.fields import RequestBody, SessionId, Url
from fairlead.scrape.requests.page import SummarizeOptions

DEPTH_MAX: Final = 3
NESTED: Final = frozenset(["nested", "nested_list"])

FieldType = Literal["text", "attribute", "html", "number", "list", "nested", "nested_list"]
FieldName = Annotated[StrictStr, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$")]
Attribute = Annotated[StrictStr, Field(pattern=r"^[A-Za-z_:][A-Za-z0-9_.:-]{0,99}$")]
Selector = Annotated[StrictStr, Field(max_length=500)]


class _Named(RequestBody):
    """The base of fields: name, type, attribute, and the rules for nesting."""

    name: FieldName
    type: FieldType = "text"
    attribute: Attribute | None = Field(
        None, description="Taken instead of the element's text; addresses are absolute."
    )

    @property
    def inner(self) -> Sequence[_Named]:
        """The nested fields."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if bool(self.inner) != (self.type in NESTED):
            raise PydanticCustomError(
                "no_valid_fields",
                "The field {name} is of type {type}: fields of the types nested and nested_list have fields, others "
                "have none.",
                {"name": self.name, "type": self.type},
            )
        if _depth(self) > DEPTH_MAX:
            raise PydanticCustomError(
                "no_valid_fields",
                "The field {name} is nested more than {most} deep.",
                {"name": self.name, "most": DEPTH_MAX},
            )
        _check_names(self.inner)
        return self


class RequestedField(_Named):
    """One field of each record."""

    description: Annotated[StrictStr, Field(max_length=500)] | None = Field(
        None, description="A description for the model, if one is used."
    )
    fields: list[RequestedField] = Field([], max_length=50)

    @property
    def inner(self) -> Sequence[_Named]:
        return self.fields


class CssField(_Named):
    """The position of a field in its record."""

    selector: Selector = Field("", description="Empty for the record's own element.")
    fields: list[CssField] = Field([], max_length=50)

    @property
    def inner(self) -> Sequence[_Named]:
        return self.fields

    @model_validator(mode="after")
    def _names_attribute(self) -> Self:
        if self.type == "attribute" and self.attribute is None:
            raise PydanticCustomError(
                "no_valid_fields",
                "The field {name} is of type attribute: name the attribute.",
                {"name": self.name},
            )
        return self


class CssSchema(RequestBody):
    """Selectors of a page's records: `baseSelector` finds each record, `fields` what is in it."""

    base_selector: Annotated[Selector, Field(min_length=1)]
    fields: list[CssField] = Field(min_length=1, max_length=50)

    @property
    def plan(self) -> dict[str, Any]:
        """The schema as plain data: as `page.css` reads it, the table stores it and the API shows it."""
        return self.model_dump(mode="json", by_alias=True)


class AutoOptions(SummarizeOptions):
    """How the page is read, and by which model it is healed."""

    use_browser: StrictBool = False
    session_id: SessionId = None


Fields = Annotated[list[RequestedField], Field(min_length=1, max_length=50)]


class RecordsRequest(RequestBody):
    """The fields of a page's records, and selectors for them, if the caller has some."""

    fields: Fields
    css_schema: CssSchema | None = Field(
        None, description="Selectors for these fields; without them a model finds some."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _check_names(self.fields)
        mismatches = (
            schema_mismatches(self.fields, self.css_schema.fields) if self.css_schema else []
        )
        if mismatches:
            raise PydanticCustomError(
                "no_valid_fields",
                "cssSchema does not fit fields: {wrong}.",
                {"wrong": mismatches[0]},
            )
        return self


class ExtractAutoRequest(RecordsRequest):
    """An extraction by selectors that heal."""

    url: Url
    force_reheal: StrictBool = Field(
        False, description="Whether a model looks for new selectors though the old ones may do."
    )
    options: AutoOptions = AutoOptions()


def schema_mismatches(
    required: Sequence[_Named], given: Sequence[_Named], place: str = ""
) -> list[str]:
    """Differences between the selectors and the requested fields, as sentences."""
    mismatches: list[str] = []
    wanted, found = ({field.name: field for field in fields} for fields in (required, given))
    for name in [*wanted, *(name for name in found if name not in wanted)]:
        if name not in found:
            mismatches.append(f"there is no field {place}{name}")
        elif name not in wanted:
            mismatches.append(f"{place}{name} is not asked for")
        elif wanted[name].type != found[name].type:
            mismatches.append(f"{place}{name} must be of type {wanted[name].type}")
        else:
            mismatches += schema_mismatches(
                wanted[name].inner, found[name].inner, f"{place}{name}."
            )
    return mismatches


def _check_names(fields: Sequence[_Named]) -> None:
    names = [field.name for field in fields]
    if len(set(names)) != len(names):
        raise PydanticCustomError("no_valid_fields", "fields have each name once.")


def _depth(field: _Named) -> int:
    return 1 + max(map(_depth, field.inner), default=0)
