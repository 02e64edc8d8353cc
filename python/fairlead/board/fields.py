"""The bodies that create and change records of the board, for the API, the tools and the forms."""

from __future__ import annotations

from datetime import date
from typing import Any

from pydantic import Field, model_validator
from pydantic.alias_generators import to_camel

from fairlead.board.wire import (
    Color,
    Day,
    Id,
    MemberRole,
    Name,
    Prose,
    SprintStatus,
    Status,
    TagName,
    TagNames,
    Title,
    Version,
)
from fairlead.errors import InvalidRequest
from fairlead.wire import Wire

BEFORE = Field(default=None, description="The id of the todo that is to follow it.")
AFTER = Field(default=None, description="The id of the todo that is to come before it.")


class Change(Wire):
    """A change of the fields that it names; the others keep their values.

    Its validators raise `InvalidRequest` themselves, so that the message reaches the client as it is.
    """

    version: Version | None = None

    @model_validator(mode="after")
    def _names_a_field(self) -> Change:
        named = self.model_fields_set - {"version"}
        if not named:
            raise InvalidRequest("The change names no field: send at least one with its new value.")
        for name in named:
            if getattr(self, name) is None and name not in self.clearable():
                spelled = to_camel(name)
                raise InvalidRequest(
                    f"{spelled} must not be null: leave it out to keep it.", param=spelled
                )
        return self

    @classmethod
    def clearable(cls) -> frozenset[str]:
        """The fields that may be set to null."""
        return frozenset()

    def changes(self) -> dict[str, Any]:
        """The named fields and their values."""
        return {name: getattr(self, name) for name in self.model_fields_set - {"version"}}


class NewProject(Wire):
    name: Name
    description: Prose = ""


class ProjectChange(Change):
    name: Name | None = None
    description: Prose | None = None


class NewMember(Wire):
    user_id: Id
    role: MemberRole = "contributor"


class MemberChange(Wire):
    role: MemberRole


class NewSprint(Wire):
    name: Name
    goal: Prose = ""
    status: SprintStatus = "planned"
    starts_on: Day | None = None
    ends_on: Day | None = None

    @model_validator(mode="after")
    def _in_order(self) -> NewSprint:
        refuse_backwards(self.starts_on, self.ends_on)
        return self


class SprintChange(Change):
    name: Name | None = None
    goal: Prose | None = None
    status: SprintStatus | None = None
    starts_on: Day | None = None
    ends_on: Day | None = None

    @classmethod
    def clearable(cls) -> frozenset[str]:
        return frozenset({"starts_on", "ends_on"})


class NewTag(Wire):
    name: TagName
    color: Color = "#57606a"


class TagChange(Change):
    name: TagName | None = None
    color: Color | None = None


class NewTodo(Wire):
    """Without `before` and `after` it comes last."""

    title: Title
    body: Prose = ""
    status: Status = "backlog"
    assignee_id: Id | None = None
    due_on: Day | None = None
    sprint_id: Id | None = None
    tags: TagNames = Field(default=[], description="Names; one that is new is made.")
    before: Id | None = BEFORE
    after: Id | None = AFTER

    @model_validator(mode="after")
    def _one_place(self) -> NewTodo:
        refuse_two_places(self.before, self.after)
        return self


class TodoChange(Change):
    title: Title | None = None
    body: Prose | None = None
    status: Status | None = None
    assignee_id: Id | None = None
    due_on: Day | None = None
    sprint_id: Id | None = None
    tags: TagNames | None = Field(default=None, description="All of its tags, by name.")

    @classmethod
    def clearable(cls) -> frozenset[str]:
        return frozenset({"assignee_id", "due_on", "sprint_id"})


class TodoMove(Wire):
    """Without `before` and `after` it comes last."""

    status: Status | None = Field(default=None, description="Left out, the status stays.")
    before: Id | None = BEFORE
    after: Id | None = AFTER
    version: Version | None = None

    @model_validator(mode="after")
    def _one_place(self) -> TodoMove:
        refuse_two_places(self.before, self.after)
        return self


def refuse_backwards(starts_on: date | None, ends_on: date | None) -> None:
    """`InvalidRequest` for a sprint that ends before it starts."""
    if starts_on is not None and ends_on is not None and ends_on < starts_on:
        raise InvalidRequest("endsOn must not be before startsOn.", param="endsOn")


def refuse_two_places(before: str | None, after: str | None) -> None:
    """`InvalidRequest` for a place that is named twice."""
    if before is not None and after is not None:
        raise InvalidRequest("before and after exclude each other: send one.", param="after")
