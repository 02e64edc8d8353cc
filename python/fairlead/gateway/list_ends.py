"""The ids at both ends of a page, as OpenAI's and Anthropic's lists show them."""

from __future__ import annotations

from collections.abc import Sequence


def list_ends(ids: Sequence[str]) -> dict[str, str | None]:
    """`first_id` and `last_id` of a page with these ids; null for an empty page."""
    return {"first_id": ids[0] if ids else None, "last_id": ids[-1] if ids else None}
