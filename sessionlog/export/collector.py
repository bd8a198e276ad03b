"""Collector: an endpoint of OTLP over HTTP, to which the SDK's exporters send.

The exporters encode, compress, and repeat what failed for the moment (429, 502, 503, 504, as `Retry-After` demands)
within their timeout; they read `OTEL_EXPORTER_OTLP_HEADERS`, `…_CERTIFICATE`, `…_COMPRESSION` and `…_TIMEOUT`. They
keep the collector's words to themselves, so the HTTP session that they get keeps its last answer: a batch is confirmed
by a status of 2xx, less what the answer names as rejected, unless it is a web page: many web servers answer any
request. An endpoint that was never reached is not tried again. Values of headers are secrets: no message has them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

import requests
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.metrics.export import MetricsData
from opentelemetry.sdk.trace import ReadableSpan

from sessionlog.errors import InvalidQuery, NotExported
from sessionlog.export.position import Rejected

SECONDS = 60.0
"""Time for one batch, with all repetitions, unless `OTEL_EXPORTER_OTLP_TIMEOUT` is set."""

_LONGEST = 300
_SHORTEST_SECRET = 6
_PATHS = ("/v1/traces", "/v1/metrics", "/v1/logs")


class Collector:
    """A collector's endpoint.

    Args:
        endpoint: Its base URL, `http://localhost:4318`.
        headers: Headers of all requests, beside those of the environment.

    Attributes:
        place: The endpoint without a password, for people.

    Raises:
        InvalidQuery: The endpoint is no URL of HTTP.
    """

    def __init__(self, endpoint: str, headers: Mapping[str, str]) -> None:
        self._base, self.place = base_url(endpoint), shown(endpoint)
        self._secrets = _secrets(headers)
        self._http = _HttpSession()
        timeout = None if os.environ.get("OTEL_EXPORTER_OTLP_TIMEOUT") else SECONDS
        options: dict[str, Any] = {"headers": dict(headers), "timeout": timeout, "session": self._http}
        self._spans = OTLPSpanExporter(signal_url(self._base, "/v1/traces"), **options)
        self._metrics = OTLPMetricExporter(signal_url(self._base, "/v1/metrics"), **options)
        self._logs = OTLPLogExporter(signal_url(self._base, "/v1/logs"), **options)

    def send_spans(self, spans: Sequence[ReadableSpan]) -> Rejected:
        """Send spans, and return what was rejected.

        Raises:
            NotExported: They are not confirmed.
        """
        self._spans.export(spans)
        response = self._confirmed("spans", ExportTraceServiceResponse())
        return self._rejected(response.partial_success.rejected_spans, response.partial_success.error_message)

    def send_metrics(self, metrics: MetricsData) -> Rejected:
        """Send metrics, and return what was rejected.

        Raises:
            NotExported: They are not confirmed.
        """
        self._metrics.export(metrics)
        response = self._confirmed("metrics", ExportMetricsServiceResponse())
        return self._rejected(response.partial_success.rejected_data_points, response.partial_success.error_message)

    def send_events(self, records: Sequence[ReadableLogRecord]) -> Rejected:
        """Send events, and return what was rejected.

        Raises:
            NotExported: They are not confirmed.
        """
        self._logs.export(records)
        response = self._confirmed("events", ExportLogsServiceResponse())
        return self._rejected(response.partial_success.rejected_log_records, response.partial_success.error_message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def _confirmed(self, what: str, response: Any) -> Any:
        """Return the collector's answer, read into an empty `response`."""
        answer, error = self._http.take()
        if answer is None:
            raise NotExported(f"{self.place} cannot be reached: {self._words(_reason(error))}{grpc_hint(self._base)}")
        if not 200 <= answer.status_code < 300:
            words = self._words(_error_text(answer))
            raise NotExported(f"{self.place} answered {answer.status_code} to {what}{f': {words}' if words else ''}")
        if "html" in _type_of(answer):
            raise NotExported(f"{self.place} answered a web page to {what}: it is no collector of OTLP over HTTP")
        _read_into(response, answer)
        return response

    def _rejected(self, count: int, message: str) -> Rejected:
        return Rejected(count=count, message=self._words(message))

    def _words(self, text: str) -> str:
        """Return a text of the collector or of the network in one line, without the values of our headers."""
        for secret in self._secrets:
            text = text.replace(secret, "[header]")
        return " ".join(text.split())[:_LONGEST]


