"""`/api/settings/ip-filter`: lists of addresses that may call the gateway, or may not, and timed bans.

The relay judges every request by it before it looks for a credential. This machine is always let in.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from fairlead.calls.caller import CallerDep
from fairlead.calls.origin import address_of
from fairlead.errors import Conflict, InvalidRequest
from fairlead.gateway.ip_filter.fields import (
    BANS_MAX,
    ENTRIES_MAX,
    BanView,
    IpFilterChange,
    IpFilterView,
    StoredBan,
    StoredFilter,
)
from fairlead.gateway.ip_filter.table import read_filter, write_filter
from fairlead.gateway.settings.router import REVISION
from fairlead.moment import moment_of, now_ms
from fairlead.store.file import Connection
from fairlead.store.meta import read_meta
from fairlead.store.outbox import Event, emit
from fairlead.store.services import ServicesDep

router = APIRouter(prefix="/api/settings/ip-filter", tags=["settings"])


@router.get("", summary="From which addresses the gateway may be called")
async def show(services: ServicesDep) -> IpFilterView:
    return _view(await services.state.read(read_filter))


@router.put("", summary="Change the lists of addresses, or ban one for a time")
async def change(
    body: IpFilterChange, request: Request, services: ServicesDep, caller: CallerDep
) -> IpFilterView:
    """In force in every relay worker when it is answered. A change that would lock its own caller out is
    refused.
    """
    own = address_of(request, caller, services.config)

    def update(con: Connection) -> StoredFilter:
        after = _changed(read_filter(con), body)
        if not after.admits(own, now_ms()):
            raise Conflict(
                f"The address that you call from ({own}) would be locked out: make the change "
                "from another one, or on the gateway's own machine."
            )
        write_filter(con, after)
        revision = int(read_meta(con, REVISION) or 0)
        event_data = {"settingsRevision": revision, "changed": ["ipFilter"]}
        emit(con, Event("settings.updated", event_data))
        return after

    return _view(await services.state.commit(update))


def _changed(before: StoredFilter, change: IpFilterChange) -> StoredFilter:
    sent = change.model_fields_set
    plain: dict[str, Any] = {
        name: getattr(change, name)
        for name in ("enabled", "mode", "blacklist", "whitelist")
        if name in sent
    }
    after = before.model_copy(update=plain)
    after.blacklist = _edited(
        "blacklist", after.blacklist, change.add_blacklist, change.remove_blacklist
    )
    after.whitelist = _edited(
        "whitelist", after.whitelist, change.add_whitelist, change.remove_whitelist
    )
    after.bans = list(after.bans)
    if change.remove_ban is not None:
        after.bans = [ban for ban in after.bans if ban.ip != change.remove_ban]
    if change.temp_ban is not None:
        new = change.temp_ban
        after.bans = [ban for ban in after.bans if ban.ip != new.ip]
        if len(after.bans) >= BANS_MAX:
            raise InvalidRequest(f"tempBan: there are {BANS_MAX} bans already.", param="tempBan")
        until_ms = now_ms() + new.duration_ms
        after.bans.append(StoredBan(ip=new.ip, until_ms=until_ms, reason=new.reason))
    return after


def _edited(
    name: str, before: list[str], added: str | list[str] | None, removed: str | list[str] | None
) -> list[str]:
    gone = set(_listed(removed))
    entries = list(dict.fromkeys([*before, *_listed(added)]))
    after = [each for each in entries if each not in gone]
    if len(after) > ENTRIES_MAX:
        raise InvalidRequest(f"{name} takes at most {ENTRIES_MAX} entries.", param=name)
    return after


def _listed(sent: str | list[str] | None) -> list[str]:
    return [sent] if isinstance(sent, str) else sent or []


def _view(found: StoredFilter) -> IpFilterView:
    return IpFilterView.model_construct(
        enabled=found.enabled,
        mode=found.mode,
        blacklist=found.blacklist,
        whitelist=found.whitelist,
        bans=[
            BanView.model_construct(ip=ban.ip, until=moment_of(ban.until_ms), reason=ban.reason)
            for ban in found.bans
        ],
    )
