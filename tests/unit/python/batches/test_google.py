"""Batches of Google's kind: which go first, what is read, what is written, what is shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from fairlead.gateway.batches.google_output import output_lines, write_output
from fairlead.gateway.batches.google_view import google_view
from fairlead.gateway.batches.lines import check_input, read_lines
from fairlead.gateway.batches.results import Results
from fairlead.gateway.batches.table import active_batches, insert_batch
from fairlead.store.file import Connection
from tests.support.batches import make_batch

BATCH = make_batch(
    endpoint="/v1beta/models/m:generateContent",
    input_file_id="file-1",
    model="m",
    dialect="gemini",
    is_inline=True,
)


def test_a_keys_places_are_its_own_to_order(con: Connection) -> None:
    """A priority moves nobody else's batch."""
    for number, (owner, priority) in enumerate([("a", 0), ("b", 0), ("a", 5), ("b", -1), ("a", 5)]):
        one = replace(BATCH, id=f"{owner}{number}", owner=owner, priority=priority)
        insert_batch(con, replace(one, created_at_ms=number))
    assert [batch.id for batch in active_batches(con)] == ["a2", "b1", "a4", "b3", "a0"]


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "input"
    path.write_bytes(
        b"\n".join(line if isinstance(line, bytes) else orjson.dumps(line) for line in lines)
    )
    return path


def test_lines_are_checked_with_their_numbers(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"key": "a", "request": {"contents": []}},
        b"no json",
        b"",
        [1],
        {"key": 7, "request": {}},
        {"key": "b"},
        {"request": {"model": "models/other"}},
        {"request": {"model": "models/m"}},
    )
    checked = check_input(path, BATCH.endpoint, "m")
    assert checked.total == 7
    assert [(each["line"], each["param"]) for each in checked.errors] == [
        (2, None),
        (4, None),
        (5, "key"),
        (6, "request"),
        (7, "request.model"),
    ]


def test_every_line_has_an_outcome_in_its_place(tmp_path: Path) -> None:
    lines = [
        {"key": f"k{number}", "request": {"model": "models/m", "n": number}} for number in range(5)
    ]
    path = written(tmp_path, *lines)
    asked = list(read_lines(path, "gemini"))
    assert [orjson.loads(line.body) for line in asked] == [{"n": number} for number in range(5)]
    results = Results(tmp_path, "batch_1")
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 4}
    outcomes: dict[str, dict[str, Any]] = {
        "3": {"status_code": 200, "body": {"candidates": [], "usageMetadata": usage}},
        "1": {"status_code": 429, "body": {"error": {"code": 429, "message": "slow"}}},
        "2": {"status_code": 502, "body": "nothing"},
    }
    for name, response in outcomes.items():
        results.add({"custom_id": name, "response": response, "error": None})
    results.add({"custom_id": "4", "response": None, "error": {"message": "too late"}})
    counts = results.counts(5)
    assert (counts.completed, counts.failed) == (1, 3)
    assert (counts.tokens_input, counts.tokens_output, counts.tokens_reasoning) == (3, 6, 4)
    write_output(path, results, tmp_path / "output")
    results.close()
    told = [
        orjson.loads(orjson.dumps(line))
        for line in output_lines((tmp_path / "output").read_bytes())
    ]
    assert [line.pop("key") for line in told] == ["k0", "k1", "k2", "k3", "k4"]
    assert told == [
        {"error": {"code": 8, "message": "slow"}},
        {"error": {"code": 13, "message": "The request failed."}},
        {"response": {"candidates": [], "usageMetadata": usage}},
        {"error": {"code": 4, "message": "too late"}},
        {"error": {"code": 1, "message": "The batch ended before this request was run."}},
    ]


@pytest.mark.parametrize(
    ("status", "state", "code"),
    [
        ("completed", "SUCCEEDED", None),
        ("failed", "FAILED", 13),
        ("cancelled", "CANCELLED", 1),
        ("expired", "EXPIRED", 4),
    ],
)
def test_an_ended_batch_is_a_done_operation(status: str, state: str, code: int | None) -> None:
    ended = replace(BATCH, status=status, ended_at_ms=5, output_file_id="file-2")
    shown = google_view(ended, as_file=True)
    assert shown["done"] is True
    assert shown["metadata"]["state"] == f"BATCH_STATE_{state}"
    assert shown["metadata"]["output"] == {"responsesFile": "files/file-2"}
    if code is None:
        assert shown["response"]["responsesFile"] == "files/file-2"
    else:
        assert shown["error"]["code"] == code
        assert "response" not in shown
