"""The store that relay workers share: limits and budgets held together, over Redis 7 or Valkey."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from fairlead.net.store_url import check_store_url
from fairlead.settings.group import OptionalSecret, SettingsGroup


def _checked(secret: OptionalSecret) -> OptionalSecret:
    if secret is not None:
        check_store_url(secret.get_secret_value())
    return secret


StoreUrl = Annotated[OptionalSecret, AfterValidator(_checked)]
"""The address of a Redis or Valkey (`check_store_url`); empty means none."""


class SharedStoreFields(SettingsGroup):
    """The store for shared limits, and the behaviour without it."""

    shared_url: StoreUrl = Field(
        None,
        description="Redis 7 or Valkey in which relay workers hold limits together: `redis://`, "
        "`valkey://`, or `rediss://` and `valkeys://` for TLS, with `user:password@` where it needs one. "
        "A cluster is named by several of its servers, `redis://a:7000,b:7000`, or by one and `?cluster=true`. "
        "More than one worker needs it.",
    )
    shared_on_loss: Literal["fair-share", "refuse"] = Field(
        "fair-share",
        description="While that store does not answer: `fair-share` lets each worker use its part of a "
        "limit, and of money what it has leased; `refuse` answers 503 to keys with limits.",
    )
    shared_timeout_ms: int = Field(
        1_000, ge=50, le=30_000, description="How long one question to that store may take."
    )
    shared_lease_ms: int = Field(
        30_000,
        ge=1_000,
        le=600_000,
        description="After how long what a worker has leased ends, when it is not heard of.",
    )

    def shared_store_document(self) -> dict[str, Any] | None:
        """The part of a relay worker's configuration about the store, with its secrets; None without one."""
        if self.shared_url is None:
            return None
        return {
            "url": self.shared_url.get_secret_value(),
            "on_loss": self.shared_on_loss,
            "timeout_ms": self.shared_timeout_ms,
            "lease_ms": self.shared_lease_ms,
        }
