"""Whatever a provider says in place of an answer, the caller gets a well-formed error, and nothing secret in it."""

from __future__ import annotations

import contextlib
import email.utils
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat import CHAT, ask, assert_failed, error_of, request_id, send_chat
from tests.support.polling import eventually
from tests.support.processes import Gateway, Lane, expect
from tests.support.raw import RawClient
from tests.support.upstream import (
    CLOSE,
    DONE,
    LAST_CHUNK,
    RESET,
    SSE_HEAD,
    STALL,
    ClosedPort,
    Gate,
    Step,
    Upstream,
    Wait,
    chunk,
    completion,
    delta,
    finish,
    head,
    reply,
    stream,
    usage_event,
)

PLAIN_AND_STREAMED = pytest.mark.parametrize("streamed", (False, True), ids=("plain", "streamed"))


@pytest.fixture(scope="module", autouse=True)
def _nothing_piles_up(gateway: Gateway) -> Iterator[None]:
    """G1: after all the faults the same worker runs, with the descriptors it had."""
    gateway.caller.get("/v1/models")
    worker = gateway.relay
    before = worker.fds
    yield
    assert gateway.relay == worker, "the relay worker was replaced"
    eventually(lambda: worker.fds <= before + 3, f"descriptors are back at {before}", within_s=15)


# --------------------------------------------------------------------- S1, S2: no answer, half an answer


@pytest.mark.parametrize("end", (CLOSE, RESET), ids=str)
@PLAIN_AND_STREAMED
def test_an_answer_that_never_starts_is_a_502(
    gateway: Gateway, lane: Lane, end: Step, streamed: bool
) -> None:
    """The provider takes the request and ends the connection: a 502, and the request was not sent twice."""
    lane.upstream.script([end])
    answer = ask(lane, stream=streamed)
    assert error_of(answer) == (502, "upstream_reset")
    assert len(lane.upstream.requests) == 1
    assert_failed(gateway, answer, "upstream_reset")


def test_a_plain_answer_cut_short_is_never_passed_as_whole(lane: Lane) -> None:
    """S1: with fewer bytes than announced the caller gets a 502, never a good 200."""
    announced = head(200, [("Content-Type", "application/json"), ("Content-Length", "5000")])
    lane.upstream.script([announced + b'{"choices":', CLOSE])
    assert error_of(ask(lane)) == (502, "upstream_reset")


def test_a_kept_connection_that_was_closed_meanwhile_is_no_failure(lane: Lane) -> None:
    """The provider's idle timer ends a kept connection just as the next request goes out: sent again, once."""
    lane.upstream.script(reply(completion("first")), [CLOSE], reply(completion("again")))
    assert ask(lane).status == 200
    answer = ask(lane)
    assert answer.status == 200
    assert answer.json()["choices"][0]["message"]["content"] == "again"
    assert [seen.connection for seen in lane.upstream.requests] == [1, 1, 2]


def test_a_kept_connection_that_is_closed_late_is_a_failure(lane: Lane) -> None:
    """Two seconds are no idle timer: the provider may have worked, so the request is not sent a second time."""
    lane.upstream.script(reply(completion("first")), [Wait(2), CLOSE], reply(completion("again")))
    assert ask(lane).status == 200
    assert error_of(ask(lane)) == (502, "upstream_reset")
    assert [seen.connection for seen in lane.upstream.requests] == [1, 1]


# ------------------------------------------------------------------------- S6: 200 that is no success

NOT_AN_ANSWER = {
    "HTML": reply(b"<html>busy</html>", content_type="text/html"),
    "HTML called JSON": reply(b"<html>busy</html>"),
    "empty": reply(b""),
    "an array": reply(b"[]"),
    "half an object": reply(b'{"choices": ['),
    "no choices": reply({"hello": 1}),
}


