"""Playground: a conversation with one model or up to four side by side, in any dialect, with the code of each request.

The conversation rides in the form, so nothing of it is kept here. With scripts the browser makes the
requests itself, as the visitor's session, and shows streams as they come; without, the page asks and waits.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fairlead.calls.caller import caller_of
from fairlead.dashboard.api import Refused
from fairlead.dashboard.dialect_request import (
    DIALECT_NAMES,
    DIALECTS,
    Conversation,
    Dialect,
    DialectRequest,
    Turn,
    make_request,
)
from fairlead.dashboard.form import Field, Group, make_form, read_values
from fairlead.dashboard.model_call import ModelReply, call_model
from fairlead.dashboard.names import read_all
from fairlead.dashboard.page import Action, FormFields, Page, View, Visit
from fairlead.dashboard.request_code import Code, all_code

TURNS: Final = "turns"
# Sent by browsers without scripts: the page asks in their place.
WHOLE: Final = "whole"
TURNS_MAX: Final = 100
SUGGESTED_MAX: Final = 400
SUGGESTIONS: Final = "models"
SIDES: Final = ("model", "other", "third", "fourth")

MODELS: Final = (
    Field("model", "Model", most=300, is_required=True, example="auto", suggestions=SUGGESTIONS),
    *(
        Field(name, f"{label} model", most=300, hint="Empty: none.", suggestions=SUGGESTIONS)
        for name, label in (("other", "Second"), ("third", "Third"), ("fourth", "Fourth"))
    ),
    Field("dialect", "Dialect", "choice", options=tuple(DIALECT_NAMES.items())),
)
SETTINGS: Final = (
    Field("system", "Instructions", "prose", "The role of the model."),
    Field("maxTokens", "At most", "whole", "Empty: as the model has it.", "tokens"),
    Field("temperature", "Temperature", "decimal", "0 to 2. Empty: as the model has it."),
    Field("stream", "Streamed", "switch", "Text is shown while it arrives."),
)
PROMPT: Final = (Field("prompt", "Prompt", "prose", is_required=True),)
FIELDS: Final = (*MODELS, *SETTINGS, *PROMPT)
GROUPS: Final = (
    Group("Models", MODELS, is_open=True, hint="Each gets the same prompt."),
    Group("Instructions and settings", SETTINGS),
    Group("Your turn", PROMPT, is_open=True),
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """The visitor's words, and each side's answer; None where one failed."""

    user: str
    answers: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One model's part of the page: its conversation, its request, and the reply if the page has asked."""

    number: int
    model: str
    exchanges: tuple[tuple[str, str | None], ...]
    request: DialectRequest
    code: tuple[Code, ...]
    body: str
    reply: ModelReply | None


async def show(visit: Visit) -> View:
    """The empty form."""
    values = {"dialect": "openai", "stream": True, "model": visit.query.get("model", "")}
    return await _view(visit, values, [], ())


async def ask(visit: Visit, typed: FormFields) -> View:
    """The requests of all sides, and their replies where the page is to ask."""
    exchanges = read_exchanges(typed.get(TURNS, ""))
    values = _values(typed)
    models = [values[name] for name in SIDES if values[name]]
    is_whole = WHOLE in typed
    requests = [_request(values, model, at, exchanges, is_whole) for at, model in enumerate(models)]
    replies: list[ModelReply | None] = [None] * len(models)
    if is_whole:
        replies = list(
            await asyncio.gather(*(call_model(visit.request, each) for each in requests))
        )
    caller = caller_of(visit.request)
    origin = f"{caller.scheme}://{caller.host or 'localhost'}"
    sides = tuple(
        Side(
            at,
            model,
            tuple((each.user, _answer(each, at)) for each in exchanges),
            request,
            all_code(origin, request),
            orjson.dumps(request.body).decode(),
            reply,
        )
        for at, (model, request, reply) in enumerate(zip(models, requests, replies, strict=True))
    )
    answers = tuple(reply.text if reply and not reply.error else None for reply in replies)
    exchanges.append(Exchange(values["prompt"], answers))
    return await _view(visit, {**values, "prompt": ""}, exchanges, sides, values["prompt"])


