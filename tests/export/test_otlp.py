"""Export to a collector: what arrives is what the ledger knows, once, with ids that stay the same."""

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from sessionlog import aggregate_usage
from sessionlog.errors import InvalidQuery, MissingExtra, NotExported
from sessionlog.events.times import parse_time
from sessionlog.export.collector import base_url, grpc_hint, shown, signal_url
from sessionlog.export.items import Call, root_of, trace_of
from sessionlog.export.otlp import export_otlp
from sessionlog.export.position import Position
from sessionlog.ledger.ask import load_book
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.pricing.book import PriceBook
from tests.export.collectors import attributes
from tests.export.conftest import USAGE, event
from tests.sources.homes import all_cases, build_home

START = parse_time("2026-11-20T10:00:00Z")
SECOND = 1_000_000_000
QUICK = (
    "claude-code/every-kind-of-copy", "codex/models", "gemini/cli-home", "opencode/v1-database", "openclaw/models", "hermes/sums", "otel/otlp-lines",
)  # fmt: skip
RECORDS = """
SELECT s.session, s.end_status, r.time_ns, l.provider, l.model, l.response_model, r.failed, r.latency_ms, l.project,
    r.input, r.output, r.cache_read, r.cache_write, MIN(r.reasoning, r.output)
FROM records r JOIN labels l ON l.id = r.label_id JOIN sessions s ON s.id = r.session_id
WHERE s.counted AND r.time_ns IS NOT NULL AND (r.requests OR r.input OR r.output OR r.cache_read OR r.cache_write)
"""


def records(path):
    """Time, model, outcome, latency and tokens of every record of a place, with their session."""
    book = load_book([str(path)], PriceBook.load())
    try:
        return Counter(book.query(RECORDS, {}))
    finally:
        book.close()


def ids(spans):
    """The trace, span and parent of spans."""
    return [(span.trace_id, span.span_id, span.parent_span_id) for span in spans]


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case in QUICK else pytest.mark.slow) for case in all_cases()]
)
def test_a_log_survives_the_round_trip(send, receiver, tmp_path, case):
    """Log → OTLP → collector → file → our own source: equal in tokens, models, times, latencies and errors."""
    home = build_home(case, tmp_path / "case")
    before = records(home)
    done = send(home)
    assert done.requests == before.total()
    if before:
        assert records(receiver.write_json(tmp_path / "spans.jsonl")) == before


@pytest.mark.slow
@pytest.mark.skipif("SESSIONLOG_REAL" not in os.environ, reason="$SESSIONLOG_REAL names no homes of real clients")
def test_logs_of_real_clients_survive_the_round_trip(send, receiver, tmp_path):
    """The same for every home, with an event for each request that is one."""
    for home in sorted(path for path in Path(os.environ["SESSIONLOG_REAL"]).iterdir() if path.is_dir()):
        receiver.requests.clear()
        before = records(home)
        assert send(home, content=True).requests == before.total(), home
        if before:
            assert records(receiver.write_json(tmp_path / f"{home.name}.jsonl")) == before, home


