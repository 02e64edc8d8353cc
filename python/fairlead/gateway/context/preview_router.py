"""Previews of pipelines and filters, and what packs, rules and filters there are."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import orjson
from fastapi import APIRouter
from pydantic import Field, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from fairlead import _core
from fairlead.errors import InvalidRequest
from fairlead.gateway.context.catalogue import catalogue, check_languages, modes
from fairlead.gateway.context.fields import STAGES_MAX, PipelineStage
from fairlead.gateway.context.table import find_pipeline_by_name, own_filters
from fairlead.store.file import Connection
from fairlead.store.operator_settings import CompressionLevel
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(tags=["context"])

MESSAGES_MAX = 2_000
DEADLINE_S = 30.0


class PreviewRequest(Wire):
    """A conversation, as messages or as a whole body in a dialect, and one pipeline.

    The pipeline is named by `mode` (a mode or one of your pipelines), by `engineId`, or written out as
    `pipeline`.
    """

    messages: list[dict[str, Any]] | None = Field(None, min_length=1, max_length=MESSAGES_MAX)
    body: dict[str, Any] | None = None
    dialect: Literal["openai", "openai-responses", "anthropic", "gemini"] = "openai"
    mode: StrictStr | None = Field(None, min_length=1, max_length=100)
    engine_id: StrictStr | None = Field(None, min_length=1, max_length=100)
    pipeline: list[PipelineStage] | None = Field(None, min_length=1, max_length=STAGES_MAX)
    languages: list[StrictStr] = Field([], max_length=20)

    @model_validator(mode="after")
    def _is_one_conversation(self) -> PreviewRequest:
        if (self.messages is None) == (self.body is None):
            raise PydanticCustomError("conversation", "must have either `messages` or `body`")
        if sum(each is not None for each in (self.mode, self.engine_id, self.pipeline)) > 1:
            raise PydanticCustomError(
                "pipeline", "must have one of `mode`, `engineId` and `pipeline`"
            )
        return self


class EngineFigures(Wire):
    """One engine of the pipeline. `rejected` counts texts that stayed because a check failed, by reason."""

    engine: str
    original_tokens: int
    compressed_tokens: int
    savings_percent: float
    duration_ms: float
    changed: int
    protected: int
    rejected: dict[str, int]
    is_downgraded: bool = Field(
        description="The engine did not run: the body marks what a provider keeps in its cache."
    )


class Segment(Wire):
    """A run of a text for a view side by side."""

    kind: Literal["same", "removed", "added"]
    text: str


class TextChange(Wire):
    """One text of the conversation that changed; `turn` is the index of its message."""

    turn: int
    role: str
    segments: list[Segment]


class Preview(Wire):
    """A conversation before and after a pipeline. Tokens are those of its texts, by the gateway's one counter."""

    mode: str
    original: Any
    compressed: Any = Field(description="The body that would go out; null where it stays.")
    original_tokens: int
    compressed_tokens: int
    tokens_saved: int
    savings_pct: float
    tool_tokens_before: int
    tool_tokens_after: int
    engine_breakdown: list[EngineFigures]
    duration_ms: float
    diff: list[TextChange]
    preserved_blocks: list[str] = Field(
        description="Spans that no engine may touch, the first of them."
    )
    preserved_count: int
    unchanged_reason: str | None


class LanguagePack(Wire):
    """A language in which empty phrases are known, and how well."""

    language: str
    coverage: Literal["complete", "partial"]
    rules: int


class LanguagePacks(Wire):
    languages: list[str]
    packs: list[LanguagePack]


class Rule(Wire):
    """A phrase and its replacement; an empty text removes it."""

    language: str
    phrase: str
    replacement: str


class Rules(Wire):
    rules: list[Rule]


class OutputFilter(Wire):
    """A filter and the beginnings of the command lines that it is for."""

    id: str
    commands: list[str]
    source: Literal["built-in", "own"]


class OutputFilters(Wire):
    """Filters in the order in which they are tried; `diagnostics` lists the errors in your filters."""

    filters: list[OutputFilter]
    diagnostics: list[str]


class OutputTest(Wire):
    """An output of a command; without `command` the command is detected from the text."""

    text: StrictStr = Field(min_length=1, max_length=900_000)
    command: StrictStr = Field("", max_length=1000)
    level: CompressionLevel = "standard"


class OutputTested(Wire):
    """The output as it would go out."""

    text: str
    original_tokens: int
    compressed_tokens: int
    savings_pct: float
    is_changed: bool
    diff: list[Segment]


@router.post("/api/compression/preview", summary="Preview a pipeline on a conversation")
async def preview(wanted: PreviewRequest, services: ServicesDep) -> Preview:
    """Nothing is sent anywhere. Without a pipeline it is that of the mode `stacked`."""
    check_languages(wanted.languages, "languages")
    name, stages = await services.state.read(lambda con: _stages(con, wanted))
    filters = await services.state.read(own_filters)
    body = wanted.body if wanted.body is not None else {"messages": wanted.messages}
    plan = {"stages": stages, "languages": wanted.languages, "filters": _trusted(filters)}
    shown = await _made(wanted.dialect, orjson.dumps(body), plan)
    report = shown["report"]
    before, after = report["tokens_before"], report["tokens_after"]
    breakdown = [_engine(stage) for stage in report["stages"]]
    changed = shown["body"]
    return Preview.model_construct(
        mode=name,
        original=body,
        compressed=None if changed is None else orjson.loads(changed),
        original_tokens=before,
        compressed_tokens=after,
        tokens_saved=before - after,
        savings_pct=_percent(before, after),
        tool_tokens_before=report["tool_tokens_before"],
        tool_tokens_after=report["tool_tokens_after"],
        engine_breakdown=breakdown,
        duration_ms=round(sum(stage["micros"] for stage in report["stages"]) / 1000, 3),
        diff=[_change(text) for text in shown["texts"]],
        preserved_blocks=shown["protected"],
        preserved_count=shown["protected_count"],
        unchanged_reason=shown["unchanged"],
    )


