"""Decoding pages: the declared charset is a hint, the bytes decide."""

from __future__ import annotations

import codecs
import re

from charset_normalizer import from_bytes

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(
    rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:.-]{2,40})", re.IGNORECASE
)
_HEADER = re.compile(r"charset\s*=\s*[\"']?([a-zA-Z0-9_:.-]{2,40})", re.IGNORECASE)
# The encodings of these names in the Encoding standard.
_WEB_CHARSETS = {
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "latin1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "shift_jis": "cp932",
    "iso-8859-9": "cp1254",
    "windows-31j": "cp932",
    "big5": "big5hkscs",
    "tis-620": "cp874",
}
_WESTERN = frozenset(
    [
        "cp1250",
        "cp1252",
        "cp1254",
        "cp1257",
        "cp1258",
        "cp437",
        "cp850",
        "cp852",
        "cp858",
        "hp_roman8",
        "latin_1",
        "iso8859_2",
        "iso8859_4",
        "iso8859_9",
        "iso8859_10",
        "iso8859_13",
        "iso8859_14",
        "iso8859_15",
        "iso8859_16",
        "mac_roman",
        "mac_latin2",
        "mac_iceland",
        "mac_turkish",
    ]
)
# Python knows them; no page is written in one, and one of them raises whatever it is given.
_NOT_OF_THE_WEB = frozenset(
    ["undefined", "unicode-escape", "raw-unicode-escape", "punycode", "idna", "utf-7"]
)
SNIFF_BYTES = 64 * 1024


def decode(body: bytes, content_type: str) -> tuple[str, str]:
    """The text and the name of the charset that it was read with. Never fails: what fits no charset
    keeps replacement characters.
    """
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body.decode(name, "replace"), name.removesuffix("-sig")
    try:
        # Text in another charset that happens to be valid UTF-8 is next to impossible.
        return body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        # A body that was cut at its cap may end inside a character.
        if error.start >= len(body) - 4:
            return body.decode("utf-8", "ignore"), "utf-8"
    declared = [match[1] for match in (_HEADER.search(content_type),) if match]
    declared += [match[1].decode("ascii") for match in (_META.search(body[:4096]),) if match]
    for name in declared:
        known = _known(name)
        if known is None or known == "utf-8":
            continue
        try:
            return body.decode(known), known
        except (UnicodeDecodeError, LookupError):
            continue
    if any(_known(name) == "utf-8" for name in declared):
        text = body.decode("utf-8", "replace")
        # Mostly UTF-8 with a few broken bytes is that, and not another charset.
        if text.count("\ufffd") * 50 < len(text):
            return text, "utf-8"
    best = from_bytes(body[:SNIFF_BYTES]).best()
    name = best.encoding if best is not None else "cp1252"
    if name in _WESTERN:
        # A short text does not show which of these it is; the web's default is right most often.
        try:
            return body.decode("cp1252"), "cp1252"
        except UnicodeDecodeError:
            pass
    return body.decode(name, "replace"), name


def _known(name: str) -> str | None:
    name = _WEB_CHARSETS.get(name.lower(), name.lower())
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    return None if found in _NOT_OF_THE_WEB else found