def test_a_session_is_a_trace(send, receiver, log):
    """A span around it without tokens, one for each request, one for each tool call."""
    assert (send(log.parent).requests, len(receiver.spans())) == (2, 4)
    root, request, failed, call = receiver.spans()
    [(resource, *_)] = [message.resource_spans for message in receiver.messages("/v1/traces")]
    assert attributes(resource.resource) == {"service.name": "native", "process.working_directory": "/w/api"}
    names = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-opus-4-5",
    }
    assert attributes(request) == names | {
        "gen_ai.conversation.id": "s", "gen_ai.response.model": "claude-opus-4-5", "gen_ai.usage.input_tokens": 107,
        "gen_ai.usage.output_tokens": 20, "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_write.input_tokens": 7, "gen_ai.usage.reasoning.output_tokens": 5,
    }  # fmt: skip
    assert (request.name, request.kind) == ("chat claude-opus-4-5", Span.SPAN_KIND_CLIENT)
    assert (request.start_time_unix_nano, request.end_time_unix_nano) == (START + 999_750_000, START + 3_500_000_000)
    assert attributes(failed) == names | {"gen_ai.conversation.id": "s", "error.type": "_OTHER"}
    assert failed.status.code == 2
    assert (call.name, attributes(call)["gen_ai.tool.name"], call.status.code) == ("execute_tool bash", "bash", 2)
    assert call.end_time_unix_nano - call.start_time_unix_nano == 750_000_000
    assert attributes(root) == {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "native", "gen_ai.conversation.id": "s",
        "sessionlog.source": "native", "sessionlog.status": "error", "error.type": "_OTHER",
    }  # fmt: skip
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (START, START + 8 * SECOND)
    assert {span.parent_span_id for span in (request, failed, call)} == {root.span_id}
    assert len({span.trace_id for span in receiver.spans()}) == 1
    assert b"secret words" not in b"".join(message.SerializeToString() for _, _, message in receiver.requests)


def test_calls_without_a_request_are_sent(send, receiver, tmp_path):
    """A session that only called a tool has no request to send, and its call all the same."""
    with SessionLogger(tmp_path / "logs") as log:
        log.tool_call("bash", {}, output="x")
    assert (send(tmp_path / "logs").requests, len(receiver.spans())) == (0, 2)


def test_metrics_are_those_of_the_conventions(send, receiver, log):
    """Counters whose input includes the cache, and a histogram of seconds, at the times of the requests."""
    assert send(log.parent).points == 7
    names = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-opus-4-5",
        "gen_ai.response.model": "claude-opus-4-5",
    }  # fmt: skip
    prefix, times = "gen_ai.client.inference", (START + 999_750_000, START + 3_500_000_000)
    *counters, durations, failed = receiver.points()
    assert counters == [
        (f"{prefix}.usage.{name}", names, count, *times)
        for name, count in [
            ("input_tokens", 107), ("output_tokens", 20), ("cache_read.input_tokens", 60),
            ("cache_write.input_tokens", 7), ("reasoning.output_tokens", 5),
        ]
    ]  # fmt: skip
    assert durations == (f"{prefix}.duration", names, (1, 2.50025), *times)
    del names["gen_ai.response.model"]
    assert failed[:3] == (f"{prefix}.duration", names | {"error.type": "_OTHER"}, (1, 1.0))
    [metrics] = receiver.messages("/v1/metrics")
    [scope] = metrics.resource_metrics[0].scope_metrics
    point = scope.metrics[-1].histogram.data_points[0]
    assert [*point.explicit_bounds] == pytest.approx([0.01 * 2**power for power in range(14)])
    assert [index for index, count in enumerate(point.bucket_counts) if count] == [8]
    assert {metric.unit for metric in scope.metrics} == {"{token}", "s"}


def test_sums_are_those_of_the_report(send, receiver, tmp_path):
    """Over all spans, and over all points: nothing counts twice."""
    home = build_home("claude-code/every-kind-of-copy", tmp_path / "case")
    send(home)
    totals = aggregate_usage(str(home)).totals
    whole = totals.input_tokens + totals.cache_read_tokens + totals.cache_write_tokens
    spans = [attributes(span) for span in receiver.spans()]
    assert sum(one.get("gen_ai.usage.input_tokens", 0) for one in spans) == whole
    points = [value for name, _, value, *_ in receiver.points() if name.endswith("usage.input_tokens")]
    assert sum(points) == whole


def test_only_what_is_new_is_sent(send, receiver, log):
    """A second run sends nothing; of a log that has grown the new request, with its session."""
    send(log.parent)
    receiver.requests.clear()
    done = send(log.parent)
    assert (done.requests, done.sessions, done.points, done.unchanged, receiver.requests) == (0, 0, 0, 3, [])
    with log.open("a") as file:
        file.write(event(7, 9, "llm.response", model="claude-opus-4-5", usage=USAGE))
    assert send(log.parent).requests == 1
    assert [span.name for span in receiver.spans()] == ["invoke_agent native", "chat claude-opus-4-5"]


