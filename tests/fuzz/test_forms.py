"""Forms that the relay takes mean to another reader what they mean to it: Python's own, which is lenient."""

from __future__ import annotations

from email import policy
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from fairlead import _core
from tests.fuzz.budget import budget

KIND: Final = "multipart/form-data; boundary=b"

_DISPOSITIONS: Final = (
    b'form-data; name="model"',
    b"form-data; name=model",
    b'form-data; name="x"; filename="f"',
    b'form-data; name="x"; name="model"',
    b'form-data; filename="model"; name=y',
    b"form-data; name*=UTF-8''model",
    b'form-data; name="mo\\del"',
    b'form-data; name="a;b"',
    b'form-data; name="x"\r\n ; name="model"',
    b"form-data;name=z;",
    b'form-data; name="\xc3\xa9"',
    b'form-data; name="m%6fdel"',
    b"form-data; NAME=model",
    b"form-data; name = q",
)
_HEADERS: Final = (
    b"Content-Type: text/plain",
    b"Content-Type: text/plain; charset=utf-16",
    b"X: y",
    b"Content-Transfer-Encoding: binary",
    b"Content-Transfer-Encoding: base64",
    b" folded",
    b"Content-Disposition: form-data; name=second",
    b"x",
    b"",
)
_CONTENTS: Final = (
    b"",
    b"gpt",
    b"--b",
    b"\r\n",
    b"\n--b\n",
    b"a\r\n--b",
    b"--",
    b"\n",
    b"\r",
    b"\r\n--b--\r\n",
    b"\xff",
)


@st.composite
def _forms(draw: st.DrawFn) -> bytes:
    """Forms as clients write them, with one thing or two that they do not write."""
    eol = st.sampled_from((b"\r\n",) * 12 + (b"\n", b"\r"))
    body = draw(st.sampled_from((b"",) * 12 + (b"\r\n", b"preamble\r\n")))
    for _ in range(draw(st.integers(0, 4))):
        lines = [b"Content-Disposition: " + draw(st.sampled_from(_DISPOSITIONS))]
        lines += draw(st.lists(st.sampled_from(_HEADERS), max_size=2))
        body += b"--b" + draw(eol)
        for line in lines:
            body += line + draw(eol)
        pieces = st.sampled_from(_CONTENTS) | st.binary(max_size=6)
        body += draw(eol) + b"".join(draw(st.lists(pieces, max_size=3))) + draw(eol)
    return body + draw(
        st.sampled_from((b"--b--\r\n",) * 8 + (b"--b--", b"--b", b"", b"--b--\r\nmore"))
    )


def _as_mail(body: bytes) -> list[tuple[str, bytes]]:
    head = f"MIME-Version: 1.0\r\nContent-Type: {KIND}\r\n\r\n".encode()
    told = BytesParser(EmailMessage, policy=policy.HTTP).parsebytes(head + body)
    found = []
    for part in told.iter_parts():
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        found.append((str(part["content-disposition"].params.get("name", "")), content))
    return found


@budget
@given(_forms())
def test_a_form_that_is_taken_is_the_same_to_another_reader(body: bytes) -> None:
    try:
        parts = _core.read_form(KIND, body)
    except ValueError:
        return
    assert [(name, content) for name, _, content in parts] == _as_mail(body)


def test_what_clients_send_is_taken() -> None:
    body = (
        b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\np/m\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n'
        b"Content-Type: audio/wav\r\n\r\nRIFF\r\n\r\n--b--\r\n"
    )
    parts = _core.read_form(KIND, body)
    assert parts == [("model", None, b"p/m"), ("file", "a.wav", b"RIFF\r\n")]
    assert _as_mail(body) == [("model", b"p/m"), ("file", b"RIFF\r\n")]
