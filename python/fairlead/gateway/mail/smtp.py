"""Hands a mail to the server, by SMTP.

The host's name is looked up once, and its addresses are checked, as those of every host that an operator chose. The
standard library's client runs in a thread. The look-up and the whole conversation have one deadline, after which the
socket is closed and the thread ends.

Every failure is a `MailFailed`, whatever the library raises: settings and servers may be odder than it expects.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import smtplib
import socket
import ssl
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final

import structlog

from fairlead import _core
from fairlead.gateway.mail.fields import MailServer
from fairlead.moment import moment_of
from fairlead.net.operator_egress import POLICY

DEADLINE_S: Final = 30.0
STEP_S: Final = 10.0
# Each is dialled for `STEP_S` at most, in the thread.
ADDRESSES_MAX: Final = 4
log = structlog.get_logger("fairlead.mail")
# The server's text is shown to operators, so it is cut.
REPLY_MAX_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class MailMessage:
    """A mail in plain text. Its `id` names it for ever, so that a receiver knows one that comes twice."""

    id: str
    subject: str
    body: str
    at_ms: int


class MailFailed(Exception):
    """The server did not take the mail in. `kind` is a word for it; `is_final`: trying again cannot help."""

    def __init__(self, kind: str, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.is_final = is_final


class _Dialler(smtplib.SMTP):
    """A client that dials a checked address only."""

    addresses: tuple[str, ...] = ()
    """The checked addresses of the host."""

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:  # noqa: ARG002 - the library's signature
        errors: list[OSError] = []
        for address in self.addresses:
            try:
                return socket.create_connection((address, port), timeout)
            except OSError as error:
                errors.append(error)
        raise errors[0] if errors else OSError("the host has no address")


class _TlsDialler(smtplib.SMTP_SSL, _Dialler):
    """A client that begins with TLS, and dials a checked address only."""


async def send_mail(server: MailServer, message: MailMessage) -> None:
    """Hands the mail over; `MailFailed` where the server did not take it in for anybody."""
    loop = asyncio.get_running_loop()
    ends_s = loop.time() + DEADLINE_S
    try:
        async with asyncio.timeout_at(ends_s):
            addresses = await _find_addresses(server)
    except TimeoutError:
        raise MailFailed("timeout", "The host's name was not resolved in time.") from None
    client = _client(server, addresses)
    sending = loop.run_in_executor(None, _send, client, server, message)
    try:
        async with asyncio.timeout_at(ends_s):
            await asyncio.shield(sending)
    except TimeoutError:
        _cut(client)
        with contextlib.suppress(Exception):
            await sending
        raise MailFailed("timeout", f"The server took longer than {DEADLINE_S:g} s.") from None
    except asyncio.CancelledError:
        _cut(client)
        with contextlib.suppress(Exception):
            await sending
        raise


async def _find_addresses(server: MailServer) -> tuple[str, ...]:
    """The host's addresses, all of which may be dialled."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise MailFailed("unknown_host", "The host has no address.") from None
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    if not all(_core.address_allowed(address, POLICY) for address in addresses):
        raise MailFailed("address_forbidden", "The host leads to an address that is never dialled.")
    return tuple(addresses[:ADDRESSES_MAX])


def _client(server: MailServer, addresses: tuple[str, ...]) -> smtplib.SMTP:
    client: _Dialler
    if server.tls == "tls":
        client = _TlsDialler(timeout=STEP_S, context=ssl.create_default_context())
    else:
        client = _Dialler(timeout=STEP_S)
    client.addresses = addresses
    return client


def _cut(client: smtplib.SMTP) -> None:
    """Ends what the thread waits for."""
    if client.sock is not None:
        with contextlib.suppress(OSError):
            client.sock.shutdown(socket.SHUT_RDWR)


