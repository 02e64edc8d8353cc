"""`/api/oauth/<provider>/<action>`: sign in at a provider, and keep the sign-in.

The access token becomes the credential of a connection, sealed as a key is; the refresh token stays here.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from pydantic import SecretStr

from fairlead.errors import InvalidRequest, NotFound, RateLimited
from fairlead.gateway.outbound.table import Proxy, proxy_for
from fairlead.gateway.providers.endpoint import Provider, resolve_provider
from fairlead.gateway.providers.table import Connection as ProviderConnection
from fairlead.gateway.providers.table import find_connection
from fairlead.gateway.providers.views import ConnectionView, show_connection
from fairlead.gateway.resilience.states import ConnectionStates
from fairlead.gateway.resilience.table import read_persisted_states
from fairlead.gateway.sign_in.browser import (
    callback_url,
    finish,
    flow_id,
    section_of,
    store_tokens,
)
from fairlead.gateway.sign_in.client import (
    Refused,
    SignInClient,
    Tokens,
    Unreached,
    as_answer,
)
from fairlead.gateway.sign_in.fields import (
    Authorization,
    Authorize,
    DeviceAuthorization,
    Exchange,
    Import,
    Poll,
    Polled,
    Refresh,
    SignedIn,
    SignInSettings,
    SignInView,
    Target,
)
from fairlead.gateway.sign_in.grant import SignInTarget, check_sign_in_target
from fairlead.gateway.sign_in.refresher import Refresher
from fairlead.gateway.sign_in.section import (
    MASK,
    ClientSecret,
    Section,
    SectionChange,
    StoredSection,
    drop_section,
    put_section,
    show_section,
)
from fairlead.gateway.sign_in.table import (
    Flow,
    SignIn,
    add_flow,
    bind_unbound,
    drop_flow,
    find_flow,
    find_sign_in,
    note_asked,
    sign_ins_of,
)
from fairlead.moment import moment_of, now_ms
from fairlead.net.secret_origin import check_given_for, is_given_for, spell_origins
from fairlead.net.url import split_url
from fairlead.store.file import Connection
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/api/oauth/{provider}", tags=["providers"])

FLOW_MS = 600_000
SLOWER_MS = 5_000
PENDING = ("authorization_pending", "slow_down")
ENDED: Mapping[str, Literal["denied", "expired"]] = {
    "access_denied": "denied",
    "expired_token": "expired",
}


@router.post("/authorize", summary="Start a sign-in at a provider in a browser")
async def authorize(
    provider: str, body: Authorize, request: Request, services: ServicesDep
) -> Authorization:
    """Without a `redirectUri` the browser returns to `callback`, which finishes the sign-in."""
    sealer, state, verifier = services.state.sealer, _secret(), _secret()

    def begin(con: Connection) -> tuple[str, Flow]:
        found, section = section_of(con, services, provider)
        check_sign_in_target(con, found, _wanted(body))
        redirect_uri = body.redirect_uri or section.fields.redirect_uri
        redirect_uri = redirect_uri or callback_url(services.config, request, found)
        url = SignInClient(section, None).authorization_url(state, verifier, redirect_uri)
        flow = _flow(found, "code", state, body, sealer.seal(flow_id(state), verifier.encode()))
        origins = spell_origins([section.fields.token_url])
        flow = replace(flow, redirect_uri=redirect_uri, origins=origins)
        add_flow(con, flow)
        return url, flow

    url, flow = await services.state.record(begin)
    return Authorization.model_construct(
        authorization_url=url, state=state, expires_at=moment_of(flow.expires_at_ms)
    )


@router.post("/exchange", summary="Finish such a sign-in with what the browser came back with")
async def exchange(provider: str, body: Exchange, services: ServicesDep) -> SignedIn:
    """A state works once, whatever the result."""
    code, state = _read_back(body)
    connection = await finish(services, provider, code, state)
    return SignedIn.model_construct(connection=await _shown(services, connection))


@router.post("/device-code", summary="Start a sign-in at a provider on another device")
async def device_code(provider: str, body: Target, services: ServicesDep) -> DeviceAuthorization:
    sealer, state = services.state.sealer, _secret()

    def read(con: Connection) -> tuple[Provider, Section, Proxy | None]:
        found, section = section_of(con, services, provider)
        check_sign_in_target(con, found, _wanted(body))
        return found, section, proxy_for(con, sealer, found.id)

    found, section, proxy = await services.state.read(read)
    try:
        device = await SignInClient(section, proxy).begin_device()
    except (Refused, Unreached) as error:
        raise as_answer(error) from None
    sealed = sealer.seal(flow_id(state), device.device_code.encode())
    flow = replace(
        _flow(found, "device", state, body, sealed),
        interval_ms=device.interval_s * 1000,
        asked_at_ms=now_ms(),
        expires_at_ms=now_ms() + device.expires_in_s * 1000,
        origins=spell_origins([section.fields.token_url]),
    )
    await services.state.record(lambda con: add_flow(con, flow))
    return DeviceAuthorization.model_construct(
        user_code=device.user_code,
        verification_uri=device.verification_uri,
        verification_uri_complete=device.verification_uri_complete,
        state=state,
        interval_ms=device.interval_s * 1000,
        expires_at=moment_of(flow.expires_at_ms),
    )


@router.post("/poll", summary="Ask whether that sign-in is done")
async def poll(provider: str, body: Poll, services: ServicesDep) -> Polled:
    """The gateway asks the provider at most every `intervalMs`, however often you call this."""

    def take(con: Connection) -> tuple[Provider, Section, Proxy | None, Flow]:
        found, section = section_of(con, services, provider)
        flow = find_flow(con, flow_id(body.state), found.id, "device")
        wait_ms = (flow.asked_at_ms or 0) + (flow.interval_ms or 0) - now_ms()
        if wait_ms > 0:
            raise RateLimited(
                "The provider was asked a moment ago.", retry_after_s=-(-wait_ms // 1000)
            )
        note_asked(con, flow.id, flow.interval_ms or 0)
        return found, section, proxy_for(con, services.state.sealer, found.id), flow

    found, section, proxy, flow = await services.state.record(take)
    code = services.state.sealer.unseal(flow.id, flow.secret_sealed).decode()
    interval_ms = flow.interval_ms or 0
    try:
        tokens = await SignInClient(section, proxy).poll_device(code, flow.origins)
    except Unreached as error:
        raise as_answer(error) from None
    except Refused as error:
        if error.code not in PENDING:
            await services.state.record(lambda con: drop_flow(con, flow.id))
            if error.code not in ENDED:
                raise as_answer(error) from None
            return Polled.model_construct(
                status=ENDED[error.code], interval_ms=None, connection=None
            )
        if error.code == "slow_down":
            interval_ms += SLOWER_MS
            await services.state.record(lambda con: note_asked(con, flow.id, interval_ms))
        return Polled.model_construct(status="pending", interval_ms=interval_ms, connection=None)
    signed_in = await _signed_in(services, found, flow, tokens)
    return Polled.model_construct(status="done", interval_ms=None, connection=signed_in.connection)


@router.post("/import", summary="Take tokens that were got elsewhere")
async def take_in(provider: str, body: Import, services: ServicesDep) -> SignedIn:
    sealer = services.state.sealer

    def read(con: Connection) -> tuple[Provider, Section, Proxy | None]:
        found, section = section_of(con, services, provider)
        check_sign_in_target(con, found, _wanted(body))
        return found, section, proxy_for(con, sealer, found.id)

    found, section, proxy = await services.state.read(read)
    refresh = None if body.refresh_token is None else body.refresh_token.get_secret_value()
    if body.access_token is not None:
        expires_at_ms = None if body.expires_in is None else now_ms() + body.expires_in * 1000
        access = body.access_token.get_secret_value()
        tokens = Tokens(access, refresh, expires_at_ms, section.fields.token_url)
    else:
        try:
            # A caller that sends the token sends it for the address that is in force.
            tokens = await SignInClient(section, proxy).refresh(refresh or "", None)
        except (Refused, Unreached) as error:
            raise as_answer(error) from None
    return await _signed_in(services, found, body, tokens)


@router.post("/refresh", summary="Refresh a connection's token now")
async def refresh(provider: str, body: Refresh, services: ServicesDep) -> SignedIn:
    def check(con: Connection) -> SignIn:
        found = resolve_provider(con, provider)
        sign_in = find_sign_in(con, body.connection_id)
        if sign_in is None or sign_in.provider != found.id:
            raise NotFound("No sign-in is behind this connection.", param="connectionId")
        return sign_in

    await services.state.read(check)
    failure = await Refresher.of(services).refresh(body.connection_id)
    if failure is not None:
        raise InvalidRequest(f"The token was not refreshed: {failure}", param="connectionId")
    connection = await services.state.read(lambda con: find_connection(con, body.connection_id))
    if connection is None:
        raise NotFound("The connection was deleted meanwhile.", param="connectionId")
    return SignedIn.model_construct(connection=await _shown(services, connection))


@router.get("/settings", summary="How people sign in at a provider, and who has")
async def settings(provider: str, request: Request, services: ServicesDep) -> SignInSettings:
    return await services.state.read(lambda con: _settings(con, services, provider, request))


@router.put("/settings", summary="Set a client at a provider, or its addresses")
async def change_settings(
    provider: str, body: SectionChange, request: Request, services: ServicesDep
) -> SignInSettings:
    """Replaces what was set before; what is null is as the provider's file says it."""

    def update(con: Connection) -> SignInSettings:
        found, before = section_of(con, services, provider)
        bind_unbound(con, found.id, spell_origins([before.fields.token_url]))
        own = StoredSection(**body.model_dump(exclude={"client_secret"}))
        put_section(con, services.state.sealer, found.id, own, None)
        _, after = section_of(con, services, provider)
        secret = _client_secret(before, after, body.client_secret)
        put_section(con, services.state.sealer, found.id, own, secret)
        _check_tokens_kept(con, after)
        return _settings(con, services, provider, request)

    return await services.state.record(update)


