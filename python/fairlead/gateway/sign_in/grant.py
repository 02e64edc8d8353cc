"""Tokens that become a connection's credential, and what is known of the sign-in behind it. Each function runs in
the writer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final
from uuid import uuid4

from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.providers.creation import event_data, own_headers
from fairlead.gateway.providers.credentials import (
    Credentials,
    open_credentials,
    seal_credentials,
)
from fairlead.gateway.providers.endpoint import Provider, endpoint_of
from fairlead.gateway.providers.table import (
    Connection,
    find_connection,
    insert_connection,
    update_connection,
)
from fairlead.gateway.resilience.table import (
    Clear,
    PersistedState,
    add_clear,
    put_persisted_state,
    read_persisted_states,
)
from fairlead.gateway.sign_in.client import Tokens
from fairlead.gateway.sign_in.table import SignIn, find_sign_in, put_sign_in
from fairlead.moment import now_ms
from fairlead.net.secret_origin import spell_origins
from fairlead.records.provider_usage import forget_figures
from fairlead.store.file import Connection as Database
from fairlead.store.outbox import Event, emit
from fairlead.store.seal_purposes import refresh_token_of
from fairlead.store.sealer import Sealer

# A token is refreshed so long before it ends, or after half of its life where that is shorter.
REFRESH_BEFORE_MS: Final = 300_000
EXPIRED: Final = "expired"


@dataclass(frozen=True, slots=True)
class SignInTarget:
    """The connection that a sign-in is for: an existing one, or a new one with this name."""

    connection_id: str | None
    name: str | None


def check_sign_in_target(con: Database, provider: Provider, wanted: SignInTarget) -> None:
    """`NotFound` for a connection that is not this provider's."""
    if wanted.connection_id is not None:
        _found(con, provider, wanted.connection_id)
    else:
        endpoint_of(provider, "oauth", {})


def store_grant(
    con: Database, sealer: Sealer, provider: Provider, wanted: SignInTarget, tokens: Tokens
) -> Connection:
    """A sign-in by a person: its tokens become the credential of a new connection, or of the one that was
    meant, which is then as good as new.
    """
    connection = (
        _new(provider, wanted.name)
        if wanted.connection_id is None
        else _found(con, provider, wanted.connection_id)
    )
    headers = own_headers(sealer, provider, connection.provider_specific)
    connection = _with_token(connection, sealer, Credentials(tokens.access, headers))
    if wanted.connection_id is None:
        insert_connection(con, connection)
        emit(con, Event("provider.created", event_data(connection)))
    else:
        update_connection(con, connection)
        add_clear(con, Clear(connection=connection.id))
        forget_figures(con, connection.id)
        changed = {**event_data(connection), "changed": ["authType", "apiKey"]}
        emit(con, Event("provider.updated", changed))
    put_sign_in(con, _sign_in(sealer, connection, tokens))
    return connection


def store_refreshed(con: Database, sealer: Sealer, used: SignIn, tokens: Tokens) -> bool:
    """Tokens that a refresh brought; False where the sign-in is another by now, or gone."""
    now, connection = (
        find_sign_in(con, used.connection_id),
        find_connection(con, used.connection_id),
    )
    if now is None or connection is None or now.refresh_sealed != used.refresh_sealed:
        return False
    credentials = replace(open_credentials(sealer, connection), api_key=tokens.access)
    update_connection(con, _with_token(connection, sealer, credentials))
    put_sign_in(con, _sign_in(sealer, connection, tokens))
    persisted = read_persisted_states(con).get(connection.id)
    if persisted is not None and persisted.reason == EXPIRED:
        # The provider refused the old token; the new one has not been tried.
        add_clear(con, Clear(connection=connection.id))
    return True


@dataclass(frozen=True, slots=True)
class RefreshFailure:
    """Why a token was not refreshed, and when that is tried again. `is_over`: the sign-in has ended. Without
    `is_answered` the
    provider may have given new tokens all the same.
    """

    reason: str
    next_at_ms: int | None
    is_over: bool
    is_answered: bool = True


