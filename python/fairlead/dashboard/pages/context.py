"""Context: how conversations are made shorter, with which pipelines, what that saves, and a preview."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any, Final

import orjson

from fairlead import _core
from fairlead.dashboard.api import Refused
from fairlead.dashboard.form import Field, Group, changed_values, make_form, read_values
from fairlead.dashboard.names import Names, read_all, read_names
from fairlead.dashboard.page import Action, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged, fingerprint
from fairlead.dashboard.undo import Undo
from fairlead.store.operator_settings import COMPRESSION_LEVELS

PLACE: Final = "/context"
RANGES: Final = ("1h", "24h", "7d", "30d")
GROUPS: Final = (("pipeline", "Pipeline"), ("key", "Key"), ("model", "Model"), ("day", "Day"))
DIALECTS: Final = (
    ("openai", "OpenAI, chat completions"),
    ("openai-responses", "OpenAI, responses"),
    ("anthropic", "Anthropic"),
    ("gemini", "Gemini"),
)
SHOWN_MAX: Final = 200


@cache
def _catalogue() -> dict[str, Any]:
    """The engines and modes of this build."""
    known: dict[str, Any] = orjson.loads(_core.context_catalogue())
    return known


def _modes() -> dict[str, list[dict[str, str]]]:
    """The stages of each mode that is built in."""
    return {mode["mode"]: mode["stages"] for mode in _catalogue()["modes"]}


async def show(visit: Visit) -> View:
    """Settings, pipelines, and what was saved in a range."""
    length = visit.query.get("range", "24h")
    length = length if length in RANGES else "24h"
    by = visit.query.get("by", "pipeline")
    by = by if by in dict(GROUPS) else "pipeline"
    settings, own, analytics, names = await asyncio.gather(
        visit.api.get("/api/settings/compression"),
        visit.api.get("/api/context/combos"),
        visit.api.get("/api/context/analytics", range=length, groupBy=by),
        read_names(visit.api),
    )
    form = make_form(
        "change", _settings(own), settings, visit.failure, **{SEEN: fingerprint(settings)}
    )
    fields = {
        "fields": form,
        "settings": settings,
        "pipelines": own["combos"],
        "modes": _modes(),
        "total": analytics["total"],
        "groups": [(_label(by, each["name"], names), each) for each in analytics["groups"]],
        "rejected": sorted(analytics["rejected"].items(), key=lambda each: -each[1]),
        "range": length,
        "by": by,
        "ranges": [(each, f"?range={each}&by={by}") for each in RANGES],
        "bys": [(label, f"?range={length}&by={name}") for name, label in GROUPS],
        "by_label": dict(GROUPS)[by],
    }
    return View("context.html", fields)


async def change(visit: Visit, typed: FormFields) -> str:
    """Changes the pipelines that are taken where a caller names none."""
    settings, own = await asyncio.gather(
        visit.api.get("/api/settings/compression"), visit.api.get("/api/context/combos")
    )
    check_unchanged({SEEN: fingerprint(settings)}, typed, SEEN)
    values = read_values([field for group in _settings(own) for field in group.fields], typed)
    changed = changed_values(values, settings)
    if changed:
        await visit.api.send("PUT", "/api/settings/compression", changed)
    return PLACE


async def show_new(visit: Visit) -> View:
    """The form of a new pipeline."""
    combos = await read_all(visit.api, "/api/combos", "combos")
    form = make_form("create", _pipeline(combos), {}, visit.failure)
    return View(
        "context_pipeline.html", {"title": "New pipeline", "fields": form, "pipeline": None}
    )


async def show_pipeline(visit: Visit) -> View:
    """A custom pipeline, and the routing combos that use it."""
    record, combos = await asyncio.gather(
        _record(visit), read_all(visit.api, "/api/combos", "combos")
    )
    seen = {SEEN: record["updatedAt"]}
    fields = {
        "title": record["name"],
        "pipeline": record,
        "fields": make_form("change", _pipeline(combos), record, visit.failure, **seen),
    }
    return View("context_pipeline.html", fields)


async def create(visit: Visit, typed: FormFields) -> str:
    """Makes the pipeline, and sets whom it is for."""
    combos = await read_all(visit.api, "/api/combos", "combos")
    body, assigned = _body(combos, typed)
    made = await _send(visit, "POST", "/api/context/combos", body)
    if assigned:
        path = f"/api/context/combos/{made['id']}/assignments"
        await visit.api.send("PUT", path, {"comboIds": assigned})
    return f"{PLACE}/pipelines/{made['id']}"


async def change_pipeline(visit: Visit, typed: FormFields) -> str:
    """Saves the pipeline, and whom it is for."""
    record, combos = await asyncio.gather(
        _record(visit), read_all(visit.api, "/api/combos", "combos")
    )
    check_unchanged(record, typed)
    body, assigned = _body(combos, typed)
    path = f"/api/context/combos/{record['id']}"
    await _send(visit, "PUT", path, body)
    if sorted(assigned) != sorted(record["combos"]):
        await visit.api.send("PUT", f"{path}/assignments", {"comboIds": assigned})
    return f"{PLACE}/pipelines/{record['id']}"


async def confirm_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a pipeline."""
    record = await _record(visit)
    goes = [
        f"The pipeline {record['name']}: requests that name it will be refused at once.",
        f"Used for: {len(record['combos'])} routing combos are without it.",
    ]
    page_url = f"/dashboard{PLACE}/pipelines/{record['id']}"
    return Question(f"Delete the pipeline {record['name']}?", goes, "Delete it", page_url)