@router.delete("/settings", summary="Delete the client at a provider")
async def forget_settings(provider: str, request: Request, services: ServicesDep) -> SignInSettings:
    def delete_row(con: Connection) -> SignInSettings:
        found, before = section_of(con, services, provider)
        bind_unbound(con, found.id, spell_origins([before.fields.token_url]))
        if not drop_section(con, found.id):
            raise NotFound("No client is set.", param="provider")
        _, after = section_of(con, services, provider)
        _check_tokens_kept(con, after)
        return _settings(con, services, provider, request)

    return await services.state.record(delete_row)


def _client_secret(before: Section, after: Section, sent: SecretStr | None) -> ClientSecret | None:
    """The client secret to store: a new one for the addresses that it comes with, or the stored one, whose origins
    stay. `InvalidRequest` where the stored one would be sent elsewhere.
    """
    if sent is None:
        return None
    if sent.get_secret_value() != MASK:
        return ClientSecret(sent.get_secret_value(), spell_origins(after.secret_addresses()))
    if before.client_secret is None:
        return None
    origins = before.secret_origins or spell_origins(before.secret_addresses())
    for url in after.secret_addresses():
        check_given_for("clientSecret", origins, url)
    return ClientSecret(before.client_secret, origins)


def _check_tokens_kept(con: Connection, after: Section) -> None:
    """`InvalidRequest` where stored refresh tokens would be sent to another host than the one that gave them."""
    url = after.fields.token_url
    if url is None:
        return
    refreshed = [each for each in sign_ins_of(con, after.provider) if each.refresh_sealed]
    if not all(is_given_for(each.refresh_origins, url) for each in refreshed):
        raise InvalidRequest(
            "tokenUrl leads to another host than the tokens of this provider's sign-ins were given for: "
            "delete their connections first.",
            param="tokenUrl",
        )


