"""The networks that the gateway may fetch from and deliver to."""

from __future__ import annotations

from pydantic import Field, field_validator

from fairlead import _core
from fairlead.settings.group import SettingsGroup


class EgressFields(SettingsGroup):
    """Networks beside the public ones."""

    allow_private_fetch: str = Field(
        "",
        max_length=4096,
        description="Private networks, as CIDRs with commas between, in which pages may be fetched "
        "and webhooks delivered; metadata addresses never.",
    )

    @field_validator("allow_private_fetch")
    @classmethod
    def _are_networks(cls, networks: str) -> str:
        # The address is any: it is the list that is judged.
        _core.address_allowed("127.0.0.1", "public", networks)
        return networks
