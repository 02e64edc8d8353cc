"""Settled requests as spans of OpenTelemetry, by its conventions for generative AI.

One span for each model call, from its admission to its last byte, under the id that the provider
was sent. Attributes without a name in the conventions begin with `fairlead.`. OpenTelemetry's
packages are an extra: this module is loaded only where traces are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from fairlead import __version__

# The conventions' names of providers with another name here.
_PROVIDERS: Final = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
_ATTRIBUTES: Final = {
    "request_id": "fairlead.request_id",
    "key_id": "fairlead.key_id",
    "connection_id": "fairlead.connection_id",
    "combo": "fairlead.combo",
    "strategy": "fairlead.strategy",
    "outcome": "fairlead.outcome",
    "attempts": "fairlead.attempts",
    "cost_usd_micros": "fairlead.cost_usd_micros",
    "cache": "fairlead.cache",
    "cache_kind": "fairlead.cache_kind",
    "method": "http.request.method",
    "path": "http.route",
    "status": "http.response.status_code",
    "model": "gen_ai.request.model",
    "upstream_model": "gen_ai.response.model",
    "tokens_input": "gen_ai.usage.input_tokens",
    "tokens_output": "gen_ai.usage.output_tokens",
    "tokens_cached": "gen_ai.usage.cache_read.input_tokens",
    "tokens_cache_write": "gen_ai.usage.cache_creation.input_tokens",
}


class Exporter:
    """Sends spans over OTLP/HTTP, to the address in the environment. Blocking."""

    def __init__(self) -> None:
        resource = Resource.create({SERVICE_VERSION: __version__})
        name = str(resource.attributes.get(SERVICE_NAME, ""))
        if not name or name.startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "fairlead"}))
        self._resource = resource
        self._exporter = OTLPSpanExporter()

    def export(self, rows: list[dict[str, Any]]) -> bool:
        """Sends a span of each record; whether the collector accepted them. Retries for some
        seconds.
        """
        spans = list(spans_of(rows, self._resource))
        return self._exporter.export(spans) is SpanExportResult.SUCCESS


def spans_of(rows: list[dict[str, Any]], resource: Resource) -> Iterator[ReadableSpan]:
    """A span for each record."""
    scope = InstrumentationScope("fairlead", __version__)
    flags = TraceFlags(TraceFlags.SAMPLED)
    for row in rows:
        trace_id = int(row["trace_id"], 16)
        parent = row["parent_span_id"]
        is_ok = row["outcome"] == "completed"
        start_ns = row["ts_ms"] * 1_000_000
        yield ReadableSpan(
            name=f"{_operation(row)} {row['model'] or ''}".strip(),
            context=SpanContext(
                trace_id, int(row["span_id"], 16), is_remote=False, trace_flags=flags
            ),
            parent=(
                SpanContext(trace_id, int(parent, 16), is_remote=True, trace_flags=flags)
                if parent
                else None
            ),
            resource=resource,
            attributes=attributes_of(row),
            kind=SpanKind.CLIENT,
            status=Status(StatusCode.UNSET)
            if is_ok
            else Status(StatusCode.ERROR, row["error_message"]),
            start_time=start_ns,
            end_time=start_ns + round(row["latency_ms"] * 1e6),
            instrumentation_scope=scope,
        )


def attributes_of(row: dict[str, Any]) -> dict[str, str | int | float | bool]:
    """The attributes of a record's span; unknown ones are absent."""
    attributes: dict[str, Any] = {name: row[column] for column, name in _ATTRIBUTES.items()}
    attributes["gen_ai.operation.name"] = _operation(row)
    provider = row["provider"]
    attributes["gen_ai.provider.name"] = _PROVIDERS.get(provider, provider)
    attributes["gen_ai.conversation.id"] = row["session_tag"] or row["session_id"]
    if row["ttft_ms"] is not None:
        attributes["gen_ai.response.time_to_first_chunk"] = row["ttft_ms"] / 1000
    if row["outcome"] != "completed":
        attributes["error.type"] = row["error_kind"] or row["outcome"]
    return {name: value for name, value in attributes.items() if value is not None}


def _operation(row: dict[str, Any]) -> str:
    return str(row["endpoint"])
