"""Texts in the bodies of management requests, each held to its spelling."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema


@dataclass(frozen=True, slots=True)
class Spelled:
    """Requires that a whole text matches a pattern. The schema shows the pattern, the error message
    `rule`.
    """

    pattern: str
    rule: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        compiled = re.compile(self.pattern)

        def check(text: str) -> str:
            if compiled.fullmatch(text) is None:
                raise PydanticCustomError("spelled", "{rule}", {"rule": self.rule})
            return text

        return core_schema.no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "pattern": f"^{self.pattern}$"}


# A name must have a visible character, because it is shown in tables and logs.
_NAME = r"[^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\xa0][^\x00-\x1f\x7f-\x9f]*"

Text = Annotated[str, Field(strict=True)]
Name = Annotated[
    Text,
    Field(min_length=1, max_length=200),
    Spelled(_NAME, "must have a character other than blanks, and no control characters"),
]
# A model's name at its provider, with or without a prefix, or a pattern of such names.
ModelId = Annotated[
    Text,
    Field(min_length=1, max_length=300),
    Spelled(r"[^\x00-\x20\x7f]+", "must be without blanks and control characters"),
]
