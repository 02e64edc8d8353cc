"""`/api/settings/mail` and the mails themselves, at a real server on loopback: TLS, login, refusals, retries."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import aiosmtpd.smtp
import pytest
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from fairlead.gateway.mail.fields import MailServer
from fairlead.gateway.mail.table import put_server
from fairlead.gateway.mail.worker import deliver
from fairlead.moment import now_ms
from fairlead.records.mail_queue import PENDING_MAX, Mail, queue_mails
from fairlead.settings import ControlConfig
from fairlead.store.database import Database
from fairlead.store.postgresql.engine import PostgresqlEngine
from fairlead.store.postgresql.leases import Leases
from fairlead.store.sealer import Sealer
from fairlead.store.state import State
from tests.contract.conftest import Control
from tests.support.certificates import make_certificate
from tests.support.management import LOCAL, run_application

pytestmark = [pytest.mark.anyio, pytest.mark.one_control]

PASSWORD = "mail-canary-password"


class Inbox:
    """Takes mails in, or answers as it is told."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.answers: list[str] = []
        """What the next mails are answered instead of being taken in."""
        self.refused: set[str] = set()

    async def handle_RCPT(  # noqa: N802 - the name is the library's
        self,
        _server: object,
        _session: Session,
        envelope: Envelope,
        address: str,
        _options: list[str],
    ) -> str:
        if address in self.refused:
            return "550 no such person"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: object, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self.answers:
            return self.answers.pop(0)
        message = message_from_bytes(envelope.content or b"", policy=policy.default)
        self.mails.append((envelope.rcpt_tos, message))
        return "250 taken in"


@asynccontextmanager
async def serving(
    inbox: Inbox, *, certificate: Path | None = None, is_tls: bool = False, **options: Any
) -> AsyncIterator[int]:
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    loop = asyncio.get_running_loop()

    def make() -> aiosmtpd.smtp.SMTP:
        starttls = None if is_tls else context
        return aiosmtpd.smtp.SMTP(
            inbox, hostname="mail.test", loop=loop, tls_context=starttls, **options
        )

    server = await loop.create_server(make, "127.0.0.1", 0, ssl=context if is_tls else None)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def settings(port: int, **fields: Any) -> dict[str, Any]:
    return {
        "host": "127.0.0.1",
        "port": port,
        "tls": "none",
        "sender": "fairlead@example.com",
        "recipients": ["ops@example.com"],
        **fields,
    }


def mail(number: int = 0) -> Mail:
    return Mail(
        "budget.reached",
        f"The key k{number} has spent",
        "Spent: 1.00 USD\n",
        now_ms() - 1000 + number,
    )


@pytest.fixture
def state(control: Control) -> State:
    return control.app.state.services.state


@pytest.fixture
async def set_up(control: Control) -> Callable[..., Any]:
    async def set_up(port: int, **fields: Any) -> dict[str, Any]:
        answer = await control.client.put("/api/settings/mail", json=settings(port, **fields))
        assert answer.status_code == 200, answer.text
        return answer.json()

    return set_up


async def test_a_test_mail_is_handed_over(control: Control, set_up: Any) -> None:
    assert (await control.client.post("/api/settings/mail/test")).status_code == 404
    inbox = Inbox()
    async with serving(inbox) as port:
        await set_up(port, recipients=["ops@example.com", "finance@example.com"])
        answer = (await control.client.post("/api/settings/mail/test")).json()
    assert (answer["sent"], answer["errorKind"]) == (True, None)
    ((recipients, message),) = inbox.mails
    assert recipients == ["ops@example.com", "finance@example.com"]
    assert message["From"] == "fairlead@example.com"
    assert message["Auto-Submitted"] == "auto-generated"
    answer = (await control.client.post("/api/settings/mail/test")).json()
    assert (answer["sent"], answer["errorKind"]) == (False, "unreachable")