@PLAIN_AND_STREAMED
@pytest.mark.parametrize("script", NOT_AN_ANSWER.values(), ids=NOT_AN_ANSWER.keys())
def test_a_200_that_is_no_answer_is_a_502(
    gateway: Gateway, lane: Lane, script: list[Step], streamed: bool
) -> None:
    """S6: HTML, wrong type, cut JSON: the caller's SDK never gets it as a success."""
    lane.upstream.script(script)
    answer = ask(lane, stream=streamed)
    assert error_of(answer) == (502, "upstream_invalid")
    assert b"busy" not in answer.body
    assert_failed(gateway, answer, "upstream_invalid")


@PLAIN_AND_STREAMED
def test_an_error_under_status_200_is_a_502(gateway: Gateway, lane: Lane, streamed: bool) -> None:
    """S6: an error object under 200 is a failure, and a key that the provider echoes is not passed on."""
    text = f"Incorrect API key provided: {lane.secrets[0]}."
    lane.upstream.script(reply({"error": {"message": text, "type": "invalid_request_error"}}))
    answer = ask(lane, stream=streamed)
    assert answer.status == 502
    assert lane.secrets[0].encode() not in answer.body
    assert gateway.record(request_id(answer))["outcome"] == "upstream_failed"


@pytest.mark.parametrize("status", (400, 401, 403, 404, 422, 429, 500))
def test_a_key_that_a_provider_echoes_goes_nowhere(
    gateway: Gateway, lane: Lane, status: int
) -> None:
    """G3: the connection's credential stands in no error and in no page of the management."""
    secret = lane.secrets[0]
    echo = {
        "error": {"message": f"bad key {secret}", "code": secret, "param": secret, "type": secret}
    }
    lane.upstream.script(reply(echo, status))
    answer = ask(lane)
    assert answer.status >= 400
    assert secret not in f"{answer.headers}{answer.body.decode()}"
    for path in (
        "/api/monitoring/health",
        "/api/providers?limit=500",
        f"/api/providers/{lane.connections[0]['id']}",
    ):
        assert secret not in gateway.admin.get(path).text


@pytest.mark.parametrize("status", (400, 500))
def test_a_header_that_a_provider_echoes_is_masked(
    gateway: Gateway, lane: Lane, status: int
) -> None:
    """G3: the values of an operator's own headers are as secret as the credential."""
    secret = "header-value-canary"
    gateway.canaries.append(secret)
    path = f"/api/provider-nodes/{lane.node['id']}"
    expect(gateway.admin.put(path, json={"customHeaders": {"x-secret": secret}}), 200)
    echo = {"error": {"message": f"bad header {secret}", "code": secret, "param": secret}}
    lane.upstream.script(reply(echo, status))
    answer = ask(lane)
    assert dict(lane.upstream.last.headers)["x-secret"] == secret
    assert answer.status >= 400
    assert secret not in f"{answer.headers}{answer.body.decode()}"
    if status == 400:
        assert answer.json()["error"]["message"] == "bad header ***"


# ------------------------------------------------------------------------------- S7: rate limits


def http_date(seconds_from_now: float) -> str:
    return email.utils.formatdate(time.time() + seconds_from_now, usegmt=True)


Headers = list[tuple[str, str]]
RETRY_AFTER: dict[str, tuple[Callable[[], Headers], int, int]] = {
    "seconds": (lambda: [("Retry-After", "7")], 6, 7),
    "a date": (lambda: [("Retry-After", http_date(9))], 6, 10),
    "milliseconds": (lambda: [("retry-after-ms", "2500"), ("Retry-After", "60")], 2, 3),
    "zero": (lambda: [("Retry-After", "0")], 1, 60),
    "negative": (lambda: [("Retry-After", "-5")], 1, 60),
    "a date that is past": (lambda: [("Retry-After", http_date(-90))], 1, 60),
    "far too long": (lambda: [("Retry-After", "1000000000")], 60, 86_400),
    "garbage": (lambda: [("Retry-After", "soon")], 1, 60),
    "none": (list, 1, 60),
}


