"""The issuer's refusals, in OAuth's terms (RFC 6749 section 5.2, RFC 7009, RFC 7591)."""

from __future__ import annotations


class IssuerFault(Exception):
    """An answer other than success: `error` is OAuth's code, `description` is for people.
    `challenge` asks for `WWW-Authenticate`, which only a caller that sent `Authorization` gets.
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
    """The fault for a parameter that is missing, malformed or repeated."""
    return IssuerFault(400, "invalid_request", description)


def invalid_metadata(field: str, rule: str) -> IssuerFault:
    """The fault for a field of a client's registration that breaks its rule."""
    return IssuerFault(400, "invalid_client_metadata", f"{field} {rule}.")


def unknown_client() -> IssuerFault:
    """The fault for managing a client that does not exist."""
    return IssuerFault(404, "Unable to locate the resource", "There is no client with this id.")


def unavailable(description: str) -> IssuerFault:
    """The fault for an issuer that cannot do it now; nothing was done."""
    return IssuerFault(503, "temporarily_unavailable", description, retry_after_s=1)


def too_many_guesses(retry_after_s: int) -> IssuerFault:
    """The fault while too many wrong secrets came: none is checked for a while."""
    return IssuerFault(
        429,
        "too_many_requests",
        "Too many wrong client secrets; try again later.",
        retry_after_s=retry_after_s,
    )