def _send(client: smtplib.SMTP, server: MailServer, message: MailMessage) -> None:
    spelled = _spell(server, message)
    try:
        # TLS checks the certificate against this name.
        client._host = server.host  # type: ignore[attr-defined]  # noqa: SLF001
        client.connect(server.host, server.port)
        if server.tls == "starttls":
            client.starttls(context=ssl.create_default_context())
        if server.username is not None and server.password is not None:
            _log_in(client, server.username, server.password.get_secret_value())
        client.send_message(spelled, server.sender, server.recipients)
    except smtplib.SMTPException as error:
        raise _failure(error) from None
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or "the handshake failed"
        raise MailFailed("tls", f"TLS: {reason}.") from None
    except TimeoutError:
        raise MailFailed("timeout", "The server did not answer in time.") from None
    except OSError as error:
        raise MailFailed(
            "unreachable", f"The server cannot be reached: {error.strerror or 'no connection'}."
        ) from None
    except Exception as error:  # noqa: BLE001 - the library raises what it likes on a server that it does not understand
        log.warning("a mail server is odd", error=type(error).__name__)
        raise MailFailed(
            "odd_server", f"The server does not speak SMTP as it should ({type(error).__name__})."
        ) from None
    finally:
        with contextlib.suppress(Exception):
            client.quit()
        client.close()


def _log_in(client: smtplib.SMTP, username: str, password: str) -> None:
    """Logs in; names and passwords beyond ASCII as UTF-8 (RFC 4616), which the library's own login cannot."""
    if username.isascii() and password.isascii():
        client.login(username, password)
        return
    client.ehlo_or_helo_if_needed()
    offered = str(client.esmtp_features.get("auth", "")).upper().split()
    name, secret = username.encode(), password.encode()
    if "PLAIN" in offered:
        code, reply = client.docmd("AUTH", "PLAIN " + _base64(b"\0" + name + b"\0" + secret))
    elif "LOGIN" in offered:
        code, reply = client.docmd("AUTH", "LOGIN " + _base64(name))
        if code == 334:
            code, reply = client.docmd(_base64(secret))
    else:
        raise smtplib.SMTPNotSupportedError
    if code not in (235, 503):
        raise smtplib.SMTPAuthenticationError(code, reply)


def _base64(text: bytes) -> str:
    return base64.b64encode(text).decode()


def _spell(server: MailServer, message: MailMessage) -> EmailMessage:
    """The mail as it is sent. A text that no mail can have is this mail's failure, for ever."""
    try:
        return _spelled(server, message)
    except (ValueError, LookupError) as error:
        raise MailFailed(
            "unsendable", f"The mail cannot be written ({type(error).__name__}).", is_final=True
        ) from None


def _spelled(server: MailServer, message: MailMessage) -> EmailMessage:
    spelled = EmailMessage()
    spelled["From"] = server.sender
    spelled["To"] = ", ".join(server.recipients)
    spelled["Subject"] = " ".join(message.subject.split())
    spelled["Date"] = format_datetime(moment_of(message.at_ms))
    spelled["Message-ID"] = f"<{message.id}@{server.sender.rpartition('@')[2]}>"
    spelled["Auto-Submitted"] = "auto-generated"
    spelled.set_content(message.body)
    return spelled


def _failure(error: smtplib.SMTPException) -> MailFailed:
    """The server's answer as a failure. A login that it refuses is put right by an operator, so it is tried again."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = [code for code, _ in error.recipients.values()]
        code, reply = next(iter(error.recipients.values()))
        return MailFailed(
            "recipients_refused", _answer_text(code, reply), is_final=min(codes) >= 500
        )
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return MailFailed("login_refused", _answer_text(error.smtp_code, error.smtp_error))
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return MailFailed("not_supported", "The server does not offer what the settings ask for.")
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return MailFailed("disconnected", "The server closed the connection.")
    if isinstance(error, smtplib.SMTPResponseException):
        is_final = error.smtp_code >= 500 and not isinstance(error, smtplib.SMTPConnectError)
        return MailFailed(
            "refused", _answer_text(error.smtp_code, error.smtp_error), is_final=is_final
        )
    return MailFailed("refused", "The server does not speak SMTP as it should.")


def _answer_text(code: int, reply: bytes | str) -> str:
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    shown = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return f"The server said {code}: {shown[:REPLY_MAX_CHARS]}"
