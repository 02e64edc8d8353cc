"""The addresses that a sitemap names, in time and memory that grow with its length and no faster."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from html import unescape
from typing import Any, Final

from fairlead.scrape.address import URL_MAX_CHARS, BadAddress, canonical
from fairlead.scrape.page.extract import Unreadable

# The protocol's limit for an uncompressed file.
UNPACKED_MAX_BYTES: Final = 50 * 1024 * 1024
GZIP: Final = b"\x1f\x8b"
INDEX_WITHIN_BYTES: Final = 2000
# An address with everything in it escaped, its CDATA marks and some blanks around it.
PLACE_MAX_BYTES: Final = 2 * URL_MAX_CHARS
_OPEN, _CLOSE = b"<loc>", b"</loc>"
_CDATA_OPEN, _CDATA_CLOSE = b"<![cdata[", b"]]>"


def read_sitemap(body: bytes, url: str, addresses_max: int) -> dict[str, Any]:
    """`{"isIndex", "addresses"}`: canonical, in order, each once. `Unreadable`.

    `body` may be packed by gzip, which its first bytes show, whatever the file is called. Only `<loc>` counts:
    there is no XML parser, hence no entity that could be expanded.
    """
    text = _as_utf8(_unpacked(body))
    addresses: dict[str, None] = {}
    for location in _locations(text):
        if len(addresses) >= addresses_max:
            break
        try:
            addresses[canonical(unescape(location.decode("utf-8", "replace")), base=url)] = None
        except BadAddress:
            continue
    is_index = b"<sitemapindex" in text[:INDEX_WITHIN_BYTES].lower()
    return {"isIndex": is_index, "addresses": list(addresses)}


def _unpacked(body: bytes) -> bytes:
    if not body.startswith(GZIP):
        return body
    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(body, UNPACKED_MAX_BYTES)
    except zlib.error:
        raise Unreadable("The sitemap's compression is broken.") from None
    if unpacker.unconsumed_tail:
        raise Unreadable(f"The sitemap is larger than {UNPACKED_MAX_BYTES} bytes when unpacked.")
    return text


def _as_utf8(text: bytes) -> bytes:
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return text.decode("utf-16", "replace").encode()
    return text


def _locations(text: bytes) -> Iterator[bytes]:
    """The text of each `<loc>`. Every step goes forward and looks at `PLACE_MAX_BYTES` at most."""
    # `bytes.lower` changes only letters of ASCII, so every position stays.
    lower = text.lower()
    position = 0
    while (opening := lower.find(_OPEN, position)) != -1:
        position = opening + len(_OPEN)
        location = text[position : position + PLACE_MAX_BYTES].lstrip()
        if location[: len(_CDATA_OPEN)].lower() == _CDATA_OPEN:
            location, mark, rest = location[len(_CDATA_OPEN) :].partition(_CDATA_CLOSE)
            is_closed = bool(mark) and rest.lstrip()[: len(_CLOSE)].lower() == _CLOSE
        else:
            location, mark, rest = location.partition(b"<")
            is_closed = (mark + rest[: len(_CLOSE) - 1]).lower() == _CLOSE
        location = location.strip()
        if is_closed and len(location) > 0:
            yield location