def test_everything_again_has_the_same_ids(send, receiver, log):
    """And the same times and tokens: a collector can recognise it."""
    send(log.parent)
    [first] = receiver.messages("/v1/traces")
    assert send(log.parent, again=True).requests == 2
    assert receiver.messages("/v1/traces") == [first, first]
    assert receiver.messages("/v1/metrics")[0] == receiver.messages("/v1/metrics")[1]


def test_ids_are_the_same_in_every_release():
    """They are hashes of the keys; these are two of them."""
    trace = trace_of("claude-code", "c3d4b648", "")
    assert (f"{trace:032x}", f"{root_of(trace):016x}") == (
        "4b7e1da3f9afc416df390a397bbe353c",
        "a4e42594be675373",
    )


def claude_row(message, output, text="answer"):
    """A row of Claude Code's log; several rows are one response."""
    usage = {"input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 5}
    return {
        "type": "assistant", "uuid": f"{message}-{output}", "sessionId": "c", "timestamp": "2026-11-20T10:00:03Z",
        "requestId": f"r-{message}", "cwd": "/w",
        "message": {"id": message, "model": "claude-opus-4-5", "role": "assistant", "usage": usage,
                    "content": [{"type": "text", "text": text}]},
    }  # fmt: skip


def test_an_answer_that_has_grown_is_sent_again_and_its_counters_grow(send, receiver, tmp_path):
    """The span has the same id; the counters get the difference; its duration counts once."""
    log = tmp_path / "home" / ".claude" / "projects" / "-w" / "c.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps(claude_row("m1", 3)) + "\n")
    send(tmp_path / "home")
    with log.open("a") as file:
        file.write(json.dumps(claude_row("m1", 50)) + "\n")
    assert send(tmp_path / "home").requests == 1
    chats = [span for span in receiver.spans() if span.name.startswith("chat")]
    assert chats[0].span_id == chats[1].span_id
    assert [attributes(span)["gen_ai.usage.output_tokens"] for span in chats] == [3, 50]
    output = [value for name, _, value, *_ in receiver.points() if name.endswith("usage.output_tokens")]
    assert output == [3, 47]
    assert [value for name, _, value, *_ in receiver.points() if name.endswith("usage.input_tokens")] == [15]


def test_a_log_read_in_pieces_has_the_ids_of_one_read_whole(send, receiver, tmp_path, log):
    """A ledger that followed the log gives what a scan of the whole gives."""
    whole = log.read_text().splitlines(keepends=True)
    ledger = {"ledger": str(tmp_path / "ledger.sqlite")}
    env = {"HOME": str(tmp_path), "SESSIONLOG_DIR": str(log.parent), "XDG_STATE_HOME": str(tmp_path / "a")}
    for end in range(2, len(whole) + 1):
        log.write_text("".join(whole[:end]))
        export_otlp(endpoint=receiver.url, env=env, **ledger)
    pieces = {span.span_id for span in receiver.spans()}
    receiver.requests.clear()
    send(log.parent)
    assert {span.span_id for span in receiver.spans()} == pieces


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/metrics"])
def test_a_kill_between_sending_and_the_position_repeats_the_same_ids(receiver, tmp_path, log, path):
    """SIGKILL after the collector has accepted a batch and before the answer: at least once, and recognisable."""
    code = "import sys; from sessionlog.cli import main; main(sys.argv[1:])"
    env = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", code, "export", "--path", str(log.parent), "--otlp", receiver.url]
    running = []

    def kill(received):
        if received == path:
            running[0].kill()

    receiver.received = kill
    running.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    assert running[0].wait(60) == -9
    receiver.received = lambda _: None
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=60)
    first, second = receiver.messages(path)
    assert first == second
    assert len(receiver.messages("/v1/traces")) == (2 if path == "/v1/traces" else 1)


