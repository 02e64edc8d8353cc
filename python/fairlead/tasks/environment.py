"""Missing capabilities of a JavaScript runtime, read from its error messages, and the patches that supply them.

Pure functions from error texts to names of capabilities.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

DEFAULT_OBSERVED: Final = (
    "window",
    "document",
    "navigator",
    "localStorage",
    "sessionStorage",
    "crypto",
)

# Capabilities that page scripts rely on, each with its smallest substitute.
_PATCHES: Final = {
    "window": "globalThis.window = globalThis",
    "self": "globalThis.self = globalThis",
    "document": "a document with createElement, cookie, location and addEventListener",
    "navigator": "an object with userAgent, language, languages, platform and webdriver false",
    "location": "a URL of the page: href, origin, host, pathname, search, hash",
    "history": "an object with pushState, replaceState and length",
    "screen": "an object with width, height, colorDepth and pixelDepth",
    "localStorage": "a map with getItem, setItem, removeItem and clear",
    "sessionStorage": "a map with getItem, setItem, removeItem and clear",
    "crypto": "the runtime's Web Crypto: globalThis.crypto = webcrypto",
    "performance": "an object with now() and timing",
    "fetch": "a fetch that answers from recorded responses",
    "XMLHttpRequest": "a class with open, send, setRequestHeader and onreadystatechange",
    "WebSocket": "a class that records what is sent",
    "atob": "base64 to a binary string",
    "btoa": "a binary string to base64",
    "TextEncoder": "UTF-8: encode",
    "TextDecoder": "UTF-8: decode",
    "URL": "the runtime's URL",
    "URLSearchParams": "the runtime's URLSearchParams",
    "Image": "a class with src and onload",
    "HTMLElement": "a class that elements of the document are of",
    "HTMLCanvasElement": "a class with getContext and toDataURL that answer what was recorded",
    "MutationObserver": "a class with observe and disconnect",
    "requestAnimationFrame": "a call of the callback with performance.now()",
    "setTimeout": "the runtime's timer",
    "setInterval": "the runtime's timer",
    "addEventListener": "a list of listeners by type",
    "matchMedia": "an answer with matches false",
    "indexedDB": "an in-memory database, or an open that fails as in private windows",
    "process": "nothing: a page has none, so delete it",
    "Buffer": "nothing: a page has none; find why the script believes it is in Node",
}

# Bounded and anchored at a word's start, so that untrusted text is scanned in linear time.
_NAME = r"[A-Za-z_$][\w$]{0,63}"
_PATH = rf"(?<![\w$.]){_NAME}(?:\.{_NAME}){{0,7}}"
_PATTERNS: Final = (
    re.compile(rf"(?P<path>{_PATH}) is not defined"),
    re.compile(rf"Can't find variable: (?P<path>{_PATH})"),
    re.compile(rf"(?P<path>{_PATH}) is not a (?:function|constructor)"),
    re.compile(rf"undefined is not an object \(evaluating '(?P<path>{_PATH})"),
    re.compile(
        rf"Cannot read propert(?:y|ies) of (?:undefined|null) \(reading '(?P<path>{_NAME})'\)"
    ),
    re.compile(rf"Cannot read property '(?P<path>{_NAME})' of (?:undefined|null)"),
    re.compile(rf"(?P<path>{_PATH}) is (?:undefined|null|missing|unavailable)"),
)
_ROOTS: Final = frozenset({"window", "globalThis", "self", "global", "top", "parent"})
ERROR_MAX_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Gap:
    """A missing capability and the patch that supplies it."""

    capability: str
    patch: str


def required_by(error: str) -> list[str]:
    """Capabilities that an error asks for, in order of appearance; `window.crypto.x` asks for `crypto`."""
    found: dict[int, str] = {}
    for pattern in _PATTERNS:
        for match in pattern.finditer(error[:ERROR_MAX_CHARS]):
            found.setdefault(match.start("path"), _capability(match["path"]))
    return list(dict.fromkeys(found[at] for at in sorted(found)))


def gaps(required: Iterable[str], observed: Sequence[str]) -> list[Gap]:
    """The required capabilities that were not observed, each once."""
    capabilities = {_capability(each) for each in observed} | set(observed)
    return [
        Gap(name, _PATCHES.get(name, f"an object in place of {name}, recorded from a browser"))
        for name in dict.fromkeys(required)
        if name not in capabilities
    ]


def is_environment_error(error: str) -> bool:
    """Whether an error is about a missing capability of the runtime."""
    return bool(required_by(error))


def _capability(path: str) -> str:
    names = path.split(".")
    while len(names) > 1 and names[0] in _ROOTS:
        names = names[1:]
    return names[0]
