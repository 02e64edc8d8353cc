"""The bodies of `/api/settings/mail`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PlainSerializer, SecretStr, StrictInt
from pydantic_core import PydanticCustomError

from fairlead.errors import InvalidRequest
from fairlead.gateway.fields import Spelled, Text
from fairlead.gateway.outbound.fields import Host
from fairlead.moment import Time
from fairlead.net.host import is_loopback
from fairlead.records.mail_queue import MAIL_EVENTS, MailEvent
from fairlead.wire import Wire

MASK = "***"
TlsMode = Literal["none", "starttls", "tls"]


def _distinct(texts: list[str]) -> list[str]:
    if len(set(texts)) != len(texts):
        raise PydanticCustomError("distinct", "must name each once")
    return texts


# Without blanks and line breaks of Unicode: a header that has one is no header.
_ADDRESS = (
    r"[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f\u2060\u3000\ufeff<>()\[\],;:\\\"@]+"
    r"@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?"
)
Address = Annotated[
    Text,
    Field(min_length=3, max_length=254),
    Spelled(_ADDRESS, "must be a mail address, such as ops@example.com"),
]
Username = Annotated[
    Text,
    Field(min_length=1, max_length=255),
    Spelled(r"[^\x00-\x1f\x7f]+", "must be without control characters"),
]
Password = Annotated[
    SecretStr,
    Field(min_length=1, max_length=1024),
    PlainSerializer(lambda _: MASK, return_type=str, when_used="json"),
]


class MailServer(Wire):
    """The server that mails are handed to, and who gets them."""

    host: Host
    port: Annotated[StrictInt, Field(ge=1, le=65_535)] = 587
    tls: TlsMode = Field(
        "starttls",
        description="`starttls` asks for TLS after the greeting and sends nothing without it, `tls` "
        "begins with it (port 465), `none` has none. The certificate must be valid for the host.",
    )
    username: Username | None = None
    password: Password | None = Field(
        None, description="Sealed at rest, shown as `***`; sent as `***` it keeps the stored one."
    )
    sender: Address
    recipients: Annotated[
        list[Address], Field(min_length=1, max_length=50), AfterValidator(_distinct)
    ]
    events: Annotated[
        list[MailEvent], Field(min_length=1, max_length=2), AfterValidator(_distinct)
    ] = Field(list(MAIL_EVENTS), description="The events that are sent by mail.")


def check_login(server: MailServer) -> None:
    """`InvalidRequest` for half a login, and for one that would go over the network without TLS."""
    if (server.username is None) != (server.password is None):
        raise InvalidRequest(
            "username and password must both be sent, or neither.", param="password"
        )
    if server.username is not None and server.tls == "none" and not is_loopback(server.host):
        raise InvalidRequest(
            "tls must be `starttls` or `tls` with a password: it would be sent without TLS.",
            param="tls",
        )


class MailQueue(Wire):
    """The mails of the last days."""

    pending: int
    sent: int
    failed: int
    last_error: str | None = Field(
        description="The error of the mail that failed last, or is retried."
    )
    last_sent_at: Time | None


class MailView(Wire):
    """The mail server, null where there is none, and its queue."""

    server: MailServer | None
    queue: MailQueue


class MailTested(Wire):
    """How handing over a test mail went."""

    sent: bool
    error_kind: str | None
    error: str | None
    latency_ms: int
