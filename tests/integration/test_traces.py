"""A request's place in a trace: passed on as it came, or, with tracing, with the gateway's own step,
which a collector gets over OTLP/HTTP.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat import CHAT
from tests.support.collector import Collector, attributes_of
from tests.support.polling import eventually, holds_for
from tests.support.processes import Gateway, Lane
from tests.support.upstream import Upstream, completion, reply

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
SENT = f"00-{TRACE}-{PARENT}-01"


def test_without_tracing_the_headers_go_on_as_they_came(gateway: Gateway, lane: Lane) -> None:
    headers = {"traceparent": SENT, "tracestate": "vendor=a,other=b"}
    answer = gateway.caller.post(CHAT, json=lane.body(), headers=headers)
    seen = lane.upstream.requests[-1]
    assert (seen.header("traceparent"), seen.header("tracestate")) == (SENT, "vendor=a,other=b")
    record = gateway.record(answer.headers["x-gateway-request-id"])
    assert (record["traceId"], record["parentSpanId"], record["spanId"]) == (TRACE, PARENT, None)

    gateway.caller.post(CHAT, json=lane.body(), headers={"traceparent": "nonsense"})
    assert lane.upstream.requests[-1].header("traceparent") is None
    gateway.caller.post(CHAT, json=lane.body())
    assert lane.upstream.requests[-1].header("traceparent") is None


def traced(gateways: Callable[..., Gateway], collector: Collector, **environment: str) -> Gateway:
    return gateways(
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_BSP_SCHEDULE_DELAY="200", **environment
    )


def spans(collector: Collector, count: int) -> list[tuple[dict[str, Any], Any]]:
    eventually(lambda: len(collector.spans) >= count, f"{count} spans", within_s=15, every_s=0.1)
    return collector.spans


def test_a_call_is_a_span_of_its_callers_trace(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    with Collector() as collector:
        gateway = traced(gateways, collector, OTEL_SERVICE_NAME="our-gateway")
        lane = gateway.add_lane(upstream)
        upstream.script(reply(completion(tokens_in=11, tokens_out=5)), reply({"error": {}}, 500))
        headers = {"traceparent": SENT, "tracestate": "a=1", "X-Gateway-Session-Id": "talk"}
        answer = gateway.caller.post(CHAT, json=lane.body(), headers=headers)
        assert answer.status_code == 200
        seen = upstream.requests[-1]
        own = re.fullmatch(rf"00-{TRACE}-([0-9a-f]{{16}})-01", seen.header("traceparent") or "")
        assert own
        assert own[1] != PARENT
        assert seen.header("tracestate") == "a=1"
        failed = gateway.caller.post(CHAT, json=lane.body())
        assert failed.status_code >= 500
        begun_here = upstream.requests[-1].header("traceparent")

        found = {span.span_id.hex(): (resource, span) for resource, span in spans(collector, 2)}
        resource, span = found[own[1]]
        assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
        assert (span.name, span.kind) == (f"chat {lane.model}", 3)  # client
        assert 0 < span.end_time_unix_nano - span.start_time_unix_nano < 60e9
        assert resource["service.name"] == "our-gateway"
        told = attributes_of(span)
        assert told["gen_ai.operation.name"] == "chat"
        assert told["gen_ai.provider.name"] == lane.node["id"]
        assert (told["gen_ai.request.model"], told["gen_ai.response.model"]) == (lane.model, "m")
        assert told["gen_ai.usage.input_tokens"] == 11
        assert told["gen_ai.usage.output_tokens"] == 5
        assert told["gen_ai.conversation.id"] == "talk"
        assert told["http.response.status_code"] == 200
        assert told["fairlead.request_id"] == answer.headers["x-gateway-request-id"]
        assert "error.type" not in told
        [(_, other)] = [one for key, one in found.items() if key != own[1]]
        assert begun_here == f"00-{other.trace_id.hex()}-{other.span_id.hex()}-01"
        assert (other.parent_span_id, other.status.code) == (b"", 2)
        assert attributes_of(other)["error.type"]
        assert set(collector.paths) == {"/v1/traces"}


def test_who_does_not_sample_and_who_asks_for_no_log_is_not_exported(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    with Collector() as collector:
        gateway = traced(gateways, collector)
        lane = gateway.add_lane(upstream)
        quiet = gateway.create_key(noLog=True)["key"]
        not_sampled = SENT[:-1] + "0"
        gateway.caller.post(CHAT, json=lane.body(), headers={"traceparent": not_sampled})
        assert (upstream.requests[-1].header("traceparent") or "").endswith("-00")
        secret = gateway.client(headers={"Authorization": f"Bearer {quiet}"})
        assert secret.post(CHAT, json=lane.body()).status_code == 200
        shown = gateway.caller.post(CHAT, json=lane.body())
        [(_, span)] = spans(collector, 1)
        assert attributes_of(span)["fairlead.request_id"] == shown.headers["x-gateway-request-id"]


def test_a_collector_that_fails_holds_nothing_up(
    gateways: Callable[..., Gateway], upstream: Upstream
) -> None:
    with Collector() as collector:
        collector.status = 400
        gateway = traced(gateways, collector, OTEL_BSP_MAX_QUEUE_SIZE="1")
        lane = gateway.add_lane(upstream)
        for _ in range(3):
            assert gateway.caller.post(CHAT, json=lane.body()).status_code == 200

        def failed() -> bool:
            return bool(re.search(r'result="failed"} [1-9]', gateway.client().get("/metrics").text))

        eventually(failed, "the failure is counted", within_s=15, every_s=0.2)
        eventually(
            lambda: len(gateway.shown_records()) == 3, "all are taken in", within_s=10, every_s=0.1
        )
        holds_for(lambda: not collector.spans, "nothing was taken", for_s=0.3)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "OTEL_EXPORTER_OTLP_PROTOCOL"),
        ({"OTEL_TRACES_SAMPLER": "sometimes"}, "OTEL_TRACES_SAMPLER"),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "2"}, "SAMPLER_ARG"),
    ],
)
def test_what_cannot_be_done_is_refused_at_the_start(
    tmp_path: Path, environment: dict[str, str], told: str
) -> None:
    found = subprocess.run(
        [
            sys.executable,
            "-m",
            "fairlead",
            "serve",
            "--data-dir",
            str(tmp_path / "data"),
            "--port",
            "1",
        ],
        env={
            "PATH": "/usr/bin",
            "PYTHONPATH": ":".join(sys.path),
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1",
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert found.returncode != 0
    assert told in found.stderr