def _change(text: dict[str, Any]) -> TextChange:
    segments = [Segment.model_construct(**segment) for segment in text["segments"]]
    return TextChange.model_construct(**{**text, "segments": segments})


@router.get("/api/compression/language-packs", summary="Languages in which empty phrases are known")
async def language_packs() -> LanguagePacks:
    """Each with its coverage: a partial pack lacks phrases."""
    packs = [
        LanguagePack.model_construct(
            language=pack["language"], coverage=pack["coverage"], rules=len(pack["rules"])
        )
        for pack in catalogue()["packs"]
    ]
    return LanguagePacks.model_construct(languages=[pack.language for pack in packs], packs=packs)


@router.get("/api/compression/rules", summary="The phrases that are removed, by language")
async def rules(language: str | None = None) -> Rules:
    """All languages, or one."""
    if language is not None:
        check_languages([language], "language")
    return Rules.model_construct(
        rules=[
            Rule.model_construct(language=pack["language"], **rule)
            for pack in catalogue()["packs"]
            if language in (None, pack["language"])
            for rule in pack["rules"]
        ]
    )


@router.get("/api/context/rtk/filters", summary="The filters for outputs of commands")
async def output_filters(services: ServicesDep) -> OutputFilters:
    """In the order in which they are tried, your filters first."""
    shown, diagnostics = [], []
    for sha256, toml in await services.state.read(own_filters):
        try:
            read = orjson.loads(_core.read_output_filters(toml))
        except ValueError as error:
            diagnostics.append(f"the filters with the hash {sha256} cannot be read: {error}")
            continue
        shown += [OutputFilter.model_construct(source="own", **each) for each in read["filters"]]
    built_in = catalogue()["filters"]
    shown += [OutputFilter.model_construct(source="built-in", **each) for each in built_in]
    return OutputFilters.model_construct(filters=shown, diagnostics=diagnostics)


@router.post("/api/context/rtk/test", summary="Preview a filter on an output")
async def test_output(wanted: OutputTest, services: ServicesDep) -> OutputTested:
    """The output as the result of a tool call that ran the command."""
    filters = await services.state.read(own_filters)
    call = {"name": "shell", "arguments": orjson.dumps({"command": wanted.command}).decode()}
    messages = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": "1", "content": wanted.text},
    ]
    plan = {
        "stages": [{"engine": "rtk", "level": wanted.level}],
        "filters": _trusted(filters),
    }
    shown = await _made("openai", orjson.dumps({"messages": messages}), plan)
    text = wanted.text
    if shown["body"] is not None:
        text = orjson.loads(shown["body"])["messages"][1]["content"]
    before, after = shown["report"]["tokens_before"], shown["report"]["tokens_after"]
    segments = shown["texts"][0]["segments"] if shown["texts"] else []
    return OutputTested.model_construct(
        text=text,
        original_tokens=before,
        compressed_tokens=after,
        savings_pct=_percent(before, after),
        is_changed=shown["body"] is not None,
        diff=[Segment.model_construct(**segment) for segment in segments],
    )


def _stages(con: Connection, wanted: PreviewRequest) -> tuple[str, list[dict[str, str]]]:
    """The name and the stages of the pipeline that is wanted."""
    if wanted.pipeline is not None:
        return "pipeline", [stage.model_dump() for stage in wanted.pipeline]
    if wanted.engine_id is not None:
        known = catalogue()["engines"]
        if wanted.engine_id not in known:
            raise InvalidRequest(f"engineId must be one of {', '.join(known)}.", param="engineId")
        stage = PipelineStage(engine=wanted.engine_id)
        return f"engine:{wanted.engine_id}", [stage.model_dump()]
    name = wanted.mode or "stacked"
    if name in modes():
        return name, modes()[name]
    own = find_pipeline_by_name(con, name)
    if own is None:
        raise InvalidRequest(
            f"mode must be one of {', '.join(modes())}, or a pipeline of /api/context/combos.",
            param="mode",
        )
    return name, [stage.model_dump() for stage in own.stages]


async def _made(dialect: str, body: bytes, plan: dict[str, Any]) -> dict[str, Any]:
    work = asyncio.to_thread(_core.preview_context, dialect, body, orjson.dumps(plan))
    shown: dict[str, Any] = orjson.loads(await asyncio.wait_for(work, DEADLINE_S))
    return shown


def _trusted(filters: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"sha256": sha256, "toml": toml} for sha256, toml in filters]


def _engine(stage: dict[str, Any]) -> EngineFigures:
    before, after = stage["tokens_before"], stage["tokens_after"]
    rejected: dict[str, int] = {}
    for reason in stage["rejected"]:
        rejected[reason] = rejected.get(reason, 0) + 1
    return EngineFigures.model_construct(
        engine=stage["engine"],
        original_tokens=before,
        compressed_tokens=after,
        savings_percent=_percent(before, after),
        duration_ms=round(stage["micros"] / 1000, 3),
        changed=stage["changed"],
        protected=stage["protected"],
        rejected=rejected,
        is_downgraded=stage["is_downgraded"],
    )


def _percent(before: int, after: int) -> float:
    return round((before - after) / before * 100, 2) if before else 0.0
