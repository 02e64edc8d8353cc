"""An authorization request (RFC 6749, 4.1.1; RFC 7636; RFC 8707), checked in this order: client,
redirect URI, response type, PKCE, resource.

Until client and redirect URI are known to belong together nobody is redirected: the person reads
the error. From then on errors are sent to the client.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import quote

from fairlead.identity.oauth.documents import NoClient, is_document_id
from fairlead.identity.oauth.issuer import Issuer
from fairlead.identity.oauth.parameters import Parameters
from fairlead.identity.oauth.records import Client
from fairlead.identity.oauth.redirect import is_same, with_answer
from fairlead.net.url import split_url

PATH = "/oauth/authorize"
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")

# Parameters that are read. `resource` may be repeated, to be refused with its own error; the others
# must not.
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
    """Client and redirect URI do not belong together: the error that the person reads."""

    def __init__(self, title: str, text: str) -> None:
        super().__init__(title)
        self.title = title
        self.text = text


class ClientError(Exception):
    """An error that is sent to the client, by a redirect to `location`."""

    def __init__(self, location: str) -> None:
        super().__init__("told to the client")
        self.location = location


@dataclass(frozen=True, slots=True)
class AuthorizeRequest:
    """A valid request."""

    client: Client
    redirect_uri: str
    challenge: str
    resource: str
    state: str | None
    issuer: Issuer

    @property
    def shown_name(self) -> str:
        """The client's own name, without characters that could make it read as another."""
        return "".join(each for each in self.client.name if each.isprintable()).strip()

    @property
    def client_host(self) -> str | None:
        """The host of the document that describes the client; None for a client that registered."""
        return split_url(self.client.id).netloc if is_document_id(self.client.id) else None

    def approved(self, code: str) -> str:
        """The address that takes the code to the client."""
        return with_answer(self.redirect_uri, code=code, state=self.state, iss=self.issuer.origin)

    def denied(self) -> str:
        """The address that tells the client of a denial."""
        return self.failed("access_denied", "the person did not approve")

    def failed(self, error: str, description: str) -> str:
        """The address that tells the client of an error."""
        return _failed(self.redirect_uri, self.state, self.issuer, error, description)

    def fields(self) -> dict[str, str]:
        """The fields of the consent page's form."""
        fields = {
            "response_type": "code",
            "client_id": self.client.id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": self.challenge,
            "code_challenge_method": "S256",
            "resource": self.resource,
        }
        return fields if self.state is None else fields | {"state": self.state}


# Finds the client by id and redirect URI: None, or `NoClient` with the reason.
FindClient = Callable[[str, str | None], Awaitable[Client | None]]


async def check_request(sent: Parameters, issuer: Issuer, find: FindClient) -> AuthorizeRequest:
    """The valid request; `ClientMismatch` or `ClientError` for any other."""
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
            "This application is not registered here, or no longer. Go back to it and connect again.",
        )
    if len(redirect_uris) != 1 or not is_same(client.redirect_uri, redirect_uris[0]):
        raise ClientMismatch(
            "Redirect URI mismatch",
            "The application requests a redirect to an address that it did not register. Do "
            "not continue unless you know why.",
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
