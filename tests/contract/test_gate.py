"""Only the relay comes in; what it forwards is one clear JSON body; every error has one shape."""

from __future__ import annotations

import pytest

from fairlead.errors import KINDS
from fairlead.store.services import Services

pytestmark = pytest.mark.anyio

JSON = {"content-type": "application/json"}


@pytest.mark.parametrize("path", ["/api/keys", "/internal/link", "/nowhere"])
async def test_without_the_link_token_nothing_is_looked_at(control, path: str) -> None:
    for token in ("", "x", "t" * 31, "t" * 33, "T" * 32):
        answer = await control.client.post(path, content=b"{", headers={"x-fairlead-link": token})
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "forbidden"


async def test_a_request_for_nobody_known_is_refused(control) -> None:
    for principal in (
        "",
        "{}",
        "null",
        "[]",
        "nonsense",
        '{"kind": "root"}',
        '{"kind": "key", "id": 7}',
    ):
        answer = await control.client.get("/api/keys", headers={"x-fairlead-principal": principal})
        assert answer.status_code == 403


UNCLEAR = [
    b'{"name": "a", "name": "b"}',
    b'{"name": "a", "rateLimits": [{"limit": 1, "limit": 2, "window": 1}]}',
    b'{"dailyUsageLimitUsd": NaN}',
    b'{"dailyUsageLimitUsd": Infinity}',
    b'{"dailyUsageLimitUsd": 1e999}',
    b'{"name": "\\ud800"}',
    b'{"name": "\xff"}',
    b"\xef\xbb\xbf{}",
    '{"name": "a"}'.encode("utf-16"),
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"1" * 5000,
    b'{"name": "a"} {}',
    b"{'name': 'a'}",
    b'{"name": "a",}',
]


async def test_a_body_that_is_not_one_clear_json_value_is_refused(control) -> None:
    for body in UNCLEAR:
        answer = await control.client.post("/api/keys", content=body, headers=JSON)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (400, "invalid_request"), body[:50]
        assert len(error["message"]) < 300


async def test_a_body_that_a_form_could_send_is_refused(control) -> None:
    """A page of another origin can send these without being asked."""
    for kind in ("", "text/plain", "application/x-www-form-urlencoded"):
        answer = await control.client.post(
            "/api/keys", content=b'{"name": "a"}', headers={"content-type": kind}
        )
        code = answer.json()["error"]["code"]
        assert (answer.status_code, code) == (415, "unsupported_media_type")


async def test_a_body_over_the_limit_is_refused(control) -> None:
    answer = await control.client.post("/api/keys", content=b" " * (1024 * 1024 + 1), headers=JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


async def test_errors_have_the_management_shape(control) -> None:
    for answer in (
        await control.client.get("/nowhere"),
        await control.client.put("/api/keys"),
        await control.client.get("/api/keys?limit=0"),
        await control.client.get("/api/keys/none"),
        await control.client.post("/api/keys", json=[]),
    ):
        body = answer.json()
        assert set(body) == {"error", "requestId"}
        assert set(body["error"]) == {"message", "type", "code", "param"}
        assert body["requestId"] == "req-1"
        kind = KINDS[body["error"]["code"]]
        assert (answer.status_code, body["error"]["type"]) == (kind.status, kind.type)
        assert answer.headers["cache-control"] == "no-store"


async def test_a_defect_is_told_by_its_request_id_alone(control, capsys) -> None:
    async def broken(work):
        raise RuntimeError("sk-fl-secret in a message")

    services: Services = control.app.state.services
    services.state.read = broken
    answer = await control.client.get("/api/keys")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert answer.json()["requestId"] == "req-1"
    written = capsys.readouterr()
    logged = written.out + written.err
    assert "req-1" in logged
    assert "RuntimeError" in logged
    assert "secret" not in logged + answer.text
