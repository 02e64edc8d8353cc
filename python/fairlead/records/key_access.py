"""When and from where a key may be used, for what somebody does as a key in the console, whose calls pass no relay.

The rules are the relay's own (`rust/core/src/schedule.rs`, `policy.rs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from fairlead import _core


def is_open(schedule: Mapping[str, Any] | None, at: datetime) -> bool:
    """Whether a key with this `accessSchedule` may be used at a time with a zone.

    Hours that end before they begin go past midnight, on the day on which they begin. A zone that is not known is
    never open: a rule that cannot be read is no permission.
    """
    if schedule is None or not schedule["enabled"]:
        return True
    return _core.is_schedule_open(orjson.dumps(schedule).decode(), int(at.timestamp() * 1000))


def is_listed(allowlist: Sequence[str], address: str) -> bool:
    """Whether a key with this `ipAllowlist` may be used from an address; a text that is none is this machine's.

    An empty list admits all. This machine has two families of addresses, and a list that names one means both.
    """
    return _core.is_address_listed(list(allowlist), address)
