"""The one task that refreshes tokens before they end.

A failed refresh is retried with growing pauses while the old token still works. `invalid_grant` ends the
sign-in. If the database does not accept new tokens at once, they are kept here and stored later, because a
provider that gives a refresh token once no longer accepts the old one. The request is recorded before it is
sent. If the process ends before the answer is stored, or no answer comes, that is reported as the reason when
the provider then refuses the old token.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Final, Self

import structlog

from fairlead.errors import FairleadError, InvalidRequest, StorageUnavailable
from fairlead.gateway.outbound.table import Proxy, proxy_for
from fairlead.gateway.providers.endpoint import find_provider
from fairlead.gateway.sign_in.client import Refused, SignInClient, Tokens, Unreached
from fairlead.gateway.sign_in.grant import RefreshFailure, store_failure, store_refreshed
from fairlead.gateway.sign_in.section import Section, find_section
from fairlead.gateway.sign_in.table import (
    SignIn,
    due_sign_ins,
    find_sign_in,
    next_due_ms,
    note_asking,
)
from fairlead.moment import now_ms
from fairlead.store.due_rows import Turns, pause_ms, run_when_due
from fairlead.store.file import Connection
from fairlead.store.seal_purposes import refresh_token_of
from fairlead.store.services import BackgroundTask, Services

STORE_AGAIN_S: Final = 1.0
# RFC 6749, section 5.2: the grant is invalid, expired or revoked. No later try can help.
OVER: Final = "invalid_grant"
LOST: Final = f"{OVER}: an answer to an earlier refresh was lost, and the new refresh token with it if there was one"

log = structlog.get_logger("fairlead.gateway")


@dataclass
class Refresher:
    """One for the process, for the task and for manual refreshes."""

    services: Services
    unwritten: dict[str, tuple[SignIn, Tokens]] = field(default_factory=dict)
    """New tokens that the database has not taken yet, by connection."""
    _turns: Turns = field(default_factory=Turns)

    @classmethod
    def of(cls, services: Services) -> Self:
        """The process's object, made when it is first needed."""
        return services.singleton(cls, lambda: cls(services))

    async def refresh_due(self) -> None:
        """Refreshes every token that is due. Raises when the database does not answer."""
        for connection_id in list(self.unwritten):
            try:
                await self._store(connection_id)
            except StorageUnavailable:
                raise
            except Exception as error:  # noqa: BLE001 - one odd row must not stop the refreshes of the others
                log.error(
                    "tokens not stored", connection_id=connection_id, error=type(error).__name__
                )
        due = await self.services.state.read(lambda con: due_sign_ins(con, now_ms()))
        async with asyncio.TaskGroup() as group:
            for sign_in in due:
                group.create_task(self._refresh_in_turn(sign_in))

    async def refresh(self, connection_id: str) -> str | None:
        """Refreshes one token now; why that failed, or None. One refresh of a connection at a time: whoever
        comes meanwhile has the first one's result.
        """
        async with self._turns.of(connection_id):
            sign_in = await self.services.state.read(lambda con: find_sign_in(con, connection_id))
            return "gone" if sign_in is None else await self._refresh(sign_in)

    async def _refresh_in_turn(self, due: SignIn) -> None:
        async with self._turns.slots, self._turns.of(due.connection_id):
            now = await self.services.state.read(lambda con: find_sign_in(con, due.connection_id))
            if now != due:
                return
            try:
                await self._refresh(now)
            except FairleadError as error:
                # Tokens that came stay in `unwritten`; anything else is tried again after a pause.
                with contextlib.suppress(FairleadError):
                    await self._fail(now, error.kind, is_over=False, is_answered=False)
            except Exception as error:  # noqa: BLE001 - one odd row must not stop the refreshes of the others
                log.error(
                    "token not refreshed",
                    connection_id=now.connection_id,
                    error=type(error).__name__,
                )
                reason = f"internal: {type(error).__name__}"
                await self._fail(now, reason, is_over=False, is_answered=False)

    async def _refresh(self, sign_in: SignIn) -> str | None:
        sealer = self.services.state.sealer
        if sign_in.connection_id in self.unwritten:
            await self._store(sign_in.connection_id)
            return None
        if sign_in.refresh_sealed is None:
            return await self._fail(sign_in, "no_refresh_token", is_over=True)

        def read(con: Connection) -> tuple[Section | None, Proxy | None]:
            provider = find_provider(con, sign_in.provider)
            proxy = proxy_for(con, sealer, sign_in.provider)
            return None if provider is None else find_section(con, sealer, provider), proxy

        section, proxy = await self.services.state.read(read)
        if section is None:
            return await self._fail(sign_in, "The provider is gone.", is_over=True)
        token = sealer.unseal(
            refresh_token_of(sign_in.connection_id), sign_in.refresh_sealed
        ).decode()
        await self.services.state.record(lambda con: note_asking(con, sign_in))
        try:
            tokens = await SignInClient(section, proxy).refresh(token, sign_in.refresh_origins)
        except Refused as error:
            is_over = error.code == OVER
            reason = LOST if is_over and sign_in.asked_at_ms is not None else error.code
            return await self._fail(sign_in, reason, is_over=is_over)
        except Unreached as error:
            # It may have been asked all the same.
            return await self._fail(sign_in, str(error), is_over=False, is_answered=False)
        except InvalidRequest as error:
            # The section lacks what a refresh needs: an operator may add it.
            return await self._fail(sign_in, str(error), is_over=False)
        self.unwritten[sign_in.connection_id] = (sign_in, tokens)
        await self._store(sign_in.connection_id)
        return None

    async def _store(self, connection_id: str) -> None:
        used, tokens = self.unwritten[connection_id]
        state = self.services.state
        await state.commit(lambda con: store_refreshed(con, state.sealer, used, tokens))
        self.unwritten.pop(connection_id, None)
        log.info("token refreshed", connection_id=connection_id, provider=used.provider)

    async def _fail(
        self, sign_in: SignIn, reason: str, *, is_over: bool, is_answered: bool = True
    ) -> str:
        next_at_ms = now_ms() + pause_ms(sign_in.failures)
        log.warning(
            "token not refreshed",
            connection_id=sign_in.connection_id,
            provider=sign_in.provider,
            reason=reason,
            is_over=is_over,
        )
        store = self.services.state.commit if is_over else self.services.state.record
        failure = RefreshFailure(reason, next_at_ms, is_over, is_answered)
        await store(lambda con: store_failure(con, sign_in, failure))
        return reason


async def _watch(services: Services) -> None:
    refresher = Refresher.of(services)
    await run_when_due(
        services.state,
        refresher.refresh_due,
        next_due_ms,
        lambda: STORE_AGAIN_S if refresher.unwritten else None,
    )


TASKS = (BackgroundTask("gateway.sign-ins", _watch),)