def read_exchanges(text: str) -> list[Exchange]:
    """The conversation so far, as the form has it. `Refused` for what no form of ours holds."""
    try:
        document = orjson.loads(text) if text.strip() else []
        exchanges = [
            Exchange(
                str(each["user"]),
                tuple(None if answer is None else str(answer) for answer in each["answers"]),
            )
            for each in document
        ]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise Refused(400, "The conversation cannot be read: begin a new one.", TURNS) from None
    if len(exchanges) > TURNS_MAX:
        raise Refused(400, f"A conversation here has at most {TURNS_MAX} turns: begin a new one.")
    return exchanges


def _values(typed: FormFields) -> dict[str, Any]:
    values = read_values(FIELDS, typed)
    if values.get("dialect") not in DIALECTS:
        raise Refused(400, f"Dialect must be one of {', '.join(DIALECTS)}.", "dialect")
    if not values["prompt"].strip():
        raise Refused(400, "A prompt is required: write something.", "prompt")
    tokens, temperature = values.get("maxTokens"), values.get("temperature")
    if tokens is not None and not 1 <= tokens <= 1_000_000:
        raise Refused(400, "At most must be from 1 to 1,000,000 tokens.", "maxTokens")
    if temperature is not None and not 0 <= temperature <= 2:
        raise Refused(400, "Temperature must be from 0 to 2.", "temperature")
    return {**dict.fromkeys((*SIDES, "system", "maxTokens", "temperature")), **values}


def _request(
    values: dict[str, Any], model: str, side: int, exchanges: list[Exchange], is_whole: bool
) -> DialectRequest:
    turns: list[Turn] = []
    for each in exchanges:
        # A question without an answer would make two turns of one speaker.
        if answer := _answer(each, side):
            turns += [Turn("user", each.user), Turn("assistant", answer)]
    dialect: Dialect = values["dialect"]
    conversation = Conversation(
        model,
        (*turns, Turn("user", values["prompt"])),
        values["system"] or "",
        values["maxTokens"],
        values["temperature"],
        is_streamed=values["stream"] and not is_whole,
    )
    return make_request(dialect, conversation)


def _answer(exchange: Exchange, side: int) -> str | None:
    return exchange.answers[side] if side < len(exchange.answers) else None


async def _view(
    visit: Visit,
    values: dict[str, Any],
    exchanges: list[Exchange],
    sides: tuple[Side, ...],
    prompt: str = "",
) -> View:
    turns = orjson.dumps([{"user": each.user, "answers": each.answers} for each in exchanges])
    form = make_form("ask", GROUPS, values, visit.failure)
    turns_text = visit.failure.typed.get(TURNS, "") if visit.failure else turns.decode()
    fields = {
        "fields": form,
        "sides": sides,
        "prompt": prompt,
        "turns": turns_text,
        "suggestions_id": SUGGESTIONS,
        "suggestions": await _suggestions(visit),
        "title": "Playground",
    }
    return View("playground.html", fields)


async def _suggestions(visit: Visit) -> list[str]:
    """Names of combos and of models that have a connection."""
    combos, answer = await asyncio.gather(
        read_all(visit.api, "/api/combos", "combos"),
        visit.api.get("/api/models/catalog", connected="true"),
    )
    names = [each["name"] for each in combos]
    for entry in answer["providers"]:
        names += [f"{entry['prefix']}/{each['id']}" for each in entry["models"].get("chat", ())]
    return names[:SUGGESTED_MAX]


PAGES = (
    Page(
        "playground",
        "Playground",
        show,
        group="Build",
        rank=1,
        icon="playground",
        actions={"ask": Action(ask, "The model was called.")},
    ),
)
