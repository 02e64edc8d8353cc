"""Streams of answers: cut anywhere, ended by an error, or without an end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cli.conversation import _texts
from fairlead.cli.failure import CommandFailed

PIECES = ["Zürich ", "\u2028\u0085", "\x1b[2J", "", "end"]
WHOLE = (
    b": heartbeat\r\n\r\n"
    + b"".join(
        b"data: "
        + json.dumps({"choices": [{"delta": {"content": piece}}]}, ensure_ascii=False).encode()
        + b"\n\n"
        for piece in PIECES
    )
    + b'data: {"choices":[],"usage":{}}\n\ndata: [DONE]\n\n'
)


def texts(*chunks: bytes) -> str:
    return "".join(_texts(iter(chunks)))


@given(st.lists(st.integers(0, len(WHOLE)), max_size=8))
def test_a_stream_says_one_thing_wherever_it_is_cut(cuts: list[int]) -> None:
    at = [0, *sorted(cuts), len(WHOLE)]
    chunks: Iterator[bytes] = (WHOLE[a:b] for a, b in pairwise(at))
    assert "".join(_texts(chunks)) == "".join(PIECES)


@given(st.integers(0, len(WHOLE) - len(b"[DONE]\n\n")))
def test_a_stream_without_its_end_is_a_failure(length: int) -> None:
    with pytest.raises(CommandFailed, match=r"broke off|no JSON"):
        texts(WHOLE[:length])


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'{"error": {"message": "The provider failed."}}', "The provider failed."),
        (b'{"error": "yes"}', "ended with an error"),
        (b"{", "no JSON"),
    ],
)
def test_an_error_in_a_stream_is_its_sentence(data: bytes, sentence: str) -> None:
    with pytest.raises(CommandFailed, match=sentence):
        texts(b"data: " + data + b"\n\n")


@pytest.mark.parametrize(
    "data", [b"[]", b"1", b'{"choices": 1}', b'{"choices": [1]}', b'{"choices": [{"delta": 1}]}']
)
def test_events_of_other_shapes_say_nothing(data: bytes) -> None:
    assert texts(b"data: " + data + b"\n\ndata: [DONE]\n\n") == ""
