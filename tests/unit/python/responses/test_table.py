"""Kept responses: whose they are, how long they last, what goes on from what."""

from __future__ import annotations

import orjson
import pytest

from fairlead.errors import Conflict, NotFound, OwnerStorageFull, TooLarge
from fairlead.gateway.responses import table
from fairlead.gateway.responses.items import context, input_items
from fairlead.gateway.responses.table import (
    RETENTION_MS,
    StoredResponse,
    conversation,
    delete_response,
    find_response,
    insert_response,
    insert_responses,
    sweep_responses,
)
from fairlead.store import owner_bytes
from fairlead.store.file import Connection
from fairlead.store.owner_bytes import DATABASE, kept_bytes

NOW_MS = 1_000_000


def kept(
    name: str, previous: str | None = None, owner: str = "key:a", said: str = "x"
) -> StoredResponse:
    items = [{"role": "user", "content": said}]
    output = [
        {
            "type": "message",
            "id": f"msg_{name}",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": f"re {said}"}],
        }
    ]
    response = {"id": name, "output": output}
    return StoredResponse(
        name, owner, previous, "m", orjson.dumps(items).decode(), orjson.dumps(response).decode()
    )


def test_a_response_is_its_owners_and_nobody_elses(con: Connection) -> None:
    insert_response(con, kept("resp_1"), NOW_MS)
    assert find_response(con, "resp_1", "key:a", NOW_MS).model == "m"
    messages = set()
    for name, owner in (("resp_1", "key:b"), ("resp_1", "anonymous:"), ("resp_1", "key:")):
        with pytest.raises(NotFound) as refused:
            find_response(con, name, owner, NOW_MS)
        messages.add(refused.value.message)
        with pytest.raises(NotFound):
            delete_response(con, name, owner, NOW_MS)
        with pytest.raises(NotFound):
            conversation(con, name, owner, NOW_MS)
    assert messages == {"There is no response `resp_1`."}
    # Another's response of the same id changes nothing, and nobody is told that it was kept.
    with pytest.raises(Conflict):
        insert_response(con, kept("resp_1", owner="key:b", said="theft"), NOW_MS)
    insert_response(con, kept("resp_1", said="theft"), NOW_MS)
    assert "theft" not in find_response(con, "resp_1", "key:a", NOW_MS).input


def test_a_response_lasts_so_long(con: Connection) -> None:
    insert_response(con, kept("resp_1"), NOW_MS)
    assert find_response(con, "resp_1", "key:a", NOW_MS + RETENTION_MS - 1).id == "resp_1"
    with pytest.raises(NotFound):
        find_response(con, "resp_1", "key:a", NOW_MS + RETENTION_MS)
    insert_response(con, kept("resp_2"), NOW_MS + RETENTION_MS)
    sweep_responses(con, NOW_MS + RETENTION_MS)
    assert con.execute("SELECT count(*) FROM responses").fetchone() == (1,)


def test_the_oldest_of_an_owner_makes_room(
    con: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "MAX_KEPT", 3)
    insert_response(con, kept("other", owner="key:b"), NOW_MS)
    for at in range(5):
        insert_response(con, kept(f"resp_{at}"), NOW_MS + at)
    sweep_responses(con, NOW_MS + 5)
    rows = con.execute("SELECT id FROM responses ORDER BY id").fetchall()
    assert [row[0] for row in rows] == ["other", "resp_2", "resp_3", "resp_4"]


def test_many_are_stored_once_and_counted(con: Connection) -> None:
    insert_response(con, kept("resp_1"), NOW_MS)
    insert_response(con, kept("resp_2", owner="key:b"), NOW_MS)
    before = kept_bytes(con, DATABASE, "key:a")
    many = [
        (kept(name, "resp_1" if name == "resp_3" else None), NOW_MS + 7)
        for name in ("resp_1", "resp_2", "resp_3", "resp_3", "resp_4")
    ]
    insert_responses(con, many)
    assert find_response(con, "resp_3", "key:a", NOW_MS).previous_id == "resp_1"
    rows = con.execute(
        "SELECT id, owner, created_at_ms, expires_at_ms, is_open FROM responses ORDER BY id"
    ).fetchall()
    at_ms = NOW_MS + 7
    assert rows == [
        ("resp_1", "key:a", NOW_MS, NOW_MS + RETENTION_MS, False),
        ("resp_2", "key:b", NOW_MS, NOW_MS + RETENTION_MS, False),
        ("resp_3", "key:a", at_ms, at_ms + RETENTION_MS, False),
        ("resp_4", "key:a", at_ms, at_ms + RETENTION_MS, False),
    ]
    counted = con.execute("SELECT sum(size_bytes) FROM responses WHERE owner = 'key:a'").fetchone()
    assert counted == (kept_bytes(con, DATABASE, "key:a"),)
    assert kept_bytes(con, DATABASE, "key:a") > before