@pytest.mark.parametrize(
    ("headers", "least_s", "most_s"), RETRY_AFTER.values(), ids=RETRY_AFTER.keys()
)
def test_a_limit_is_told_when_nothing_else_is_left(
    lane: Lane, headers: Callable[[], Headers], least_s: int, most_s: int
) -> None:
    """S7: 429 with whole seconds that are believable, whatever the provider wrote; the next call waits its turn."""
    lane.upstream.script(reply({"error": {"message": "slow down"}}, 429, headers()))
    answer = ask(lane)
    assert error_of(answer) == (429, "upstream_rate_limited")
    assert answer.json()["error"]["type"] == "rate_limit_error"
    assert least_s <= int(answer.header("retry-after") or "-1") <= most_s
    again = ask(lane)
    assert again.status == 429
    assert 1 <= int(again.header("retry-after") or "-1") <= most_s
    assert len(lane.upstream.requests) == 1, (
        "the provider was asked again while it had said to wait"
    )


@PLAIN_AND_STREAMED
@pytest.mark.parametrize("status", (401, 402, 403, 408, 429, 500, 502, 503, 504, 529))
def test_another_connection_takes_over(
    gateway: Gateway, upstream: Upstream, status: int, streamed: bool
) -> None:
    """S7, S8: a failure of one connection is not the caller's affair while another one serves."""
    lane = gateway.add_lane(upstream, connections=2)
    failure = reply({"error": {"message": "no"}}, status, [("Retry-After", "30")])
    good = (
        stream(delta("two"), finish(), usage_event(), DONE)
        if streamed
        else reply(completion("two"))
    )
    upstream.script(failure, key=lane.secrets[0])
    upstream.script(good, key=lane.secrets[1])
    answer = ask(lane, stream=streamed)
    assert answer.status == 200
    assert b"two" in answer.body
    assert answer.header("retry-after") is None
    assert [seen.bearer for seen in upstream.requests] == lane.secrets
    record = gateway.record(request_id(answer))
    assert (record["attempts"], record["connectionId"]) == (2, lane.connections[1]["id"])


def test_a_rejected_request_is_not_tried_elsewhere(gateway: Gateway, upstream: Upstream) -> None:
    """S8: 400 is about the request: no other connection would judge it better."""
    lane = gateway.add_lane(upstream, connections=2)
    upstream.script(reply({"error": {"message": "no such tool"}}, 400))
    assert ask(lane).status == 400
    assert len(upstream.requests) == 1


def test_a_limit_in_a_coded_body_is_a_limit(lane: Lane) -> None:
    """S7: the status and its wait count, whatever coding the provider gave a body that nobody needs."""
    coded = [("Retry-After", "60"), ("Content-Encoding", "gzip")]
    lane.upstream.script(reply(b"\x1f\x8bzz", 429, coded))
    answer = ask(lane)
    assert error_of(answer) == (429, "upstream_rate_limited")
    assert 58 <= int(answer.header("retry-after") or "-1") <= 60
    assert ask(lane).status == 429
    assert len(lane.upstream.requests) == 1


def test_an_older_success_does_not_end_a_rest(gateway: Gateway, lane: Lane) -> None:
    """S7: a stream that began before the provider said to wait says nothing about now when it ends well."""
    gate = Gate()
    lane.upstream.script(
        [SSE_HEAD, chunk(delta("a")), gate, chunk(finish() + DONE), LAST_CHUNK],
        reply({"error": {"message": "slow down"}}, 429, [("Retry-After", "60")]),
        reply(completion("too soon")),
    )
    with RawClient(gateway.port) as client:
        send_chat(client, lane, stream=True)
        head_of_stream = client.head()
        client.body_until(delta("a"))
        assert ask(lane).status == 429
        gate.open()
        client.body_until(DONE)
    assert gateway.record(request_id(head_of_stream))["outcome"] == "completed"
    assert ask(lane).status == 429
    assert len(lane.upstream.requests) == 2


# --------------------------------------------------------------------------- S8: statuses and dialling

AS_TOLD = None
STATUSES: dict[int, tuple[int, str | None]] = {
    204: (502, "upstream_invalid"),
    304: (502, "upstream_invalid"),
    400: (400, AS_TOLD),
    401: (502, "upstream_auth"),
    402: (502, "upstream_auth"),
    403: (502, "upstream_auth"),
    404: (404, AS_TOLD),
    408: (504, "upstream_timeout"),
    413: (413, AS_TOLD),
    418: (418, AS_TOLD),
    422: (422, AS_TOLD),
    500: (502, "upstream_status"),
    502: (502, "upstream_status"),
    503: (503, "upstream_overloaded"),
    504: (504, "upstream_timeout"),
    529: (503, "upstream_overloaded"),
}


