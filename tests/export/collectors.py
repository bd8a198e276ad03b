"""A collector of OTLP on the loopback, and its spans as the JSON that collectors write to files."""

import base64
import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PROTOBUF = "application/x-protobuf"
_REQUESTS = {
    "/v1/traces": ExportTraceServiceRequest, "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}  # fmt: skip


class Received:
    """What a collector has received, and what it answers.

    Attributes:
        url: Its base URL.
        requests: (path, headers, message) in the order in which they came.
        answers: (status, headers, body) of the next answers; 200 without a body when there are none left.
        received: Called with each accepted request before it is answered.
    """

    def __init__(self, url):
        self.url, self.requests, self.answers = url, [], []
        self.received = lambda path: None

    def messages(self, path):
        """The accepted messages of one path."""
        return [message for one, _, message in self.requests if one == path]

    def spans(self):
        """All spans, in order."""
        return [
            span
            for message in self.messages("/v1/traces")
            for resource in message.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    def points(self):
        """(metric's name, attributes, value or (count, sum), start, end) of all data points."""
        return [
            (metric.name, attributes(point), point.as_int if kind == "sum" else (point.count, point.sum),
             point.start_time_unix_nano, point.time_unix_nano)
            for message in self.messages("/v1/metrics")
            for resource in message.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for kind in [metric.WhichOneof("data")]
            for point in getattr(metric, kind).data_points
        ]  # fmt: skip

    def events(self):
        """(span's id, name, attributes with values of Python) of all log records, in order."""
        return [
            (record.span_id, record.event_name, {pair.key: _value(pair.value) for pair in record.attributes})
            for message in self.messages("/v1/logs")
            for resource in message.resource_logs
            for scope in resource.scope_logs
            for record in scope.log_records
        ]

    def write_json(self, path):
        """Write the spans as the collector's file exporter does: OTLP JSON, a message a line, ids in hexadecimal."""
        path.write_text("".join(f"{json.dumps(_as_otlp(one))}\n" for one in self.messages("/v1/traces")))
        return path


def attributes(item):
    """The attributes of a span or point as a table."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in item.attributes}


def _value(value):
    """A value of OTLP as one of Python."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value) for pair in value.kvlist_value.values}
    return None if kind is None else getattr(value, kind)


def _as_otlp(message):
    """The JSON of OTLP, which has ids in hexadecimal where protobuf's has base64."""
    made = json_format.MessageToDict(message)
    for resource in made.get("resourceSpans", ()):
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    return made


@contextmanager
def collector():
    """Run a collector."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            status, headers, content = received.answers.pop(0) if received.answers else (200, {}, b"")
            message = _REQUESTS[self.path].FromString(body)
            if status == 200:
                received.requests.append((self.path, dict(self.headers), message))
                received.received(self.path)
            self.send_response(status)
            for name, value in {"content-type": PROTOBUF, "content-length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    received = Received(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
