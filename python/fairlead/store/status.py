"""The result of verifying the data files before a start.

A separate module, because the supervisor reads it and does without the database's library.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """Whether a password is stored, and whether there is or ever was an owner."""

    password_stored: bool
    has_owner: bool
