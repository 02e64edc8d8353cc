"""What the issuer refuses, in OAuth's terms (RFC 6749 section 5.2, RFC 7009, RFC 7591)."""

from __future__ import annotations


class IssuerFault(Exception):
    """An answer other than success: `error` is OAuth's code, `description` is for people.

    `challenge` asks for `WWW-Authenticate`, which only a caller that came with `Authorization` gets.
    """

    def __init__(
        self,
        status: int,
        error: str,
        description: str,
        *,
        challenge: str | None = None,
        retry_after_s: int | None = None,
        allow: str | None = None,
    ) -> None:
        super().__init__(description)
        self.status = status
        self.error = error
        self.description = description
        self.challenge = challenge
        self.retry_after_s = retry_after_s
        self.allow = allow


def invalid_request(description: str) -> IssuerFault:
    """A parameter is missing, malformed or there twice."""
    return IssuerFault(400, "invalid_request", description)


def invalid_metadata(field: str, rule: str) -> IssuerFault:
    """A field of a client's registration breaks its rule."""
    return IssuerFault(400, "invalid_client_metadata", f"{field} {rule}.")


def unknown_client() -> IssuerFault:
    """There is no such client to manage."""
    return IssuerFault(404, "Unable to locate the resource", "There is no client with this id.")


def unavailable(description: str) -> IssuerFault:
    """The issuer cannot do it now; nothing was done."""
    return IssuerFault(503, "temporarily_unavailable", description, retry_after_s=1)


def too_many_guesses(retry_after_s: int) -> IssuerFault:
    """So many wrong secrets came that no more are looked at for a while."""
    return IssuerFault(
        429,
        "too_many_requests",
        "Too many wrong client secrets; try again later.",
        retry_after_s=retry_after_s,
    )
