"""Values are counted before anything is read, in linear time."""

from __future__ import annotations

import time

import pytest

from fairlead.control.body import check_json
from fairlead.errors import TooLarge
from fairlead.text.json_values import VALUES_MAX, has_too_many_values


@pytest.mark.parametrize(
    ("text", "most", "has"),
    [
        (b"[1,2,3]", 3, False),
        (b"[1,2,3]", 2, True),
        (b"[{},{},{}]", 5, True),
        (b'{"a":"x,y,z,[,{"}', 1, False),
        (b'{"a":"\\",\\",\\"","b":[1]}', 3, False),
        (b'{"a":"\\",\\",\\"","b":[1,2,3]}', 3, True),
        (b'"never ends ,,,,', 1, False),
    ],
)
def test_what_is_in_strings_is_no_value(text: bytes, most: int, has: bool) -> None:
    assert has_too_many_values(text, most) is has


@pytest.mark.parametrize("piece", [b'\\"', b'"', b"\\", b'",'])
def test_any_text_is_looked_through_in_linear_time(piece: bytes) -> None:
    text = b'"' + piece * 2_000_000 + b"," * 10
    begun_s = time.process_time()
    has_too_many_values(text, 1)
    assert time.process_time() - begun_s < 3.0


def test_a_body_of_many_values_is_refused_before_it_is_read() -> None:
    check_json(b"[" + b"1," * 1000 + b"1]", "application/json")
    with pytest.raises(TooLarge, match=f"more than {VALUES_MAX} values"):
        check_json(b"[" + b"{}," * VALUES_MAX + b"{}]", "application/json")
