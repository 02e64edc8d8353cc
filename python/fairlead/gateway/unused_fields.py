"""Fields that are stored although nothing uses them yet.

Fields that the specification names are accepted, and answers list them in `ineffective`. Setting any
other unused field is refused with advice, because whoever sets it would rely on it. A value that is
stored already may be sent again, so that an answer can be sent back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.errors import InvalidRequest

# Unused fields, in JSON's spelling, and why each has no effect.
_LACKS = {
    "iconUrl": "no page shows a node",
}


def refuse_unused(sent: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """`InvalidRequest` for the first unused field that is new. `sent` and `stored` are by the names
    in JSON.
    """
    for name, lack in _LACKS.items():
        value = sent.get(name)
        if value is not None and value != stored.get(name):
            raise InvalidRequest(
                f"{name} would have no effect: {lack}. Leave it out, or send null.", param=name
            )


def ineffective(stored: Mapping[str, Any]) -> list[str]:
    """The stored fields, by their names in JSON, that have no effect."""
    return [name for name in _LACKS if stored.get(name) is not None]
