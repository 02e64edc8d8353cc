"""The purposes of sealed secrets that share the id of their record.

A sealed value opens only with the associated data it was sealed with. If a record has two secrets, the id
alone would let somebody who can write to the database put one in place of the other.
"""

from __future__ import annotations


def refresh_token_of(connection_id: str) -> str:
    """The associated data of a provider connection's refresh token."""
    return f"refresh-token:{connection_id}"


def pending_totp_of(user_id: str) -> str:
    """The associated data of a second factor that is not confirmed yet."""
    return f"pending-totp:{user_id}"
