"""The tables `provider_sign_ins` and `provider_sign_in_flows`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from fairlead.errors import InvalidRequest, RateLimited
from fairlead.moment import now_ms
from fairlead.store.file import Connection
from fairlead.store.table import Table

FLOWS_MAX: Final = 100
# A token that is younger was refused for another reason than its age.
REFUSED_AFTER_MS: Final = 60_000
Status = Literal["active", "expired"]


@dataclass(frozen=True, slots=True)
class SignIn:
    """The sign-in behind a connection. `next_at_ms` is when its token is refreshed next, None if it is not;
    `expired` means that a person must sign in again.
    """

    connection_id: str
    provider: str
    status: Status
    refresh_sealed: bytes | None = field(repr=False)
    expires_at_ms: int | None
    refreshed_at_ms: int
    next_at_ms: int | None
    failures: int = 0
    last_error: str | None = None
    asked_at_ms: int | None = None
    """When the provider was asked for new tokens without its answer stored since: it may have been lost."""
    refresh_origins: str | None = None
    """The origins to which the refresh token may be sent (`secret_origin.spell_origins`)."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A sign-in that somebody has begun: `code` in a browser here, `device` on another device. `id` is the
    hash of its state.
    """

    id: str
    provider: str
    kind: Literal["code", "device"]
    connection_id: str | None
    name: str | None
    secret_sealed: bytes = field(repr=False)
    redirect_uri: str | None
    interval_ms: int | None
    asked_at_ms: int | None
    expires_at_ms: int
    origins: str | None = None
    """The origins to which its code and its secret may be sent (`secret_origin.spell_origins`)."""


_SIGN_INS: Final = Table("provider_sign_ins", SignIn)
_FLOWS: Final = Table("provider_sign_in_flows", Flow)


def find_sign_in(con: Connection, connection_id: str) -> SignIn | None:
    """The sign-in of a connection."""
    return _SIGN_INS.find(con, "connection_id = ?", connection_id)


def sign_ins_of(con: Connection, provider: str) -> list[SignIn]:
    """Every sign-in at a provider."""
    return _SIGN_INS.select(con, "WHERE provider = ? ORDER BY connection_id", provider)


def due_sign_ins(con: Connection, at_ms: int) -> list[SignIn]:
    """The sign-ins that are refreshed at this moment, the earliest first: those whose time has come, and
    those whose token the provider refuses before its time.
    """
    return _SIGN_INS.select(
        con,
        "WHERE status = 'active' AND (next_at_ms <= ? OR (failures = 0 "
        "AND refresh_sealed IS NOT NULL AND refreshed_at_ms < ? AND connection_id IN "
        "(SELECT connection_id FROM connection_states WHERE state = 'terminal' AND reason = 'expired'))"
        ") ORDER BY next_at_ms",
        at_ms,
        at_ms - REFUSED_AFTER_MS,
    )


def next_due_ms(con: Connection) -> int | None:
    """When the next sign-in is due, UTC milliseconds."""
    row = con.execute(
        "SELECT min(next_at_ms) FROM provider_sign_ins WHERE status = 'active'"
    ).fetchone()
    return None if row is None else row[0]


def put_sign_in(con: Connection, sign_in: SignIn) -> None:
    """Stores a sign-in in place of the connection's former one, in the writer."""
    drop_sign_in(con, sign_in.connection_id)
    _SIGN_INS.insert(con, sign_in)


def note_asking(con: Connection, sign_in: SignIn) -> None:
    """Notes that the provider is about to be asked for new tokens, in the writer."""
    con.execute(
        "UPDATE provider_sign_ins SET asked_at_ms = ? WHERE connection_id = ? AND refresh_sealed = ?",
        [now_ms(), sign_in.connection_id, sign_in.refresh_sealed],
    )


def drop_sign_in(con: Connection, connection_id: str) -> None:
    """Deletes the sign-in of a connection that is deleted or has another credential, in the writer."""
    con.execute("DELETE FROM provider_sign_ins WHERE connection_id = ?", [connection_id])


def bind_unbound(con: Connection, provider: str, origins: str) -> None:
    """Binds what an earlier version stored without origins to these, in the writer: before an address changes."""
    con.execute(
        "UPDATE provider_sign_ins SET refresh_origins = ? WHERE provider = ? AND refresh_origins IS NULL",
        [origins, provider],
    )
    con.execute(
        "UPDATE provider_sign_in_flows SET origins = ? WHERE provider = ? AND origins IS NULL",
        [origins, provider],
    )


def add_flow(con: Connection, flow: Flow) -> None:
    """Stores a sign-in that is begun, in the writer; `RateLimited` when too many are."""
    con.execute("DELETE FROM provider_sign_in_flows WHERE expires_at_ms <= ?", [now_ms()])
    if _FLOWS.count(con) >= FLOWS_MAX:
        raise RateLimited(
            f"There are {FLOWS_MAX} sign-ins in progress: wait until some end.", retry_after_s=60
        )
    _FLOWS.insert(con, flow)


def find_flow(con: Connection, flow_id: str, provider: str, kind: str) -> Flow:
    """A sign-in in progress; raises `InvalidRequest` for a state that is unknown, used or too old."""
    pending = "id = ? AND provider = ? AND kind = ? AND expires_at_ms > ?"
    flow = _FLOWS.find(con, pending, flow_id, provider, kind, now_ms())
    if flow is None:
        raise InvalidRequest(
            "state belongs to no sign-in in progress: it is unknown, used or too old. Start again.",
            param="state",
        )
    return flow


def note_asked(con: Connection, flow_id: str, interval_ms: int) -> None:
    """Notes that the provider was asked about a device, and how long to wait, in the writer."""
    con.execute(
        "UPDATE provider_sign_in_flows SET asked_at_ms = ?, interval_ms = ? WHERE id = ?",
        [now_ms(), interval_ms, flow_id],
    )


def drop_flow(con: Connection, flow_id: str) -> None:
    """Deletes a sign-in that has ended, in the writer."""
    con.execute("DELETE FROM provider_sign_in_flows WHERE id = ?", [flow_id])
