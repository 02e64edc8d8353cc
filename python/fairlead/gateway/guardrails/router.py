"""`/api/guardrails`: which guardrails run, and what they make of an input."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import APIRouter
from pydantic import Field

from fairlead import _core
from fairlead.gateway.fields import Text
from fairlead.gateway.guardrails.actions import guardrail_actions
from fairlead.gateway.keys.fields import GuardrailName
from fairlead.store.operator_settings import read_operator_settings
from fairlead.store.services import ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/guardrails", tags=["guardrails"])

MAX_TEXT_CHARS = 1_000_000


class GuardrailEntry(Wire):
    """Lower priorities run first. The actions say what is done about a finding."""

    name: str
    enabled: bool
    priority: int
    request_action: str
    answer_action: str


class GuardrailList(Wire):
    guardrails: list[GuardrailEntry]


class DryRun(Wire):
    """`input` is a text, or the body of a request."""

    input: Annotated[Text, Field(max_length=MAX_TEXT_CHARS)] | dict[str, Any]
    disabled_guardrails: list[GuardrailName] = Field([], max_length=3)


class GuardrailResult(Wire):
    """`meta` has `kinds`, what was found, and `action`, what is done about it."""

    guardrail: str
    blocked: bool
    skipped: bool
    modified: bool
    error: str | None = None
    meta: dict[str, Any]


class DryRunResult(Wire):
    """`payload` is the input as it would go to a provider, null when it would not."""

    blocked: bool
    results: list[GuardrailResult]
    payload: str | dict[str, Any] | None


@router.get("", summary="The guardrails and what they do")
async def list_all(services: ServicesDep) -> GuardrailList:
    """All of them run on every request; a call or a key may opt out of some."""
    actions = guardrail_actions(await services.state.read(read_operator_settings))
    return GuardrailList.model_construct(
        guardrails=[
            GuardrailEntry.model_construct(
                name=name,
                enabled=True,
                priority=priority,
                request_action=actions["request"][_member(name)],
                answer_action=actions["answer"].get(_member(name), "off"),
            )
            for name, priority in _core.guardrails()
        ]
    )


@router.post("/test", summary="Test the guardrails on an input, without sending it")
async def test(run: DryRun, services: ServicesDep) -> DryRunResult:
    """Runs the guardrails that judge requests, with the settings in force, over the input."""
    actions = guardrail_actions(await services.state.read(read_operator_settings))["request"]
    body = orjson.dumps({"input": run.input})
    found, judged = _core.judge_guardrails(body, orjson.dumps(actions), [*run.disabled_guardrails])
    results = []
    for name, _ in _core.guardrails():
        action = actions[_member(name)]
        kinds = [kind for guardrail, kind in found if guardrail == name]
        results.append(
            GuardrailResult.model_construct(
                guardrail=name,
                blocked=bool(kinds) and action == "block",
                skipped=name in run.disabled_guardrails,
                modified=bool(kinds) and action == "redact",
                meta={"kinds": kinds, "action": action},
            )
        )
    blocked = any(result.blocked for result in results)
    payload = None if blocked else orjson.loads(judged or body)["input"]
    return DryRunResult.model_construct(blocked=blocked, results=results, payload=payload)


def _member(name: str) -> str:
    return name.replace("-", "_")
