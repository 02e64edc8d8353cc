"""Previews of configuration files without their secrets: ours, and those that the user keeps there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_SECRET_NAME: Final = re.compile(
    r"(?i)(key|token|secret|password|passwd|authorization|credential)s?$|^(auth|bearer)$"
)
_REFERENCE: Final = re.compile(r"\$?\{.*\}|\$[A-Z_]+|[A-Z][A-Z0-9_]*", re.DOTALL)
"""The name of an environment variable in place of a secret."""
MASK: Final = "***"


def redacted(text: str, document: Any, key: str) -> str:
    """The text of a file, with every value that has a secret's name, and the gateway's key, shown as `***`."""
    secrets = {key, *_secrets(document)} - {"", MASK}
    for secret in sorted(secrets, key=len, reverse=True):
        for spelled in {
            secret,
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
        }:
            text = text.replace(spelled, MASK)
    return text


def _secrets(document: Any, name: str = "") -> Iterator[str]:
    match document:
        case dict():
            for inner, value in document.items():
                is_holder = isinstance(value, dict | list) and _SECRET_NAME.search(name)
                yield from _secrets(value, name if is_holder else str(inner))
        case list():
            for value in document:
                yield from _secrets(value, name)
        case str() if _SECRET_NAME.search(name) and not _REFERENCE.fullmatch(document):
            yield document
