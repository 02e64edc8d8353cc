"""An authorization request (RFC 6749, 4.1.1; RFC 7636; RFC 8707), judged in this order: client,
redirect URI, response type, PKCE, resource.

Until client and redirect URI are known to belong together nobody is sent anywhere: the person reads
what is wrong. From then on it is the client that is told.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from fairlead.identity.oauth.documents import NoClient, is_document_id
from fairlead.identity.oauth.issuer import Issuer
from fairlead.identity.oauth.parameters import Parameters
from fairlead.identity.oauth.records import Client
from fairlead.identity.oauth.redirect import is_same, with_answer

PATH = "/oauth/authorize"
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")

# What is read; `resource` may be counted, the others must not be repeated.
KNOWN = (
    "response_type",
    "client_id",
    "redirect_uri",
    "code_challenge",
    "code_challenge_method",
    "state",
    "resource",
)
_ONCE = frozenset(KNOWN) - {"resource", "client_id", "redirect_uri"}


class ClientMismatch(Exception):
    """What the person reads: client and redirect URI do not belong together."""

    def __init__(self, title: str, text: str) -> None:
        super().__init__(title)
        self.title = title
        self.text = text


class ClientError(Exception):
    """`location` is where the client is told of it."""

    def __init__(self, location: str) -> None:
        super().__init__("told to the client")
        self.location = location


@dataclass(frozen=True, slots=True)
class AuthorizeRequest:
    """A request in which everything is right."""

    client: Client
    redirect_uri: str
    challenge: str
    resource: str
    state: str | None
    issuer: Issuer

    @property
    def shown_name(self) -> str:
        """What the client calls itself, without characters that could make it read otherwise."""
        return "".join(each for each in self.client.name if each.isprintable()).strip()

    @property
    def client_host(self) -> str | None:
        """Whose document describes the client; None for one that registered."""
        return urlsplit(self.client.id).netloc if is_document_id(self.client.id) else None

    def approved(self, code: str) -> str:
        """Where the client gets its code."""
        return with_answer(self.redirect_uri, code=code, state=self.state, iss=self.issuer.origin)

    def denied(self) -> str:
        """Where the client is told that the person said no."""
        return self.failed("access_denied", "the person did not approve")

    def failed(self, error: str, description: str) -> str:
        """Where the client is told what is wrong."""
        return _failed(self.redirect_uri, self.state, self.issuer, error, description)

    def fields(self) -> dict[str, str]:
        """What the form of the consent page sends again."""
        fields = {
            "response_type": "code",
            "client_id": self.client.id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "resource": self.resource,
        }
        return fields if self.state is None else fields | {"state": self.state}


# Who has this id, asked for this redirect URI; None, or `NoClient` with why.
FindClient = Callable[[str, str | None], Awaitable[Client | None]]


async def check_request(sent: Parameters, issuer: Issuer, find: FindClient) -> AuthorizeRequest:
    """The request, or `ClientMismatch`, or `ClientError`."""
    client_ids, redirect_uris = sent.all("client_id"), sent.all("redirect_uri")
    client = None
    try:
        if len(client_ids) == 1:
            client = await find(client_ids[0], redirect_uris[0] if redirect_uris else None)
    except NoClient as why:
        raise ClientMismatch(
            "Unknown client", f"This application cannot be connected, because {why}."
        ) from None
    if client is None:
        raise ClientMismatch(
            "Unknown client",
            "This application is not registered here, or no longer. Go back to it and connect anew.",
        )
    if len(redirect_uris) != 1 or not is_same(client.redirect_uri, redirect_uris[0]):
        raise ClientMismatch(
            "Redirect URI mismatch",
            "The application asks to be answered at an address that it did not register. "
            "Do not go on unless you know why.",
        )
    redirect_uri = redirect_uris[0]
    states = sent.all("state")
    state = states[0] if len(states) == 1 else None

    def refuse_to_client(error: str, description: str) -> ClientError:
        return ClientError(_failed(redirect_uri, state, issuer, error, description))

    if (name := sent.repeated(_ONCE)) is not None:
        raise refuse_to_client("invalid_request", f"{name} was sent more than once")
    response_type = sent.get("response_type")
    if response_type is None:
        raise refuse_to_client("invalid_request", "response_type is required")
    if response_type != "code":
        raise refuse_to_client("unsupported_response_type", "response_type must be code")
    challenge = sent.get("code_challenge")
    if challenge is None:
        raise refuse_to_client("invalid_request", "code_challenge is required")
    if sent.get("code_challenge_method") != "S256":
        raise refuse_to_client("invalid_request", "code_challenge_method must be S256")
    if CHALLENGE.fullmatch(challenge) is None:
        raise refuse_to_client(
            "invalid_request", "code_challenge must be the base64url of a SHA-256"
        )
    resources = sent.all("resource")
    if len(resources) != 1 or not issuer.is_resource(resources[0]):
        raise refuse_to_client("invalid_target", f"resource must be {issuer.resource}, once")
    return AuthorizeRequest(client, redirect_uri, challenge, issuer.resource, state, issuer)


def path_of(sent: Parameters) -> str:
    """The address of the page for this request, all parameters kept."""
    query = "&".join(
        f"{quote(name, safe='')}={quote(value, safe='')}"
        for name, values in sent.as_mapping().items()
        if name != "action"
        for value in values
    )
    return f"{PATH}?{query}"


def _failed(
    redirect_uri: str, state: str | None, issuer: Issuer, error: str, description: str
) -> str:
    return with_answer(
        redirect_uri, error=error, error_description=description, state=state, iss=issuer.origin
    )
