"""The thresholds of resilience that an operator may set: types, bounds, defaults, and the rules
between them. The relay has equal defaults in `rust/core/src/resilience.rs`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictBool, StrictInt

from fairlead.errors import InvalidRequest
from fairlead.wire import Wire

DAY_MS = 86_400_000

CooldownMs = Annotated[StrictInt, Field(ge=100, le=3_600_000)]
Count = Annotated[StrictInt, Field(ge=1, le=1000)]


class ConnectionCooldown(Wire):
    """Milliseconds that a connection rests after a failure."""

    base_ms: CooldownMs = Field(
        3_000, description="After the first failure; doubled with each in a row."
    )
    max_ms: CooldownMs = Field(
        120_000, description="The longest cooldown that the gateway chooses itself."
    )
    refused_ms: CooldownMs = Field(120_000, description="After a refused credential.")
    limited_ms: CooldownMs = Field(5_000, description="After a 429 that does not say for how long.")
    max_retry_after_ms: Annotated[StrictInt, Field(ge=1_000, le=DAY_MS)] = Field(
        3_600_000,
        description="The longest `Retry-After` that is honoured: after that time the provider is called again.",
    )


class Breaker(Wire):
    """When a provider as a whole rests."""

    degraded_after: Count = Field(7, description="Failures in a row that mark it as degraded.")
    open_after: Count = Field(12, description="Failures in a row that open the circuit.")
    reset_ms: CooldownMs = Field(30_000, description="Time until one trial request is let through.")
    max_stretch: Annotated[StrictInt, Field(ge=1, le=64)] = Field(
        4, description="The reset doubles with each opening, up to this multiple of its length."
    )


class OwnMachineBreaker(Breaker):
    """When a provider on this machine or a private network rests as a whole."""

    degraded_after: Count = 3
    open_after: Count = 5
    reset_ms: CooldownMs = 15_000
    max_stretch: Annotated[StrictInt, Field(ge=1, le=64)] = 1


class ModelLockout(Wire):
    """Models that rest alone, at one connection."""

    enabled: StrictBool = True
    status_codes: Annotated[
        list[Annotated[StrictInt, Field(ge=400, le=599)]], Field(max_length=32)
    ] = Field(
        [404],
        description="Statuses that mean that the model, and not the connection, fails. In any case a "
        "429 first puts the model in cooldown, and the connection if two of its models are "
        "limited.",
    )
    base_ms: CooldownMs = 120_000
    max_ms: CooldownMs = 1_800_000


class Quota(Wire):
    """The reserve in a connection's quota windows."""

    threshold_percent: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)] = Field(
        2.0, description="With no more than this left a connection is blocked until the reset."
    )
    recheck_ms: Annotated[StrictInt, Field(ge=1_000, le=DAY_MS)] = Field(
        300_000,
        description="Milliseconds after which an empty quota without a known reset is tried again.",
    )
    learn_limits: StrictBool = Field(
        True,
        description="Whether rates of requests and tokens in providers' headers are enforced as "
        "limits, until they are full again.",
    )


class ResilienceSettings(Wire):
    """Every threshold. As the body of a change: those that are sent, at least one."""

    connection_cooldown: ConnectionCooldown = ConnectionCooldown()
    provider_breaker: Breaker = Breaker()
    own_machine_breaker: OwnMachineBreaker = OwnMachineBreaker()
    model_lockout: ModelLockout = ModelLockout()
    quota: Quota = Quota()
    terminal_after: Count = Field(
        3,
        description="Refusals of a credential in a row that make the connection `terminal`, until an operator acts.",
    )
    probe_wait_ms: Annotated[StrictInt, Field(ge=0, le=30_000)] = Field(
        2_000, description="How long callers wait for what one probe finds out."
    )

    def changed(self, change: ResilienceSettings) -> ResilienceSettings:
        """The thresholds with those that the change contains; `InvalidRequest` where the rules
        forbid it.
        """
        sent = change.model_dump(exclude_unset=True)
        if not any(part if isinstance(part, dict) else True for part in sent.values()):
            raise InvalidRequest("No valid fields to update")
        whole = self.model_dump()
        for name, value in sent.items():
            whole[name] = {**whole[name], **value} if isinstance(value, dict) else value
        after = ResilienceSettings.model_validate(whole, by_alias=False, by_name=True)
        after.check()
        return after

    def check(self) -> None:
        """The rules between fields; `InvalidRequest` names the field to change."""
        for name, breaker in (
            ("providerBreaker", self.provider_breaker),
            ("ownMachineBreaker", self.own_machine_breaker),
        ):
            if breaker.degraded_after > breaker.open_after:
                raise InvalidRequest(
                    f"{name}.degradedAfter must not be above openAfter.",
                    param=f"{name}.degradedAfter",
                )
        for name, base_ms, max_ms in (
            (
                "connectionCooldown",
                self.connection_cooldown.base_ms,
                self.connection_cooldown.max_ms,
            ),
            ("modelLockout", self.model_lockout.base_ms, self.model_lockout.max_ms),
        ):
            if base_ms > max_ms:
                raise InvalidRequest(
                    f"{name}.baseMs must not be above maxMs.", param=f"{name}.baseMs"
                )
