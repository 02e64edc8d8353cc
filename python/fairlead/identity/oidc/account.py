"""Which user an identity is.

An identity is issuer and subject, nothing else. The first time one comes, it becomes the user with
its verified address; where there is none, a new `member`, who may sign in and manages nothing. A
second subject of the same issuer never takes over a user that has one.
"""

from __future__ import annotations

from fairlead.identity.oidc.provider import Identity, OidcFailed
from fairlead.identity.users import (
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

EMAIL_MAX_CHARS = 254


def user_of(con: Connection, identity: Identity) -> User:
    """The user, made or bound if need be, in the writer. `OidcFailed` when it can be nobody."""
    user = find_by_identity(con, identity.issuer, identity.subject)
    if user is None:
        user = _bound(con, identity)
    if not user.is_active:
        raise OidcFailed("token", "the account is switched off")
    return user


def _bound(con: Connection, identity: Identity) -> User:
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
    bind_identity(con, user.id, identity.issuer, identity.subject)
    return user
