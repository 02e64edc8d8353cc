"""The navigation of the console for pages outside of it, such as the board's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ConsoleNavigation:
    """The navigation of the console, which is read when the first page needs it."""

    def navigation(self) -> Sequence[tuple[str, Sequence[Any]]]:
        """The pages by group."""
        from fairlead.dashboard.registry import navigation  # noqa: PLC0415 - an idle control does without it

        return navigation()

    def navigation_has(self, address: str) -> bool:
        """Whether the page at an address, or one above it, is in the navigation."""
        from fairlead.dashboard.registry import navigation_has  # noqa: PLC0415 - as above

        return navigation_has(address)
