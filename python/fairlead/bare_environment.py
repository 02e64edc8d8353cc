"""The environment of a child that reads what strangers wrote: what a program needs to run, and nothing else.

Whoever takes such a child over reads its environment first. Neither fairlead's own secrets are in it nor what an
operator has put into the environment for something else: keys of a cloud, a proxy with its password.
"""

from __future__ import annotations

import os
from typing import Final

# Where programs, libraries and time zones are found, how text is coded, and where files may lie for a while.
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


def bare_environment(**more: str) -> dict[str, str]:
    """What is needed of this process's environment, and `more`."""
    return {name: os.environ[name] for name in _NEEDED if name in os.environ} | more
