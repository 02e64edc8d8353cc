"""Reasoning that newer Claude models bind to the conversation, where the gateway changes the conversation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.test_compression import OUTPUT
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Upstream, reply

THOUGHT = {"type": "thinking", "thinking": "Let me see.", "signature": "EuYBCkYIBxgC"}
CALL = {
    "type": "tool_use",
    "id": "toolu_01",
    "name": "shell",
    "input": {"command": "pip install -r requirements.txt"},
}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_01", "content": OUTPUT}
TURNS = [
    {"role": "user", "content": "Install it."},
    {"role": "assistant", "content": [THOUGHT, CALL]},
    {"role": "user", "content": [RESULT]},
]
ANSWER = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "done"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


@pytest.fixture
def claude(gateway: Gateway, upstream: Upstream) -> Lane:
    return gateway.add_lane(upstream, dialect="anthropic")


def sent(lane: Lane, model: str, pipeline: str | None, **fields: Any) -> str:
    """The body that the provider got."""
    lane.upstream.script(reply(ANSWER))
    headers = {} if pipeline is None else {"X-Gateway-Compression": pipeline}
    body = {"model": f"{lane.prefix}/{model}", "max_tokens": 100, "messages": TURNS, **fields}
    expect(lane.gateway.caller.post("/v1/messages", json=body, headers=headers), 200)
    return lane.upstream.last.body.decode()


def test_it_is_left_out_once_the_conversation_was_shortened(claude: Lane) -> None:
    for model, pipeline, stays in [
        ("claude-opus-5-5", "rtk", False),
        ("claude-fable-5-1", "rtk", False),
        ("claude-opus-5-5", None, True),
        ("claude-opus-5", "rtk", True),
    ]:
        body = sent(claude, model, pipeline)
        assert ("EuYBCkYIBxgC" in body) == stays, (model, pipeline, body)
        assert "toolu_01" in body
        assert (len(body) < len(OUTPUT) / 2 + 600) == (pipeline is not None), (model, len(body))
