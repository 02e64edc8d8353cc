"""The body and the answers of `/v1/session-leases`."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, StrictInt

from fairlead.gateway.fields import Text
from fairlead.moment import Time
from fairlead.wire import Wire

TTL_S: Final = 120
"""How long a lease lasts after it was acquired or renewed."""
RENEW_AFTER_S: Final = 30
"""When its owner is asked to renew it."""


class LeaseRequest(Wire):
    """A request for a lease, of the session that `X-Gateway-Lease-Owner` names."""

    action: Literal["acquire", "renew", "release", "status"]
    model: Annotated[Text, Field(min_length=1, max_length=300)] | None = Field(
        None, description="`acquire`: the model that the connection is to serve, with its prefix."
    )
    generation: Annotated[StrictInt, Field(ge=1)] | None = Field(
        None, description="`renew`, `release`: of the lease, as `acquire` told it."
    )
    reason: Annotated[Text, Field(max_length=200)] | None = Field(
        None, description="For the gateway's log."
    )


class LeaseView(Wire):
    """A lease, or that there is none."""

    state: Literal["ACTIVE", "RELEASED", "NONE"]
    generation: int | None = Field(
        None, description="Sent with each call as `X-Gateway-Lease-Generation`."
    )
    model: str | None = None
    expires_at: Time | None = Field(None, description="Unless it is renewed.")
    ttl_seconds: int | None = None
    renew_after_seconds: int | None = None
