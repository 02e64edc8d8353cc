"""Dynamic registration (RFC 7591): what is taken, what is refused, in which order."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.identity.oauth import ledger, records
from fairlead.identity.oauth.redirect import is_same, redirect_fault
from tests.support.tool_client import REDIRECT, ToolClient

from .conftest import ORIGIN

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}


def body(**bent: Any) -> dict[str, Any]:
    return {"client_name": "Tool", "redirect_uris": [REDIRECT], **bent}


async def register(server, content: bytes | str, kind: str | None = "application/json") -> Any:
    headers = {} if kind is None else {"content-type": kind}
    return await server.http.post("/oauth/register", content=content, headers=headers)


async def test_the_answer_says_what_was_registered(server, clock) -> None:
    sent = body(
        client_name="  Tool  ",
        token_endpoint_auth_method="client_secret_basic",
        grant_types=["client_credentials"],
        response_types=["token"],
        application_type="native",
        logo_uri="http://127.0.0.1:1/logo.png",
        jwks_uri="http://127.0.0.1:1/jwks",
        scope="openid",
        unknown={"a": [1]},
    )
    answer = await register(server, json.dumps(sent), "application/json; charset=utf-8")
    assert answer.status_code == 201, answer.text
    said = answer.json()
    assert len(said.pop("client_id")) >= 32
    assert said == {
        "client_id_issued_at": clock.ms // 1000,
        "client_name": "Tool",
        "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    }
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["pragma"] == "no-cache"
    assert answer.headers["content-type"] == "application/json"


async def test_another_media_type_is_refused_and_spends_nothing(server) -> None:
    kinds = (None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonp")
    for kind in kinds * 3:
        answer = await register(server, json.dumps(body()), kind)
        assert answer.status_code == 400
        assert answer.json() == {
            "error": "invalid_client_metadata",
            "error_description": "Content-Type must be application/json",
        }
    assert (await register(server, json.dumps(body()))).status_code == 201


async def test_the_eleventh_in_a_minute_is_too_many(server) -> None:
    for number in range(10):
        # Wrong ones count as well.
        wanted = 201 if number % 2 else 400
        sent = json.dumps(body()) if number % 2 else "{"
        assert (await register(server, sent)).status_code == wanted
    answer = await register(server, "{")
    assert answer.status_code == 429
    assert answer.json() == {
        "error": "invalid_request",
        "error_description": "too many attempts; try again later",
    }
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    elsewhere = await server.http.post(
        "/oauth/register", json=body(), headers={"x-fairlead-peer": "192.0.2.2"}
    )
    assert elsewhere.status_code == 201


async def test_a_body_that_is_no_json_object_is_bad_metadata(server) -> None:
    for sent in (b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"a": NaN}'):
        answer = await register(server, sent)
        found = (answer.status_code, answer.json()["error"])
        assert found == (400, "invalid_client_metadata"), sent


async def test_a_name_has_at_most_128_code_points(server) -> None:
    names: list[tuple[Any, bool]] = [
        ("", True),
        ("n" * 128, True),
        ("\U0001f980" * 128, True),
        ("  " + "n" * 128 + "\n", True),
        ("n" * 129, False),
        ("\U0001f980" * 129, False),
        (7, False),
        (None, False),
        (["n"], False),
    ]
    for name, counts in names:
        answer = await register(server, json.dumps(body(client_name=name)))
        if counts:
            assert answer.json()["client_name"] == name.strip()
        else:
            found = (answer.status_code, answer.json()["error"])
            assert found == (400, "invalid_client_metadata"), name


async def test_the_name_is_judged_before_the_redirect_uri(server) -> None:
    answer = await register(server, json.dumps(body(client_name="n" * 129, redirect_uris=[])))
    assert answer.json()["error"] == "invalid_client_metadata"


async def test_there_is_exactly_one_redirect_uri(server) -> None:
    cursors = ["cursor://callback", "https://www.cursor.com/cb", "http://localhost:8787/callback"]
    lists: list[Any] = [
        None,
        [],
        "http://127.0.0.1/",
        [REDIRECT, REDIRECT],
        cursors,
        [""],
        ["  "],
        [7],
        [None],
        [{}],
    ]
    bodies = [body(redirect_uris=uris) for uris in lists]
    for sent in [*bodies, {}]:
        server.unlimit()
        answer = await register(server, json.dumps(sent))
        found = (answer.status_code, answer.json()["error"])
        assert found == (400, "invalid_redirect_uri"), sent


LONGEST = "https://a.example/" + "x" * (2048 - len("https://a.example/"))
WIDE = "https://a.example/" + "é" * 1015
RIGHT = [
    "https://a.example/cb",
    "https://a.example",
    "HTTPS://A.example/cb",
    "https://a.example:8443/cb?x=1&y=%2f",
    "https://a.example/cb?",
    "http://localhost/cb",
    "http://LOCALHOST:3000/cb",
    "http://127.0.0.1:1/cb",
    "http://127.9.9.9:65535/",
    "http://[::1]:8080/cb",
    "https://[2001:db8::1]/cb",
    "https://10.0.0.1/cb",
    LONGEST,
    WIDE,
]
WRONG = [
    LONGEST + "x",
    WIDE + "é",
    "cb",
    "/cb",
    "//a.example/cb",
    "a.example/cb",
    "https:/a.example/cb",
    "https:a.example",
    "https://",
    "https:///cb",
    "javascript:alert(1)",
    "data:text/html,x",
    "cursor://callback",
    "file:///etc/passwd",
    "com.example.app:/cb",
    "ftp://a.example/",
    "http://a.example/cb",
    "http://localhost.evil.example/cb",
    "http://10.0.0.1/cb",
    "http://192.168.0.1/cb",
    "http://0.0.0.0/cb",
    "http://127.1/cb",
    "http://2130706433/cb",
    "http://127.0.0.1.evil.example/cb",
    "https://user@a.example/cb",
    "https://user:word@a.example/cb",
    "https://@a.example/cb",
    "https://a.example/cb#part",
    "https://a.example/cb#",
    "https://a.example:0/cb",
    "https://a.example:65536/cb",
    "https://a.example:x/cb",
    "https://a.example:/cb",
    "https://a.example:-1/cb",
    "https://a.example\\@evil.example/cb",
    "https://a.example/c b",
    " https://a.example/cb",
    "https://a.example/cb\n",
    "https://a.example/\r\nset-cookie: x",
    "https://a.example/\x00",
    "https://a.example/\u202egnp",
    "https://[::1/cb",
    "https://[v1.x]/cb",
]


async def test_addresses_that_a_client_may_have(server) -> None:
    for uri in RIGHT:
        server.unlimit()
        answer = await register(server, json.dumps(body(redirect_uris=[uri])))
        assert answer.status_code == 201, uri
        assert answer.json()["redirect_uris"] == [uri]


async def test_addresses_that_no_client_may_have(server) -> None:
    for uri in WRONG:
        server.unlimit()
        answer = await register(server, json.dumps(body(redirect_uris=[uri])))
        found = (answer.status_code, answer.json()["error"])
        assert found == (400, "invalid_redirect_uri"), uri


@pytest.mark.parametrize(
    ("registered", "asked", "same"),
    [
        ("https://a.example/cb", "https://a.example/cb", True),
        ("https://a.example/cb", "https://a.example:443/cb", False),
        ("https://a.example/cb", "https://a.example/cb/", False),
        ("https://a.example/cb", "https://a.example/cb?x", False),
        ("https://a.example/cb", "https://A.example/cb", False),
        ("https://a.example/cb", "https://a.example/CB", False),
        ("https://a.example/cb", "https://u@a.example/cb", False),
        ("https://a.example/cb", "https://a.example/cb#x", False),
        ("https://a.example/cb", "https://a.example.evil/cb", False),
        ("https://a.example/cb", "https://evil.example/cb", False),
        ("https://a.example/cb", "https://a.example/c", False),
        ("http://localhost/cb", "http://localhost:50000/cb", True),
        ("http://localhost:1/cb", "http://localhost:2/cb", True),
        ("http://127.0.0.1:1/cb?a=b", "http://127.0.0.1:2/cb?a=b", True),
        ("http://[::1]:1/cb", "http://[::1]:2/cb", True),
        ("http://127.0.0.1:1/cb", "http://127.0.0.2:1/cb", False),
        ("http://localhost:1/cb", "http://127.0.0.1:1/cb", False),
        ("http://localhost:1/cb", "http://localhost:2/cb/x", False),
        ("http://localhost:1/cb", "http://localhost:2/cb?x", False),
        ("http://localhost:1/cb", "https://localhost:2/cb", False),
        ("http://localhost:1/cb", "http://u@localhost:2/cb", False),
        ("http://localhost:1/cb", "http://localhost:2/cb#x", False),
        ("http://localhost:1/cb", "http://localhost:70000/cb", False),
        ("https://localhost:1/cb", "https://localhost:2/cb", False),
    ],
)
def test_only_the_port_of_this_machine_may_differ(registered: str, asked: str, same: bool) -> None:
    assert redirect_fault(registered) is None
    assert is_same(registered, asked) is same


async def test_clients_that_nobody_approves_make_room_and_expire(
    server, session, clock, monkeypatch
) -> None:
    if server.services.state.database.path is None:
        pytest.skip(
            "the clock stands still, and rows of one millisecond have no order in a shared database"
        )
    monkeypatch.setattr(ledger, "UNAPPROVED_CLIENTS_MAX", 3)
    approved = ToolClient(server.http, ORIGIN)
    await approved.register()
    await approved.code(session)
    made = []
    for _ in range(5):
        tool = ToolClient(server.http, ORIGIN)
        await tool.register()
        made.append(tool)
    pages = [(await tool.page()).status_code for tool in made]
    assert pages == [400, 400, 200, 200, 200]
    clock.ms += records.UNAPPROVED_CLIENT_KEPT_MS
    await server.oauth.ledger.sweep()
    assert [(await tool.page()).status_code for tool in made] == [400] * 5
    assert (await approved.page()).status_code == 200
