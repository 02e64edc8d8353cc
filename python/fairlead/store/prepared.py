"""What the look into the data files before a start found out, as the supervisor is told it.

Apart from that look itself, which needs the database's library: the supervisor does without.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prepared:
    """Whether somebody's password is stored, and whether there is an owner or ever was one."""

    password_stored: bool
    has_owner: bool
