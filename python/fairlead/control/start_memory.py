"""Giving back what only the start has used.

A start runs once through much code of the database's library that an idle process never comes back to: the parser, the
migrations, the registration of thousands of functions. Those 30 MB stay mapped until somebody asks.
"""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from pathlib import Path
from typing import Final

_MADV_DONTNEED: Final = 4
# `start-end perms offset dev inode path` of /proc/self/maps: code of the library. Code is mapped from the file and
# never written to, so that a page that is given back can be mapped again as it was.
_CODE: Final = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r-xp [0-9a-f]+ \S+ [0-9]+ +\S*/_duckdb\S*")


def release_start_memory() -> None:
    """Collects garbage over what lives as long as the process for the last time, and unmaps code pages of the
    database. Code that is needed after all is mapped again from the page cache. Elsewhere than on Linux: garbage only.
    """
    # Loading the application froze its objects; this collection includes them.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        madvise = ctypes.CDLL(None).madvise
        for start, end in _CODE.findall(Path("/proc/self/maps").read_text(encoding="utf-8")):
            address, length = int(start, 16), int(end, 16) - int(start, 16)
            # Advice: what is not taken is no error.
            madvise(ctypes.c_void_p(address), ctypes.c_size_t(length), _MADV_DONTNEED)