async def delete(visit: Visit, _typed: FormFields) -> str:
    """Deletes the pipeline."""
    await visit.api.send("DELETE", f"/api/context/combos/{visit.params['pipeline_id']}")
    return PLACE


async def undo_delete(visit: Visit, _typed: FormFields) -> Undo:
    """Creates the pipeline again, with its assignments."""
    record = await _record(visit)
    body = {name: record[name] for name in ("name", "description", "stages")}
    return Undo("POST", "/api/context/combos", body, PLACE)


async def show_preview(visit: Visit) -> View:
    """The form of a conversation that is not sent."""
    mode = visit.query.get("mode", "standard")[:100]
    return await _preview_view(visit, {"mode": mode, "dialect": "openai"}, None)


async def preview(visit: Visit, typed: FormFields) -> View:
    """Shows the conversation before and after, side by side."""
    text = typed.get("text", "").replace("\r\n", "\n")
    if not text.strip():
        raise Refused(400, "Type a text, or paste the body of a request.", "text")
    own = await visit.api.get("/api/context/combos")
    read_values(_preview_group(own).fields, typed)
    body: dict[str, Any] = {"mode": typed.get("mode", ""), **_conversation(typed, text)}
    try:
        result = await visit.api.send("POST", "/api/compression/preview", body)
    except Refused as refusal:
        param = refusal.param if refusal.param in ("mode", "dialect") else "text"
        raise Refused(refusal.status, refusal.message, param) from None
    values = {"mode": typed.get("mode"), "dialect": typed.get("dialect"), "text": text}
    return await _preview_view(visit, values, result)