@PLAIN_AND_STREAMED
@pytest.mark.parametrize("status", STATUSES)
def test_each_status_has_its_meaning(lane: Lane, status: int, streamed: bool) -> None:
    """S8: what is wrong with the request keeps its status; what is wrong with us or the provider is a 5xx."""
    told = {
        "message": "as told",
        "type": "invalid_request_error",
        "code": "the_code",
        "param": "the_param",
    }
    lane.upstream.script([head(status)] if status in {204, 304} else reply({"error": told}, status))
    answer = ask(lane, stream=streamed)
    expected, code = STATUSES[status]
    if code is AS_TOLD:
        assert error_of(answer) == (expected, "the_code")
        assert {name: answer.json()["error"][name] for name in told} == told
    else:
        assert error_of(answer) == (expected, code)
        assert b"as told" not in answer.body


def test_nothing_listens(gateway: Gateway, upstream: Upstream) -> None:
    """S8: connection refused is a 502 that says so."""
    with ClosedPort() as closed:
        lane = gateway.add_lane(upstream, base_url=f"http://127.0.0.1:{closed.port}/v1")
        answer = ask(lane)
    assert error_of(answer) == (502, "upstream_refused")
    assert_failed(gateway, answer, "upstream_refused")


def test_the_name_does_not_resolve(gateway: Gateway, upstream: Upstream) -> None:
    """S8: a name that nobody has is a 502 that says so."""
    lane = gateway.add_lane(upstream, base_url="http://no-such-name.invalid/v1", connectMs=3000)
    assert error_of(ask(lane)) == (502, "upstream_refused")


def test_tls_is_not_spoken(gateway: Gateway, upstream: Upstream) -> None:
    """S8: https to a server without TLS is a 502, and the credential is not sent in clear."""
    lane = gateway.add_lane(
        upstream, base_url=upstream.url.replace("http:", "https:"), connectMs=2000
    )
    assert error_of(ask(lane)) == (502, "upstream_refused")
    assert upstream.requests == []


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="needs the openssl command to make a certificate"
)
def test_a_certificate_that_nobody_signed_is_refused(gateway: Gateway, tmp_path: Path) -> None:
    """S8: a self-signed certificate ends the attempt before the credential is sent."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=127.0.0.1"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Upstream(tls=context) as impostor:
        lane = gateway.add_lane(impostor)
        assert error_of(ask(lane)) == (502, "upstream_refused")
        assert impostor.requests == []


@pytest.mark.parametrize(
    "interim",
    (head(100), head(102), head(103, [("Link", "</x>")])),
    ids=("continue", "processing", "early hints"),
)
def test_interim_answers_are_not_the_answer(lane: Lane, interim: bytes) -> None:
    """S8: 1xx before the answer is skipped."""
    lane.upstream.script([interim, interim, *reply(completion("final"))])
    answer = ask(lane)
    assert answer.status == 200
    assert answer.json()["choices"][0]["message"]["content"] == "final"
    assert answer.header("link") is None


@pytest.mark.parametrize("status", (301, 302, 303, 307, 308))
def test_a_redirect_is_not_followed_with_the_credential(lane: Lane, status: int) -> None:
    """S8: another host never sees a connection, let alone the key; the caller gets a 502 and no Location."""
    with Upstream() as elsewhere:
        lane.upstream.script(
            reply(b"", status, [("Location", f"{elsewhere.url}/chat/completions")])
        )
        answer = ask(lane)
        assert error_of(answer) == (502, "upstream_invalid")
        assert answer.header("location") is None
        assert elsewhere.connections == 0


GARBAGE = {
    "ssh": b"SSH-2.0-OpenSSH_9.9\r\n",
    "binary": b"\x00\x01\x02\x03\x04\x05\x06\x07\r\n\r\n",
    "a status that is none": b"HTTP/1.1 abc\r\n\r\n",
    "a length that is none": b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a long header": head(200, [("x", "y" * 600_000)]),
    "300 headers": head(200, [(f"x-{number}", "y") for number in range(300)]),
    "another protocol": head(101, [("Upgrade", "x"), ("Connection", "upgrade")]),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())
def test_what_is_not_http_is_a_502(lane: Lane, garbage: bytes) -> None:
    """A provider that does not speak HTTP, or too much of it, costs one 502."""
    lane.upstream.script([garbage, CLOSE])
    assert error_of(ask(lane)) in {(502, "upstream_invalid"), (502, "upstream_reset")}


# ---------------------------------------------------------------------------- G5: the neighbours


def test_neighbours_are_served_during_faults(gateway: Gateway, lane: Lane) -> None:
    """G5: while twenty streams of a sick provider hang, another provider's callers are answered as ever."""
    with Upstream() as sick, contextlib.ExitStack() as clients:
        ill = gateway.add_lane(sick)
        sick.script([SSE_HEAD, chunk(delta("a")), STALL])
        for _ in range(20):
            send_chat(clients.enter_context(RawClient(gateway.port)), ill, stream=True)
        eventually(lambda: len(sick.requests) == 20, "all twenty hang")
        times_s = []
        for _ in range(50):
            started = time.monotonic()
            assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200
            times_s.append(time.monotonic() - started)
    assert sorted(times_s)[-3] < 0.25, sorted(times_s)[-5:]


