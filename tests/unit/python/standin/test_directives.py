"""The grammar of the directives."""

from __future__ import annotations

import pytest

from fairlead.standin.directives import Directives, UnknownDirective, parse_directives, split_model


def test_nothing_said_is_the_default() -> None:
    assert parse_directives("") == Directives()
    assert split_model("standin", Directives()) == ("standin", Directives())


def test_pairs_are_read_with_their_types() -> None:
    directives = parse_directives("latency_ms=50, chunks=20,content_type=text/html,malformed=1")
    assert directives == Directives(latency_ms=50, chunks=20, content_type="text/html", malformed=1)


def test_the_model_name_wins_over_the_header() -> None:
    name, directives = split_model("echo@chunks=5", parse_directives("chunks=20,gap_ms=3"))
    assert (name, directives) == ("echo", Directives(chunks=5, gap_ms=3))


@pytest.mark.parametrize(
    "text", ("chunk=5", "chunks", "chunks=-1", "chunks=x", "chunks=9999999", "status=99", "usage=2")
)
def test_what_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(UnknownDirective, match=text.partition("=")[0]):
        parse_directives(text)
