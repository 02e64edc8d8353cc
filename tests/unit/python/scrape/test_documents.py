"""Documents as markdown: what each kind comes to, and what hostile ones do not come to."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import Any

import pytest

from fairlead.scrape.document.kinds import SUPPORTED
from fairlead.scrape.document.read import NOWHERE, read_document
from fairlead.scrape.page.extract import ReadOptions, Source, Unreadable
from tests.support.office_documents import W, archive, depths, docx, paragraph, report, xlsx

pytestmark = pytest.mark.anyio

WANT = ReadOptions("markdown", only_main_content=False, is_document=True)


def read(body: bytes | str, kind: str = "", url: str = f"{NOWHERE}/") -> dict[str, Any]:
    data = body.encode() if isinstance(body, str) else body
    return read_document(Source(url, data, kind), WANT)


@pytest.mark.parametrize(
    ("body", "kind", "detected", "markdown"),
    [
        (
            "<title>T</title><h1>Head</h1><p>a <a href='b'>b</a>",
            "text/html",
            "html",
            "# Head\n\na [b](/b)",
        ),
        ("<!doctype html><p>x", "", "html", "x"),
        ("*as* it is\n", "text/plain", "text", "*as* it is\n"),
        ("# Head\n", "markdown", "markdown", "# Head\n"),
        (
            'a;b\n1;"x\ny|z"\n\n2',
            "text/csv",
            "csv",
            "| a | b |\n| --- | --- |\n| 1 | x y\\|z |\n| 2 |  |",
        ),
        ("a\tb\n1\t2", "tsv", "tsv", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
        ('{"b":[1]}', "application/ld+json", "json", '```json\n{\n  "b": [\n    1\n  ]\n}\n```'),
        (
            "<?xml version='1.0'?><a>```</a>",
            "",
            "xml",
            "````xml\n<?xml version='1.0'?><a>```</a>\n````",
        ),
        ("café noir".encode("cp1252"), "text/plain; charset=latin1", "text", "café noir"),
    ],
)
def test_each_kind_comes_to_markdown(
    body: bytes | str, kind: str, detected: str, markdown: str
) -> None:
    found = read(body, kind)
    assert (found["detectedType"], found["markdown"]) == (detected, markdown)
    assert found["metadata"]["truncated"] is False


def test_a_word_processors_document_keeps_its_form() -> None:
    found = read(report())
    assert (found["detectedType"], found["title"]) == ("docx", "On harbours")
    assert found["markdown"] == (
        "# The harbour\n\n## Depths\n\nSilt & sand **return**. \\[1\\][More](https://port.example/more)\n\n"
        "- dredging\n  - by night\n- walls\n\n1. first\n\n| Year | Metres |\n| --- | --- |\n| 1890 | 4.5 |\n\n"
        "## Notes\n\n1. As every year."
    )


def test_text_boxes_insertions_and_nested_tables_are_kept_once() -> None:
    box = f"<w:txbxContent>{paragraph('Boxed')}</w:txbxContent>"
    inner = f"<w:tbl><w:tr><w:tc>{paragraph('inner')}</w:tc></w:tr></w:tbl>"
    body = (
        '<w:p><w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">'
        f"<mc:Choice><w:drawing>{box}</w:drawing></mc:Choice><mc:Fallback>{box}</mc:Fallback></mc:AlternateContent>"
        "</w:r></w:p><w:sdt><w:sdtContent>" + paragraph("controlled") + "</w:sdtContent></w:sdt>"
        "<w:p><w:ins><w:r><w:t>inserted</w:t></w:r></w:ins></w:p>"
        f"<w:tbl><w:tr><w:tc>{paragraph('outer')}{inner}</w:tc></w:tr></w:tbl>"
    )
    said = read(docx(body))["markdown"]
    assert [said.count(each) for each in ("Boxed", "controlled", "inserted", "outer", "inner")] == [
        1
    ] * 5


@pytest.mark.parametrize("digits", ["\u00b2", "9" * 5000, "\u0663"])
def test_digits_that_are_no_number_are_none(digits: str) -> None:
    item = f'<w:numPr><w:ilvl w:val="{digits}"/><w:numId w:val="1"/></w:numPr>'
    body = f"<w:p><w:pPr>{item}</w:pPr><w:r><w:t>an item</w:t></w:r></w:p>"
    assert "an item" in read(docx(body))["markdown"]
    shared, dated = f'<c r="A1" t="s"><v>{digits}</v></c>', f'<c r="B1" s="{digits}"><v>7</v></c>'
    assert read(xlsx(f"<row>{shared}{dated}</row>"))["markdown"].splitlines()[2] == "|  | 7 |"


def test_a_spreadsheet_is_a_table_for_each_sheet() -> None:
    found = read(depths(), "application/octet-stream")
    assert found["detectedType"] == "xlsx"
    assert found["markdown"] == (
        "## Depths\n\n| The day | Metres\\|mean |  |  |\n| --- | --- | --- | --- |\n| 2024-01-01 | 4.5 |  | TRUE |\n"
        "| 2024-01-01 18:00:00 |  |  |  |"
    )
    assert found["metadata"]["sheets"] == ["Depths"]
    assert found["metadata"]["rows"] == 2


def test_the_name_decides_where_nothing_else_is_known() -> None:
    assert (
        read("a,b\n1,2", "text/plain; charset=utf-8", "http://a.example/x/t.csv?y")["detectedType"]
        == "csv"
    )
    assert read("# x", "", "http://a.example/README.md")["detectedType"] == "markdown"


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"%PDF-1.7", "application/pdf", "is PDF"),
        (b"\xd0\xcf\x11\xe0", "application/msword", "before 2007"),
        (b"x", "image/svg", "image/svg"),
        (b"a\0b", "", "a file of bytes"),
        (archive(x="<a/>"), "", "an archive of another kind"),
    ],
)
def test_another_kind_is_refused_with_those_that_are_read(
    body: bytes, kind: str, said: str
) -> None:
    with pytest.raises(Unreadable, match=said) as refusal:
        read(body, kind)
    assert SUPPORTED in str(refusal.value)


def bomb() -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("word/document.xml", "w") as part,
    ):
        for _ in range(70):
            part.write(b" " * 1024 * 1024)
    return out.getvalue()


LAUGHS = (
    '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    f"<w:document {W}><w:body>&b;</w:body></w:document>"
)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (bomb(), "larger than"),
        (archive(word__document=LAUGHS), "declares entities"),
        (archive(word__document=LAUGHS.encode("utf-16")), "declares entities"),
        (archive(word__document="<a"), "is no XML"),
        (docx("")[:-30], "no whole ZIP"),
        (b"PK\x03\x04" + b"\0" * 100, "no whole ZIP"),
        (archive(xl__workbook="<a/>", word__document="x"), "is no XML"),
        (xlsx('<row><c r="ZZZ1"><v>1</v></c></row>'), "1000 columns"),
        (docx("<w:sdt>" * 5000 + paragraph("deep") + "</w:sdt>" * 5000), "nested too deeply"),
        (b"{", "is not"),
    ],
)
def test_a_hostile_or_broken_document_is_refused(body: bytes, said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        read(body)


async def test_a_document_is_sent_or_fetched(scraping, site) -> None:
    sent = {"content": base64.b64encode(report()).decode(), "contentType": "docx"}
    answer = await scraping.ask("POST", "/api/parse", sent)
    assert answer["success"] is True
    assert answer["detectedType"] == "docx"
    assert answer["markdown"].startswith("# The harbour\n")
    fetched = await scraping.ask("POST", "/api/parse", {"url": site.url("/report")})
    assert (fetched["detectedType"], fetched["url"]) == ("csv", site.url("/report"))
    assert fetched["markdown"].startswith("| year | metres |\n| --- | --- |\n| 1890 | 4.5 |\n")
    whole = await scraping.ask("POST", "/api/parse", {"url": site.url("/article")})
    assert "Ten ships" in whole["markdown"]
    main = {"url": site.url("/article"), "onlyMainContent": True}
    assert "Ten ships" not in (await scraping.ask("POST", "/api/parse", main))["markdown"]


async def test_what_cannot_be_parsed_says_why(scraping, site) -> None:
    for body, said in [
        ({}, "Send either content or url"),
        ({"content": "eA==", "url": site.url("/article")}, "Send either content or url"),
        ({"content": "?"}, "not base64"),
        ({"url": site.url("/missing")}, "answered 404"),
        ({"url": site.url("/secret/x")}, "robots.txt"),
        ({"url": site.url("/inward?to=/secret/x")}, "robots.txt"),
        ({"url": site.url("/binary")}, "a picture"),
        ({"url": "http://169.254.169.254/x.csv"}, "private"),
        ({"url": site.url("/inward?to=http://169.254.169.254/")}, "private"),
        ({"content": base64.b64encode(bomb()).decode()}, "larger than"),
    ]:
        answer = await scraping.ask("POST", "/api/parse", body, expect=400)
        assert said in json.dumps(answer), answer
        assert answer["success"] is False