# --------------------------------------------- S1, S4: a stream that never says why the model stopped

UNENDED: dict[str, tuple[str, dict[str, Any], list[bytes]]] = {
    "chat": (
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "a"}]},
        [b'"finish_reason":"stop"', DONE],
    ),
    "messages": (
        "/v1/messages",
        {"messages": [{"role": "user", "content": "a"}], "max_tokens": 9},
        [b'"stop_reason":"end_turn"', b"event: message_stop\n"],
    ),
    "responses": ("/v1/responses", {"input": "a"}, [b"event: response.completed\n"]),
    "gemini": (
        "/v1beta/models/{model}:streamGenerateContent?alt=sse",
        {"contents": [{"role": "user", "parts": [{"text": "a"}]}]},
        [b'"finishReason":"STOP"'],
    ),
    "completions": ("/v1/completions", {"prompt": "a"}, [b'"finish_reason":"stop"', DONE]),
}


@pytest.mark.parametrize("name", UNENDED)
def test_a_done_behind_an_answer_without_a_finish_reason_ends_it(
    gateway: Gateway, lane: Lane, name: str
) -> None:
    """Some servers never say why the model stopped: it is said in their place, and blames nobody."""
    path, body, ends = UNENDED[name]
    said = delta("all of it")
    if name == "completions":
        said = (
            b'data: {"id":"c","choices":[{"index":0,"text":"all of it","finish_reason":null}]}\n\n'
        )
    lane.upstream.script(stream(said, usage_event(11, 5), DONE))
    named = {} if name == "gemini" else {"model": lane.model, "stream": True}
    answer = gateway.caller.post(path.replace("{model}", lane.model), json={**named, **body})
    assert answer.status_code == 200
    assert b"all of it" in answer.content
    for each in ends:
        assert answer.content.count(each) == 1, answer.content
    records = eventually(lambda: gateway.records_of(lane), "the request is recorded")
    assert [each["outcome"] for each in records] == ["completed"]
    assert (records[0]["tokensInput"], records[0]["tokensOutput"]) == (11, 5)


def test_a_done_without_an_answer_is_told_as_an_error(gateway: Gateway, lane: Lane) -> None:
    lane.upstream.script(stream(delta(""), usage_event(11, 5), DONE))
    answer = gateway.caller.post(CHAT, json=lane.body(stream=True))
    assert b'"error":' in answer.content or answer.status_code == 502, answer.content
    records = eventually(lambda: gateway.records_of(lane), "the request is recorded")
    assert [each["outcome"] for each in records] == ["upstream_failed"]
