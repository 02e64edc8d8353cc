"""Introspection at an issuer of somebody else's: a real server in a process of its own, which says what a
test wants, slowly or not at all. Whatever it does, nobody is let in who should not be.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.calls.bearer import BearerRefused
from fairlead.errors import Refusal
from fairlead.identity.introspection import remote as remote_module
from fairlead.identity.introspection.answer import InvalidAnswer, read_answer
from fairlead.identity.introspection.remote import RemoteIntrospection
from fairlead.process.start_check import check_ca_file
from tests.support.certificates import make_certificate
from tests.support.external_issuer import token_that
from tests.support.polling import eventually
from tests.support.process import free_port
from tests.support.tls import NO_AUTHORITIES

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The issuer's admin address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "tests.support.external_issuer", str(port)]
    popen = subprocess.Popen(command, cwd=ROOT)

    def is_up() -> bool:
        try:
            return (
                httpx.get(f"{url}/seen", trust_env=False, verify=NO_AUTHORITIES).status_code == 200
            )
        except httpx.HTTPError:
            return False

    try:
        eventually(is_up, "the issuer answers", within_s=20)
        yield url
    finally:
        popen.kill()
        popen.wait(10)


async def test_an_issuer_with_an_authority_of_its_own_is_trusted_by_its_file(
    tmp_path: Path,
) -> None:
    certificate = make_certificate(tmp_path / "issuer.pem", "127.0.0.1")
    port = free_port()
    command = [sys.executable, "-m", "tests.support.external_issuer", str(port), str(certificate)]
    popen = subprocess.Popen(command, cwd=ROOT)
    url = f"https://127.0.0.1:{port}"
    text = token_that(good())
    try:
        trusted = ssl.create_default_context(cafile=str(certificate.with_suffix(".crt")))

        def is_up() -> bool:
            try:
                return httpx.get(f"{url}/seen", trust_env=False, verify=trusted).status_code == 200
            except httpx.HTTPError:
                return False

        eventually(is_up, "the issuer answers", within_s=20)
        async with asking(url, ca_file=certificate.with_suffix(".crt")) as remote:
            assert (await remote.introspect(text)).client_id == "did:x:o:a:1"
        async with asking(url) as remote:
            with pytest.raises(BearerRefused) as refused:
                await remote.introspect(text)
            assert refused.value.reason == "unavailable"
    finally:
        popen.kill()
        popen.wait(10)


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_a_file_of_certificates_must_have_some(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Refusal) as refused:
        check_ca_file(path)
    assert "ISSUER__CA_FILE" in refused.value.sentence


@asynccontextmanager
async def asking(url: str, **options: Any) -> AsyncIterator[RemoteIntrospection]:
    made = RemoteIntrospection(url, **{"timeout_s": 3.0, **options})
    try:
        yield made
    finally:
        await made.close()


def good(**fields: Any) -> dict[str, Any]:
    now_s = int(time.time())
    return {
        "active": True,
        "client_id": "did:x:o:a:1",
        "sub": "did:x:o:a:1",
        "scope": "agent:read b",
        "exp": now_s + 600,
        "iat": now_s,
        "nbf": now_s,
        "iss": "https://hydra",
        "aud": ["x"],
        "token_type": "Bearer",
        "token_use": "access_token",
        "ext": {},
        "unknown": [1],
        **fields,
    }


def seen(url: str, token: str) -> int:
    return int(
        httpx.get(f"{url}/seen", trust_env=False, verify=NO_AUTHORITIES).json().get(token, 0)
    )


async def reason(asked: RemoteIntrospection, token: str) -> str:
    with pytest.raises(BearerRefused) as caught:
        await asked.introspect(token)
    return caught.value.reason


async def test_an_active_token_is_read_whole(issuer: str) -> None:
    async with asking(issuer) as asked:
        bearer = await asked.introspect(token_that(good(n=1)))
    assert bearer.client_id == bearer.sub == "did:x:o:a:1"
    assert bearer.scopes == {"agent:read", "b"}
    assert bearer.audience == ("x",)
    assert bearer.document["unknown"] == [1]


def refused(**fields: Any) -> dict[str, Any]:
    made = good(**fields)
    return {name: value for name, value in made.items() if value is not ...}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"active": False}, "invalid"),
        (refused(sub=...), "invalid"),
        (refused(sub=""), "invalid"),
        (refused(sub=7), "invalid"),
        (refused(exp=...), "invalid"),
        (refused(exp="soon"), "invalid"),
        (refused(exp=True), "invalid"),
        (refused(exp=1), "expired"),
        (refused(nbf=2**40), "invalid"),
        (refused(nbf="x"), "invalid"),
        (refused(token_type="N_A"), "invalid"),
        (refused(token_use="refresh_token"), "invalid"),
        (refused(active="true"), "unavailable"),
        (refused(active=1), "unavailable"),
        (refused(active=None), "unavailable"),
        (refused(active=...), "unavailable"),
        (refused(scope=["agent:read"]), "unavailable"),
        (refused(client_id=7), "unavailable"),
        ([], "unavailable"),
        (None, "unavailable"),
        ("active", "unavailable"),
    ],
)
async def test_what_is_not_clearly_active_is_refused(issuer: str, said: Any, expected: str) -> None:
    async with asking(issuer) as asked:
        assert await reason(asked, token_that(said)) == expected


@pytest.mark.parametrize(
    "said",
    [
        {"status": 500},
        {"status": 401},
        {"status": 404},
        {"status": 204},
        {"raw": ""},
        {"raw": '{"active": true'},
        {"raw": "<html>"},
        {"raw": "x" * 1000, "times": 100},
        {"status": 307, "headers": {"Location": "/other"}},
        {"headers": {"Content-Encoding": "gzip"}},
    ],
)
async def test_an_answer_that_is_none_closes(issuer: str, said: dict[str, Any]) -> None:
    async with asking(issuer) as asked:
        assert await reason(asked, token_that(good(), **said)) == "unavailable"


async def test_a_slow_issuer_costs_the_deadline_and_no_more(issuer: str) -> None:
    async with asking(issuer, timeout_s=0.3) as asked:
        begun_s = time.monotonic()
        token = token_that(good(), after_s=2)
        found = await asyncio.gather(*(reason(asked, token) for _ in range(100)))
        assert set(found) == {"unavailable"}
        assert time.monotonic() - begun_s < 2
        # The next token is not held up by those.
        assert (await asked.introspect(token_that(good(n="after slow")))).sub


async def test_a_dead_issuer_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asking(f"http://127.0.0.1:{free_port()}") as asked:
        assert await reason(asked, token_that(good())) == "unavailable"
    async with asking("http://no-such-host.invalid:4445") as asked:
        assert await reason(asked, token_that(good())) == "unavailable"
    # An address that is never dialled, whoever names it.
    async with asking("http://169.254.169.254") as asked:
        assert await reason(asked, token_that(good())) == "unavailable"
    monkeypatch.setattr(remote_module, "WAITING_MAX", 0)
    async with asking("http://127.0.0.1:1") as asked:
        assert await reason(asked, token_that(good())) == "unavailable"


async def test_a_good_word_is_kept_for_a_while_and_a_refusal_is_not(
    issuer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asking(issuer) as asked:
        token, bad = token_that(good(n="kept")), token_that({"active": False, "n": "bad"})
        for _ in range(5):
            await asked.introspect(token)
            assert await reason(asked, bad) == "invalid"
        assert (seen(issuer, token), seen(issuer, bad)) == (1, 5)
        httpx.post(
            f"{issuer}/revoke", data={"token": token}, trust_env=False, verify=NO_AUTHORITIES
        )
        await asked.introspect(token)
        real = time.monotonic
        monkeypatch.setattr(remote_module.time, "monotonic", lambda: real() + 30)
        assert await reason(asked, token) == "invalid"


async def test_nothing_is_kept_past_its_end(issuer: str) -> None:
    now_s = time.time()
    clock = [now_s]
    async with asking(issuer, now_s=lambda: clock[0]) as asked:
        token = token_that(good(exp=int(now_s) + 5, n="short"))
        await asked.introspect(token)
        clock[0] += 6
        assert await reason(asked, token) == "expired"


async def test_tokens_of_sensitive_scopes_and_of_our_own_issuer_are_asked_about_each_time(
    issuer: str,
) -> None:
    ours = {"headers": {"x-fairlead-issuer": "1"}}
    async with asking(issuer) as asked:
        for token in (
            token_that(good(scope="agent:read admin")),
            token_that(good(scope="agent:execute")),
            token_that(good(scope="payment:capture")),
            token_that(good(scope="key:rotate")),
            token_that(good(n="ours"), **ours),
        ):
            await asked.introspect(token)
            await asked.introspect(token)
            assert seen(issuer, token) == 2
    async with asking(issuer, cache_s=0) as asked:
        token = token_that(good(n="not kept"))
        await asked.introspect(token)
        await asked.introspect(token)
        assert seen(issuer, token) == 2


async def test_what_is_kept_is_bounded(issuer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "CACHE_MAX", 3)
    async with asking(issuer) as asked:
        for number in range(10):
            await asked.introspect(token_that(good(n=number)))
        assert len(asked._cache) == 3


def test_an_answer_without_shape_is_no_answer() -> None:
    for document in (None, 7, "x", [], {}, {"active": 0}):
        with pytest.raises(InvalidAnswer):
            read_answer(document, time.time())