def test_what_a_collector_rejects_is_counted_and_not_sent_again(send, receiver, log):
    """As OTLP demands of clients; the collector's words are named."""
    spans = ExportTraceServiceResponse()
    spans.partial_success.rejected_spans, spans.partial_success.error_message = 2, "too old\nby far"
    points = ExportMetricsServiceResponse()
    points.partial_success.rejected_data_points = 3
    as_json = {"content-type": "application/json"}
    receiver.answers += [
        (200, {}, spans.SerializeToString()),
        (200, as_json, b'{"partialSuccess":{"rejectedDataPoints":"3"}}'),
    ]
    done = send(log.parent)
    assert (done.rejected, done.messages) == (5, ("too old by far",))
    assert send(log.parent).requests == 0


@pytest.mark.parametrize(("status", "headers", "body", "sentence"), [
    (400, {}, Status(message="no such tenant").SerializeToString(), "answered 400 to spans: no such tenant"),
    (401, {"content-type": "text/plain"}, b"the token tok-123456 is not\nvalid", "answered 401 to spans: the token [header] is not valid"),
    (404, {"content-type": "text/plain"}, b"", "answered 404 to spans: Not Found"),
    (413, {"content-type": "application/json"}, b'{"code":3,"message":"too large"}', "answered 413 to spans: too large"),
    (307, {"location": "https://user:pw@other/v1/traces"}, b"", "redirects to https://other/v1/traces"),
    (400, {"content-type": "application/json"}, b"{", "answered 400 to spans: {"),
])  # fmt: skip
def test_a_refusal_names_the_collector_s_words(send, receiver, log, status, headers, body, sentence):
    """Without the values of our headers; the next run sends all of it."""
    receiver.answers.append((status, headers, body))
    with pytest.raises(NotExported) as refused:
        send(log.parent, headers={"authorization": "Bearer tok-123456"})
    assert sentence in str(refused.value)
    assert "123456" not in str(refused.value)
    assert send(log.parent).requests == 2


def test_what_fails_for_the_moment_is_repeated(send, receiver, log):
    """As the collector asks with Retry-After."""
    receiver.answers += [(429, {"retry-after": "0"}, b""), (503, {"retry-after": "0"}, b"")]
    assert send(log.parent).requests == 2
    assert len(receiver.messages("/v1/traces")) == 1


