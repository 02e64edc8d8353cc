"""A page of deliveries, as callers ask for it: by the place after which it begins, or by how many it leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query

from fairlead.errors import InvalidRequest
from fairlead.webhooks.history import Delivery, Page, PageCursor
from fairlead.wire import Limit, Offset

After = Annotated[
    str | None,
    Query(
        max_length=100,
        description="The `next` of a page: deliveries that follow it. Goes before offset.",
    ),
]


# Async, because FastAPI runs a plain function in a thread.
async def _page(limit: Limit = 50, offset: Offset = 0, after: After = None) -> Page:
    return Page(limit, offset, _parse_cursor(after) if after else None)


DeliveryPage = Annotated[Page, Depends(_page)]


def next_of(page: Page, found: Sequence[Delivery]) -> str | None:
    """The `after` of the page that follows; None at the end."""
    if len(found) < page.limit:
        return None
    return f"{found[-1].created_at_ms}-{found[-1].id}"


def _parse_cursor(cursor: str) -> PageCursor:
    at_ms, _, delivery_id = cursor.partition("-")
    if not (delivery_id and at_ms.isdecimal() and at_ms.isascii() and len(at_ms) < 17):
        raise InvalidRequest("after must be the `next` of a page.", param="after")
    return PageCursor(int(at_ms), delivery_id)
