"""What a batch remembers on disk, and inputs line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from fairlead.gateway.batches.lines import LINE_MAX_BYTES, check_input, read_lines
from fairlead.gateway.batches.results import Results
from fairlead.gateway.batches.table import Counts

URL = "/v1/embeddings"


def result(custom_id: str, status: int = 200, **usage: Any) -> dict[str, Any]:
    response = {"status_code": status, "request_id": "r", "body": {"usage": usage}}
    return {"id": "b", "custom_id": custom_id, "response": response, "error": None}


def test_what_was_added_is_known_after_a_crash(tmp_path: Path) -> None:
    """A line that was being written when the process died is cut off, and its request run again."""
    results = Results(tmp_path, "b")
    results.add(result("a", prompt_tokens=3, completion_tokens=2))
    results.add(result("b", input_tokens=4, output_tokens_details={"reasoning_tokens": 1}))
    results.add(result("c", 429))
    results.add({"id": "b", "custom_id": "d", "response": None, "error": {"code": "x"}})
    results.close()
    with results.output.open("ab") as file:
        file.write(b'{"id": "b", "custom_id": "e", "resp')

    again = Results(tmp_path, "b")
    assert again.done == {"a", "b", "c", "d"}
    assert again.counts(9) == Counts(9, 2, 2, 7, 2, 0, 1, expired=1)
    again.add(result("e"))
    again.close()
    written = [orjson.loads(line) for line in again.output.read_bytes().splitlines()]
    assert [line["custom_id"] for line in written] == ["a", "b", "e"]


def line(custom_id: str, **body: Any) -> bytes:
    return (
        orjson.dumps({"custom_id": custom_id, "method": "POST", "url": URL, "body": body}) + b"\n"
    )


def test_an_input_is_read_line_by_line(tmp_path: Path) -> None:
    """Blank lines, a byte order mark and a last line without an end are taken as they are meant."""
    path = tmp_path / "in"
    path.write_bytes(
        b"\xef\xbb\xbf" + line("a", model="m") + b"\n\r\n" + line("b", model="m").rstrip()
    )
    checked = check_input(path, URL)
    assert (checked.total, checked.errors, checked.models) == (2, [], {"m"})
    assert [(one.number, one.custom_id) for one in read_lines(path)] == [(1, "a"), (4, "b")]


def test_a_line_that_is_too_long_is_named(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(line("a") + b"x" * (LINE_MAX_BYTES + 10) + b"\n" + line("c"))
    checked = check_input(path, URL)
    assert [(error["code"], error["line"]) for error in checked.errors] == [("line_too_large", 2)]


def test_only_the_first_faults_are_told(tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_bytes(b"[]\n" * 1000)
    assert len(check_input(path, URL).errors) == 20
