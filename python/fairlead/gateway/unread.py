"""Fields that are stored and that nothing reads yet.

A field that the specification names is taken, and the answer lists it in `notInForce`. Any other one
is refused with what to do, because who sets it would rely on it. A value that is stored already may
be sent again: what was read back can be written back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.errors import InvalidRequest

# Field, in JSON's spelling, and what would have to be there.
_LACKS = {
    "maxConcurrent": "nothing limits how many calls a connection has at once",
    "supportedEndpoints": "a model is offered wherever its provider serves it",
    "supportsVision": "requests with pictures go to any model that they name",
    "iconUrl": "no page shows a node",
}


def refuse_unread(sent: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """`sent` and `stored` by the names of JSON; `InvalidRequest` for the first one that is new."""
    for name, lack in _LACKS.items():
        value = sent.get(name)
        if value is not None and value != stored.get(name):
            raise InvalidRequest(
                f"{name} would have no effect: {lack}. Leave it out, or send null.", param=name
            )


def not_in_force(stored: Mapping[str, Any]) -> list[str]:
    """Which of the stored fields, by the names of JSON, have no effect."""
    return [name for name in _LACKS if stored.get(name) is not None]
