"""A probe against a real socket: every answer has its diagnosis, and nothing is dialled that must
not be.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fairlead.gateway.providers import client
from fairlead.gateway.providers.credentials import Credentials
from fairlead.gateway.providers.endpoint import Endpoint
from fairlead.gateway.providers.probe import probe
from tests.support.upstream import RESET, STALL, ClosedPort, Script, Upstream, head, reply

pytestmark = pytest.mark.anyio

MODELS = {"data": [{"id": "m"}]}


@pytest.fixture
def up() -> Iterator[Upstream]:
    with Upstream() as running:
        running.script(reply(MODELS))
        yield running


def endpoint(base_url: str, **fields: Any) -> Endpoint:
    known: dict[str, Any] = {
        "prefixes": ("p",),
        "dialect": "openai",
        "base_url": base_url,
        "auth": "bearer",
        "chat_path": None,
        "models_url": f"{base_url}/models",
        "check_url": None,
        "timeouts": {},
    }
    return Endpoint(**{**known, **fields})


async def test_a_provider_that_answers(up: Upstream) -> None:
    credentials = Credentials(api_key="sk-secret", headers={"x-team": "blue"})

    finding = await probe(endpoint(up.url), credentials)

    assert finding.valid
    assert (finding.status_code, finding.models, finding.error) == (200, [{"id": "m"}], None)
    assert up.last.target == "/v1/models"
    assert up.last.bearer == "sk-secret"
    assert up.last.header("x-team") == "blue"
    assert up.last.header("host") == f"127.0.0.1:{up.port}"
    assert "secret" not in repr(credentials) + repr(finding)


@pytest.mark.parametrize(
    ("dialect", "auth", "header"),
    [("anthropic", "x-api-key", "x-api-key"), ("gemini", "x-goog-api-key", "x-goog-api-key")],
)
async def test_each_dialect_shows_its_credential_its_way(
    up: Upstream, dialect: str, auth: str, header: str
) -> None:
    await probe(endpoint(up.url, dialect=dialect, auth=auth), Credentials(api_key="sk-secret"))

    assert up.last.header(header) == "sk-secret"
    assert up.last.header("authorization") is None
    assert (up.last.header("anthropic-version") is not None) == (dialect == "anthropic")


async def test_without_a_credential_none_is_shown(up: Upstream) -> None:
    await probe(endpoint(up.url, auth="none"), Credentials())

    assert up.last.header("authorization") is None


async def test_a_path_that_needs_the_key_is_asked_first(up: Upstream) -> None:
    up.script(reply({"error": "no"}, 401))

    finding = await probe(endpoint(up.url, check_url=f"{up.url}/key"), Credentials(api_key="k"))

    assert finding.diagnosis == "auth"
    assert [seen.target for seen in up.requests] == ["/v1/key"]

    up.script(reply({}), reply(MODELS))
    assert (
        await probe(endpoint(up.url, check_url=f"{up.url}/key"), Credentials(api_key="k"))
    ).valid


@pytest.mark.parametrize(
    ("script", "diagnosis", "status"),
    [
        (reply({"error": "canary"}, 401), "auth", 401),
        (reply({"error": "canary"}, 403), "auth", 403),
        (reply({"error": "canary"}, 402), "credits_exhausted", 402),
        (reply({"error": "canary"}, 404), "not_found", 404),
        (reply({"error": "canary"}, 429), "rate_limited", 429),
        (reply({"error": "canary"}, 500), "upstream_error", 500),
        (reply(b"", 302, [("Location", "http://127.0.0.1:1/canary")]), "redirect", 302),
        (reply(b"<html>canary</html>"), "invalid_answer", 200),
        (reply({"canary": 1}), "invalid_answer", 200),
        ([RESET], "network", None),
        ([b"canary\r\n\r\n", RESET], "network", None),
        ([head(200, [("Content-Length", "10")]) + b"can", RESET], "network", None),
    ],
)
async def test_what_goes_wrong_has_a_name_and_no_echo(
    up: Upstream, script: Script, diagnosis: str, status: int | None
) -> None:
    up.script(script)

    finding = await probe(endpoint(up.url), Credentials(api_key="sk-canary"))

    assert (finding.diagnosis, finding.status_code, finding.valid) == (diagnosis, status, False)
    assert finding.error is not None
    assert "canary" not in finding.error
    assert finding.models is None
    assert len(up.requests) == 1


async def test_silence_ends_at_the_deadline(up: Upstream) -> None:
    up.script([STALL])
    started = time.monotonic()

    finding = await probe(endpoint(up.url), Credentials(), deadline_s=0.2)

    assert finding.diagnosis == "timeout"
    assert time.monotonic() - started < 2


async def test_nobody_listens() -> None:
    with ClosedPort() as closed:
        finding = await probe(endpoint(f"http://127.0.0.1:{closed.port}"), Credentials())

    assert (finding.diagnosis, finding.status_code) == ("network", None)


async def test_an_answer_without_end_is_not_read(
    up: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "MAX_ANSWER_BYTES", 1000)
    up.script(reply({"data": [{"id": "m" * 2000}]}))

    assert (await probe(endpoint(up.url), Credentials())).diagnosis == "network"


async def test_no_models_is_a_warning(up: Upstream) -> None:
    up.script(reply({"data": []}))

    finding = await probe(endpoint(up.url), Credentials())

    assert finding.valid
    assert finding.warning


@pytest.mark.parametrize(
    "answers",
    [
        ["169.254.169.254"],
        ["127.0.0.1", "169.254.169.254"],
        ["::ffff:169.254.169.254"],
        ["0.0.0.0"],
    ],
)
async def test_a_name_that_leads_to_what_is_never_dialled(
    up: Upstream, monkeypatch: pytest.MonkeyPatch, answers: list[str]
) -> None:
    """The resolver is the attacker's here: one bad address among good ones is enough."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, up.port)) for each in answers]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: found)

    finding = await probe(endpoint(f"http://rebind.example:{up.port}/v1"), Credentials())

    assert finding.diagnosis == "address_refused"
    assert up.connections == 0


async def test_the_address_that_was_judged_is_dialled_under_the_name(
    up: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def resolve(host: str, *_args: Any, **_more: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", up.port))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", _resolver(resolve))

    finding = await probe(endpoint(f"http://models.example:{up.port}/v1"), Credentials())

    assert finding.valid
    assert asked[0] == "models.example"
    assert set(asked) <= {"models.example", "127.0.0.1"}
    assert up.last.header("host") == f"models.example:{up.port}"


def _resolver(resolve: Any) -> Any:
    async def getaddrinfo(host: str, *args: Any, **more: Any) -> list[Any]:
        return resolve(host, *args, **more)

    return getaddrinfo
