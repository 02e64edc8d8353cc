"""What a tool is told of a chat request, and what a caller is told of a tool's updates."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from fairlead.coding_tools.acp.answer import Piece, ending_of, piece_of
from fairlead.coding_tools.acp.chat import History, Turn, prompt_of, read_request
from fairlead.coding_tools.acp.fault import AcpFault
from fairlead.coding_tools.acp.permissions import answer_permission

USER = {"role": "user", "content": "hello"}


def body(**fields: Any) -> bytes:
    return orjson.dumps({"model": "qwen", "messages": [USER], **fields})


def test_a_conversation_that_was_heard_is_told_its_news_alone() -> None:
    heard, first = History(), Turn("user", "a")
    assert heard.news([first]) == [first]
    heard.add([first], "answer")
    again = [first, Turn("assistant", "answer \n"), Turn("user", "b")]
    assert heard.news(again) == [Turn("user", "b")]
    assert heard.news([first, Turn("assistant", "another"), Turn("user", "b")]) is None
    assert heard.news([first]) is None, "nothing would be said"


def test_several_turns_are_one_prompt_that_names_who_spoke() -> None:
    assert prompt_of([Turn("user", "a")]) == [{"type": "text", "text": "a"}]
    image = {"type": "image", "mimeType": "image/png", "data": "AA=="}
    told = prompt_of([Turn("system", "s"), Turn("assistant", "b"), Turn("user", "c", (image,))])
    assert told == [{"type": "text", "text": "Instructions:\ns\n\nYou:\nb\n\nUser:\nc"}, image]


@pytest.mark.parametrize(
    ("raw", "param"),
    [
        (b"{", None),
        (b"[]", "model"),
        (body(model=1), "model"),
        (body(messages=[]), "messages"),
        (body(messages=[{"role": "assistant", "content": "x"}]), "messages"),
        (body(messages=[{"role": "robot", "content": "x"}]), "messages[0].role"),
        (body(messages=[{"role": "user", "content": 1}]), "messages[0].content"),
        (
            body(messages=[{"role": "user", "content": [{"type": "file"}]}]),
            "messages[0].content[0]",
        ),
        (
            body(
                messages=[
                    {
                        "role": "user",
                        "content": [
                            {"type": "image_url", "image_url": {"url": "https://x.example"}}
                        ],
                    }
                ]
            ),
            "messages[0].content[0]",
        ),
        (body(tools=[{}]), "tools"),
        (body(n=2), "n"),
    ],
)
def test_what_cannot_be_told_is_refused_with_its_field(raw: bytes, param: str | None) -> None:
    with pytest.raises(AcpFault) as refused:
        read_request(raw)
    assert refused.value.status == 400
    if param is not None:
        assert (refused.value.param or "").startswith(param)


@pytest.mark.parametrize(
    ("policy", "kind", "chosen"),
    [
        ("refuse", "read", "no"),
        ("read", "read", "yes"),
        ("read", "search", "yes"),
        ("read", "execute", "no"),
        ("read", None, "no"),
        ("allow", "execute", "yes"),
    ],
)
def test_permissions_follow_the_policy_and_are_for_once(
    policy: Any, kind: str | None, chosen: str
) -> None:
    options = [
        {"optionId": "always", "kind": "allow_always"},
        {"optionId": "yes", "kind": "allow_once"},
        {"optionId": "no", "kind": "reject_once"},
    ]
    params = {"toolCall": {"kind": kind}, "options": options}
    assert answer_permission(policy, params)["outcome"]["optionId"] == chosen


@pytest.mark.parametrize("params", [{}, {"options": [{"kind": "allow_always", "optionId": "x"}]}])
def test_a_question_without_a_fitting_answer_is_cancelled(params: dict[str, Any]) -> None:
    assert answer_permission("allow", params) == {"outcome": {"outcome": "cancelled"}}


@pytest.mark.parametrize(
    ("update", "piece"),
    [
        (
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}},
            Piece("content", "x"),
        ),
        ({"sessionUpdate": "agent_message_chunk", "content": {"type": "image"}}, None),
        (
            {"sessionUpdate": "tool_call_update", "status": "failed", "title": "a\nb"},
            Piece("reasoning_content", "\n[failed: a b]\n"),
        ),
        ({"sessionUpdate": "tool_call_update", "status": "completed"}, None),
        ({"sessionUpdate": "plan", "entries": "nonsense"}, None),
        ({"sessionUpdate": "of another day"}, None),
        ("nonsense", None),
    ],
)
def test_updates_become_parts_of_an_answer(update: Any, piece: Piece | None) -> None:
    assert piece_of(update) == piece


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        (None, "stop"),
    ],
)
def test_stop_reasons_become_finish_reasons(reason: str | None, finish: str) -> None:
    ending = ending_of({"stopReason": reason, "usage": {"inputTokens": -1}})
    assert (ending.finish, ending.usage) == (finish, None)
