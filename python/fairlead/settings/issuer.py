"""The token issuer: this gateway's own, or another one."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from fairlead.settings.group import (
    AbsolutePath,
    OptionalSecret,
    OptionalServiceAddress,
    SettingsGroup,
)


class IssuerFields(SettingsGroup):
    """The address on which it listens, and its public address."""

    issuer_enabled: bool = Field(
        False,
        validation_alias=AliasChoices("ISSUER__ENABLED"),
        description="Whether the gateway runs the token issuer itself.",
    )
    issuer_host: str = Field(
        "127.0.0.1",
        min_length=1,
        validation_alias=AliasChoices("ISSUER__HOST"),
        description="Address that the issuer's token endpoint listens on; its admin listener is on loopback always.",
    )
    issuer_port: int = Field(
        20131,
        ge=1,
        le=65535,
        validation_alias=AliasChoices("ISSUER__PORT"),
        description="Port of the issuer's token endpoint.",
    )
    issuer_admin_port: int = Field(
        20130,
        ge=1,
        le=65535,
        validation_alias=AliasChoices("ISSUER__ADMIN_PORT"),
        description="Port of the issuer's admin listener.",
    )
    issuer_admin_url: OptionalServiceAddress = Field(
        None,
        max_length=2048,
        validation_alias=AliasChoices("ISSUER__ADMIN_URL"),
        description="The admin address of an issuer, which introspects agents' access tokens.",
    )
    issuer_public_url: OptionalServiceAddress = Field(
        None,
        max_length=2048,
        validation_alias=AliasChoices("ISSUER__PUBLIC_URL"),
        description="The public address of the issuer, where agents' callers get their tokens.",
    )
    issuer_admin_token: OptionalSecret = Field(
        None,
        validation_alias=AliasChoices("ISSUER__ADMIN_TOKEN"),
        description="Bearer token that the issuer's admin listener requires, and that the gateway sends to it.",
    )
    issuer_ca_file: AbsolutePath | None = Field(
        None,
        validation_alias=AliasChoices("ISSUER__CA_FILE"),
        description="PEM file with certificates that are trusted at ISSUER__ADMIN_URL, besides the system's.",
    )
    issuer_token_ttl_s: int = Field(
        3600,
        ge=60,
        le=86_400,
        validation_alias=AliasChoices("ISSUER__TOKEN_TTL_S"),
        description="How long an access token of the issuer lasts.",
    )
