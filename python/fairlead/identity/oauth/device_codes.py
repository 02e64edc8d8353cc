"""Sign-ins by device code: a program without a browser shows a code, and a person approves it at the gateway's
page (RFC 8628). The program then gets a management access token of that person.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from fairlead import _core
from fairlead.identity.oauth.fault import OAuthFault
from fairlead.identity.tokens import Scope, insert_token, mint_token
from fairlead.identity.users import MANAGING_ROLES, find_user
from fairlead.store.file import Connection

CLIENT_ID: Final = "fairlead-cli"
"""The one client that may start so: fairlead's command line, which needs no registration."""
GRANT_TYPE: Final = "urn:ietf:params:oauth:grant-type:device_code"
LIFETIME_S: Final = 600
INTERVAL_S: Final = 5
TOKEN_LIFETIME_S: Final = 90 * 24 * 3600
PENDING_MAX: Final = 1000
# Consonants that are not taken for one another: no word is spelt by chance (RFC 8628, 6.1).
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
_HALF: Final = 4
_COLUMNS: Final = (
    "hash",
    "user_hash",
    "name",
    "scope",
    "address",
    "expires_at_ms",
    "user_id",
    "is_approved",
)


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """A row of the table. `name` is what the program calls itself, `address` where it asked from."""

    hash: str
    user_hash: str
    name: str
    scope: Scope
    address: str
    expires_at_ms: int
    user_id: str | None = None
    is_approved: bool | None = None


def make_codes(name: str, scope: Scope, address: str, at_ms: int) -> tuple[str, str, DeviceCode]:
    """The device code, the user code as it is shown, and the row."""
    device = secrets.token_urlsafe(32)
    letters = "".join(secrets.choice(_LETTERS) for _ in range(2 * _HALF))
    row = DeviceCode(
        _core.hash_secret(device),
        _core.hash_secret(letters),
        name,
        scope,
        address,
        at_ms + LIFETIME_S * 1000,
    )
    return device, f"{letters[:_HALF]}-{letters[_HALF:]}", row


def typed_code(text: str) -> str:
    """The letters of a user code, however somebody typed it."""
    return "".join(each for each in text.upper() if each in _LETTERS)[: 2 * _HALF]


def add_device_code(con: Connection, row: DeviceCode, at_ms: int) -> None:
    """Stores a new one and drops those that have expired, in the writer. `slow_down` where too many wait."""
    con.execute("DELETE FROM oauth_device_codes WHERE expires_at_ms <= ?", [at_ms])
    count = con.execute("SELECT count(*) FROM oauth_device_codes").fetchone()
    if count and int(count[0]) >= PENDING_MAX:
        raise OAuthFault(
            "slow_down", "too many sign-ins wait for a person", status=429, retry_after_s=60
        )
    con.execute(
        f"INSERT INTO oauth_device_codes ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})",
        [getattr(row, name) for name in _COLUMNS],
    )


def find_by_user_code(con: Connection, letters: str, at_ms: int) -> DeviceCode | None:
    """The one that still waits for a person."""
    found = _find(con, "user_hash", _core.hash_secret(letters))
    is_open = found is not None and found.is_approved is None and found.expires_at_ms > at_ms
    return found if is_open else None


def find_by_device_code(con: Connection, device: str) -> DeviceCode | None:
    """The one of this device code, decided or not."""
    return _find(con, "hash", _core.hash_secret(device))


def decide(con: Connection, row: DeviceCode, user_id: str, *, is_approved: bool) -> bool:
    """Notes what a person decided, in the writer; False where somebody has decided meanwhile."""
    done = con.execute(
        "UPDATE oauth_device_codes SET user_id = ?, is_approved = ? "
        "WHERE hash = ? AND is_approved IS NULL RETURNING 1",
        [user_id, is_approved, row.hash],
    ).fetchall()
    return bool(done)


def take_token(con: Connection, row: DeviceCode, at_ms: int) -> str | None:
    """The text of a new access token in place of an approved row, in the writer; None where it was taken, or where
    the person may not manage any more.
    """
    taken = con.execute(
        "DELETE FROM oauth_device_codes WHERE hash = ? AND is_approved RETURNING 1", [row.hash]
    ).fetchall()
    user = None if row.user_id is None else find_user(con, row.user_id)
    if not taken or user is None or not user.is_active or user.role not in MANAGING_ROLES:
        return None
    text, token = mint_token(row.name, row.scope, user.id, at_ms + TOKEN_LIFETIME_S * 1000)
    insert_token(con, token)
    return text


class PollPace:
    """When each device may poll again. A device that polls too early waits five seconds longer from then on."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def is_early(self, device_hash: str, now_s: float) -> bool:
        """Notes a poll; whether it came too early."""
        last_s, interval_s = self._seen.pop(device_hash, (now_s - INTERVAL_S, float(INTERVAL_S)))
        # Clocks and networks are not exact to the second.
        is_early = now_s - last_s < interval_s - 1
        self._seen[device_hash] = (now_s, interval_s + INTERVAL_S if is_early else interval_s)
        if len(self._seen) > PENDING_MAX:
            self._seen.popitem(last=False)
        return is_early


def _find(con: Connection, column: str, digest: str) -> DeviceCode | None:
    found = con.execute(
        f"SELECT {', '.join(_COLUMNS)} FROM oauth_device_codes WHERE {column} = ?",
        [digest],
    ).fetchone()
    return None if found is None else DeviceCode(*found)
