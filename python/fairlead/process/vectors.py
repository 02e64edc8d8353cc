"""Paths of the response cache's word vectors, which the extra `vectors` installs.

They are found by the distribution's list of files. The distribution itself is never imported, since it would
search elsewhere and may download them.
"""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Final

DISTRIBUTION: Final = "wordllama"
WEIGHTS: Final = "l2_supercat_256.safetensors"
TOKENIZER: Final = "l2_supercat_tokenizer_config.json"


def vector_files() -> dict[str, str] | None:
    """The paths of `weights` and `tokenizer`; None when the extra is not installed."""
    try:
        files = metadata.files(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return None
    wanted = (WEIGHTS, TOKENIZER)
    found = {file.name: Path(file.locate()) for file in files if file.name in wanted}
    if len(found) < 2 or not all(path.is_file() for path in found.values()):
        return None
    return {"weights": str(found[WEIGHTS]), "tokenizer": str(found[TOKENIZER])}
