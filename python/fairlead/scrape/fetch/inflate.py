"""Decompressing a page's body as it comes, a bounded piece at a time."""

from __future__ import annotations

import zlib
from typing import Any, Final

GZIP: Final = frozenset(["gzip", "x-gzip"])
CODINGS: Final = GZIP | {"deflate"}
# Bytes behind the end of the compressed data that are passed over, so that the connection can be kept.
BEHIND_MAX_BYTES: Final = 64 * 1024
_METHOD: Final = 8


class Inflater:
    """The decoder of one body. `coding` is one of `CODINGS`. Its methods raise `zlib.error` for broken data."""

    def __init__(self, coding: str) -> None:
        self._inflate: Any = zlib.decompressobj(wbits=47) if coding in GZIP else None
        self._head = b""
        self._behind_bytes = 0

    def add(self, part: bytes, most: int) -> bytes:
        """The next decoded bytes, at most `most`, which is above 0."""
        if self._inflate is None:
            self._head += part
            if len(self._head) < 2:
                return b""
            part = self._head
            # The standard's `deflate` is that of zlib; some servers leave zlib's frame out, and browsers read both.
            self._inflate = zlib.decompressobj(wbits=15 if _is_zlib(part) else -15)
        if self._inflate.eof:
            # Not given to zlib, which would keep all of it.
            self._behind_bytes += len(part)
            return b""
        decoded: bytes = self._inflate.decompress(part, most)
        return decoded

    @property
    def is_cut(self) -> bool:
        """Whether there was more than the last call might return."""
        return self._inflate is not None and bool(self._inflate.unconsumed_tail)

    @property
    def is_done(self) -> bool:
        """Whether the data has ended, and more came behind it than is worth reading."""
        return self._behind_bytes > BEHIND_MAX_BYTES


def _is_zlib(head: bytes) -> bool:
    return head[0] & 0x0F == _METHOD and (head[0] << 8 | head[1]) % 31 == 0