class _HttpSession(requests.Session):
    """A session of requests that keeps the last answer or error, and gives up at once on what was never reached."""

    def __init__(self) -> None:
        super().__init__()
        self._answer: Any = None
        self._error: Exception | None = None
        self._was_reached = False

    def request(self, *args: Any, **more: Any) -> Any:
        """Send a request."""
        try:
            self._answer = super().request(*args, **more)
        except Exception as error:
            self._answer, self._error = None, error
            if not self._was_reached:  # no error that the exporters know as one to repeat
                raise NotExported(type(error).__name__) from error
            raise
        self._was_reached = True
        return self._answer

    def take(self) -> tuple[Any, Exception | None]:
        """Return the last answer, or why there is none, and forget both."""
        taken = self._answer, self._error
        self._answer = self._error = None
        return taken


def base_url(endpoint: str) -> str:
    """Return an endpoint without the path of a signal.

    Raises:
        InvalidQuery: It is no URL of HTTP.
    """
    try:
        parts = urlsplit(endpoint)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:  # a port or an address that is none
        raise InvalidQuery(f"the endpoint is no URL ({error}), such as http://localhost:4318") from error
    if not is_http:
        raise InvalidQuery(f"{shown(endpoint)!r} is no endpoint of OTLP over HTTP, such as http://localhost:4318")
    path = next((parts.path.removesuffix(one) for one in _PATHS if parts.path.endswith(one)), parts.path)
    return urlunsplit((parts.scheme, parts.netloc, path.rstrip("/"), parts.query, ""))


def signal_url(base: str, path: str) -> str:
    """Return the URL of a signal; a query of the endpoint stays at its end."""
    parts = urlsplit(base)
    return urlunsplit(parts._replace(path=parts.path + path))


def shown(endpoint: str) -> str:
    """Return an endpoint for people: without a password and a query."""
    parts = urlsplit(endpoint)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def grpc_hint(base: str) -> str:
    """Return what to try instead of the port at which collectors speak gRPC; "" for other ports."""
    return "; 4317 is the port of gRPC, OTLP over HTTP has 4318" if urlsplit(base).port == 4317 else ""


def _secrets(headers: Mapping[str, str]) -> list[str]:
    """Return the parts of headers, ours and those of the environment, that no message may have; the longest first."""
    given = list(headers.values())
    given += [
        value for name, value in os.environ.items() if name.startswith("OTEL_EXPORTER_OTLP") and "HEADERS" in name
    ]
    parts = {part for value in given for part in (value, *value.replace("=", " ").replace(",", " ").split())}
    return sorted((part for part in parts if len(part) >= _SHORTEST_SECRET), key=len, reverse=True)


def _reason(error: Exception | None) -> str:
    """Return why nothing was answered; errors about headers quote them."""
    if isinstance(error, requests.exceptions.InvalidHeader):
        return "a header has a character that HTTP does not allow"
    cause = getattr(error, "args", ("",))[0] if error is not None else "it was not tried"
    return str(getattr(cause, "reason", None) or error or type(error).__name__)


def _error_text(answer: Any) -> str:
    """Return the words of an answer that is an error."""
    kind = _type_of(answer)
    if 300 <= answer.status_code < 400:
        return f"it redirects to {shown(str(answer.headers.get('location', '')))}; give that as the endpoint"
    if "protobuf" in kind or "json" in kind:
        status = Status()
        _read_into(status, answer)
        if status.message:
            return str(status.message)
    return str(answer.text or answer.reason or "")


def _type_of(answer: Any) -> str:
    return str(answer.headers.get("content-type", ""))


def _read_into(message: Message, answer: Any) -> None:
    """Read the body of an answer; one that is no such message leaves it empty."""
    kind = _type_of(answer)
    try:
        if "json" in kind:
            json_format.Parse(answer.content, message, ignore_unknown_fields=True)
        elif "protobuf" in kind:
            message.ParseFromString(answer.content)
    except (DecodeError, json_format.ParseError, ValueError):
        message.Clear()
