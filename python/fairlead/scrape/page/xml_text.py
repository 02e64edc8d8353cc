"""XML of strangers: documents that declare entities are refused before they are parsed."""

from __future__ import annotations

from xml.etree import ElementTree as ET
from xml.parsers import expat


class XmlRefused(ValueError):
    """XML that is not read; the text says whether it is `broken` or `declares entities`."""


class _RootStarted(Exception):
    """Ends the search for a DTD: none may follow the start of the root element."""


def refuse_dtd(body: bytes) -> None:
    """`XmlRefused` for XML with a DTD, and for what is no XML up to its root element."""

    def refuse(*_: object) -> None:
        raise XmlRefused("declares entities")

    def begin(*_: object) -> None:
        raise _RootStarted

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = begin
    try:
        parser.Parse(body, True)
    except _RootStarted:
        return
    except XmlRefused:
        raise
    except (expat.ExpatError, LookupError, ValueError):
        raise XmlRefused("broken") from None


def parsed_xml(body: bytes) -> ET.Element:
    """The root element. `XmlRefused`."""
    refuse_dtd(body)
    try:
        return ET.fromstring(body)  # noqa: S314 - it has no DTD
    except (ET.ParseError, ValueError):
        raise XmlRefused("broken") from None
