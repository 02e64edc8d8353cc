"""What the bodies of identity have in common."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, StrictBool
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from fairlead.placeholder import is_placeholder
from fairlead.settings import PASSWORD_MAX_CHARS

NEW_PASSWORD_MIN_CHARS = 8


class Wire(BaseModel):
    """A body: camelCase names only, nothing unknown."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")


class Success(Wire):
    success: StrictBool = True


def _email(text: str) -> str:
    text = text.strip()
    # What may stand before and after the sign is the business of whoever delivers; we deliver nothing.
    if re.fullmatch(r"[^@\s\x00-\x1f\x7f]+@[^@\s\x00-\x1f\x7f]+", text) is None:
        raise PydanticCustomError("email", "must be an address such as ada@example.org")
    return text


def _strong(secret: SecretStr) -> SecretStr:
    text = secret.get_secret_value()
    if len(text) < NEW_PASSWORD_MIN_CHARS:
        raise PydanticCustomError(
            "password",
            "must have at least {least} characters",
            {"least": NEW_PASSWORD_MIN_CHARS},
        )
    if is_placeholder(text):
        raise PydanticCustomError(
            "password", "must be a password of your own: this one stands in examples"
        )
    return secret


def _visible(text: str) -> str:
    text = text.strip()
    if not text or not text.isprintable():
        raise PydanticCustomError("name", "must have a character, and no control characters")
    return text


Email = Annotated[str, Field(strict=True, max_length=254), AfterValidator(_email)]
Name = Annotated[str, Field(strict=True, min_length=1, max_length=200), AfterValidator(_visible)]
# A password as somebody claims to know it.
Password = Annotated[SecretStr, Field(strict=True, min_length=1, max_length=PASSWORD_MAX_CHARS)]
# One that is to be.
NewPassword = Annotated[
    SecretStr, Field(strict=True, max_length=PASSWORD_MAX_CHARS), AfterValidator(_strong)
]
Code = Annotated[str, Field(strict=True, min_length=1, max_length=64)]

Limit = Annotated[int, Query(ge=1, le=500)]
Offset = Annotated[int, Query(ge=0, le=2**31)]
