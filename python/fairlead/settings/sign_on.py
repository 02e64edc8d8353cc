"""People who sign in at an identity provider."""

from __future__ import annotations

from pydantic import AliasChoices, Field, field_validator

from fairlead.settings.group import OptionalSecret, OptionalWebAddress, SettingsGroup


class SignOnFields(SettingsGroup):
    """The identity provider, and the roles that it gives to users."""

    service_oidc_issuer: OptionalWebAddress = Field(
        None,
        max_length=2048,
        validation_alias=AliasChoices("SERVICE_OIDC_ISSUER"),
        description="Identity provider that people sign in at: its issuer, an https address.",
    )
    service_oidc_client_id: str | None = Field(
        None,
        max_length=1024,
        validation_alias=AliasChoices("SERVICE_OIDC_CLIENT_ID"),
        description="The gateway's client id at the identity provider.",
    )
    service_oidc_client_secret: OptionalSecret = Field(
        None,
        validation_alias=AliasChoices("SERVICE_OIDC_CLIENT_SECRET"),
        description="The gateway's secret at the identity provider; none for a public client.",
    )
    service_oidc_local_auth_disabled: bool = Field(
        False,
        validation_alias=AliasChoices("SERVICE_OIDC_LOCAL_AUTH_DISABLED"),
        description="Whether people sign in at the identity provider only.",
    )
    service_oidc_join_existing: bool = Field(
        False,
        validation_alias=AliasChoices("SERVICE_OIDC_JOIN_EXISTING"),
        description="Whether somebody whom the identity provider sends for the first time becomes the user with "
        "their verified address, instead of being refused; the owner's account is never joined so.",
    )

    @field_validator("service_oidc_client_id")
    @classmethod
    def _empty_text_is_none(cls, text: str | None) -> str | None:
        return text or None
