"""Lists that tools give in parts, each with a cursor to the next."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field

from fairlead.board.views import Page
from fairlead.errors import InvalidRequest
from fairlead.wire import Wire

CURSOR_MAX_CHARS = 128

Some = TypeVar("Some", bound=BaseModel)


class Paged(Wire):
    """What every list takes."""

    limit: Annotated[int, Field(strict=True, ge=1, le=200)] = 50
    cursor: Annotated[str, Field(max_length=CURSOR_MAX_CHARS)] | None = Field(
        default=None, description="The nextCursor of the part before; left out for the first."
    )

    @staticmethod
    def make_cursor(kind: str, place: str) -> str:
        """A place in a list, opaque to clients."""
        return base64.urlsafe_b64encode(f"{kind}{place}".encode()).decode().rstrip("=")

    def after(self, kind: str) -> str | None:
        """The place that the cursor holds; `InvalidRequest` for one that is not ours."""
        if self.cursor is None:
            return None
        try:
            padded = self.cursor + "=" * (-len(self.cursor) % 4)
            text = base64.urlsafe_b64decode(padded).decode("ascii")
        except (binascii.Error, ValueError):
            text = ""
        if not text.startswith(kind) or not text[1:].isalnum():
            raise InvalidRequest(
                "cursor must be the nextCursor of the part before: leave it out to begin anew.",
                param="cursor",
            )
        return text[1:]


def fetch_page(
    given: Paged, gives: type[Some], name: str, look: Callable[[int, int], Page]
) -> Some:
    """The part that is asked for of a list by `look(limit, offset)`, whose records are `name`."""
    place = given.after("o")
    if place is not None and (not place.isdigit() or int(place) > 2**31):
        raise InvalidRequest("cursor must be the nextCursor of the part before.", param="cursor")
    offset = int(place or 0)
    found = look(given.limit, offset)
    records: list[Any] = getattr(found, name)
    end = offset + len(records)
    cursor = given.make_cursor("o", str(end)) if records and end < found.total else None
    return gives.model_validate({name: records, "nextCursor": cursor})
