"""The forms of the board's pages: the field `act` names an operation or an action on static tokens;
the other fields are those of the bodies that the API takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from fairlead.board.form_actions import Fields, pop_field, read_body
from fairlead.board.operations import OPERATIONS
from fairlead.board.wire import Name
from fairlead.errors import InvalidRequest, NotFound
from fairlead.records.people import Person
from fairlead.records.static_tokens import (
    insert_static_token,
    make_static_token,
    revoke_static_token,
)
from fairlead.store.file import Connection
from fairlead.store.services import Services
from fairlead.text.html_form import read_form
from fairlead.wire import Wire

FIELDS_MAX = 30


@dataclass(frozen=True, slots=True)
class FormResult:
    """The path of the page to show next, or a secret that is to be shown once."""

    path: str
    secret: str | None = None


class NewToken(Wire):
    name: Name


async def submit_form(body: bytes, services: Services, person: Person) -> FormResult:
    """Does what a form asks; `InvalidRequest` for a form that none of the pages has."""
    fields = read_form(body, FIELDS_MAX)
    action = fields.pop("act", "")
    if action == "create_token":
        text, token = make_static_token(person.id, read_body(NewToken, fields).name)
        await services.state.record(lambda con: insert_static_token(con, token, text))
        return FormResult("/board/tokens", text)
    run = _ACTIONS.get(action)
    if run is None:
        raise InvalidRequest("The form names no known action: send it as the page does.")
    path = await services.state.record(lambda con: run(con, person, dict(fields)))
    return FormResult(path)


def _revoke_token(con: Connection, person: Person, fields: Fields) -> str:
    if not revoke_static_token(con, person.id, pop_field(fields, "id")):
        raise NotFound("You have no static token in force with this id.", param="id")
    return "/board/tokens"


# By the value of `act`; an operation's is the name of its function.
_ACTIONS: dict[str, Callable[[Connection, Person, Fields], str]] = {
    "revoke_token": _revoke_token,
    **{
        each.function.__name__: partial(each.form, each)
        for each in OPERATIONS
        if each.form is not None
    },
}