def test_a_conversation_is_what_both_sides_said(con: Connection) -> None:
    insert_response(con, kept("resp_1", said="one"), NOW_MS)
    insert_response(con, kept("resp_2", "resp_1", said="two"), NOW_MS + 1)
    turns = conversation(con, "resp_2", "key:a", NOW_MS + 2)
    assert [turn.id for turn in turns] == ["resp_1", "resp_2"]
    said = [item["content"] for item in context(turns)]
    assert said[0] == "one"
    assert said[1][0]["text"] == "re one"
    assert said[2] == "two"
    assert "status" not in context(turns)[1]
    delete_response(con, "resp_1", "key:a", NOW_MS + 2)
    with pytest.raises(NotFound):
        conversation(con, "resp_2", "key:a", NOW_MS + 2)


def test_a_conversation_is_bounded(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "MAX_TURNS", 2)
    for at in range(3):
        insert_response(con, kept(f"resp_{at}", f"resp_{at - 1}" if at else None), NOW_MS + at)
    assert len(conversation(con, "resp_1", "key:a", NOW_MS)) == 2
    with pytest.raises(TooLarge):
        conversation(con, "resp_2", "key:a", NOW_MS)
    # A ring cannot be made by a caller, and would end all the same.
    con.execute("UPDATE responses SET previous_id = 'resp_1' WHERE id = 'resp_0'")
    with pytest.raises(TooLarge):
        conversation(con, "resp_1", "key:a", NOW_MS)


def test_input_items_have_ids_and_parts() -> None:
    (item,) = input_items(kept("resp_1", said="one"))
    assert item == {
        "id": "msg_1_in0",
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "one"}],
    }


def test_an_open_response_is_closed_once_and_gone_on_from_then(con: Connection) -> None:
    insert_response(con, kept("resp_1"), NOW_MS, is_open=True)
    assert table.open_ids(con) == ["resp_1"]
    assert table.open_envelope(con, "resp_1") == kept("resp_1").response
    with pytest.raises(Conflict):
        conversation(con, "resp_1", "key:a", NOW_MS)
    table.store_answer(
        con, "resp_1", '{"id": "resp_1", "status": "completed", "output": []}', "[1]"
    )
    assert table.open_ids(con) == []
    assert table.open_envelope(con, "resp_1") is None
    assert table.events_of(con, "resp_1") == "[1]"
    assert len(conversation(con, "resp_1", "key:a", NOW_MS)) == 1
    # A second end changes nothing.
    table.store_answer(con, "resp_1", '{"status": "failed"}', "[2]")
    assert "completed" in find_response(con, "resp_1", "key:a", NOW_MS).response
    delete_response(con, "resp_1", "key:a", NOW_MS)
    assert table.events_of(con, "resp_1") is None
    table.store_answer(con, "resp_1", "{}", "[]")
    assert table.events_of(con, "resp_1") is None, "nothing is kept of what was deleted"


def test_bytes_of_an_owner_are_bounded(con: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    con.execute("INSERT INTO operator_settings VALUES ('storage_owner_mb', '1')")
    monkeypatch.setattr(owner_bytes, "RECOUNT_AFTER_MS", 0)
    long = "ö" * 200_000
    insert_response(con, kept("resp_1", said=long), NOW_MS)
    assert kept_bytes(con, DATABASE, "a") > 800_000, "bytes, not characters"
    with pytest.raises(OwnerStorageFull, match=r"1 MiB of responses.*storageOwnerMb"):
        insert_response(con, kept("resp_2", said=long), NOW_MS)
    insert_response(con, kept("resp_2", said=long, owner="key:b"), NOW_MS)
    delete_response(con, "resp_1", "key:a", NOW_MS)
    insert_response(con, kept("resp_3", said=long), NOW_MS)


def test_an_answer_is_kept_where_its_events_have_no_room(con: Connection) -> None:
    con.execute("INSERT INTO operator_settings VALUES ('storage_owner_mb', '1')")
    insert_response(con, kept("resp_1"), NOW_MS, is_open=True)
    answer = orjson.dumps({"id": "resp_1", "output": [], "text": "x" * 600_000}).decode()
    table.store_answer(con, "resp_1", answer, orjson.dumps(["y" * 600_000]).decode())
    assert find_response(con, "resp_1", "key:a", NOW_MS).response == answer
    assert table.events_of(con, "resp_1") is None
