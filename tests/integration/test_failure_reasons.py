"""A request that failed says why: what its caller received, and what each provider answered, from wire to log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.chat import ask, error_of, request_id
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.upstream import Script, delta, event, reply, stream

SECRET = "sk-ant-api03-" + "A" * 80
LONG = "ä" * 5_000


def row_of(gateway: Gateway, answer: Any) -> dict[str, Any]:
    """The settled request of an answer, in full."""
    wanted = {"requestId": request_id(answer)}
    found: list[dict[str, Any]] = []

    def is_settled() -> bool:
        found[:] = expect(gateway.admin.get("/api/usage/request-logs", params=wanted), 200)["logs"]
        return bool(found)

    eventually(is_settled, "the request is settled", within_s=20)
    return found[0]


def failed_with(status: int, **error: Any) -> Script:
    return reply({"error": error}, status=status, headers=[("x-request-id", "req_77")])


def test_a_failure_of_the_provider_keeps_its_status_code_message_and_request_id(
    gateway: Gateway, lane: Lane
) -> None:
    words = f'It broke, 100 %; "sorry"\r\nsecond line, key {SECRET}'
    lane.upstream.script(failed_with(500, message=words, type="server_error", code="internal"))
    answer = ask(lane)
    assert error_of(answer) == (502, "upstream_status")
    row = row_of(gateway, answer)
    assert row["errorMessage"] == answer.json()["error"]["message"] == "The provider failed (500)."
    (attempt,) = row["failedAttempts"]
    assert attempt["providerStatus"] == 500
    assert (attempt["providerCode"], attempt["providerType"]) == ("internal", "server_error")
    assert attempt["providerRequestId"] == "req_77"
    assert attempt["providerMessage"] == 'It broke, 100 %; "sorry"'
    assert "sorry" not in answer.body.decode(), "the caller is not shown the provider's words"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "upstream_auth"),
        (402, "upstream_auth"),
        (429, "upstream_rate_limited"),
        (503, "upstream_overloaded"),
        (504, "upstream_timeout"),
        (400, "invalid_request"),
    ],
)
def test_every_class_of_failure_says_what_the_provider_answered(
    gateway: Gateway, lane: Lane, status: int, kind: str
) -> None:
    lane.upstream.script(failed_with(status, message="These are the words.", code="a_code"))
    answer = ask(lane)
    row = row_of(gateway, answer)
    assert row["errorKind"] == kind
    assert row["errorMessage"] == answer.json()["error"]["message"]
    (attempt,) = row["failedAttempts"]
    assert (attempt["providerStatus"], attempt["providerCode"]) == (status, "a_code")
    assert attempt["providerMessage"] == "These are the words."


def test_secrets_are_masked_and_long_messages_are_cut_between_characters(
    gateway: Gateway, lane: Lane
) -> None:
    lane.upstream.script(failed_with(500, message=f"Wrong key {SECRET} of jo@example.com {LONG}"))
    (attempt,) = row_of(gateway, ask(lane))["failedAttempts"]
    message = attempt["providerMessage"]
    assert "AAAA" not in message
    assert "jo@" not in message
    assert len(message.encode()) <= 300
    assert message.endswith("ä…")


def test_a_rejected_request_keeps_the_sentence_that_the_caller_received(
    gateway: Gateway, lane: Lane
) -> None:
    lane.upstream.script(failed_with(422, message=f"`n` must be 1. {LONG}"))
    answer = ask(lane)
    row = row_of(gateway, answer)
    assert answer.json()["error"]["message"].startswith("`n` must be 1. ä")
    assert row["errorMessage"].startswith("`n` must be 1. ä")
    assert len(row["errorMessage"].encode()) <= 300


def test_an_error_inside_a_stream_is_kept_too(gateway: Gateway, lane: Lane) -> None:
    fault = event({"error": {"message": "The engine is gone.", "code": "gone"}})
    lane.upstream.script(stream(delta("Half"), fault, ended=False))
    row = row_of(gateway, ask(lane, stream=True))
    assert row["outcome"] == "upstream_failed"
    assert row["errorMessage"]
    (attempt,) = row["failedAttempts"]
    assert (attempt["providerStatus"], attempt["providerMessage"]) == (200, "The engine is gone.")


def test_a_refusal_by_the_gateway_keeps_its_sentence(gateway: Gateway, lane: Lane) -> None:
    body = {"model": f"{lane.prefix}/m", "messages": "none"}
    answer = gateway.caller.post("/v1/chat/completions", json=body)
    found: list[dict[str, Any]] = []

    def is_settled() -> bool:
        wanted = {"requestId": answer.headers["x-gateway-request-id"]}
        found[:] = expect(gateway.admin.get("/api/usage/logs", params=wanted), 200)["logs"]
        return bool(found)

    eventually(is_settled, "the refusal is settled", within_s=20)
    assert found[0]["errorMessage"] == answer.json()["error"]["message"]
    assert found[0]["outcome"] == "refused"


def test_a_key_that_asks_for_no_log_leaves_no_words(gateway: Gateway, lane: Lane) -> None:
    body = {"name": "private", "noLog": True}
    key = expect(gateway.admin.post("/api/keys", json=body), 201)["key"]
    lane.upstream.script(failed_with(500, message="A private prompt."))
    chat = {"model": f"{lane.prefix}/m", "messages": [{"role": "user", "content": "Ahoy"}]}
    headers = {"authorization": f"Bearer {key}"}
    answer = gateway.admin.post("/v1/chat/completions", json=chat, headers=headers)
    assert answer.status_code == 502, answer.text
    wanted = {"errorText": "private prompt"}
    assert expect(gateway.admin.get("/api/usage/logs", params=wanted), 200)["total"] == 0


def test_failures_are_counted_by_provider_and_kind(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(failed_with(500, message="No."))
    ask(lane)
    eventually(
        lambda: any(
            line.startswith("fairlead_provider_failures_total{")
            and 'kind="upstream_status"' in line
            for line in gateway.admin.get("/metrics").text.splitlines()
        ),
        "the failure is counted",
        within_s=20,
    )
