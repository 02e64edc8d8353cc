"""The bodies of `/api/oauth/<provider>/<action>`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from fairlead.gateway.fields import Name, Text
from fairlead.gateway.providers.views import ConnectionView
from fairlead.gateway.sign_in.section import SectionView
from fairlead.moment import Time
from fairlead.wire import Wire

Id = Annotated[Text, Field(min_length=1, max_length=300)]
State = Annotated[Text, Field(min_length=1, max_length=300)]
Token = Annotated[SecretStr, Field(min_length=1, max_length=100_000)]


class Target(Wire):
    """Which connection the sign-in is for: a new one, unless `connectionId` names one of the provider's."""

    connection_id: Id | None = None
    name: Name | None = Field(None, description="Name of a new connection.")

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.connection_id is not None and self.name is not None:
            raise PydanticCustomError("target", "must have a connectionId or a name, not both")
        return self


class Authorize(Target):
    redirect_uri: Annotated[Text, Field(min_length=1, max_length=2048)] | None = Field(
        None,
        description="The redirect URL for the browser: by default that of the settings, else `callback`.",
    )


class Authorization(Wire):
    """Open `authorizationUrl` in a browser and sign in. With a redirect address of one's own, send what the
    browser is sent
    back with to `exchange`.
    """

    authorization_url: str
    state: str
    expires_at: Time


class Exchange(Wire):
    """The end of a sign-in in a browser."""

    code: Annotated[SecretStr, Field(min_length=1, max_length=8192)] = Field(
        description="The code, or the whole address that the browser was sent to, which has the state in it."
    )
    state: State | None = None


class DeviceAuthorization(Wire):
    """Open `verificationUri` anywhere and enter `userCode`; meanwhile ask `poll` every `intervalMs`."""

    user_code: str
    verification_uri: str
    verification_uri_complete: str | None
    state: str
    interval_ms: int
    expires_at: Time


class Poll(Wire):
    state: State


class Polled(Wire):
    """`pending` until the person is done; `denied` and `expired` end the sign-in."""

    status: Literal["pending", "done", "denied", "expired"]
    interval_ms: int | None
    connection: ConnectionView | None


class Import(Target):
    """Tokens that were got elsewhere; with a refresh token alone, an access token is got at once."""

    access_token: Token | None = None
    refresh_token: Token | None = None
    expires_in: StrictInt | None = Field(
        None, ge=1, le=366 * 86_400, description="Seconds that the access token still counts."
    )

    @model_validator(mode="after")
    def _has_a_token(self) -> Self:
        if self.access_token is None and self.refresh_token is None:
            raise PydanticCustomError("tokens", "must have an accessToken or a refreshToken")
        if self.access_token is None and self.expires_in is not None:
            raise PydanticCustomError("tokens", "must have an accessToken with expiresIn")
        return self


class Refresh(Wire):
    connection_id: Id


class SignedIn(Wire):
    connection: ConnectionView


class SignInView(Wire):
    """A sign-in behind a connection; `expired` means that a person must sign in again."""

    connection_id: str
    status: Literal["active", "expired"]
    expires_at: Time | None
    refreshed_at: Time
    next_refresh_at: Time | None
    failures: int
    last_error: str | None


class SignInSettings(Wire):
    """How people sign in, and who has. `isOwn` says that the operator has set a client. `callbackUrl` is where
    the browser
    comes back to unless a `redirectUri` is set: register it at the provider.
    """

    provider: str
    is_own: bool
    callback_url: str
    section: SectionView
    sign_ins: list[SignInView]
