"""Undo: the call that restores a deleted record, stored for the user who deleted it.

They are kept in memory and for a few minutes, since a record that is gone may be what somebody wanted gone.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.errors import NotFound

KEPT_S: Final = 600.0
UNDOS_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class Undo:
    """The call of the API that brings something back, and the page that shows it, below `/dashboard`."""

    method: str
    path: str
    body: Mapping[str, Any]
    page_url: str


@dataclass(slots=True)
class Undos:
    """The undos of everybody, by a token that only who destroyed something is given; the oldest go first."""

    _undos: OrderedDict[str, tuple[str, float, Undo]] = field(default_factory=OrderedDict)

    def keep(self, person_id: str, undo: Undo) -> str:
        """The token of what was kept."""
        token = secrets.token_urlsafe(16)
        self._undos[token] = (person_id, time.monotonic() + KEPT_S, undo)
        while len(self._undos) > UNDOS_MAX:
            self._undos.popitem(last=False)
        return token

    def has(self, person_id: str, token: str) -> bool:
        """Whether this person may still undo it."""
        owner, until_s, _ = self._undos.get(token, ("", 0.0, None))
        return owner == person_id and time.monotonic() < until_s

    def take(self, person_id: str, token: str) -> Undo:
        """Gives an undo away, once. `NotFound` when it is too late, or somebody else's."""
        if not self.has(person_id, token):
            raise NotFound("It is too late to undo this: create it again.")
        return self._undos.pop(token)[2]