def test_a_collector_that_stays_busy_is_named(send, receiver, log, monkeypatch):
    """When the time for a batch is over."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    receiver.answers += [(503, {"retry-after": "9", "content-type": "text/plain"}, b"come back later")] * 2
    with pytest.raises(NotExported, match="answered 503 to spans: come back later"):
        send(log.parent)


def test_an_endpoint_that_was_never_reached_is_not_tried_again(send, log):
    """A typing error shows at once."""
    with pytest.raises(NotExported, match=r"http://127.0.0.1:1 cannot be reached: .*refused"):
        send(log.parent, endpoint="http://user:pw@127.0.0.1:1")


def test_each_endpoint_has_a_position_of_its_own(send, receiver, log):
    """Its URL may have the path of a signal; another path is another endpoint."""
    send(log.parent)
    assert send(log.parent, endpoint=f"{receiver.url}/v1/traces").requests == 0
    assert send(log.parent, endpoint=receiver.url.replace("127.0.0.1", "localhost"), dry_run=True).requests == 2


@pytest.mark.parametrize(("endpoint", "base", "place"), [
    ("http://h:4318", "http://h:4318", "http://h:4318"),
    ("http://h:4318/v1/traces", "http://h:4318", "http://h:4318/v1/traces"),
    ("https://u:pw@h/otlp/?key=1", "https://u:pw@h/otlp?key=1", "https://h/otlp/"),
])  # fmt: skip
def test_endpoints_are_base_urls(endpoint, base, place):
    """What people see has no password and no query."""
    assert (base_url(endpoint), shown(endpoint)) == (base, place)


@pytest.mark.parametrize(("endpoint", "url"), [
    ("http://h:4318", "http://h:4318/v1/logs"),
    ("https://h/otlp?key=1", "https://h/otlp/v1/logs?key=1"),
    ("https://h?key=1", "https://h/v1/logs?key=1"),
])  # fmt: skip
def test_the_path_of_a_signal_stands_before_the_query(endpoint, url):
    """Behind it, it would be a part of the key."""
    assert signal_url(base_url(endpoint), "/v1/logs") == url


def test_one_export_at_a_time_sends_to_an_endpoint(send, receiver, log, monkeypatch):
    """A second one, of a cron that is too fast, would count every token twice."""
    monkeypatch.setattr("sessionlog.export.position._WAIT_SECONDS", 0.01)
    others = []

    def export_again(path):
        with pytest.raises(NotExported, match="another export to this endpoint is running"):
            send(log.parent)
        others.append(path)

    receiver.received = export_again
    assert send(log.parent).requests == 2
    assert others == ["/v1/traces", "/v1/metrics"]
    assert send(log.parent).unchanged == 3


def test_a_web_page_is_no_confirmation(send, receiver, log):
    """Many web servers answer 200 to any request; nothing counts as sent."""
    receiver.answers.append((200, {"content-type": "text/html; charset=utf-8"}, b"<!doctype html>"))
    with pytest.raises(NotExported, match="answered a web page to spans: it is no collector"):
        send(log.parent)
    assert send(log.parent).requests == 2


def test_the_port_of_grpc_has_a_hint():
    """It is the commonest wrong one."""
    assert "OTLP over HTTP has 4318" in grpc_hint("http://localhost:4317")
    assert grpc_hint("http://localhost:4318") == grpc_hint("https://otel.example.com/otlp") == ""


@pytest.mark.parametrize("endpoint", ["localhost:4318", "grpc://h:4317", "http://", "otel.json"])
def test_other_endpoints_are_refused(endpoint):
    """OTLP over HTTP is the only way."""
    with pytest.raises(InvalidQuery, match="no endpoint of OTLP over HTTP"):
        base_url(endpoint)


def test_signals_are_sent_on_their_own(send, receiver, log):
    """Metrics that come later are not held for sent."""
    assert send(log.parent, signals=["traces"]).points == 0
    assert [path for path, *_ in receiver.requests] == ["/v1/traces"]
    done = send(log.parent)
    assert (done.requests, done.points) == (0, 7)
    with pytest.raises(InvalidQuery, match="there is no signal 'logs'; there are traces and metrics"):
        send(log.parent, signals=["logs"])


def test_a_dry_run_counts_and_sends_nothing(send, receiver, log):
    """The next run sends what it has counted."""
    counted = send(log.parent, dry_run=True)
    assert (counted.dry_run, counted.requests, counted.tool_calls, counted.sessions, counted.points) == (
        True,
        2,
        1,
        1,
        7,
    )
    assert receiver.requests == []
    done = send(log.parent)
    assert (done.requests, done.tool_calls, done.sessions, done.points) == (2, 1, 1, 7)


@pytest.mark.parametrize(("options", "expected"), [
    ({"since": "2026-11-20T10:00:06Z.."}, (1, 0)), ({"until": "2026-11-20T10:00:04Z"}, (1, 0)),
    ({"filters": {"model": ["claude-*"]}}, (2, 0)), ({"filters": {"project": ["/w/*"]}}, (2, 1)),
    ({"filters": {"status": ["success"]}}, (0, 0)), ({"filters": {"source": ["codex"]}}, (0, 0)),
])  # fmt: skip
def test_filters_choose_as_in_reports(send, log, options, expected):
    """Tool calls have no model and no provider: filters of these leave them out."""
    done = send(log.parent, dry_run=True, **options)
    assert (done.requests, done.tool_calls) == expected


def test_progress_counts_items(send, log):
    """Both signals together, to their end."""
    seen = []
    send(log.parent, sent=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (5, 5)
    assert seen == sorted(seen)


def test_many_pages_are_batches(send, receiver, tmp_path, monkeypatch):
    """A request holds at most 500 spans beside those around sessions, and nothing is lost between two of them."""
    folder = tmp_path / "many"
    folder.mkdir()
    lines = [event(0, 0, "session.start", v=1)]
    lines += [event(n, n % 60, "llm.response", model="m", usage={"input": 1, "output": 1}) for n in range(1, 1203)]
    (folder / "s.jsonl").write_text("".join(lines))
    assert send(folder, signals=["traces"]).requests == 1202
    sizes = [
        sum(len(scope.spans) for resource in message.resource_spans for scope in resource.scope_spans)
        for message in receiver.messages("/v1/traces")
    ]
    assert sizes == [501, 500, 202]
    assert len(set(ids(receiver.spans()))) == 1203


def test_a_position_that_cannot_be_read_is_named(send, tmp_path, log):
    """It is never taken for an empty one."""
    send(log.parent)
    [path] = (tmp_path / "state" / "sessionlog" / "export").glob("*.sqlite")
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"not a database, but longer than its header would be" * 40)
    with pytest.raises(NotExported, match=r"\.sqlite: file is not a database; without the file all is sent"):
        send(log.parent)


def test_positions_keep_ids_of_all_64_bits(tmp_path):
    """SQLite's integers have a sign."""
    names = {"session": "s", "source": "native", "harness": "h", "tool": "t", "server": "", "agent": "", "project": ""}
    calls = [
        Call(id=number, trace=1, row=1, start_ns=1, end_ns=2, failed=False, finished=True, **names)
        for number in (1, 2**63 - 1, 2**63, 2**64 - 1)
    ]
    with Position(str(tmp_path / "p" / "x.sqlite")) as position:
        position.mark("traces", calls[1:])
        assert [item.id for item, _ in position.select("traces", calls)] == [1]
        assert len(position.select("metrics", calls)) == 4


