"""Combos: which models answer for a name, in which order; what a combo would do, did, and does when asked."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import orjson

from fairlead.dashboard.api import Api, Refused
from fairlead.dashboard.combo_fields import GROUPS
from fairlead.dashboard.combo_form import (
    changed_body,
    edit_rows,
    edited_step,
    flat,
    read_combo,
    step_rows,
    unserved_steps,
    with_positions,
)
from fairlead.dashboard.form import Field, Group, make_form
from fairlead.dashboard.names import read_all, read_names
from fairlead.dashboard.order import moved, named_order
from fairlead.dashboard.page import Action, Failure, FormFields, Page, Question, View, Visit
from fairlead.dashboard.record import SEEN, check_unchanged
from fairlead.dashboard.undo import Undo

PLACE: Final = "/combos"
RANGES: Final = ("1h", "24h", "7d", "30d")
EDIT: Final = "edit"
SUGGESTED_MAX: Final = 2_000
_DEFAULTS: Final[dict[str, Any]] = {"strategy": "priority", "isActive": True, "models": []}
_QUESTION: Final = Group(
    "The request",
    (
        Field(
            "comboName",
            "Combo, alias or model",
            is_required=True,
            most=300,
            suggestions="targets",
        ),
        Field("apiKeyId", "As the key", "choice"),
        Field(
            "request",
            "Chat completion, as JSON",
            "prose",
            "Empty: a short question.",
            example='{"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 500}',
        ),
    ),
    is_open=True,
)
AVAILABILITY_MOODS: Final = {"able": "good", "probing": "warn", "cooling": "warn", "closed": "bad"}
RESULTS: Final = {"ok": "good", "failed": "bad", "not asked": ""}


async def show_combos(visit: Visit) -> View:
    """Every combo in its order, with what it did in a range."""
    length = _range(visit)
    combos, metrics = await asyncio.gather(
        read_all(visit.api, "/api/combos", "combos"),
        visit.api.get("/api/combos/metrics", range=length),
    )
    by_name = {each["comboName"]: each for each in metrics["metrics"]}
    names = {each["name"] for each in combos}
    fields = {
        "combos": combos,
        "metrics": by_name,
        "others": [each for each in metrics["metrics"] if each["comboName"] not in names],
        "busiest": max((each["requests"] for each in metrics["metrics"]), default=0),
        "range": length,
        "ranges": RANGES,
    }
    return View("combos.html", fields)


async def reorder(visit: Visit, typed: FormFields) -> str:
    """Moves a combo by one place, or puts all in the order that was dragged."""
    combos = await read_all(visit.api, "/api/combos", "combos")
    ids = [each["id"] for each in combos]
    order = moved(ids, typed) if "move" in typed else named_order(typed)
    await visit.api.send("POST", "/api/combos/reorder", {"comboIds": order})
    return PLACE


async def show_new(visit: Visit) -> View:
    """The form of a new combo."""
    return await _form_view(visit, "create", _DEFAULTS, {"title": "New combo", "combo": None})


async def show_combo(visit: Visit) -> View:
    """A combo: its form, and what its targets did."""
    combo_id = visit.params["combo_id"]
    length = _range(visit)
    combo = await visit.api.get(f"/api/combos/{combo_id}")
    metrics, names = await asyncio.gather(
        visit.api.get("/api/combos/metrics", range=length, comboName=combo["name"]),
        read_names(visit.api),
    )
    fields = {
        "title": combo["name"],
        "combo": combo,
        "figures": metrics["metrics"][0],
        "names": names,
        "range": length,
        "ranges": RANGES,
    }
    return await _form_view(visit, "change", combo, fields)


async def create(visit: Visit, typed: FormFields) -> str | View:
    """Makes the combo; or draws the form with a row more, less or moved."""
    if EDIT in typed:
        return await _edited(visit, "create", typed, show_new)
    body, positions = read_combo(typed)
    try:
        made = await visit.api.send("POST", "/api/combos", body)
    except Refused as refusal:
        raise with_positions(refusal, positions) from None
    return f"{PLACE}/{made['id']}"


async def change(visit: Visit, typed: FormFields) -> str | View:
    """Changes what differs; or draws the form with a row more, less or moved."""
    if EDIT in typed:
        return await _edited(visit, "change", typed, show_combo)
    path = f"/api/combos/{visit.params['combo_id']}"
    combo = await visit.api.get(path)
    check_unchanged(combo, typed)
    body, positions = read_combo(typed)
    changed = changed_body(body, combo)
    if changed:
        try:
            await visit.api.send("PUT", path, changed)
        except Refused as refusal:
            raise with_positions(refusal, positions) from None
    return f"{PLACE}/{combo['id']}"


async def duplicate(visit: Visit, _typed: FormFields) -> str:
    """Makes a copy, which is switched off."""
    path = f"/api/combos/{visit.params['combo_id']}/duplicate"
    made = await visit.api.send("POST", path, {})
    return f"{PLACE}/{made['id']}"


async def confirm_delete(visit: Visit, _typed: FormFields) -> Question:
    """Names what goes with a combo."""
    combo = await visit.api.get(f"/api/combos/{visit.params['combo_id']}")
    goes = [
        f"The combo {combo['name']} and its steps: requests for it will be refused at once.",
        "Its usage stays in the log.",
    ]
    position = f"/dashboard{PLACE}/{combo['id']}"
    return Question(f"Delete the combo {combo['name']}?", goes, "Delete it", position)


async def delete(visit: Visit, _typed: FormFields) -> str:
    """Deletes the combo."""
    await visit.api.send("DELETE", f"/api/combos/{visit.params['combo_id']}")
    return PLACE


async def undo_delete(visit: Visit, _typed: FormFields) -> Undo:
    """Creates the combo again. No mapping led to it, since a mapped combo cannot be deleted."""
    combo = await visit.api.get(f"/api/combos/{visit.params['combo_id']}")
    of_the_record = ("id", "createdAt", "updatedAt")
    body = {
        name: value
        for name, value in combo.items()
        if name not in of_the_record and value is not None
    }
    return Undo("POST", "/api/combos", body, PLACE)


async def test(visit: Visit, _typed: FormFields) -> View:
    """Asks each target one small question; the findings are on this page alone."""
    combo = await visit.api.get(f"/api/combos/{visit.params['combo_id']}")
    trial, names = await asyncio.gather(
        visit.api.send("POST", "/api/combos/test", {"comboName": combo["name"]}),
        read_names(visit.api),
    )
    fields = {
        "title": f"Test of {combo['name']}",
        "combo": combo,
        "targets": trial["targets"],
        "names": names,
        "results": RESULTS,
        "cost": sum(each["costUsd"] or 0 for each in trial["targets"]) * 1_000_000,
        "unpriced": sum(
            each["result"] == "ok" and each["costUsd"] is None for each in trial["targets"]
        ),
    }
    return View("combo_test.html", fields)


async def show_simulation(visit: Visit) -> View:
    """The form of a request that is not made; with `combo` in the address, the result."""
    name = visit.query.get("combo", "")[:300]
    typed = {"comboName": name}
    if visit.failure is not None or not name:
        return await _simulation_view(visit, typed, None)
    try:
        result = await visit.api.send("POST", "/api/combos/simulate", typed)
    except Refused as refusal:
        visit.failure = Failure("simulate", refusal.message, refusal.param, typed)
        return await _simulation_view(visit, typed, None)
    return await _simulation_view(visit, typed, result)


async def simulate(visit: Visit, typed: FormFields) -> View:
    """Shows which targets would be tried for the request, and why."""
    body: dict[str, Any] = {"comboName": typed.get("comboName", "").strip()}
    if not body["comboName"]:
        raise Refused(400, "Name a combo, an alias or a model.", "comboName")
    if typed.get("apiKeyId"):
        body["apiKeyId"] = typed["apiKeyId"]
    if text := typed.get("request", "").strip():
        body["request"] = _request(text)
    result = await visit.api.send("POST", "/api/combos/simulate", body)
    return await _simulation_view(visit, typed, result)


def _request(text: str) -> dict[str, Any]:
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        words = f"This is no JSON: {error.msg}, in line {error.lineno}."
        raise Refused(400, words, "request") from None
    if not isinstance(found, dict):
        raise Refused(400, 'Write an object, as `{"messages": [...]}`.', "request")
    return found


async def _simulation_view(visit: Visit, typed: FormFields, result: Any) -> View:
    names, targets = await asyncio.gather(read_names(visit.api), _suggestions(visit.api))
    options = (("", "nobody"), *sorted(names.keys.items(), key=lambda each: each[1].lower()))
    question = Group(
        _QUESTION.title,
        tuple(
            Field("apiKeyId", each.label, "choice", each.hint, options=options)
            if each.name == "apiKeyId"
            else each
            for each in _QUESTION.fields
        ),
        is_open=True,
    )
    fields = {
        "fields": make_form("simulate", (question,), typed, visit.failure),
        "result": result,
        "names": names,
        "targets": targets,
        "availability_moods": AVAILABILITY_MOODS,
        "shown_keys": _measured(result),
    }
    return View("combo_simulate.html", fields)


def _measured(result: Any) -> list[tuple[str, str]]:
    """The facts that at least one target has, by name, with what they are called."""
    labels = {
        "weight": "Weight",
        "inFlight": "In flight",
        "used": "So far",
        "latencyMs": "Latency",
        "successRate": "Successes",
        "priceInput": "Input, 1M",
        "priceOutput": "Output, 1M",
        "contextWindow": "Window",
        "headroom": "Quota",
    }
    targets = result["targets"] if result else ()
    return [
        (name, label)
        for name, label in labels.items()
        if any(each["facts"][name] is not None for each in targets)
    ]


async def _form_view(
    visit: Visit, action: str, record: dict[str, Any], fields: dict[str, Any]
) -> View:
    failure = visit.failure if visit.failure and visit.failure.action == action else None
    connections, combos, catalogue = await asyncio.gather(
        read_all(visit.api, "/api/providers", "connections"),
        read_all(visit.api, "/api/combos", "combos"),
        visit.api.get("/api/models/catalog", connected="true"),
    )
    hidden = {SEEN: record["updatedAt"]} if "updatedAt" in record else {}
    if failure is not None and SEEN in failure.typed:
        hidden[SEEN] = failure.typed[SEEN]
    form = make_form(action, GROUPS, flat(record), failure, **hidden)
    rows = step_rows(record["models"], connections, failure)
    return View(
        "combo.html",
        {
            **fields,
            "fields": form,
            "rows": rows,
            "targets": _targets(combos, catalogue),
            "warnings": [] if failure else unserved_steps(record["models"], catalogue),
            "focused_step": None,
            "is_edited": False,
        },
    )


async def _edited(visit: Visit, action: str, typed: FormFields, show: Any) -> View:
    edit = typed.pop(EDIT)
    rows = edit_rows(typed, edit)
    visit.failure = Failure(action, "", None, rows)
    view: View = await show(visit)
    view.fields["is_edited"] = True
    view.fields["focused_step"] = edited_step(rows, edit)
    return view


async def _suggestions(api: Api) -> list[str]:
    """Names that a step may have: combos, then models of what is connected."""
    combos, catalogue = await asyncio.gather(
        read_all(api, "/api/combos", "combos"), api.get("/api/models/catalog", connected="true")
    )
    return _targets(combos, catalogue)


def _targets(combos: list[dict[str, Any]], catalogue: dict[str, Any]) -> list[str]:
    found = [f"combo/{each['name']}" for each in combos]
    found += [
        model["id"]
        for provider in catalogue["providers"]
        for models in provider["models"].values()
        for model in models
    ]
    return found[:SUGGESTED_MAX]


def _range(visit: Visit) -> str:
    wanted = visit.query.get("range", "24h")
    return wanted if wanted in RANGES else "24h"


PAGES = (
    Page(
        "combos",
        "Combos",
        show_combos,
        group="Build",
        rank=3,
        icon="combos",
        actions={"reorder": Action(reorder, "The order was saved.")},
    ),
    Page(
        "combos/new",
        "New combo",
        show_new,
        actions={"create": Action(create, "The combo was made and can be called.")},
    ),
    Page(
        "combos/simulate",
        "Simulate a combo",
        show_simulation,
        actions={"simulate": Action(simulate, "It was simulated.")},
    ),
    Page(
        "combos/{combo_id}",
        "Combo",
        show_combo,
        actions={
            "change": Action(change, "The combo was saved and is in force."),
            "duplicate": Action(duplicate, "This is the copy: it is switched off."),
            "test": Action(test, "It was tested."),
            "delete": Action(delete, "The combo was deleted.", confirm_delete, undo_delete),
        },
    ),
)
