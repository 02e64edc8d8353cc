"""The grammar of the knobs."""

from __future__ import annotations

import pytest

from fairlead.standin.knobs import Knobs, UnknownKnob, parse_knobs, split_model


def test_nothing_said_is_the_default() -> None:
    assert parse_knobs("") == Knobs()
    assert split_model("standin", Knobs()) == ("standin", Knobs())


def test_pairs_are_read_with_their_types() -> None:
    knobs = parse_knobs("latency_ms=50, chunks=20,content_type=text/html,malformed=1")
    assert knobs == Knobs(latency_ms=50, chunks=20, content_type="text/html", malformed=1)


def test_the_model_name_wins_over_the_header() -> None:
    name, knobs = split_model("echo@chunks=5", parse_knobs("chunks=20,gap_ms=3"))
    assert (name, knobs) == ("echo", Knobs(chunks=5, gap_ms=3))


@pytest.mark.parametrize(
    "text", ("chunk=5", "chunks", "chunks=-1", "chunks=x", "chunks=9999999", "status=99", "usage=2")
)
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(UnknownKnob, match=text.partition("=")[0]):
        parse_knobs(text)