def _settings(
    con: Connection, services: Services, provider: str, request: Request
) -> SignInSettings:
    found, section = section_of(con, services, provider)
    return SignInSettings.model_construct(
        provider=found.id,
        is_own=section.is_own,
        callback_url=callback_url(services.config, request, found),
        section=show_section(section),
        sign_ins=[_sign_in_view(each) for each in sign_ins_of(con, found.id)],
    )


def _sign_in_view(sign_in: SignIn) -> SignInView:
    def moment(ms: int | None) -> Any:
        return None if ms is None else moment_of(ms)

    return SignInView.model_construct(
        connection_id=sign_in.connection_id,
        status=sign_in.status,
        expires_at=moment(sign_in.expires_at_ms),
        refreshed_at=moment_of(sign_in.refreshed_at_ms),
        next_refresh_at=moment(sign_in.next_at_ms),
        failures=sign_in.failures,
        last_error=sign_in.last_error,
    )


def _read_back(body: Exchange) -> tuple[str, str]:
    """Code and state, out of the body or of the address that it holds."""
    text = body.code.get_secret_value().strip()
    try:
        parameters = dict(parse_qsl(split_url(text).query)) if "://" in text else {"code": text}
    except ValueError:
        raise InvalidRequest(
            "code is neither a code nor the address with it.", param="code"
        ) from None
    if "error" in parameters:
        raise InvalidRequest(
            f"The provider refused the sign-in with `{parameters['error'][:100]}`.", param="code"
        )
    state = body.state or parameters.get("state")
    if state is None:
        raise InvalidRequest("state is required with a bare code.", param="state")
    if not parameters.get("code"):
        raise InvalidRequest("code is not in this address.", param="code")
    return parameters["code"], state


async def _signed_in(
    services: Services, provider: Provider, sign_in: Flow | Target, tokens: Tokens
) -> SignedIn:
    connection = await store_tokens(services, provider, sign_in, tokens)
    return SignedIn.model_construct(connection=await _shown(services, connection))


async def _shown(services: Services, connection: ProviderConnection) -> ConnectionView:
    states = ConnectionStates(services, await services.state.read(read_persisted_states))
    return show_connection(connection, states.of(connection.id, is_active=connection.is_active))


def _wanted(target: Target) -> SignInTarget:
    return SignInTarget(target.connection_id, target.name)


def _flow(provider: Provider, kind: Any, state: str, target: Target, sealed: bytes) -> Flow:
    return Flow(
        flow_id(state),
        provider.id,
        kind,
        target.connection_id,
        target.name,
        sealed,
        None,
        None,
        None,
        now_ms() + FLOW_MS,
    )


def _secret() -> str:
    return secrets.token_urlsafe(48)
