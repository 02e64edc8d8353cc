"""The board's pages: forms that work without a script, and a kanban that is better with one.

A page without a session leads to the sign-in, and from there back to the page.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from fairlead.board import planning, projects, todos
from fairlead.board.access import POWERS
from fairlead.board.caller import person_of
from fairlead.board.forms import FormResult, submit_form
from fairlead.board.todos import TodoFilter
from fairlead.board.views import ProjectView
from fairlead.board.wire import MemberRole, SprintStatus, Status
from fairlead.calls.caller import CallerDep
from fairlead.errors import FairleadError
from fairlead.moment import moment_of, now_ms
from fairlead.records.people import Person
from fairlead.records.static_tokens import list_static_tokens
from fairlead.store.file import Connection
from fairlead.store.services import ServicesDep
from fairlead.style.page_style import (
    COLOURS,
    FRAME,
    asset,
    frame_fields,
    guard_headers,
    page_environment,
    version_of,
)

router = APIRouter(tags=["pages"])

HERE = Path(__file__).parent
PER_COLUMN = 200
PER_LIST = 100
CHOICES_MAX = 500

HEADERS = guard_headers(style="'self'", script="'self'", connects=True)

STATUS_NAMES: dict[Status, str] = {
    "backlog": "Backlog",
    "todo": "To do",
    "in_progress": "In progress",
    "review": "Review",
    "done": "Done",
}

_STYLE = COLOURS.encode() + FRAME.encode() + (HERE / "static" / "board.css").read_bytes()
_SCRIPT = (HERE / "static" / "board.js").read_bytes()
_ASSETS = version_of(_STYLE, _SCRIPT)

_pages = page_environment(HERE / "templates")
_pages.globals.update(
    assets=_ASSETS,
    status_names=STATUS_NAMES,
    sprint_statuses=get_args(SprintStatus),
    member_roles=get_args(MemberRole),
    may=lambda project, role: POWERS[project.role] >= POWERS[role],
)

_pages.filters.update(
    zip_names=lambda values, records: [
        (value, record.name) for value, record in zip(values, records, strict=True)
    ],
    zip_same=lambda values: [(value, value) for value in values],
)

Text = Annotated[str, Query(max_length=200)]
PageNumber = Annotated[int, Query(ge=1, le=10_000)]


@router.get("/board/board.css", summary="The style of the board's pages")
async def style() -> Response:
    return asset(_STYLE, "text/css; charset=utf-8")


@router.get("/board/board.js", summary="The script of the board's pages")
async def script() -> Response:
    return asset(_SCRIPT, "text/javascript; charset=utf-8")


@router.get("/board", response_class=HTMLResponse, summary="The projects of the board")
async def home(
    request: Request, services: ServicesDep, caller: CallerDep, page: PageNumber = 1
) -> Response:
    person = await person_of(services, caller)
    if person is None:
        return _sign_in(request)
    offset = (page - 1) * PER_LIST
    found = await services.state.read(
        lambda con: projects.list_projects(con, person, PER_LIST, offset)
    )
    return _page(request, "projects.html", person=person, found=found, page=page)


@router.post(
    "/board",
    name="do",  # Part of the OpenAPI operation id.
    response_class=HTMLResponse,
    summary="Submit a form of the board",
)
async def submit(request: Request, services: ServicesDep, caller: CallerDep) -> Response:
    """Redirects to the page of the created or changed record."""
    person = await person_of(services, caller)
    if person is None:
        return _sign_in(request)
    try:
        result: FormResult = await submit_form(await request.body(), services, person)
    except FairleadError as error:
        return _error_page(request, person, error)
    if result.secret is not None:
        return await _token_page(request, services, person, result.secret)
    return RedirectResponse(result.path, 303, {"cache-control": "no-store"})


@router.get("/board/tokens", response_class=HTMLResponse, summary="One's own static tokens")
async def tokens(request: Request, services: ServicesDep, caller: CallerDep) -> Response:
    person = await person_of(services, caller)
    if person is None:
        return _sign_in(request)
    return await _token_page(request, services, person, None)


@router.get("/board/todos/{todo_id}", response_class=HTMLResponse, summary="A todo")
async def todo_page(
    request: Request, services: ServicesDep, caller: CallerDep, todo_id: str
) -> Response:
    person = await person_of(services, caller)
    if person is None:
        return _sign_in(request)

    def read_todo(con: Connection) -> dict[str, Any]:
        todo = todos.get_todo(con, person, todo_id)
        return {"todo": todo, **_choices(con, person, todo.project_id)}

    return await _answer_page(request, "todo.html", services, person, read_todo)


@router.get("/board/{project_id}", response_class=HTMLResponse, summary="A project as a kanban")
async def kanban(
    request: Request,
    services: ServicesDep,
    caller: CallerDep,
    project_id: str,
    sprint: Text = "",
) -> Response:
    person = await person_of(services, caller)
    if person is None:
        return _sign_in(request)

    def read_kanban(con: Connection) -> dict[str, Any]:
        choices = _choices(con, person, project_id)
        columns = {
            status: todos.list_todos(
                con, person, project_id, TodoFilter(status, sprint_id=sprint or None), PER_COLUMN, 0
            )
            for status in STATUS_NAMES
        }
        return {"columns": columns, "sprint": sprint, **choices}

    return await _answer_page(request, "kanban.html", services, person, read_kanban)


@router.get("/board/{project_id}/list", response_class=HTMLResponse, summary="A project as a list")
async def listing(
    request: Request,
    services: ServicesDep,
    caller: CallerDep,
    project_id: str,
    status: Text = "",
    sprint: Text = "",
    tag: Text = "",
    assignee: Text = "",
    text: Text = "",
    page: PageNumber = 1,
) -> Response:
    person = await person_of(services, caller)
    if person is None:
        return _sign_in(request)
    status_name = status if status in STATUS_NAMES else ""
    chosen = {
        "status": status_name,
        "sprint": sprint,
        "tag": tag,
        "assignee": assignee,
        "text": text.strip(),
    }

    def read_list(con: Connection) -> dict[str, Any]:
        todo_filter = TodoFilter(
            next((each for each in STATUS_NAMES if each == status_name), None),
            assignee or None,
            sprint or None,
            tag or None,
            text.strip() or None,
        )
        found = todos.list_todos(
            con, person, project_id, todo_filter, PER_LIST, (page - 1) * PER_LIST
        )
        query = urlencode({name: value for name, value in chosen.items() if value})
        return {
            "found": found,
            "chosen": chosen,
            "query": query,
            "page": page,
            **_choices(con, person, project_id),
        }

    return await _answer_page(request, "list.html", services, person, read_list)


@router.get(
    "/board/{project_id}/settings",
    response_class=HTMLResponse,
    summary="The members, sprints and tags of a project",
)
async def settings(
    request: Request, services: ServicesDep, caller: CallerDep, project_id: str
) -> Response:
    person = await person_of(services, caller)
    if person is None:
        return _sign_in(request)

    def read_settings(con: Connection) -> dict[str, Any]:
        choices = _choices(con, person, project_id)
        member_ids = {each.user_id for each in choices["members"]}
        people = projects.list_people(con, person, CHOICES_MAX, 0).people
        return {**choices, "others": [each for each in people if each.id not in member_ids]}

    return await _answer_page(request, "settings.html", services, person, read_settings)


def _choices(con: Connection, person: Person, project_id: str) -> dict[str, Any]:
    """The project, and the records that its forms offer as choices."""
    project: ProjectView = projects.get_project(con, person, project_id)
    return {
        "project": project,
        "members": projects.list_members(con, person, project_id, CHOICES_MAX, 0).members,
        "sprints": planning.list_sprints(con, person, project_id, CHOICES_MAX, 0).sprints,
        "tags": planning.list_tags(con, person, project_id, CHOICES_MAX, 0).tags,
    }


async def _answer_page(
    request: Request, name: str, services: Any, person: Person, read_fields: Any
) -> Response:
    try:
        fields = await services.state.read(read_fields)
    except FairleadError as error:
        return _error_page(request, person, error)
    return _page(request, name, person=person, today=moment_of(now_ms()).date(), **fields)


async def _token_page(
    request: Request, services: Any, person: Person, secret: str | None
) -> Response:
    found, _ = await services.state.read(
        lambda con: list_static_tokens(con, person.id, CHOICES_MAX, 0)
    )
    return _page(
        request, "tokens.html", person=person, tokens=found, secret=secret, moment_of=moment_of
    )


def _error_page(request: Request, person: Person, error: FairleadError) -> Response:
    return _page(request, "failed.html", error.status, person=person, message=error.message)


def _page(request: Request, name: str, status: int = 200, **fields: Any) -> HTMLResponse:
    person: Person = fields["person"]
    frame = frame_fields(request, manages=person.manages)
    text = _pages.get_template(name).render(**frame, **fields)
    return HTMLResponse(text, status, HEADERS)


def _sign_in(request: Request) -> Response:
    path = request.url.path
    if request.method == "GET" and request.url.query:
        path += f"?{request.url.query}"
    query = urlencode({"return_to": path})
    status = 302 if request.method == "GET" else 303
    return RedirectResponse(f"/login?{query}", status, {"cache-control": "no-store"})
