"""Presentations, texts of OpenDocument and books as markdown."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

from fairlead.scrape.document.read import NOWHERE, read_document
from fairlead.scrape.page.extract import ReadOptions, Source, Unreadable
from tests.support.office_documents import RELS, archive

P = (
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)
ODT = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0" '
    'xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0" '
    'xmlns:xlink="http://www.w3.org/1999/xlink"'
)


def read(body: bytes) -> dict[str, Any]:
    options = ReadOptions("markdown", only_main_content=False, is_document=True)
    return read_document(Source(f"{NOWHERE}/", body, ""), options)


def typed(media_type: str, parts: dict[str, str]) -> bytes:
    """An archive whose file `mimetype` says what it is."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        for name, text in {"mimetype": media_type, **parts}.items():
            file.writestr(name, text)
    return out.getvalue()


def shape(kind: str, *paragraphs: str) -> str:
    return (
        f'<p:sp><p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:txBody>{"".join(paragraphs)}</p:txBody>'
        "</p:sp>"
    )


def line(text: str, level: int = 0) -> str:
    return f'<a:p><a:pPr lvl="{level}"/><a:r><a:t>{text}</a:t></a:r></a:p>'


def slides() -> bytes:
    table = (
        "<p:graphicFrame><a:tbl>"
        f"<a:tr><a:tc>{line('Year')}</a:tc><a:tc>{line('Metres')}</a:tc></a:tr>"
        f"<a:tr><a:tc>{line('1890')}</a:tc><a:tc>{line('4.5')}</a:tc></a:tr></a:tbl></p:graphicFrame>"
    )
    first = shape("title", line("Harbours &amp; silt")) + shape(
        "body", line("dredging"), line("by night", 1), line("walls")
    )
    return archive(
        ppt__presentation=f'<p:presentation {P}><p:sldIdLst><p:sldId r:id="b"/><p:sldId r:id="a"/></p:sldIdLst>'
        "</p:presentation>",
        ppt__slides__one=f"<p:sld {P}>{table}{shape('sldNum', line('2'))}</p:sld>",
        ppt__slides__two=f"<p:sld {P}>{first}</p:sld>",
        ppt__notesSlides__n=f"<p:notes {P}>{shape('body', line('Speak slowly.'))}</p:notes>",
        **{
            "ppt___rels__presentation.xml.rels": f'<Relationships {RELS}><Relationship Id="a" Target="slides/one.xml"/>'
            '<Relationship Id="b" Target="slides/two.xml"/></Relationships>',
            "ppt__slides___rels__two.xml.rels": f'<Relationships {RELS}><Relationship Id="n" '
            'Target="../notesSlides/n.xml"/></Relationships>',
        },
    )


def test_a_presentation_is_its_slides_in_order() -> None:
    found = read(slides())
    assert (found["detectedType"], found["metadata"]["slides"]) == ("pptx", 2)
    assert found["markdown"] == (
        "## Harbours & silt\n\n- dredging\n  - by night\n- walls\n\n> Speak slowly.\n\n## Slide 2\n\n"
        "| Year | Metres |\n| --- | --- |\n| 1890 | 4.5 |"
    )


def test_a_text_of_opendocument_keeps_its_form() -> None:
    content = (
        f'<office:document-content {ODT}><office:automatic-styles><style:style style:name="T1" style:family="text">'
        '<style:text-properties fo:font-weight="bold"/></style:style><text:list-style style:name="L1">'
        '<text:list-level-style-number text:level="1"/></text:list-style></office:automatic-styles><office:body>'
        '<office:text><text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:h text:outline-level="2">'
        'Depths</text:h><text:p>Silt &amp; <text:span text:style-name="T1">sand</text:span><text:note>'
        "<text:note-citation>1</text:note-citation><text:note-body><text:p>As every year.</text:p></text:note-body>"
        "</text:note>.</text:p>"
        '<text:list text:style-name="L1"><text:list-item><text:p>first</text:p></text:list-item></text:list>'
        '<text:p><text:a xlink:href="https://port.example/">More</text:a></text:p><table:table><table:table-row>'
        "<table:table-cell><text:p>Year</text:p></table:table-cell><table:table-cell><text:p>Metres</text:p>"
        '</table:table-cell></table:table-row><table:table-row><table:table-cell table:number-columns-repeated="2">'
        "<text:p>7</text:p></table:table-cell></table:table-row></table:table></office:text></office:body>"
        "</office:document-content>"
    )
    found = read(typed("application/vnd.oasis.opendocument.text", {"content.xml": content}))
    assert found["detectedType"] == "odt"
    assert found["markdown"] == (
        "## Depths\n\nSilt & **sand** \\[1\\].\n\n1. first\n\n[More](https://port.example/)\n\n"
        "| Year | Metres |\n| --- | --- |\n| 7 | 7 |\n\n## Notes\n\n1. As every year."
    )


def book(**parts: str) -> bytes:
    chapters = {
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OPS/book.opf"/></rootfiles></container>',
        "OPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        '<metadata><dc:title>On harbours</dc:title></metadata><manifest><item id="one" href="one%20a.xhtml"/>'
        '<item id="two" href="two.xhtml"/></manifest><spine><itemref idref="two"/><itemref idref="one"/></spine>'
        "</package>",
        "OPS/one a.xhtml": "<html><body><h1>One</h1><p>End.</p></body></html>",
        "OPS/two.xhtml": "<?xml version='1.0'?><html><head><title/></head><body><h1>Two</h1><img src='a.png'/>"
        "<p>Begin.</p></body></html>",
    }
    return typed("application/epub+zip", chapters | parts)


def test_a_book_is_its_chapters_in_the_order_of_its_spine() -> None:
    found = read(book())
    assert (found["detectedType"], found["title"]) == ("epub", "On harbours")
    assert found["markdown"] == "# Two\n\nBegin.\n\n# One\n\nEnd."
    assert found["metadata"]["truncated"] is False


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (book(**{"META-INF/container.xml": "<container/>"}), "does not say where its parts are"),
        (book(**{"OPS/book.opf": "<!DOCTYPE a><package/>"}), "declares entities"),
        (book(**{"META-INF/encryption.xml": "<a/>", "META-INF/rights.xml": "<a/>"}), "encrypted"),
        (typed("application/vnd.oasis.opendocument.text", {"content.xml": "<a>"}), "is no XML"),
        (typed("application/vnd.oasis.opendocument.text", {}), "lacks its part"),
        (archive(ppt__presentation="<a/>", x="<a/>")[:-30], "no whole ZIP archive"),
    ],
)
def test_a_broken_document_says_what_is_wrong(body: bytes, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        read(body)
