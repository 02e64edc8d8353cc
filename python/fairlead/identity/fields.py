"""Addresses, passwords and codes in the bodies of identity."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from fairlead.identity.users import EMAIL_MAX_CHARS
from fairlead.process.placeholder_password import is_placeholder
from fairlead.settings import PASSWORD_MAX_CHARS

NEW_PASSWORD_MIN_CHARS = 8


def _email(text: str) -> str:
    text = text.strip()
    # Only the shape is checked: fairlead sends no mail, so whether the address exists does not matter.
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
        raise PydanticCustomError("password", "is a well-known example: choose another one")
    return secret


Email = Annotated[str, Field(strict=True, max_length=EMAIL_MAX_CHARS), AfterValidator(_email)]
# A password that somebody types to prove who they are.
Password = Annotated[SecretStr, Field(strict=True, min_length=1, max_length=PASSWORD_MAX_CHARS)]
# A password that is being set.
NewPassword = Annotated[
    SecretStr, Field(strict=True, max_length=PASSWORD_MAX_CHARS), AfterValidator(_strong)
]
Code = Annotated[str, Field(strict=True, min_length=1, max_length=64)]
