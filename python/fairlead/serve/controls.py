"""The controls of a relay's node: which one is used, and which are left for a while because they failed."""

from __future__ import annotations

import secrets
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from fairlead.net.node_link import NodeAddress

REST_S: Final = 5.0
CONNECT_S: Final = 2.0

log = structlog.get_logger("fairlead.tunnel")


@dataclass(slots=True, eq=False)
class Control:
    """One control, and until when it is left alone."""

    address: NodeAddress
    rests_until: float = 0.0
    has_failed: bool = False


class Controls:
    """All of a node's connections lead to one control, until it fails: what a worker reports and what it asks belong
    together. Nodes begin at one of them by chance, so that many nodes are spread over all.
    """

    def __init__(self, addresses: Sequence[NodeAddress], context: ssl.SSLContext) -> None:
        self.context = context
        self._controls = [Control(each) for each in addresses]
        self._used = secrets.randbelow(len(self._controls))

    def in_order(self) -> list[Control]:
        """The one in use first, then the next; those that failed lately last."""
        turned = self._controls[self._used :] + self._controls[: self._used]
        now = time.monotonic()
        return sorted(turned, key=lambda each: each.rests_until > now)

    def use(self, control: Control) -> None:
        """Prefers this control from now on: it took a connection."""
        self._used = self._controls.index(control)
        if control.has_failed:
            control.has_failed = False
            log.info("control is reached again", control=str(control.address))

    def failed(self, control: Control, reason: str) -> None:
        """Leaves it for a while."""
        control.rests_until = time.monotonic() + REST_S
        if not control.has_failed:
            control.has_failed = True
            log.warning("control is not reached", control=str(control.address), reason=reason)
