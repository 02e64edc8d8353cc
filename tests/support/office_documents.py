"""Office documents written for tests, as small as the programs that make them never are."""

from __future__ import annotations

import io
import zipfile

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
RELS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'


def archive(**parts: str | bytes) -> bytes:
    """A ZIP; `__` in a name is `/`, and each name ends in `.xml` unless it has a dot."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(
                name.replace("__", "/") if "." in name else f"{name.replace('__', '/')}.xml", text
            )
    return out.getvalue()


def docx(body: str, **parts: str) -> bytes:
    """A word processor's document with this body."""
    return archive(
        **{"word__document": f"<w:document {W} {R}><w:body>{body}</w:body></w:document>", **parts}
    )


def paragraph(text: str, *, style: str = "", item: tuple[int, int] | None = None) -> str:
    """`item` is the numbering's id and the level."""
    numbered = (
        f'<w:numPr><w:ilvl w:val="{item[1]}"/><w:numId w:val="{item[0]}"/></w:numPr>'
        if item
        else ""
    )
    styled = f'<w:pStyle w:val="{style}"/>' if style else ""
    return f"<w:p><w:pPr>{styled}{numbered}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def report() -> bytes:
    """A document with all that is read."""
    body = (
        paragraph("The harbour", style="Titel")
        + paragraph("Depths", style="berschrift2")
        + "<w:p><w:r><w:t>Silt &amp; sand </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>return</w:t></w:r>"
        '<w:r><w:t>.</w:t></w:r><w:r><w:footnoteReference w:id="7"/></w:r><w:del><w:r><w:delText>gone</w:delText>'
        '</w:r></w:del> <w:hyperlink r:id="rId9"><w:r><w:t>More</w:t></w:r></w:hyperlink></w:p>'
        + paragraph("dredging", item=(1, 0))
        + paragraph("by night", item=(1, 1))
        + paragraph("walls", item=(1, 0))
        + paragraph("first", item=(2, 0))
        + f"<w:tbl><w:tr><w:tc>{paragraph('Year')}</w:tc><w:tc>{paragraph('Metres')}</w:tc></w:tr>"
        f"<w:tr><w:tc>{paragraph('1890')}</w:tc><w:tc>{paragraph('4.5')}</w:tc></w:tr></w:tbl>"
    )
    return docx(
        body,
        word__styles=f'<w:styles {W}><w:style w:styleId="Titel"><w:name w:val="Title"/></w:style>'
        '<w:style w:styleId="berschrift2"><w:name w:val="heading 2"/></w:style></w:styles>',
        word__numbering=f'<w:numbering {W}><w:abstractNum w:abstractNumId="5"><w:lvl w:ilvl="0">'
        '<w:numFmt w:val="bullet"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="bullet"/></w:lvl></w:abstractNum>'
        '<w:abstractNum w:abstractNumId="6"><w:lvl w:ilvl="0"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="5"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="6"/>'
        "</w:num></w:numbering>",
        word__footnotes=f'<w:footnotes {W}><w:footnote w:id="7">{paragraph("As every year.")}</w:footnote>'
        "</w:footnotes>",
        **{
            "word___rels__document.xml.rels": f'<Relationships {RELS}><Relationship Id="rId9" TargetMode="External" '
            'Target="https://port.example/more"/></Relationships>'
        },
        docProps__core='<c:coreProperties xmlns:c="urn:c" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<dc:title>On harbours</dc:title></c:coreProperties>",
    )


def xlsx(rows: str, **parts: str) -> bytes:
    """A spreadsheet with one sheet named Depths and the rows' XML."""
    return archive(
        **{
            "xl__workbook": f'<workbook {S} {R}><sheets><sheet name="Depths" r:id="rId1"/></sheets></workbook>',
            "xl___rels__workbook.xml.rels": f'<Relationships {RELS}><Relationship Id="rId1" '
            'Target="/xl/worksheets/sheet1.xml"/></Relationships>',
            "xl__worksheets__sheet1": f"<worksheet {S}><sheetData>{rows}</sheetData></worksheet>",
            **parts,
        }
    )


def depths() -> bytes:
    """A spreadsheet with all that is read."""
    return xlsx(
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>Metres|mean</t></is></c></row>'
        '<row r="2"><c r="A2" s="1"><v>45292</v></c><c r="B2"><v>4.5</v></c><c r="D2" t="b"><v>1</v></c></row>'
        '<row r="3"/><row r="4"><c r="A4" s="2"><v>45292.75</v></c></row>',
        xl__sharedStrings=f"<sst {S}><si><r><t>The </t></r><r><t>day</t></r><rPh><t>no</t></rPh></si></sst>",
        xl__styles=f'<styleSheet {S}><numFmts><numFmt numFmtId="164" formatCode="yyyy\\-mm &quot;x&quot;"/></numFmts>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/></cellXfs></styleSheet>',
    )