def test_an_open_tool_call_waits_for_its_result(send, receiver, log, tmp_path):
    """While its session runs; of one that has ended it is sent as it is."""
    row = claude_row("m1", 3)
    row["message"]["content"].append({"type": "tool_use", "id": "t1", "name": "Bash", "input": {}})
    log = tmp_path / "home" / ".claude" / "projects" / "-w" / "c.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps(row) + "\n")
    for minute, calls in ((1, 0), (30, 1)):
        done = send(tmp_path / "home", now=datetime(2026, 11, 20, 10, minute, tzinfo=UTC))
        assert done.tool_calls == calls


def test_headers_come_from_options_and_environment(send, receiver, log, monkeypatch):
    """Both are sent."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-env=a1,x-both=env")
    send(log.parent, headers={"x-option": "b2", "x-both": "option"})
    for _, headers, _ in receiver.requests:
        assert (headers["x-env"], headers["x-option"], headers["x-both"]) == ("a1", "b2", "option")


def test_without_the_extra_there_is_one_sentence():
    """It names what to install."""
    code = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name == "opentelemetry":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent())
from sessionlog.cli import main
sys.exit(main(["export", "--otlp", "http://127.0.0.1:1", "--path", sys.argv[1]]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(Path(__file__).parent)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert done.stderr.endswith("export to a collector needs: pip install 'sessionlog[otel]'\n")
    assert issubclass(MissingExtra, ImportError)


@pytest.mark.parametrize("table", ["traces", "metrics"])
def test_a_position_is_stored_only_after_the_answer(send, receiver, tmp_path, log, table):
    """A refused batch is in no table."""
    receiver.answers += [(200, {}, b"")] * (table == "metrics") + [(400, {}, b"")]
    with suppress(NotExported):
        send(log.parent)
    [path] = (tmp_path / "state" / "sessionlog" / "export").glob("*.sqlite")
    connection = sqlite3.connect(path)
    assert connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone() == (0,)
    connection.close()
