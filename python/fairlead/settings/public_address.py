"""How the gateway is reached from outside."""

from __future__ import annotations

import re

from pydantic import AliasChoices, Field, field_validator

from fairlead.settings.group import OptionalWebAddress, SettingsGroup
from fairlead.text.names_in import names_in

# A host name: labels of at most 63 characters with dots between.
HOST_NAME = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")


class PublicAddressFields(SettingsGroup):
    """Proxies before the gateway, and the names that it is called by."""

    service_trust_proxy: bool = Field(
        False,
        validation_alias=AliasChoices("SERVICE_TRUST_PROXY"),
        description="Whether `X-Forwarded-*` is believed: a proxy of yours must set it.",
    )
    service_trusted_proxies: int = Field(
        1,
        ge=1,
        le=16,
        validation_alias=AliasChoices("SERVICE_TRUSTED_PROXIES"),
        description="The number of your proxies in a chain, with `SERVICE_TRUST_PROXY`: the position "
        "of the caller's address from the right in `X-Forwarded-For`.",
    )
    service_public_base_url: OptionalWebAddress = Field(
        None,
        max_length=2048,
        validation_alias=AliasChoices("SERVICE_PUBLIC_BASE_URL"),
        description="The address under which people reach the gateway.",
    )
    host_names: str = Field(
        "",
        max_length=4096,
        description="Names, separated by commas, under which the gateway may be called without an API "
        "key, in addition to `localhost`, addresses and the name in "
        "`SERVICE_PUBLIC_BASE_URL`.",
    )

    @field_validator("host_names")
    @classmethod
    def _are_host_names(cls, text: str) -> str:
        for name in names_in(text):
            if HOST_NAME.fullmatch(name) is None:
                raise ValueError(
                    f"`{name[:64]}` is no host name: write letters, digits, `-`, `_` and dots, "
                    "without a scheme, a port or a `*`"
                )
        return text
