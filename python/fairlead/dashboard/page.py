"""A page of the console: its place, who may see it, its content and its forms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from starlette.requests import Request
from starlette.responses import Response

from fairlead.dashboard.api import Api
from fairlead.dashboard.undo import Undo
from fairlead.records.people import Person

Group = Literal["Observe", "Build", "Access", "Protect", "Tools", "Operate"]
Right = Literal["manage", "person"]
FormFields = dict[str, str]


@dataclass(frozen=True, slots=True)
class Failure:
    """A form that was refused: what was typed, and what is wrong with which field."""

    action: str
    message: str
    param: str | None
    typed: FormFields


@dataclass(slots=True)
class Visit:
    """One request for a page: the caller, the path, and the API with the caller's rights."""

    request: Request
    path: str
    """The page's own address, which is not the request's where parts of an open page are sent over its stream."""
    person: Person
    api: Api
    query: Mapping[str, str]
    params: Mapping[str, str]
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class View:
    """A template and its fields. `live` names its blocks `live_<name>` that are sent again to a page that
    stays open, when they have changed.
    """

    template: str
    fields: dict[str, Any]
    live: tuple[str, ...] = ()
    status: int = 200


@dataclass(frozen=True, slots=True)
class Question:
    """Asked before something is destroyed: `goes` names all that goes with it."""

    title: str
    goes: list[str]
    button: str
    back: str


@dataclass(frozen=True, slots=True)
class Action:
    """A form of a page. `run` returns the path of the next page, below `/dashboard`, or a view."""

    run: Callable[[Visit, FormFields], Awaitable[str | View | Response]]
    done: str
    """Said on the next page."""
    ask: Callable[[Visit, FormFields], Awaitable[Question]] | None = None
    undo: Callable[[Visit, FormFields], Awaitable[Undo | None]] | None = None
    """Reads, before it is destroyed, what it takes to bring it back; where the data allows."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page at `/dashboard/<path>`, where `{name}` stands for one segment.

    A page with a `group` is in the navigation, by `rank`; `right` says who may see it.
    """

    path: str
    title: str
    show: Callable[[Visit], Awaitable[View | Response]]
    group: Group | None = None
    rank: int = 0
    icon: str = ""
    right: Right = "manage"
    actions: Mapping[str, Action] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The page of its first segments."""
        return f"/dashboard/{self.path}" if self.path else "/dashboard"