# The library counts STARTTLS alone as TLS.
@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
@pytest.mark.parametrize("mode", ["starttls", "tls"])
async def test_a_login_goes_under_tls_alone(
    control: Control, set_up: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    certificate = make_certificate(tmp_path / "server.pem", "127.0.0.1")
    seen: list[LoginPassword] = []

    def authenticate(
        _server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any
    ) -> AuthResult:
        seen.append(data)
        return AuthResult(success=data.password == PASSWORD.encode(), handled=False)

    options = {
        "authenticator": authenticate,
        "auth_required": True,
        "auth_require_tls": mode == "starttls",
    }
    inbox = Inbox()
    async with serving(inbox, certificate=certificate, is_tls=mode == "tls", **options) as port:
        login = {"tls": mode, "username": "mailer", "password": PASSWORD}
        shown = await set_up(port, **login)
        assert shown["server"]["password"] == "***"
        untrusted = (await control.client.post("/api/settings/mail/test")).json()
        assert (untrusted["errorKind"], seen) == ("tls", []), untrusted
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert (await control.client.post("/api/settings/mail/test")).json()["sent"]
        # Masked as it was shown, the stored one stays; for another server it must be sent again.
        await set_up(port, **login | {"password": "***"}, recipients=["new@example.com"])
        assert (await control.client.post("/api/settings/mail/test")).json()["sent"]
        other = settings(port + 1, **login | {"password": "***"})
        answer = await control.client.put("/api/settings/mail", json=other)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "password")
        await set_up(port, **login | {"password": "wrong"})
        refused = (await control.client.post("/api/settings/mail/test")).json()
        assert refused["errorKind"] == "login_refused"
    assert len(inbox.mails) == 2
    stored = (control.data_dir / "state.duckdb").read_bytes()
    assert PASSWORD.encode() not in stored


async def test_a_server_without_tls_gets_nothing_where_tls_is_asked_for(
    control: Control, set_up: Any
) -> None:
    inbox = Inbox()
    async with serving(inbox) as port:
        await set_up(port, tls="starttls")
        answer = (await control.client.post("/api/settings/mail/test")).json()
    assert (answer["sent"], answer["errorKind"], inbox.mails) == (False, "not_supported", [])


async def test_what_is_wrong_is_named(control: Control) -> None:
    for fields, param in (
        ({"host": "169.254.169.254"}, "host"),
        ({"port": 0}, "port"),
        ({"tls": "ssl3"}, "tls"),
        ({"sender": "a@b\r\nBcc: x@y.z"}, "sender"),
        ({"recipients": []}, "recipients"),
        ({"recipients": ["a@b.c", "a@b.c"]}, "recipients"),
        ({"recipients": ["a@b.c, d@e.f"]}, "recipients[0]"),
        ({"events": ["key.created"]}, "events[0]"),
    ):
        answer = await control.client.put("/api/settings/mail", json=settings(25) | fields)
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), fields
    plain = settings(25, host="mail.example.com", username="u", password=PASSWORD)
    answer = await control.client.put("/api/settings/mail", json=plain)
    assert answer.status_code == 400
    assert "without TLS" in answer.json()["error"]["message"]
    half = await control.client.put("/api/settings/mail", json=settings(25, username="u"))
    assert half.status_code == 400


async def until(control: Control, **expected: Any) -> dict[str, Any]:
    """Waits until the queue is so; the task of mails works meanwhile."""
    async with asyncio.timeout(20):
        while True:
            queue = (await control.client.get("/api/settings/mail")).json()["queue"]
            if queue == queue | expected:
                return dict(queue)
            await asyncio.sleep(0.02)


async def test_what_a_server_refuses_for_now_is_tried_again_and_for_good_is_given_up(
    control: Control, set_up: Any, state: State
) -> None:
    inbox = Inbox()
    async with serving(inbox) as port:
        await set_up(port)
        inbox.answers = ["451 come again", "554 never"]
        await state.record(lambda con: queue_mails(con, [mail(0), mail(1)]))
        queue = await until(
            control, pending=2, lastError="refused: The server said 451: come again"
        )
        assert (queue["sent"], queue["failed"], inbox.mails) == (0, 0, [])

        # Another word of the operator, and both are tried at once.
        await set_up(port)
        await until(control, pending=0, sent=1, failed=1)
    assert [message["Subject"] for _, message in inbox.mails] == ["The key k1 has spent"]


