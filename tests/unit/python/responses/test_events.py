"""The events of a response that has ended: every item begun, told and ended, numbered without a gap."""

from __future__ import annotations

from typing import Any

import orjson

from fairlead.gateway.responses.events import events_of_whole, frame


def response(*output: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    return {"id": "resp_1", "status": status, "output": list(output), "usage": {"input_tokens": 1}}


def kinds(told: list[dict[str, Any]]) -> list[str]:
    return [event["type"].removeprefix("response.") for event in told]


def test_a_text_is_told_in_one_piece() -> None:
    part = {"type": "output_text", "text": "hello", "annotations": []}
    item = {"id": "msg_1", "type": "message", "status": "completed", "content": [part]}
    told = events_of_whole(response(item))
    assert kinds(told) == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [event["sequence_number"] for event in told] == list(range(9))
    assert told[2]["item"] == {**item, "status": "in_progress", "content": []}
    assert told[3]["part"]["text"] == ""
    assert told[4]["delta"] == told[5]["text"] == "hello"
    assert told[-1]["response"]["output"] == [item]


def test_calls_and_thoughts_are_told_too() -> None:
    call = {"id": "fc_1", "type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"}
    thought = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "so"}],
    }
    told = events_of_whole(response(thought, call, status="incomplete"))
    assert kinds(told)[2:8] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    assert kinds(told)[8:12] == [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert kinds(told)[-1] == "incomplete"


def test_calls_of_other_tools_have_the_events_of_their_form() -> None:
    custom = {"id": "ctc_1", "type": "custom_tool_call", "name": "f", "call_id": "c", "input": "a"}
    search = {"id": "tsc_1", "type": "tool_search_call", "call_id": "d", "arguments": {"q": "a"}}
    told = events_of_whole(response(custom, search))
    assert kinds(told)[2:8] == [
        "output_item.added",
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "output_item.done",
        "output_item.added",
        "output_item.done",
    ]
    assert (told[2]["item"]["input"], told[3]["delta"], told[4]["input"]) == ("", "a", "a")
    assert told[6]["item"] == search


def test_a_frame_names_its_event() -> None:
    event = {"type": "response.created", "sequence_number": 0}
    name, data, *rest = frame(event).split(b"\n")
    assert (name, rest) == (b"event: response.created", [b"", b""])
    assert orjson.loads(data.removeprefix(b"data: ")) == event
