"""`/dashboard`: one route for every page of the console.

A page without a session redirects to the sign-in, and from there back to the page. Forms are answered by a
redirection, so that a page can be loaded again; an error is shown beside its field, with the typed text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated
from urllib.parse import SplitResult, parse_qsl, urlencode

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse, StreamingResponse

from fairlead.calls.caller import Caller, CallerDep
from fairlead.dashboard.api import Api, Refused, not_there, refused
from fairlead.dashboard.live import Events, LivePages, Parts, compressed, stream
from fairlead.dashboard.page import Action, Failure, Page, View, Visit
from fairlead.dashboard.registry import all_pages, find_page
from fairlead.dashboard.render import ICON, SCRIPT, STYLE, Toast, answer, parts, takes_gzip
from fairlead.dashboard.undo import Undos
from fairlead.errors import FairleadError, Forbidden, InvalidRequest
from fairlead.net.url import split_url
from fairlead.records.people import Person, find_owner_person, find_person
from fairlead.store.services import Services, ServicesDep, services_of
from fairlead.style.page_style import THEME_COOKIE, THEMES, asset
from fairlead.text.html_form import read_form

router = APIRouter(tags=["pages"])

# A combo has 100 steps with five fields each.
FIELDS_MAX = 700
ADDRESS_MAX = 4000
# Paths that pages had before.
REDIRECTS = {"cli-tools": "cli-code", "agents": "acp-agents"}
YEAR_S = 365 * 86_400
UNDO = "undo"

Below = Annotated[str, Path(max_length=ADDRESS_MAX)]


@router.get("/dashboard", response_class=HTMLResponse, summary="The console's first page")
async def console(request: Request, services: ServicesDep, caller: CallerDep) -> Response:
    """Like every page of the console, it redirects people who cannot manage the gateway to the board."""
    person = await _person(services, caller)
    if person is not None and not person.manages:
        return RedirectResponse("/board", 302, {"cache-control": "no-store"})
    return await _show(request, services, caller, "")


@router.get("/dashboard/{path:path}", response_class=HTMLResponse, summary="A page of the console")
async def console_page(
    request: Request, services: ServicesDep, caller: CallerDep, path: Below
) -> Response:
    """A page by its path; `?part=` gives one part of it. Beside the pages are `console.css`,
    `console.js`, `console.svg` and `live`, a stream of events with the parts of an open page that change.
    """
    if path == "console.css":
        return asset(STYLE, "text/css; charset=utf-8")
    if path == "console.js":
        return asset(SCRIPT, "text/javascript; charset=utf-8")
    if path == "console.svg":
        return asset(ICON, "image/svg+xml")
    if path == "live":
        return await _live(request, services, caller)
    if path in REDIRECTS:
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(f"/dashboard/{REDIRECTS[path]}{query}", 308)
    return await _show(request, services, caller, path)


@router.post(
    "/dashboard/{path:path}",
    response_class=HTMLResponse,
    summary="Submit a form of the console",
)
async def console_form(
    request: Request, services: ServicesDep, caller: CallerDep, path: Below
) -> Response:
    """Redirects to a page with the created or changed record."""
    person = await _person(services, caller)
    if person is None:
        return _sign_in(request)
    try:
        fields = read_form(await request.body(), FIELDS_MAX)
    except FairleadError as error:
        return _failed(_visit(request, path, person), refused(error))
    if path == "theme":
        return _choose_theme(fields)
    if path == "undo":
        return await _undo(services, _visit(request, path, person), fields)
    page, visit = _find("" if path == "home" else path, request, person)
    name = fields.pop("act", "")
    action = page.actions.get(name) if page is not None else None
    try:
        if page is None or action is None:
            raise refused(
                InvalidRequest("The form names no known action: send it as the page does.")
            )
        _check_right(page, person)
        return await _do(page, visit, action, (name, fields))
    except Refused as failure:
        return _failed(visit, failure)


async def _show(request: Request, services: Services, caller: Caller, path: str) -> Response:
    person = await _person(services, caller)
    if person is None:
        return _sign_in(request)
    page, visit = _find(path, request, person)
    try:
        if page is None:
            raise not_there("page")
        _check_right(page, person)
        view = await page.show(visit)
    except Refused as failure:
        return _failed(visit, failure)
    if isinstance(view, Response):
        return view
    part = request.query_params.get("part")
    if part is not None and part.isidentifier():
        return HTMLResponse(
            parts(page, visit, view, [part]).get(part, ""), headers={"cache-control": "no-store"}
        )
    return answer(page, visit, view, _toast(services, visit))


async def _do(
    page: Page, visit: Visit, action: Action, sent: tuple[str, dict[str, str]]
) -> Response:
    name, fields = sent
    is_confirmed = fields.pop("confirmed", "") == "yes"
    if action.ask is not None and not is_confirmed:
        question = await action.ask(visit, fields)
        hidden = {**fields, "act": name, "confirmed": "yes"}
        page_url = _address(visit.request)
        view = View("confirm.html", {"question": question, "hidden": hidden, "place": page_url})
        return answer(page, visit, view)
    try:
        undo = await action.undo(visit, fields) if action.undo is not None else None
        result = await action.run(visit, fields)
    except Refused as error:
        visit = replace(visit, failure=Failure(name, error.message, error.param, fields))
        shown = await page.show(visit)
        if isinstance(shown, View):
            return answer(page, visit, replace(shown, status=error.status))
        return shown
    if isinstance(result, View):
        return answer(page, visit, result)
    if isinstance(result, Response):
        return result
    outcome = {"done": f"{page.path}:{name}"}
    if undo is not None:
        outcome[UNDO] = _undos(services_of(visit.request)).keep(visit.person.id, undo)
    return _back(result, outcome)


def _back(page_url: str, outcome: Mapping[str, str]) -> Response:
    """To a page below `/dashboard`, which says what was done."""
    target, _, words = page_url.partition("?")
    query = "&".join(filter(None, (words, urlencode(outcome))))
    return RedirectResponse(f"/dashboard{target}?{query}", 303, {"cache-control": "no-store"})


async def _undo(services: Services, visit: Visit, fields: Mapping[str, str]) -> Response:
    """Brings back what the person has destroyed."""
    try:
        undo = _undos(services).take(visit.person.id, fields.get(UNDO, ""))
        await visit.api.send(undo.method, undo.path, undo.body)
    except FairleadError as error:
        return _failed(visit, refused(error))
    except Refused as failure:
        return _failed(visit, failure)
    return _back(undo.page_url, {"done": UNDO})


def _undos(services: Services) -> Undos:
    return services.singleton(Undos, Undos)


async def _live(request: Request, services: Services, caller: Caller) -> Response:
    """The stream of an open page, whose address is in `at`."""
    person = await _person(services, caller)
    if person is None:
        return Response(status_code=204)  # tells the browser not to come back
    at = _page_address(request.query_params.get("at", ""))
    page, visit = _find(at.path.removeprefix("/dashboard").strip("/"), request, person)
    if page is None or (page.right == "manage" and not person.manages):
        return Response(status_code=204)
    visit = replace(visit, query=_query(at.query))
    pages = services.singleton(LivePages, LivePages)
    # Who has the same rights is shown the same.
    rights = (caller.principal.kind, *sorted(caller.principal.scopes))
    key = (at.path, at.query, *rights)

    async def make() -> Parts:
        try:
            view = await page.show(visit)
        except Refused:
            return {}  # as it was, until it can be read again
        return parts(page, visit, view, view.live) if isinstance(view, View) else {}

    async def read() -> Events:
        return await pages.events(key, make)

    # A tab that comes, or comes back, to a page that others look at has what they have.
    if not await read():
        return Response(status_code=204)
    pages.open()
    frames, headers = stream(pages, read), {"cache-control": "no-store", "vary": "accept-encoding"}
    if takes_gzip(request):
        packed = compressed(frames)
        headers["content-encoding"] = "gzip"
        return StreamingResponse(packed, media_type="text/event-stream", headers=headers)
    return StreamingResponse(frames, media_type="text/event-stream", headers=headers)


def _find(path: str, request: Request, person: Person) -> tuple[Page | None, Visit]:
    found = find_page(path)
    if found is None:
        return None, _visit(request, path, person)
    page, params = found
    return page, _visit(request, path, person, params)


def _visit(
    request: Request, path: str, person: Person, params: Mapping[str, str] | None = None
) -> Visit:
    page_url = f"/dashboard/{path}".rstrip("/")
    return Visit(request, page_url, person, Api(request), dict(request.query_params), params or {})


def _query(text: str) -> dict[str, str]:

    return dict(parse_qsl(text, max_num_fields=50))


def _check_right(page: Page, person: Person) -> None:
    if page.right == "manage" and not person.manages:
        raise refused(
            Forbidden(
                "Your account does not manage this gateway. Ask its owner for the role admin."
            )
        )


def _toast(services: Services, visit: Visit) -> Toast | None:
    """Words about the form that led here. The address names it, and cannot say anything else."""
    done = visit.query.get("done", "")
    if done == UNDO:
        return Toast("It is back as it was.")
    path, _, name = done.partition(":")
    page = next((page for page in all_pages() if page.path == path), None)
    action = page.actions.get(name) if page is not None else None
    if action is None:
        return None
    token = visit.query.get(UNDO, "")
    return Toast(action.done, token if _undos(services).has(visit.person.id, token) else None)


def _failed(visit: Visit, failure: Refused) -> Response:
    view = View("failed.html", {"message": failure.message, "code": failure.status})
    return answer(None, visit, replace(view, status=failure.status))


def _page_address(text: str) -> SplitResult:
    """The parts of the address of a page, which a visitor may have changed."""
    try:
        return split_url(text[:ADDRESS_MAX])
    except ValueError:
        return split_url("")


def _choose_theme(fields: Mapping[str, str]) -> Response:
    theme = next((theme for theme in THEMES if theme == fields.get("theme")), "auto")
    back = _page_address(fields.get("back", ""))
    # Not to another site: the path alone counts, and it is one of these two.
    first = back.path.split("/")[1:2]
    path = back.path if first in (["dashboard"], ["board"]) else "/dashboard"
    chosen = RedirectResponse(path, 303, {"cache-control": "no-store"})
    chosen.set_cookie(THEME_COOKIE, theme, YEAR_S, path="/", samesite="lax", httponly=True)
    return chosen


async def _person(services: Services, caller: Caller) -> Person | None:
    """The person of a session, the owner for the local command line, None for other callers."""
    principal = caller.principal
    if principal.kind == "session" and principal.id is not None:
        user_id = principal.id
        return await services.state.read(lambda con: find_person(con, user_id))
    if principal.kind == "local":
        return await services.state.read(find_owner_person)
    return None


def _address(request: Request) -> str:
    """The path with its query, which says of what many a page is."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _sign_in(request: Request) -> Response:
    status = 302 if request.method == "GET" else 303
    query = urlencode({"return_to": _address(request)})
    return RedirectResponse(f"/login?{query}", status, {"cache-control": "no-store"})
