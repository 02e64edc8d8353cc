"""An order of records that a person changes: by one place with a button, or whole by dragging."""

from __future__ import annotations

from fairlead.dashboard.api import Refused
from fairlead.dashboard.page import FormFields

ORDERED_MAX = 1_000


def moved(ids: list[str], typed: FormFields) -> list[str]:
    """The ids with one moved by a place, as `move` (`up` or `down`) and `id` say. `Refused` for an id
    that is not there any more.
    """
    wanted = typed.get("id", "")
    if wanted not in ids:
        raise Refused(404, "It is not here any more: somebody has deleted it.")
    order = list(ids)
    at = order.index(wanted)
    to = at + (1 if typed.get("move") == "down" else -1)
    order.insert(min(max(to, 0), len(order) - 1), order.pop(at))
    return order


def named_order(typed: FormFields) -> list[str]:
    """The ids as they were dragged, of a field `order` with commas between."""
    order = [each for each in typed.get("order", "").split(",") if each]
    if not order or len(order) > ORDERED_MAX:
        raise Refused(400, "The form names no order: send it as the page does.")
    return order
