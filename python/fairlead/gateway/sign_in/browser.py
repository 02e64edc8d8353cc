"""The end of a sign-in in a browser: the code that the provider gave becomes the credential of a connection.

Anyone who knows the state can finish the sign-in. It cannot be guessed, works once and for ten minutes, and
only a person who can manage sign-ins has started one.
"""

from __future__ import annotations

import hashlib

from starlette.requests import Request

from fairlead.calls.origin import public_base
from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.outbound.table import Proxy, proxy_for
from fairlead.gateway.providers.endpoint import Provider, resolve_provider
from fairlead.gateway.providers.table import Connection as ProviderConnection
from fairlead.gateway.sign_in.client import Refused, SignInClient, Tokens, Unreached, as_answer
from fairlead.gateway.sign_in.fields import Target
from fairlead.gateway.sign_in.grant import SignInTarget, store_grant
from fairlead.gateway.sign_in.section import Section, find_section
from fairlead.gateway.sign_in.table import Flow, drop_flow, find_flow
from fairlead.settings import ServeFields
from fairlead.store.file import Connection
from fairlead.store.services import Services


def callback_url(config: ServeFields, request: Request, provider: Provider) -> str:
    """The default redirect URL after a provider's sign-in page; it is registered there."""
    return f"{public_base(config, request)}/api/oauth/{provider.id}/callback"


def flow_id(state: str) -> str:
    """The hash that is stored in place of a state."""
    return hashlib.sha256(state.encode()).hexdigest()


def section_of(con: Connection, services: Services, name: str) -> tuple[Provider, Section]:
    """The provider of this name and how people sign in there; `NotFound`."""
    try:
        provider = resolve_provider(con, name)
    except InvalidRequest as error:
        raise NotFound(error.message, param="provider") from None
    return provider, find_section(con, services.state.sealer, provider)


async def take_flow(
    services: Services, name: str, state: str
) -> tuple[Provider, Section, Proxy | None, Flow]:
    """The sign-in in progress with this state, which is used up by this; raises `InvalidRequest`."""

    def take(con: Connection) -> tuple[Provider, Section, Proxy | None, Flow]:
        found, section = section_of(con, services, name)
        flow = find_flow(con, flow_id(state), found.id, "code")
        drop_flow(con, flow.id)
        return found, section, proxy_for(con, services.state.sealer, found.id), flow

    return await services.state.record(take)


async def finish(services: Services, name: str, code: str, state: str) -> ProviderConnection:
    """The connection that has its tokens now. A state is used once, even if the sign-in fails."""
    found, section, proxy, flow = await take_flow(services, name, state)
    verifier = services.state.sealer.unseal(flow.id, flow.secret_sealed).decode()
    try:
        tokens = await SignInClient(section, proxy).exchange(
            code, verifier, flow.redirect_uri, flow.origins
        )
    except (Refused, Unreached) as error:
        raise as_answer(error) from None
    return await store_tokens(services, found, flow, tokens)


async def store_tokens(
    services: Services, provider: Provider, sign_in: Flow | Target, tokens: Tokens
) -> ProviderConnection:
    """The new connection, or the one that was meant, with these tokens."""
    state, wanted = services.state, SignInTarget(sign_in.connection_id, sign_in.name)

    def store(con: Connection) -> ProviderConnection:
        if isinstance(sign_in, Flow):
            drop_flow(con, sign_in.id)
        return store_grant(con, state.sealer, provider, wanted, tokens)

    return await state.commit(store)
