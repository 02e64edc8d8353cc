"""Documents as markdown through the whole gateway: sizes, refusals, and what a slow one may take."""

from __future__ import annotations

import base64
import time

import httpx
import pytest

from tests.support.office_documents import depths, docx, report
from tests.support.processes import Gateway, expect
from tests.support.site import Site

CAP = 25 * 1024 * 1024


def sent(document: bytes, kind: str = "") -> dict[str, str]:
    return {"content": base64.b64encode(document).decode(), "contentType": kind}


def test_documents_come_to_markdown(caller: httpx.Client, site: Site) -> None:
    for document, kind, begins in [
        (report(), "docx", "# The harbour\n"),
        (depths(), "xlsx", "## Depths\n\n| The day |"),
        (b"a,b\n1,2", "csv", "| a | b |"),
        (b"\xef\xbb\xbfplain", "text", "plain"),
    ]:
        answer = expect(caller.post("/api/parse", json=sent(document, kind)), 200)
        assert (answer["success"], answer["detectedType"]) == (True, kind)
        assert answer["markdown"].startswith(begins)
        assert answer["metadata"]["bytes"] == len(document)
        assert "url" not in answer
    answer = expect(caller.post("/api/parse", json={"url": site.url("/report")}), 200)
    assert (answer["detectedType"], answer["url"]) == ("csv", site.url("/report"))


def test_a_document_may_have_25_mib_and_no_more(gateway: Gateway, caller: httpx.Client) -> None:
    whole = expect(caller.post("/api/parse", json=sent(b"a" * CAP, "text/plain")), 200)
    assert whole["metadata"]["bytes"] == CAP
    # What is left out is said to be.
    assert whole["metadata"]["truncated"] is True
    assert len(whole["markdown"]) == 10_000_000
    for document in (b"a" * (CAP + 1), b"a" * (30 * 1024 * 1024)):
        refused = caller.post("/api/parse", json=sent(document, "text/plain"))
        # Not `expect`: it would tell the whole answer.
        assert refused.status_code == 413
        assert refused.json()["success"] is False
    # Nothing else takes so much.
    other = {"url": "http://a.example/", "options": {"waitForSelector": "x" * 2_000_000}}
    expect(caller.post("/api/scrape", json=other), 413)


def test_what_is_not_read_is_refused_with_what_is(gateway: Gateway, caller: httpx.Client) -> None:
    refused = expect(caller.post("/api/parse", json=sent(b"%PDF-1.7", "application/pdf")), 400)
    assert refused["success"] is False
    assert refused["metadata"]["reason"] == "content_type"
    assert refused["error"] == (
        "The document is PDF, which is not supported. Supported are HTML, plain text, Markdown, CSV, TSV, JSON, XML, "
        "RSS, Atom, DOCX, XLSX, PPTX, ODT and EPUB."
    )
    for body, status in (({}, 400), ({"content": "?"}, 400), (sent(docx("")[:-9]), 400)):
        assert expect(caller.post("/api/parse", json=body), status)["success"] is False
    bare = gateway.client().post("/api/parse", json=sent(b"x"))
    assert expect(bare, 401)["success"] is False


@pytest.mark.slow
def test_a_document_that_takes_too_long_is_ended_and_holds_up_nothing(caller: httpx.Client) -> None:
    # Tables within cells that are many: more than anybody reads in the time that a page has.
    heavy = docx(
        "<w:tbl><w:tr>"
        + "<w:tc><w:p><w:r><w:t>x</w:t></w:r></w:p></w:tc>" * 900_000
        + "</w:tr></w:tbl>"
    )
    started = time.monotonic()
    refused = expect(caller.post("/api/parse", json=sent(heavy)), 400)
    assert refused["metadata"]["reason"] in {"timeout", "too_large"}
    assert time.monotonic() - started < 30
    expect(caller.post("/api/parse", json=sent(report())), 200)
