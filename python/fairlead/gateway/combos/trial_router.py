"""`POST /api/combos/simulate` and `/test`: a combo's decision, without a call and with small ones."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Final, Literal

import httpx
import orjson
from fastapi import APIRouter
from pydantic import Field

from fairlead.calls.own_relay import as_operator, relay_client
from fairlead.errors import InvalidRequest, NotFound
from fairlead.gateway.fields import Text
from fairlead.store.services import Services, ServicesDep
from fairlead.wire import Wire

router = APIRouter(prefix="/api/combos", tags=["combos"])

TESTED_AT_ONCE: Final = 8
TESTED_AT_MOST: Final = 32
TEST_DEADLINE_S: Final = 12.0

CalledName = Annotated[Text, Field(min_length=1, max_length=300)]
Result = Literal["ok", "failed", "not asked"]
_QUESTION: Final = "Answer with one word: ready?"


class Simulation(Wire):
    """A request that is not made."""

    combo_name: CalledName = Field(
        description="As callers write it: a combo, an alias, a model that is mapped, or `auto/*`."
    )
    request: dict[str, Any] = Field(
        default={}, description="A chat completion; without one a short question."
    )
    api_key_id: Annotated[Text, Field(min_length=1, max_length=100)] | None = Field(
        None, description="The key that would make it; without one no key's rules apply."
    )


class TargetFacts(Wire):
    """Facts that a strategy goes by; null is not known. Prices are micro-dollars per million tokens."""

    weight: float
    in_flight: int
    used: int
    latency_ms: float | None
    success_rate: float | None
    price_input: int | None
    price_output: int | None
    context_window: int | None
    headroom: float


class SimulatedTarget(Wire):
    """A target with its place among those that would be tried, or the reason against it."""

    model: str
    upstream_model: str
    provider: str
    connection_id: str
    connection: str
    step: int
    eligible: bool
    order: int | None
    reason: str | None
    score: float | None
    availability: Literal["able", "probing", "cooling", "closed"]
    cooldown_ms: int | None
    facts: TargetFacts


class SimulationView(Wire):
    """`chosen` would be asked first. Each worker decides for itself: `workersAgree` says whether all
    of them would try the same targets in the same order now.
    """

    combo: str
    strategy: str
    why: str
    input_tokens: int
    chosen: SimulatedTarget | None
    targets: list[SimulatedTarget]
    workers: int
    workers_agree: bool


class Trial(Wire):
    """Which combo's targets are asked."""

    combo_name: CalledName


class TargetTrial(Wire):
    """The result of one small question."""

    model: str
    provider: str
    connection_id: str
    result: Result
    status: int | None
    reason: str | None
    ms: int | None
    cost_usd: float | None


class TrialView(Wire):
    combo: str
    targets: list[TargetTrial]


@router.post("/simulate", summary="Which targets a combo would try for a request, and why")
async def simulate(body: Simulation, services: ServicesDep) -> SimulationView:
    """The relay decides as for a real call. No provider is called, and nothing is counted or stored."""
    request = body.request or {"messages": [{"role": "user", "content": _QUESTION}]}
    decisions = await _decide(services, body.combo_name, request, body.api_key_id)
    first = decisions[0]
    targets = [_target(target) for target in first["targets"]]
    orders = [
        [
            (target["model"], target["connection_id"])
            for target in each["targets"]
            if target["eligible"]
        ]
        for each in decisions
    ]
    return SimulationView.model_construct(
        combo=first["combo"],
        strategy=first["strategy"],
        why=first["why"],
        input_tokens=first["input_tokens"],
        chosen=next((target for target in targets if target.order == 1), None),
        targets=targets,
        workers=len(decisions),
        workers_agree=all(order == orders[0] for order in orders),
    )


@router.post("/test", summary="Test each target of a combo with one small call")
async def test(body: Trial, services: ServicesDep) -> TrialView:
    """One small call per target that may be tried, as the operator; no key pays for it."""
    request = {"messages": [{"role": "user", "content": _QUESTION}]}
    decision = (await _decide(services, body.combo_name, request, None))[0]
    headers = await asyncio.to_thread(as_operator, services.config)
    slots = asyncio.Semaphore(TESTED_AT_ONCE)

    async with relay_client(services.config, connections=TESTED_AT_ONCE) as client:

        async def ask(target: dict[str, Any]) -> TargetTrial:
            if not target["eligible"]:
                return _trial(target, "not asked", reason=target["reason"])
            async with slots:
                return await _try_target(client, headers, target)

        trials = await asyncio.gather(*map(ask, decision["targets"][:TESTED_AT_MOST]))
    return TrialView.model_construct(combo=decision["combo"], targets=trials)


async def _decide(
    services: Services, name: str, request: dict[str, Any], key_id: str | None
) -> list[dict[str, Any]]:
    """The decision of each worker. `NotFound` and `InvalidRequest` where the request would be refused."""
    args = {"model": name, "key_id": key_id, "body": {**request, "model": name}}
    decisions: list[dict[str, Any]] = await services.command("combos.simulate", args)
    for decision in decisions:
        if "fault" in decision:
            param = {"model": "comboName"}.get(decision["param"], decision["param"])
            if decision.get("kind") == "model_not_found":
                raise NotFound(decision["fault"], param=param)
            raise InvalidRequest(decision["fault"], param=param)
    return decisions


def _target(target: dict[str, Any]) -> SimulatedTarget:
    facts = {name: target[name] for name in TargetFacts.model_fields}
    rest = {name: target[name] for name in SimulatedTarget.model_fields if name != "facts"}
    return SimulatedTarget.model_construct(facts=TargetFacts.model_construct(**facts), **rest)


async def _try_target(
    client: httpx.AsyncClient, headers: dict[str, str], target: dict[str, Any]
) -> TargetTrial:
    body = {
        "model": target["model"],
        "messages": [{"role": "user", "content": _QUESTION}],
        "max_tokens": 16,
    }
    own = {"x-gateway-connection": target["connection_id"], "x-gateway-no-cache": "true"}
    began = time.monotonic()
    try:
        async with asyncio.timeout(TEST_DEADLINE_S):
            answer = await client.post("/v1/chat/completions", headers=headers | own, json=body)
    except (TimeoutError, httpx.HTTPError) as error:
        words = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
        return _trial(target, "failed", reason=words, ms=_since(began))
    if answer.status_code != 200:
        return _trial(
            target, "failed", status=answer.status_code, reason=_message(answer), ms=_since(began)
        )
    cost = float(answer.headers.get("x-gateway-response-cost", "0"))
    known = None if "x-gateway-unpriced" in answer.headers else cost
    return _trial(target, "ok", status=200, ms=_since(began), cost_usd=known)


def _since(began: float) -> int:
    return round((time.monotonic() - began) * 1_000)


def _message(answer: httpx.Response) -> str:
    try:
        return str(orjson.loads(answer.content)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"The gateway answered {answer.status_code}."


def _trial(target: dict[str, Any], result: Result, **fields: Any) -> TargetTrial:
    empty = {"status": None, "reason": None, "ms": None, "cost_usd": None}
    return TargetTrial.model_construct(
        model=target["model"],
        provider=target["provider"],
        connection_id=target["connection_id"],
        result=result,
        **(empty | fields),
    )