def _conversation(typed: FormFields, text: str) -> dict[str, Any]:
    """A body in its dialect, a list of messages, or a text that a person says."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        found = None
    if isinstance(found, dict):
        return {"body": found, "dialect": typed.get("dialect", "openai")}
    if isinstance(found, list):
        return {"messages": found}
    return {"messages": [{"role": "user", "content": text}]}


def _preview_group(own: dict[str, Any]) -> Group:
    return Group(
        "The conversation",
        (
            Field("mode", "Pipeline", "choice", options=_names(own)),
            Field("dialect", "A body is in", "choice", options=DIALECTS),
            Field(
                "text",
                "A text, messages or a whole body as JSON",
                "prose",
                "Nothing is sent anywhere or stored.",
            ),
        ),
        is_open=True,
    )


async def _preview_view(visit: Visit, values: dict[str, Any], result: Any) -> View:
    group = _preview_group(await visit.api.get("/api/context/combos"))
    fields = {
        "fields": make_form("preview", (group,), values, visit.failure),
        "result": result,
        "shown": result["diff"][:SHOWN_MAX] if result else [],
    }
    return View("context_preview.html", fields)


async def _record(visit: Visit) -> dict[str, Any]:
    """The pipeline with its stages as lines, and the ids of the combos that it is for."""
    path = f"/api/context/combos/{visit.params['pipeline_id']}"
    record, assigned = await asyncio.gather(
        visit.api.get(path), visit.api.get(f"{path}/assignments")
    )
    lines = [f"{each['engine']} {each['level']}" for each in record["stages"]]
    return {**record, "stages": lines, "combos": [each["id"] for each in assigned["assignments"]]}


async def _send(visit: Visit, method: str, path: str, body: dict[str, Any]) -> Any:
    try:
        return await visit.api.send(method, path, body)
    except Refused as refusal:
        is_stage = (refusal.param or "").startswith("stages")
        param = "stages" if is_stage else refusal.param
        raise Refused(refusal.status, refusal.message, param) from None


def _pipeline(combos: list[dict[str, Any]]) -> tuple[Group, ...]:
    engines = ", ".join(_catalogue()["engines"])
    return (
        Group(
            "What it is",
            (
                Field("name", "Name", is_required=True, most=100, example="our agents"),
                Field("description", "Description", most=1000, is_nullable=False),
                Field(
                    "stages",
                    "Engines, in the order in which they run",
                    "lines",
                    f"One in a line, with a level ({', '.join(COMPRESSION_LEVELS)}) behind it. There are {engines}.",
                    example="lite standard\nrtk aggressive",
                ),
            ),
            is_open=True,
        ),
        Group(
            "Whom it is for",
            (
                Field(
                    "combos",
                    "Routing combos whose conversations it shortens",
                    "choices",
                    options=tuple((each["id"], each["name"]) for each in combos),
                ),
            ),
            is_open=True,
        ),
    )


def _body(combos: list[dict[str, Any]], typed: FormFields) -> tuple[dict[str, Any], list[str]]:
    fields = [field for group in _pipeline(combos) for field in group.fields]
    values = read_values(fields, typed)
    assigned: list[str] = values.pop("combos")
    values["stages"] = [_stage(line) for line in values["stages"]]
    if not values["stages"]:
        raise Refused(400, "Name at least one engine.", "stages")
    return values, assigned


def _stage(line: str) -> dict[str, str]:
    engine, _, level = line.partition(" ")
    level = level.strip() or "standard"
    if level not in COMPRESSION_LEVELS:
        words = f"`{level[:40]}` is no level: write {', '.join(COMPRESSION_LEVELS)}."
        raise Refused(400, words, "stages")
    return {"engine": engine, "level": level}


def _settings(own: dict[str, Any]) -> tuple[Group, ...]:
    return (
        Group(
            "For callers without a choice",
            (
                Field("mode", "Pipeline", "choice", options=_names(own)),
                Field(
                    "automaticTokens",
                    "From a size on",
                    "whole",
                    "0: no special treatment.",
                    "tokens",
                    is_required=True,
                ),
                Field("automaticMode", "Those get", "choice", options=_names(own)),
            ),
            is_open=True,
            hint="A caller's header, a key and a routing combo go before it.",
        ),
    )


def _names(own: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    built_in = ("off", *(name for name in _modes() if name != "off"))
    theirs = tuple((each["name"], f"{each['name']}, your own") for each in own["combos"])
    return (*((name, name) for name in built_in), *theirs)


def _label(by: str, name: str | None, names: Names) -> str:
    if by == "key":
        return names.key(name)
    return name or "none"


PAGES = (
    Page(
        "context",
        "Context",
        show,
        group="Protect",
        rank=4,
        icon="context",
        actions={"change": Action(change, "The settings are saved and in force.")},
    ),
    Page(
        "context/preview",
        "Preview",
        show_preview,
        actions={"preview": Action(preview, "It was tried.")},
    ),
    Page(
        "context/pipelines/new",
        "New pipeline",
        show_new,
        actions={"create": Action(create, "The pipeline was created: callers can name it.")},
    ),
    Page(
        "context/pipelines/{pipeline_id}",
        "Pipeline",
        show_pipeline,
        actions={
            "change": Action(change_pipeline, "The pipeline was saved and is in force."),
            "delete": Action(delete, "The pipeline was deleted.", confirm_delete, undo_delete),
        },
    ),
)