def store_failure(con: Database, used: SignIn, failure: RefreshFailure) -> bool:
    """A refresh that failed. With `is_over` its connection is used no more, and an event says so. False where
    the sign-in is
    another by now, or gone.
    """
    now, connection = (
        find_sign_in(con, used.connection_id),
        find_connection(con, used.connection_id),
    )
    if now is None or connection is None or now.refresh_sealed != used.refresh_sealed:
        return False
    error = failure.reason
    failed = replace(
        now,
        failures=now.failures + 1,
        last_error=error,
        next_at_ms=failure.next_at_ms,
        asked_at_ms=None if failure.is_answered else now.asked_at_ms,
    )
    if not failure.is_over:
        put_sign_in(con, failed)
        return True
    put_sign_in(con, replace(failed, status=EXPIRED, next_at_ms=None))
    at_ms = max(now_ms(), connection.updated_at_ms + 1)
    message = f"The sign-in has ended ({error}): sign in again."
    update_connection(
        con,
        replace(
            connection,
            test_status=EXPIRED,
            last_error=message,
            last_error_at_ms=at_ms,
            updated_at_ms=at_ms,
        ),
    )
    put_persisted_state(con, PersistedState(connection.id, "terminal", EXPIRED, None))
    emit(con, Event("provider.expired", {**event_data(connection), "reason": error}))
    return True


def _sign_in(sealer: Sealer, connection: Connection, tokens: Tokens) -> SignIn:
    at_ms = now_ms()
    sealed = None
    if tokens.refresh is not None:
        sealed = sealer.seal(refresh_token_of(connection.id), tokens.refresh.encode())
    next_at_ms = tokens.expires_at_ms
    if next_at_ms is not None and sealed is not None:
        next_at_ms -= min(REFRESH_BEFORE_MS, (next_at_ms - at_ms) // 2)
    return SignIn(
        connection.id,
        connection.provider,
        "active",
        sealed,
        tokens.expires_at_ms,
        at_ms,
        next_at_ms,
        refresh_origins=spell_origins([tokens.given_by]),
    )


def _with_token(connection: Connection, sealer: Sealer, credentials: Credentials) -> Connection:
    return replace(
        connection,
        auth_type="oauth",
        credentials_sealed=seal_credentials(sealer, connection.id, credentials),
        api_key_tail="",
        test_status=None if connection.test_status == EXPIRED else connection.test_status,
        last_error=None if connection.test_status == EXPIRED else connection.last_error,
        updated_at_ms=max(now_ms(), connection.updated_at_ms + 1),
    )


def _new(provider: Provider, name: str | None) -> Connection:
    made_at_ms = now_ms()
    endpoint_of(provider, "oauth", {})
    return Connection(
        id=str(uuid4()),
        provider=provider.id,
        auth_type="oauth",
        name=name or f"{provider.name} sign-in"[:200],
        display_name=None,
        priority=50,
        is_active=True,
        default_model=None,
        weight=1,
        max_concurrent=None,
        requests_per_minute=None,
        tokens_per_minute=None,
        min_gap_ms=None,
        queue_depth=None,
        queue_timeout_ms=None,
        quota_window_thresholds=None,
        provider_specific={},
        credentials_sealed=None,
        api_key_tail="",
        test_status=None,
        last_error=None,
        last_error_at_ms=None,
        last_tested_at_ms=None,
        models=None,
        created_at_ms=made_at_ms,
        updated_at_ms=made_at_ms,
    )


def _found(con: Database, provider: Provider, connection_id: str) -> Connection:
    connection = find_connection(con, connection_id)
    if connection is None or connection.provider != provider.id:
        raise NotFound(f"{provider.name} has no connection with this id.", param="connectionId")
    if connection.auth_type != "oauth" and connection.provider_specific.get("base_url"):
        raise InvalidRequest(
            "connectionId is a connection with a custom baseUrl, to which a token of this "
            "provider must not be sent: make a new one.",
            param="connectionId",
        )
    return connection
