"""A generateContent request with the cached content that it names put in front of it."""

from __future__ import annotations

from typing import Any, Final

import orjson

from fairlead.errors import InvalidRequest
from fairlead.gateway.cached_contents.table import CachedContent

_FOLDER: Final = "cachedContents/"
_NAMES: Final = ("cachedContent", "cached_content")
# Spellings of the members that a request may not have beside a cached content.
_OWN: Final = (
    ("systemInstruction", "system_instruction"),
    ("tools",),
    ("toolConfig", "tool_config"),
)


def named_cached(body: dict[str, Any]) -> str | None:
    """The id of the cached content that a request names; None where it names none."""
    named = next((body[name] for name in _NAMES if isinstance(body.get(name), str)), None)
    return named.removeprefix(_FOLDER) if named and named.startswith(_FOLDER) else None


def expand(body: dict[str, Any], cached: CachedContent) -> None:
    """Puts the cached content into the request. `InvalidRequest` for a member that both have."""
    content = orjson.loads(cached.content)
    for spellings in _OWN:
        for name in spellings:
            if body.get(name) is not None:
                raise InvalidRequest(
                    f"{name} must be left out together with cachedContent: it is stored there.",
                    param=name,
                )
    for name in _NAMES:
        body.pop(name, None)
    contents = body.get("contents")
    own = contents if isinstance(contents, list) else []
    body.update(content)
    body["contents"] = [*content.get("contents", []), *own]
