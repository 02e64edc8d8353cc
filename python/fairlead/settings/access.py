"""Secrets, and who may call."""

from __future__ import annotations

import base64
import binascii

from pydantic import AliasChoices, Field, SecretStr, field_validator

from fairlead.settings.group import AbsolutePath, OptionalSecret, SettingsGroup

# The longest password that can be set or typed.
PASSWORD_MAX_CHARS = 200


class AccessFields(SettingsGroup):
    """The key of stored secrets, and what callers and the first owner need."""

    secret_key: OptionalSecret = Field(
        None,
        description="Base64 of 32 bytes that seal stored secrets, instead of `secret.key`.",
    )
    secret_key_file: AbsolutePath | None = Field(
        None, description="File that holds such a key, instead of `secret.key`: a mounted secret."
    )
    secret_key_command: str | None = Field(
        None,
        min_length=1,
        max_length=4096,
        description="Command that prints such a key, run once at each start without a shell: a client of a key "
        "management service.",
    )
    other_secret_key: OptionalSecret = Field(
        None,
        description="A second such key, with which secrets are opened too while one key is exchanged for another.",
    )
    other_secret_key_file: AbsolutePath | None = Field(
        None, description="File that holds the second key."
    )
    other_secret_key_command: str | None = Field(
        None,
        min_length=1,
        max_length=4096,
        description="Command that prints the second key, run once at each start without a shell.",
    )
    require_api_key: bool = Field(
        False,
        validation_alias=AliasChoices("REQUIRE_API_KEY"),
        description="Whether `/v1` requires a key.",
    )
    initial_password: OptionalSecret = Field(
        None,
        validation_alias=AliasChoices("INITIAL_PASSWORD"),
        description="Signs in as long as no password is stored.",
    )

    @field_validator("initial_password")
    @classmethod
    def _can_be_typed(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            text = secret.get_secret_value()
            if len(text) > PASSWORD_MAX_CHARS or any("\ud800" <= each <= "\udfff" for each in text):
                raise ValueError(f"must be UTF-8 of at most {PASSWORD_MAX_CHARS} characters")
        return secret

    @field_validator("secret_key", "other_secret_key")
    @classmethod
    def _is_key(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            try:
                size = len(base64.b64decode(secret.get_secret_value().strip(), validate=True))
            except binascii.Error:
                raise ValueError(
                    "must be base64 of 32 bytes; make one with `openssl rand -base64 32`"
                ) from None
            if size != 32:
                raise ValueError(f"must be base64 of 32 bytes, and is of {size}")
        return secret
