"""The user of an identity.

An identity is issuer and subject, nothing else. The first time one comes, a new `member` is made,
who may sign in and manages nothing. An existing account under its verified address is joined only
by somebody who is signed in to it in the same browser, or where the operator allows joining by
address (`SERVICE_OIDC_JOIN_EXISTING`); the owner's is never joined by the address alone. A second
subject of one issuer never takes over a user that has one.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.identity.oidc.provider import Identity, OidcFailed
from fairlead.identity.users import (
    EMAIL_MAX_CHARS,
    USERS_MAX,
    User,
    bind_identity,
    canonical_email,
    count_users,
    find_by_email,
    find_by_identity,
    has_identity,
    insert_user,
    new_user,
)
from fairlead.store.file import Connection


@dataclass(frozen=True, slots=True)
class AccountMatch:
    """The user of an identity. `joins` says that the identity is not bound to the user yet, because
    their second factor has not been checked.
    """

    user: User
    joins: bool = False


def user_of(
    con: Connection, identity: Identity, *, signed_in_id: str | None, by_address: bool
) -> AccountMatch:
    """The user of an identity, made or bound if need be, in the writer. `signed_in_id` is the user
    signed in in the same browser, `by_address` whether a verified address joins an account.
    `OidcFailed` when there can be none.
    """
    user = find_by_identity(con, identity.issuer, identity.subject)
    found = (
        AccountMatch(user) if user is not None else _first(con, identity, signed_in_id, by_address)
    )
    if not found.user.is_active:
        raise OidcFailed("token", "the account is switched off")
    return found


def _first(
    con: Connection, identity: Identity, signed_in_id: str | None, by_address: bool
) -> AccountMatch:
    email = canonical_email(identity.email or "")
    if "@" not in email or len(email) > EMAIL_MAX_CHARS or not email.isprintable():
        raise OidcFailed("email", "the address is missing or not verified")
    user = find_by_email(con, email)
    if user is None:
        if count_users(con) >= USERS_MAX:
            raise OidcFailed("token", "there are too many users")
        shown = "".join(each for each in identity.name if each.isprintable()).strip()[:200]
        user = new_user(email, shown or email, "member", None)
        insert_user(con, user)
    elif has_identity(con, user.id, identity.issuer):
        raise OidcFailed("token", "the address belongs to another subject of this provider")
    elif user.id != signed_in_id:
        if user.role == "owner" or not by_address:
            raise OidcFailed(
                "account", "the address belongs to an account that is not joined automatically"
            )
        if user.has_second_factor:
            return AccountMatch(user, joins=True)
    bind_identity(con, user.id, identity.issuer, identity.subject)
    return AccountMatch(user)
