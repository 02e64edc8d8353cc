"""The charset of any bytes under any content type: text, always, in linear time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.scrape.page.charset import decode
from tests.fuzz.budget import at_most, budget_of

NAMES = st.sampled_from(
    [
        "utf-8",
        "UTF8",
        "latin-1",
        "gbk",
        "utf-16",
        "utf-7",
        "idna",
        "rot13",
        "undefined",
        "\u0130",
        "x" * 41,
    ]
)
PIECES = st.one_of(
    st.builds("<meta charset={}>".format, NAMES),
    st.builds('<meta http-equiv="content-type" content="text/html; charset = {}">'.format, NAMES),
    st.sampled_from(["<meta", "charset", "=", " " * 50, ">", '"', "<!--"]),
    st.text(),
)
BODIES = st.tuples(
    st.lists(PIECES, max_size=10).map("".join), st.one_of(st.just(b""), st.binary(max_size=40))
).map(lambda parts: parts[0].encode("utf-8", "surrogatepass") + parts[1])
TYPES = st.one_of(st.builds("text/html; charset={}".format, NAMES), st.text(max_size=50))


@budget_of(1 / 2)
@given(st.one_of(BODIES, st.binary()), TYPES)
def test_any_bytes_are_text(body: bytes, content_type: str) -> None:
    text, name = decode(body, content_type)
    assert isinstance(text, str)
    assert name
    text.encode("utf-8", "replace")


@budget_of(1 / 2)
@given(st.lists(PIECES, min_size=1, max_size=3), TYPES)
def test_what_is_repeated_takes_linear_time(pieces: list[str], content_type: str) -> None:
    body = ("".join(pieces) * 20_000).encode("utf-8", "replace")[:500_000] + b"\xff"
    with at_most(15.0):
        decode(body, content_type)
    with at_most(5.0):
        decode(b"\xff", content_type * 5000)
