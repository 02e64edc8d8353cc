"""An OTLP/HTTP collector: a real HTTP server that reads what OpenTelemetry's exporters send."""

from __future__ import annotations

import gzip
from http.server import BaseHTTPRequestHandler
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests.support.http_server import LocalServer


class Collector(LocalServer):
    """`spans` has every span that came, with the resource's attributes; `status` is what it answers."""

    def __init__(self) -> None:
        self.spans: list[tuple[dict[str, Any], Any]] = []
        self.paths: list[str] = []
        self.status = 200
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    data = gzip.decompress(data)
                assert self.headers["Content-Type"] == "application/x-protobuf"
                collector.paths.append(self.path)
                if collector.status == 200:
                    collector.take(ExportTraceServiceRequest.FromString(data))
                body = ExportTraceServiceResponse().SerializeToString()
                self.send_response(collector.status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Says nothing."""

        super().__init__(Handler)
        self.url = f"http://{self.authority}"

    def take(self, request: Any) -> None:
        for group in request.resource_spans:
            resource = attributes_of(group.resource)
            for scope in group.scope_spans:
                self.spans += [(resource, span) for span in scope.spans]


def attributes_of(told: Any) -> dict[str, Any]:
    """Attributes as plain values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in told.attributes}