async def test_those_who_exist_get_the_mail(control: Control, set_up: Any, state: State) -> None:
    inbox = Inbox()
    inbox.refused = {"gone@example.com"}
    async with serving(inbox) as port:
        await set_up(port, recipients=["gone@example.com", "ops@example.com"])
        await state.record(lambda con: queue_mails(con, [mail()]))
        await until(control, sent=1, failed=0)
        await set_up(port, recipients=["gone@example.com"])
        await state.record(lambda con: queue_mails(con, [mail()]))
        await until(control, sent=1, failed=1, pending=0)
    assert [recipients for recipients, _ in inbox.mails] == [["ops@example.com"]]


async def test_the_queue_is_bounded_and_ends_with_the_server(
    control: Control, set_up: Any, state: State
) -> None:
    mails = [mail(number) for number in range(PENDING_MAX + 2)]
    assert await state.record(lambda con: queue_mails(con, mails)) == 0, "nobody wants them"
    async with serving(Inbox()) as port:
        pass
    await set_up(port)
    assert await state.record(lambda con: queue_mails(con, mails)) == PENDING_MAX
    await until(control, pending=PENDING_MAX, failed=2)
    dropped = (await control.client.delete("/api/settings/mail")).json()
    assert (dropped["server"], dropped["queue"]["pending"]) == (None, 0)


async def test_what_waited_is_sent_after_a_restart(config: ControlConfig) -> None:
    inbox = Inbox()
    async with serving(inbox) as port:
        async with run_application(config, LOCAL, "192.0.2.1") as (app, client):
            # The server is away.
            await client.put("/api/settings/mail", json=settings(1))
            await app.state.services.state.record(lambda con: queue_mails(con, [mail()]))
            await until(Control(app, client, config.data_dir), pending=1)
            await app.state.services.state.database.write(
                lambda con: con.execute("UPDATE mail_server SET port = ?", [port])
            )
            await app.state.services.state.database.write(
                lambda con: con.execute("UPDATE mails SET next_attempt_at_ms = 0")
            )
        async with run_application(config, LOCAL, "192.0.2.1") as (app, client):
            await until(Control(app, client, config.data_dir), sent=1)
    assert len(inbox.mails) == 1


async def test_a_server_that_says_nothing_does_not_hold_up_for_long(
    control: Control, set_up: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.gateway.mail.smtp.DEADLINE_S", 0.3)
    # A connection is made, and nobody takes it up.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        await set_up(silent.getsockname()[1])
        answer = (await control.client.post("/api/settings/mail/test")).json()
    assert (answer["sent"], answer["errorKind"]) == (False, "timeout")


async def test_two_controls_of_one_database_send_each_mail_once(database_url: str) -> None:
    """One of them sends, and the other goes on when that one is stopped."""
    states = [
        State(Database(PostgresqlEngine(database_url, name)), Sealer(bytes(32)))
        for name in ("one", "two")
    ]
    leases = [Leases(database_url, name, 1500) for name in ("one", "two")]
    renewing = [asyncio.create_task(each.run()) for each in leases]
    inbox = Inbox()
    sending: list[asyncio.Task[None]] = []
    try:
        async with serving(inbox) as port:
            server = MailServer.model_validate(settings(port) | {"events": ["budget.reached"]})
            await states[0].record(lambda con: put_server(con, states[0].sealer, server, now_ms()))
            sending = [
                asyncio.create_task(deliver(*each)) for each in zip(states, leases, strict=True)
            ]
            for first in (0, 20):
                mails = [mail(number) for number in range(first, first + 20)]
                await states[1].record(lambda con, mails=mails: queue_mails(con, mails))
                async with asyncio.timeout(20):
                    while len(inbox.mails) < first + 20:
                        for state in states:
                            state.note_change()
                        await asyncio.sleep(0.05)
                # The second goes on by itself.
                sending[0].cancel()
                await asyncio.gather(sending[0], return_exceptions=True)
            subjects = [message["Subject"] for _, message in inbox.mails]
            assert sorted(subjects) == sorted(mail(number).subject for number in range(40))
    finally:
        for task in (*sending, *renewing):
            task.cancel()
        await asyncio.gather(*sending, *renewing, return_exceptions=True)
        for state in states:
            await state.database.close()
