"""`metadata` of what callers store: at most 16 pairs of short texts."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, StrictStr
from pydantic_core import PydanticCustomError

PAIRS_MAX: Final = 16
NAME_MAX_CHARS: Final = 64
VALUE_MAX_CHARS: Final = 512


def _bounded(metadata: dict[str, str]) -> dict[str, str]:
    for name, value in metadata.items():
        if len(name) > NAME_MAX_CHARS or len(value) > VALUE_MAX_CHARS:
            raise PydanticCustomError(
                "metadata", "must have names of at most 64 and values of at most 512 characters"
            )
    if len(metadata) > PAIRS_MAX:
        raise PydanticCustomError("metadata", "must have at most 16 pairs")
    return metadata


Metadata = Annotated[dict[StrictStr, StrictStr], AfterValidator(_bounded)]
