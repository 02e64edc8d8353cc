"""Why a provider rejects a request, in the words of each dialect, decides whether another target is asked."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.chat import CHAT
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.prometheus import read_metrics
from tests.support.upstream import Upstream, completion, reply

OK = reply(completion("it is served"))
LIMITED = reply({"error": {"message": "slow"}}, status=429, headers=[("Retry-After", "60")])

SERVED = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "served"}]},
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
}

ANTHROPIC = "anthropic"
GEMINI = "gemini"
OPENAI = "openai"


def anthropic_error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def google_error(message: str, status: str = "INVALID_ARGUMENT", **more: Any) -> dict[str, Any]:
    return {"error": {"code": 400, "message": message, "status": status, **more}}


# dialect, status, body of the first target's answer.
GOES_ON: dict[str, tuple[str, int, Any]] = {
    "openai overflow": (
        OPENAI,
        400,
        {"error": {"message": "too long", "code": "context_length_exceeded"}},
    ),
    "vllm overflow": (
        OPENAI,
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 8 tokens. However, you requested 9 tokens",
            "type": "BadRequestError",
            "code": 400,
        },
    ),
    "anthropic overflow": (
        ANTHROPIC,
        400,
        anthropic_error("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"),
    ),
    "gemini overflow": (
        GEMINI,
        400,
        google_error("The input token count (9) exceeds the maximum number of tokens allowed (8)."),
    ),
    "anthropic model": (ANTHROPIC, 404, anthropic_error("not_found_error", "model: m0")),
    "anthropic parameter": (
        ANTHROPIC,
        400,
        anthropic_error("invalid_request_error", "seed: Extra inputs are not permitted"),
    ),
    "gemini parameter": (
        GEMINI,
        400,
        google_error('Invalid JSON payload received. Unknown name "seed": Cannot find field.'),
    ),
    "gemini key": (
        GEMINI,
        400,
        google_error(
            "API key not valid. Please pass a valid API key.",
            details=[{"@type": "type.googleapis.com/ErrorInfo", "reason": "API_KEY_INVALID"}],
        ),
    ),
    "mistral parameter": (
        OPENAI,
        422,
        {
            "detail": [
                {
                    "type": "extra_forbidden",
                    "loc": ["body", "x"],
                    "msg": "Extra inputs are not permitted",
                }
            ]
        },
    ),
}


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running


def combo_of(gateway: Gateway, *models: str) -> str:
    name = f"c{secrets.token_hex(4)}"
    expect(gateway.admin.post("/api/combos", json={"name": name, "models": list(models)}), 201)
    return name


def call(gateway: Gateway, model: str) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
    return gateway.caller.post(CHAT, json=body)


def lanes_of(gateway: Gateway, upstream: Upstream, dialect: str) -> tuple[Lane, Lane]:
    return gateway.add_lane(upstream, dialect=dialect), gateway.add_lane(upstream)


@pytest.mark.parametrize("name", GOES_ON)
def test_a_combo_goes_on_where_another_target_may_serve(
    gateway: Gateway, upstream: Upstream, name: str
) -> None:
    dialect, status, body = GOES_ON[name]
    first, second = lanes_of(gateway, upstream, dialect)
    upstream.script(reply(body, status=status))
    upstream.script(OK, key=second.secrets[0])
    answer = call(gateway, combo_of(gateway, f"{first.prefix}/m0", f"{second.prefix}/m1"))
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-gateway-fallback-attempts"] == "1"


POLICY = {"error": {"message": "It was flagged.", "code": "content_policy_violation"}}
# Dialect, body of the error, reason and member in the record.
TRANSLATED: dict[str, tuple[str, Any, str]] = {
    ANTHROPIC: (
        ANTHROPIC,
        anthropic_error("invalid_request_error", "messages.0.content: at least one is required"),
        "messages.0.content",
    ),
    GEMINI: (
        GEMINI,
        google_error('Invalid JSON payload received. Unknown name "seed": Cannot find field.'),
        "seed",
    ),
}


def attempts_of(gateway: Gateway, answer: httpx.Response) -> list[dict[str, Any]]:
    """The failed attempts in the request log."""
    wanted = {"requestId": answer.headers["x-gateway-request-id"]}
    rows: list[dict[str, Any]] = []

    def is_settled() -> bool:
        rows[:] = expect(gateway.admin.get("/api/usage/request-logs", params=wanted), 200)["logs"]
        return bool(rows)

    eventually(is_settled, "the request is settled", within_s=20)
    attempts: list[dict[str, Any]] = rows[0]["failedAttempts"]
    return attempts


def refused_translations(gateway: Gateway) -> float:
    family = read_metrics(gateway.admin.get("/metrics").text).get(
        "fairlead_translation_refused_total"
    )
    return family.value() if family else 0


def test_a_request_that_is_wrong_itself_ends_the_combo(
    gateway: Gateway, upstream: Upstream
) -> None:
    first, second = lanes_of(gateway, upstream, OPENAI)
    wrong = {"error": {"message": "Invalid 'messages': empty array.", "param": "messages"}}
    upstream.script(reply(wrong, status=400))
    upstream.script(OK, key=second.secrets[0])
    answer = call(gateway, combo_of(gateway, f"{first.prefix}/m0", f"{second.prefix}/m1"))
    assert answer.status_code == 400
    assert len(upstream.requests) == 1
    (attempt,) = attempts_of(gateway, answer)
    assert (attempt["rejectionReason"], attempt["rejectedMember"]) == ("request", "messages")


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_request_that_the_gateway_wrote_wrong_goes_to_the_next_target(
    gateway: Gateway, upstream: Upstream, name: str
) -> None:
    dialect, body, member = TRANSLATED[name]
    before = refused_translations(gateway)
    first, second = lanes_of(gateway, upstream, dialect)
    upstream.script(reply(body, status=400))
    upstream.script(OK, key=second.secrets[0])
    answer = call(gateway, combo_of(gateway, f"{first.prefix}/m0", f"{second.prefix}/m1"))
    assert answer.status_code == 200, answer.text
    (attempt,) = attempts_of(gateway, answer)
    assert attempt["rejectionReason"] == "translation.refused"
    assert attempt["rejectedMember"] == member
    eventually(
        lambda: refused_translations(gateway) == before + 1, "the refusal is counted", within_s=20
    )


def test_a_policy_ends_the_combo_and_is_in_the_record(gateway: Gateway, upstream: Upstream) -> None:
    first, second = lanes_of(gateway, upstream, ANTHROPIC)
    upstream.script(reply(POLICY, status=400))
    upstream.script(OK, key=second.secrets[0])
    answer = call(gateway, combo_of(gateway, f"{first.prefix}/m0", f"{second.prefix}/m1"))
    assert answer.status_code == 400
    assert len(upstream.requests) == 1
    (attempt,) = attempts_of(gateway, answer)
    assert attempt["rejectionReason"] == "policy"


@pytest.mark.parametrize("name", [each for each in GOES_ON if "overflow" in each])
def test_an_overflow_has_one_code_for_callers(
    gateway: Gateway, upstream: Upstream, name: str
) -> None:
    dialect, status, body = GOES_ON[name]
    lane = gateway.add_lane(upstream, dialect=dialect)
    upstream.script(reply(body, status=status))
    answer = call(gateway, lane.model)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "context_length_exceeded")


@pytest.mark.one_node(reason="each worker knows what providers told itself")
def test_a_key_that_google_refuses_with_a_400_blames_its_connection(
    gateway: Gateway, upstream: Upstream
) -> None:
    lane = gateway.add_lane(upstream, dialect=GEMINI, connections=2)
    _, status, body = GOES_ON["gemini key"]
    upstream.script(reply(body, status=status), reply(SERVED))
    assert call(gateway, lane.model).status_code == 200
    assert call(gateway, lane.model).status_code == 200
    assert len(upstream.requests) == 3, "the connection that was refused rests"


@pytest.mark.one_node(reason="a rest is told to other workers within half a second")
def test_a_limit_of_one_model_leaves_the_others(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(LIMITED, model="m0")
    upstream.script(OK, model="m1")
    models = [f"{lane.prefix}/m{at}" for at in range(3)]
    assert call(gateway, models[0]).status_code == 429
    assert call(gateway, models[1]).status_code == 200
    again = call(gateway, models[0])
    assert again.status_code == 429
    assert 0 < int(again.headers["retry-after"]) <= 60
    assert call(gateway, combo_of(gateway, *models[:2])).status_code == 200
    assert len(upstream.requests) == 3, "the model that is limited is not asked"
    # A second model says the same: the limit is the account's.
    upstream.script(LIMITED, model="m2")
    assert call(gateway, models[2]).status_code == 429
    assert call(gateway, models[1]).status_code == 429
    assert len(upstream.requests) == 4


@pytest.mark.one_node(reason="a rest is told to other workers within half a second")
def test_a_day_of_retry_after_is_an_hour(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream)
    upstream.script(
        reply({"error": {"message": "slow"}}, status=429, headers=[("Retry-After", "864000")])
    )
    for _ in range(2):
        answer = call(gateway, lane.model)
        assert answer.status_code == 429
        assert 3_500 < int(answer.headers["retry-after"]) <= 3_600


@pytest.mark.one_node(reason="a rest is told to other workers within half a second")
def test_google_says_in_the_body_when_to_come_back(gateway: Gateway, upstream: Upstream) -> None:
    lane = gateway.add_lane(upstream, dialect=GEMINI)
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "45.5s"}]
    body = google_error("You exceeded your current quota.", "RESOURCE_EXHAUSTED", details=details)
    upstream.script(reply(body, status=429))
    answer = call(gateway, lane.model)
    assert answer.status_code == 429
    assert 44 <= int(answer.headers["retry-after"]) <= 46
