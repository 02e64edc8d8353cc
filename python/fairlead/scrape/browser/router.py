"""Browser sessions: open one, work in it, scrape what it shows, close it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path as File
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Query, Response

from fairlead.errors import InvalidRequest
from fairlead.scrape.address import check_url
from fairlead.scrape.browser.sessions import Session
from fairlead.scrape.calls import answer_deadline
from fairlead.scrape.fetch.fetcher import FetchFailed
from fairlead.scrape.limits.owner import BaseDep, OwnerDep
from fairlead.scrape.model.forms import ModelFailed
from fairlead.scrape.requests.browser import SessionAction, SessionRequest
from fairlead.scrape.scraper import Scraper, scraper_of
from fairlead.store.key_watch import end_with_keys
from fairlead.store.services import Services, ServicesDep

router = APIRouter(prefix="/api/browser/sessions", tags=["scraping"])

EXPIRE_EVERY_S = 5.0

T = TypeVar("T")

Number = Annotated[int, Query(ge=1, le=1_000_000)]

_SCRAPE_ONLY_FORMATS: Final = frozenset(["screenshot", "pdf", "mhtml", "changeTracking"])


@router.post("", status_code=201, summary="Open a browser session")
async def create(
    ask: SessionRequest, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """Opens a separate tab, at `initialUrl` or empty. It ends after 5 idle minutes, and after 30 in all."""
    scraper = scraper_of(services)
    url = check_url(ask.initial_url, scraper.egress, "initialUrl") if ask.initial_url else None
    async with answer_deadline():
        session = await _or_refusal(scraper.sessions.create(owner, ask))
        if url is not None:
            try:
                await _act(
                    scraper, session, SessionAction.model_validate({"type": "navigate", "url": url})
                )
            except BaseException:
                # The caller has no id yet, so it could not close the session.
                await scraper.sessions.close(session)
                raise
    return {"success": True, "session": _view(session, base)}


@router.get("", summary="List browser sessions")
async def sessions(services: ServicesDep, owner: OwnerDep, base: BaseDep) -> dict[str, Any]:
    """The caller's sessions, oldest first."""
    own = scraper_of(services).sessions.of(owner)
    return {"success": True, "count": len(own), "sessions": [_view(one, base) for one in own]}


@router.get("/{session_id}", summary="A browser session")
async def one(
    session_id: str, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """The session's address, its expiry, and its files."""
    session = scraper_of(services).sessions.find(session_id, owner)
    return {"success": True, "session": _view(session, base)}


@router.delete("/{session_id}", summary="Close a browser session")
async def close(session_id: str, services: ServicesDep, owner: OwnerDep) -> dict[str, Any]:
    """Closes the session; its cookies and files are deleted when this returns."""
    open_sessions = scraper_of(services).sessions
    await open_sessions.close(open_sessions.find(session_id, owner))
    return {"success": True, "closed": True}


@router.post("/{session_id}/action", summary="Do something in a browser session")
async def act(
    session_id: str, ask: SessionAction, services: ServicesDep, owner: OwnerDep, base: BaseDep
) -> dict[str, Any]:
    """One action; an action that fails is 400 and leaves the session open, unless it hung."""
    scraper = scraper_of(services)
    session = scraper.sessions.find(session_id, owner)
    async with answer_deadline():
        result = await _act(scraper, session, ask)
    return {"success": True, "result": result, "session": _view(session, base)}


@router.get("/{session_id}/download", summary="A file that a session downloaded")
async def download(
    session_id: str, services: ServicesDep, owner: OwnerDep, number: Number = 1
) -> Response:
    """The bytes of the file with this number, as an attachment."""
    open_sessions = scraper_of(services).sessions
    file = open_sessions.file(open_sessions.find(session_id, owner), number)
    return Response(
        await asyncio.to_thread(File.read_bytes, file.path),
        media_type="application/octet-stream",
        headers={
            "content-disposition": f"attachment; filename*=UTF-8''{quote(file.name, safe='')}",
            "x-content-type-options": "nosniff",
        },
    )


async def _act(scraper: Scraper, session: Session, ask: SessionAction) -> dict[str, Any]:
    if ask.type == "navigate":
        url = check_url(ask.url or "", scraper.egress)
        ask = ask.model_copy(update={"url": url})

        async def navigate() -> dict[str, Any]:
            async with scraper.admit(url):
                return await scraper.sessions.act(session, ask)

        return await _or_refusal(navigate())
    if ask.type == "scrape":
        if unavailable := sorted(_SCRAPE_ONLY_FORMATS.intersection(ask.options.formats)):
            raise InvalidRequest(
                f"{unavailable[0]} is not available as a format in a session: scrape with options.sessionId.",
                param="options.formats",
            )
        content = await _or_refusal(
            scraper.sessions.act(session, SessionAction.model_validate({"type": "content"}))
        )
        return await _or_refusal(
            scraper.document_of(content["url"], content["content"], ask.options, session.owner)
        )
    return await _or_refusal(scraper.sessions.act(session, ask))


async def _or_refusal(call: Awaitable[T]) -> T:
    """The call's result; a `FetchFailed` becomes the `InvalidRequest` that the caller is answered with."""
    try:
        return await call
    except ModelFailed as failure:
        raise failure.error from None
    except FetchFailed as failure:
        raise failure.as_refusal() from None


def _view(session: Session, base: str) -> dict[str, Any]:
    files = [
        {
            "number": file.number,
            "name": file.name,
            "size": file.size_bytes,
            "url": f"{base}/api/browser/sessions/{session.id}/download?number={file.number}",
        }
        for file in session.downloads.files
    ]
    refused = session.downloads.refused
    return {**session.view(), "downloads": files, **({"refused": refused} if refused else {})}


async def expire_sessions(services: Services) -> None:
    """Closes sessions whose time is over, or whose key is no longer in force; lasts until it is cancelled."""

    def working_for() -> set[str]:
        scraper = services.existing(Scraper)
        return set() if scraper is None else scraper.sessions.owners()

    async def close(reasons: dict[str, str]) -> None:
        scraper = services.existing(Scraper)
        if scraper is not None:
            await scraper.sessions.close_of(reasons)

    async with asyncio.TaskGroup() as group:
        group.create_task(end_with_keys(services.state, working_for, close))
        group.create_task(_expire(services))


async def _expire(services: Services) -> None:
    while True:
        await asyncio.sleep(EXPIRE_EVERY_S)
        scraper = services.existing(Scraper)
        if scraper is not None:
            await scraper.sessions.expire()
