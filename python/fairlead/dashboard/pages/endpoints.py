"""Custom endpoints: providers that are not in the catalogue."""

from __future__ import annotations

from typing import Any, Final

from fairlead.dashboard.form import Field, Group, changed_values, make_form, nested, read_values
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged

PLACE: Final = "/providers"
ROUTE: Final = "/api/provider-nodes"
_WHERE: Final = Group(
    "Endpoint",
    (
        Field("name", "Name", most=200, is_required=True, example="Our vLLM"),
        Field(
            "prefix",
            "Prefix",
            hint="Before the first slash of its models' names.",
            is_required=True,
            example="ours",
        ),
        Field("baseUrl", "Base URL", is_required=True, example="http://10.0.0.5:8000/v1"),
        Field(
            "type",
            "Protocol",
            "choice",
            options=(
                ("openai-compatible", "as OpenAI"),
                ("anthropic-compatible", "as Anthropic"),
                ("gemini-compatible", "as Gemini"),
            ),
        ),
    ),
    is_open=True,
)
_MORE: Final = (
    Group(
        "Paths and headers",
        (
            Field(
                "apiType",
                "Conversations of OpenAI's",
                "choice",
                options=(("chat", "chat completions"), ("responses", "responses")),
            ),
            Field("chatPath", "Path of conversations", hint="Empty: the dialect's own."),
            Field("modelsPath", "Path of models", hint="Empty: /models."),
            Field(
                "customHeaders",
                "Headers of every call",
                "pairs",
                "One `name = value` per line. *** keeps the stored value.",
            ),
        ),
    ),
    Group(
        "Timeouts",
        tuple(
            Field(f"timeouts.{name}", label, "whole", hint, "ms")
            for name, label, hint in (
                ("connectMs", "To connect", "Name, connection and TLS. Empty: the default."),
                ("headerMs", "To the head of a stream", ""),
                ("firstTokenMs", "To its first byte", ""),
                ("idleMs", "Silence inside of an answer", ""),
                ("answerMs", "To a whole answer", ""),
            )
        ),
    ),
)
NEW: Final = (_WHERE,)
CHANGE: Final = (_WHERE, *_MORE)


def _fields(groups: tuple[Group, ...]) -> list[Field]:
    return [field for group in groups for field in group.fields]


async def show_new(visit: Visit) -> View:
    """The form of a custom endpoint."""
    form = make_form("create", NEW, {"type": "openai-compatible"}, visit.failure)
    fields = {
        "fields": form,
        "name": "your own endpoint",
        "key_page": None,
        "title": "Add an endpoint",
        "can_sign_in": False,
    }
    return View("provider_new.html", fields)


async def create(visit: Visit, typed: FormFields) -> str:
    """Makes the endpoint and leads on to its credential."""
    made = await visit.api.send("POST", ROUTE, read_values(_fields(NEW), typed))
    return f"{PLACE}/new/{made['node']['id']}"


async def show(visit: Visit) -> View:
    """An endpoint, its connections, its form."""
    node = (await visit.api.get(_path(visit)))["node"]
    connections = await read_all(visit.api, "/api/providers", "connections")
    form = make_form("change", CHANGE, node, visit.failure, **{SEEN: node["updatedAt"]})
    fields = {
        "node": node,
        "connections": [each for each in connections if each["provider"] == node["id"]],
        "fields": form,
        "title": node["name"],
    }
    return View("endpoint.html", fields)


async def change(visit: Visit, typed: FormFields) -> str:
    """Changes what differs."""
    node = (await visit.api.get(_path(visit)))["node"]
    check_unchanged(node, typed)
    changed = _body(changed_values(read_values(_fields(CHANGE), typed), node), typed)
    if changed:
        await visit.api.send("PUT", _path(visit), changed)
    return f"{PLACE}/endpoints/{node['id']}"


def _body(changed: dict[str, Any], typed: FormFields) -> dict[str, Any]:
    """The body of a change: timeouts whole, headers none where none are named."""
    body = {name: value for name, value in changed.items() if not name.startswith("timeouts.")}
    if len(body) < len(changed):
        timeouts = nested(read_values(_MORE[1].fields, typed))["timeouts"]
        body["timeouts"] = {name: value for name, value in timeouts.items() if value is not None}
    if body.get("customHeaders") == {}:
        body["customHeaders"] = None
    return body


async def confirm_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with an endpoint."""
    node = (await visit.api.get(_path(visit)))["node"]
    goes = [
        f"The endpoint {node['name']} ({node['prefix']}/...) at {node['baseUrl']}",
        "Its headers and timeouts. Its connections must be deleted before.",
    ]
    back = f"/dashboard{PLACE}/endpoints/{node['id']}"
    return Question(f"Delete the endpoint {node['name']}?", goes, "Delete it", back)


async def delete(visit: Visit, _typed: FormFields) -> str:
    """Deletes the endpoint."""
    await visit.api.send("DELETE", _path(visit))
    return PLACE


def _path(visit: Visit) -> str:
    return f"{ROUTE}/{visit.params['node_id']}"


PAGES = (
    Page(
        "providers/new-endpoint",
        "Add an endpoint",
        show_new,
        actions={"create": Action(create, "The endpoint was made.")},
    ),
    Page(
        "providers/endpoints/{node_id}",
        "Endpoint",
        show,
        actions={
            "change": Action(change, "The endpoint was saved."),
            "delete": Action(delete, "The endpoint was deleted.", confirm_delete),
        },
    ),
)
