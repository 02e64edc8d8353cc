"""Responses of the spool: what is read of a segment, and that each is stored once."""

from __future__ import annotations

import orjson
import pytest

from fairlead.errors import NotFound
from fairlead.gateway.responses.intake import _store_segments, parse_responses
from fairlead.gateway.responses.table import delete_response, find_response
from fairlead.store.file import Connection

NOW_MS = 1_000_000


def line(name: str, said: str = "x", owner: str = "key:a") -> bytes:
    items = orjson.dumps([{"role": "user", "content": said}])
    # Callers may send their JSON over several lines.
    response = orjson.dumps({"id": name, "output": []}, option=orjson.OPT_INDENT_2)
    head = {
        "id": name,
        "owner": owner,
        "previous": None,
        "model": "m",
        "at_ms": NOW_MS,
        "input_bytes": len(items),
        "response_bytes": len(response),
    }
    return orjson.dumps(head) + b"\n" + items + response + b"\n"


def test_a_segment_is_read_up_to_its_last_whole_response() -> None:
    data = line("resp_1", "ö\n") + line("resp_2")
    found = list(parse_responses(data))
    assert [(one.id, one.owner, at_ms) for one, at_ms in found] == [
        ("resp_1", "key:a", NOW_MS),
        ("resp_2", "key:a", NOW_MS),
    ]
    assert orjson.loads(found[0][0].input) == [{"role": "user", "content": "ö\n"}]
    assert orjson.loads(found[0][0].response)["id"] == "resp_1"
    for cut in range(len(line("resp_1", "ö\n")), len(data)):
        assert [one.id for one, _ in parse_responses(data[:cut])] == ["resp_1"]


@pytest.mark.parametrize("data", [b"no json\n", b"[]\n", b"{}\n"])
def test_a_damaged_segment_is_noticed(data: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        list(parse_responses(line("resp_1") + data))


def test_a_segment_that_is_read_again_stores_nothing(con: Connection) -> None:
    batch = ("w-00000000", list(parse_responses(line("resp_1") + line("resp_2"))))
    _store_segments(con, [batch])
    assert find_response(con, "resp_2", "key:a", NOW_MS).model == "m"
    delete_response(con, "resp_2", "key:a", NOW_MS)
    # Control was killed before it deleted the file.
    _store_segments(con, [batch, ("w-00000001", list(parse_responses(line("resp_3"))))])
    with pytest.raises(NotFound):
        find_response(con, "resp_2", "key:a", NOW_MS)
    assert con.execute("SELECT id FROM responses ORDER BY id").fetchall() == [
        ("resp_1",),
        ("resp_3",),
    ]
