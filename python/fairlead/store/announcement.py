"""Telling the world that something happened, without knowing who tells it.

A room that has something to tell calls `services.announce(con, announcement)` inside the write that
makes it true, so what is told and what is stored cannot differ. Whoever delivers sets
`services.announce` when the process starts; it must only store (an outbox row, in the same
transaction) and may be called twice, since a write may run twice. Until somebody sets it, nobody
listens and nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlead.store.file import Connection


@dataclass(frozen=True, slots=True)
class Announcement:
    """One event for one listener.

    `id` is stable over repetitions. `uri` is the listener's address, to be judged by the egress
    policy at each delivery. `secret` is `whsec_` and base64, in clear: whoever keeps it seals it.
    `owner` is the id of the key on whose behalf it is told. `data` is JSON.
    """

    id: str
    type: str
    uri: str
    secret: str
    owner: str
    at_ms: int
    data: dict[str, Any]


Announce = Callable[[Connection, Announcement], None]


def nobody_listens(con: Connection, announcement: Announcement) -> None:
    """Keeps nothing."""
