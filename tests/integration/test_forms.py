"""Forms that break a rule are refused before they cost room: each in the words of the route's callers."""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.processes import Gateway, Lane, expect
from tests.support.raw import RawClient
from tests.support.upstream import reply

PATH: Final = "/v1/audio/transcriptions"
EDGE: Final = "edge"
KIND: Final = f"multipart/form-data; boundary={EDGE}"


def part(name: str, value: bytes, file_name: str | None = None) -> bytes:
    file = f'; filename="{file_name}"' if file_name is not None else ""
    head = f'--{EDGE}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
    return head.encode() + value + b"\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + f"--{EDGE}--\r\n".encode()


FILE: Final = part("file", b"sound", "a.mp3")
WRONG: dict[str, tuple[str, bytes]] = {
    "no boundary": ("multipart/form-data", form(FILE)),
    "an empty boundary": ("multipart/form-data; boundary=", form(FILE)),
    "another boundary": ("multipart/form-data; boundary=other", form(FILE)),
    "no end": (KIND, FILE),
    "ten thousand parts": (KIND, form(*(part(f"f{at}", b"x") for at in range(10_000)))),
    "a field twice": (KIND, form(part("model", b"a/b"), part("model", b"c/d"), FILE)),
    "a part without a name": (KIND, form(f"--{EDGE}\r\n\r\nx\r\n".encode())),
    "a head without end": (KIND, f"--{EDGE}\r\nX: ".encode() + b"y" * 20_000),
    "a field that is too long": (KIND, form(part("model", b"m" * 300_000), FILE)),
    "a field that is no text": (KIND, form(part("model", b"\xff\xfe"), FILE)),
    "no file": (KIND, form(part("model", b"a/b"))),
    "no model": (KIND, form(FILE)),
    "nothing": (KIND, b""),
}


@pytest.mark.parametrize(("kind", "body"), WRONG.values(), ids=WRONG.keys())
def test_a_form_that_breaks_a_rule_is_refused(gateway: Gateway, kind: str, body: bytes) -> None:
    headers = {"Content-Type": kind, "Authorization": f"Bearer {gateway.key}"}
    # A form that is refused before its end takes its connection with it.
    with gateway.client(headers=headers) as caller:
        answer = caller.post(PATH, content=body)
    assert answer.status_code in (400, 415), answer.text
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"]


def test_five_gigabytes_are_refused_by_their_length(gateway: Gateway) -> None:
    with RawClient(gateway.port) as client:
        client.socket.sendall(
            f"POST {PATH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {gateway.key}\r\n"
            f"Content-Type: {KIND}\r\nContent-Length: 5368709120\r\n\r\n".encode()
        )
        answer = client.response()
    assert (answer.status, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("sent", "kept"),
    [("../../etc/passwd", "passwd"), ("C:\\dir\\a.txt", "a.txt"), ("a\\..\\b.txt", "b.txt")],
)
def test_a_files_name_has_no_folders(gateway: Gateway, sent: str, kept: str) -> None:
    body = form(part("purpose", b"batch"), part("file", b"{}\n", sent.replace("\\", "\\\\")))
    told = expect(
        gateway.caller.post("/v1/files", content=body, headers={"Content-Type": KIND}), 200
    )
    assert told["filename"] == kept
    expect(gateway.caller.delete(f"/v1/files/{told['id']}"), 200)


@pytest.mark.parametrize("name", ["a\x00.txt", "..", "/", ""])
def test_a_name_that_is_none_makes_no_file_of_it(gateway: Gateway, name: str) -> None:
    body = form(part("purpose", b"batch"), part("file", b"{}\n", name))
    answer = gateway.caller.post("/v1/files", content=body, headers={"Content-Type": KIND})
    if answer.status_code == 200:
        told = answer.json()
        assert told["filename"] not in (name, "", "..", "/")
        assert "\x00" not in told["filename"]
        expect(gateway.caller.delete(f"/v1/files/{told['id']}"), 200)
    else:
        assert answer.status_code == 400, answer.text


def test_a_whole_form_passes_as_it_came(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(reply({"text": "words"}))
    body = form(part("model", lane.model.encode()), FILE, part("language", b"de"))
    expect(gateway.caller.post(PATH, content=body, headers={"Content-Type": KIND}), 200)
    assert lane.upstream.last.body == body.replace(lane.model.encode(), b"m")
