"""The minimal environment of child processes that parse untrusted input.

An attacker who takes over such a child can read its environment, so it must hold neither fairlead's secrets nor
unrelated ones of the operator, such as cloud keys or a proxy URL with a password.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

# Variables that find programs, libraries, certificates, time zones and temporary files, and those that set text
# encoding.
_NEEDED: Final = (
    "PATH",
    "HOME",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "VIRTUAL_ENV",
    "POLARS_MAX_THREADS",
)


def minimal_environment(**more: str) -> dict[str, str]:
    """The allowed variables of this process, with `more` added."""
    return {name: os.environ[name] for name in _NEEDED if name in os.environ} | more


def named_environment(names: Iterable[str]) -> dict[str, str]:
    """The variables of this list that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}
