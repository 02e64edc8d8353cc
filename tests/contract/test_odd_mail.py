"""Mail settings and servers that are odder than the standard library expects: each is a mail's failure that
operators see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from aiosmtpd.smtp import AuthResult, LoginPassword

from fairlead.gateway.mail.worker import send_due
from fairlead.records.mail_queue import queue_mails
from fairlead.store.state import State
from tests.contract.conftest import Control
from tests.contract.test_mail import Inbox, mail, serving, settings

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

NAME, PASSWORD = "fürst", "pässwörd-canary-✓"


@pytest.fixture
def state(control: Control) -> State:
    state: State = control.app.state.services.state
    return state


async def put(control: Control, port: int, **fields: Any) -> Any:
    return await control.client.put("/api/settings/mail", json=settings(port, **fields))


async def test_a_login_beyond_ascii_is_sent_as_utf_8(control: Control) -> None:
    seen: list[tuple[bytes, bytes]] = []

    def check(_server: Any, _session: Any, _envelope: Any, mechanism: str, data: Any) -> AuthResult:
        assert isinstance(data, LoginPassword)
        seen.append((data.login, data.password))
        return AuthResult(success=mechanism in ("PLAIN", "LOGIN"))

    for left_out in ([], ["PLAIN"]):
        inbox = Inbox()
        options = {
            "authenticator": check,
            "auth_require_tls": False,
            "auth_exclude_mechanism": left_out,
        }
        async with serving(inbox, **options) as port:
            assert (await put(control, port, username=NAME, password=PASSWORD)).status_code == 200
            answer = (await control.client.post("/api/settings/mail/test")).json()
        assert answer["sent"], answer
        assert len(inbox.mails) == 1
    assert seen == [(NAME.encode(), PASSWORD.encode())] * 2


@pytest.mark.parametrize("blank", ["\u2028", "\u0085", "\u2029", "\u00a0", "\ufeff", "\r\n"])
async def test_a_line_break_in_an_address_is_refused(control: Control, blank: str) -> None:
    for fields in (
        {"sender": f"fair{blank}lead@example.com"},
        {"recipients": [f"{blank}ops@example.com"]},
    ):
        answer = await put(control, 25, **fields)
        assert answer.status_code == 400, (blank, answer.text)


@asynccontextmanager
async def answering(answer: Callable[[bytes], bytes]) -> AsyncIterator[int]:
    """A server that answers each line as it is told."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 odd\r\n")
        while line := await reader.readline():
            writer.write(answer(line))
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def challenge(line: bytes) -> bytes:
    if line.startswith(b"EHLO"):
        return b"250-odd\r\n250 AUTH CRAM-MD5\r\n"
    return b"334 this is no base64!!!\r\n" if line.startswith(b"AUTH") else b"250 OK\r\n"


def no_number(line: bytes) -> bytes:
    return b"\xff\xfe what?\r\n" if line.startswith(b"MAIL") else b"250 OK\r\n"


async def test_whatever_a_server_says_is_a_failure_that_is_shown(
    control: Control, state: State
) -> None:
    login = {"username": "u", "password": "p"}
    for answer, fields in ((challenge, login), (no_number, {})):
        async with answering(answer) as port:
            assert (await put(control, port, **fields)).status_code == 200
            told = await control.client.post("/api/settings/mail/test")
            assert told.status_code == 200, told.text
            assert told.json()["sent"] is False
            assert told.json()["errorKind"]
            # The task goes on: the mail waits for its next try, and its error is stored.
            await state.record(lambda con: queue_mails(con, [mail()]))
            assert await send_due(state) > 0
            queue = (await control.client.get("/api/settings/mail")).json()["queue"]
            assert queue["pending"] >= 1
            assert queue["lastError"]


async def test_a_mail_that_cannot_be_written_holds_up_no_other(
    control: Control, state: State
) -> None:
    inbox = Inbox()
    async with serving(inbox) as port:
        assert (await put(control, port)).status_code == 200
        # A sender of an earlier version, which took more.
        await state.record(
            lambda con: con.execute(
                "UPDATE mail_server SET sender = ?", ["fair\u2028lead@example.com"]
            ).fetchall()
        )
        await state.record(lambda con: queue_mails(con, [mail(1), mail(2)]))
        await send_due(state)
        queue = (await control.client.get("/api/settings/mail")).json()["queue"]
        assert (queue["pending"], queue["failed"]) == (0, 2)
        assert "unsendable" in queue["lastError"]
        await state.record(
            lambda con: con.execute(
                "UPDATE mail_server SET sender = ?", ["a@example.com"]
            ).fetchall()
        )
        await state.record(lambda con: queue_mails(con, [mail(3)]))
        await send_due(state)
    # The control sends, too.
    assert {message["Message-ID"] for _, message in inbox.mails} == {
        inbox.mails[0][1]["Message-ID"]
    }


async def test_a_password_that_does_not_open_is_an_error_of_the_mails(
    control: Control, state: State
) -> None:
    assert (await put(control, 25, username="u", password="p")).status_code == 200
    await state.record(
        lambda con: con.execute(
            "UPDATE mail_server SET password_sealed = ?", [b"sealed with another key"]
        ).fetchall()
    )
    await state.record(lambda con: queue_mails(con, [mail()]))
    with anyio.fail_after(20):
        await send_due(state)
    errors = await state.read(lambda con: con.execute("SELECT error, state FROM mails").fetchall())
    ((error, kept),) = errors
    assert error.startswith("password_unreadable: ")
    assert kept == "pending"
