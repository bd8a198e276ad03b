"""`sessionlog export`: what was exported in words and JSON, exit codes, and no header in any message."""

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from tests.export.collectors import collector


@pytest.fixture
def receiver():
    """A collector on the loopback."""
    with collector() as received:
        yield received


def test_the_words_are_short(cli, logs, receiver):
    """What was sent and where to; a second run has nothing new."""
    ran = cli("export", "--path", logs, "--otlp", receiver.url)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"sent 3 requests, 3 sessions, 9 points · {receiver.url}\n"
    assert cli("export", "--path", logs, "--otlp", receiver.url).out == (
        f"sent nothing new · {receiver.url}\n3 items sent before (--again sends them again)\n"
    )
    assert cli("export", "--path", logs, "--otlp", receiver.url, "--dry-run", "--again").out.startswith(
        "would send 3 requests"
    )


def test_the_document_has_a_schema(cli, logs, receiver):
    """Every number of what was sent."""
    document = cli("export", "--path", logs, "--otlp", receiver.url, "--signals", "traces", "--json").json
    assert document == {
        "schema": "sessionlog.export/1", "endpoint": receiver.url, "dry_run": False, "requests": 3, "tool_calls": 0,
        "sessions": 3, "points": 0, "events": 0, "without_log": 0, "unchanged": 0, "without_time": 0, "rejected": 0, "messages": [], "notes": [],
        "problems": {"count": 0, "first": []},
    }  # fmt: skip


def test_the_ledger_is_what_is_sent_without_a_path(cli, logs, receiver, monkeypatch):
    """It is brought up to date first; logs that are gone since are sent, too."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    assert cli("usage").code == 0
    for log in logs.iterdir():
        log.unlink()
    assert cli("export", "--otlp", receiver.url, "--json").json["requests"] == 3
    assert cli("export", "--otlp", receiver.url, "--json", "--live", "--again").json["requests"] == 0


def test_what_was_rejected_exits_1(cli, logs, receiver):
    """With the collector's words, escaped."""
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans, answer.partial_success.error_message = 1, "too \x1b[31mold"
    receiver.answers.append((200, {}, answer.SerializeToString()))
    ran = cli("export", "--path", logs, "--otlp", receiver.url)
    assert ran.code == 1
    assert "✘ the collector rejected 1 item: too" in ran.out
    assert "\x1b" not in ran.out


def test_a_refusal_exits_3(cli, logs, receiver):
    """One sentence, and nothing of the exporters' own log."""
    receiver.answers.append((403, {"content-type": "text/plain"}, b"not you, tok-123456"))
    ran = cli("export", "--path", logs, "--otlp", receiver.url, "--header", "x-key=tok-123456")
    assert ran == (3, "", f"sessionlog: {receiver.url} answered 403 to spans: not you, [header]\n")


@pytest.mark.parametrize(
    "header", ["tok-123456", "=tok-123456", "x-key=", "x-key=tok-123456\nx: y", "x-key=tök-123456"]
)
def test_a_wrong_header_is_not_shown(cli, logs, receiver, header):
    """It may be a secret."""
    ran = cli("export", "--path", logs, "--otlp", receiver.url, "--header", "x-a=b", "--header", header)
    assert (ran.code, ran.out) == (2, "")
    assert "--header 2 is not NAME=VALUE" in ran.err
    assert "123456" not in ran.err


def test_one_of_both_ways_has_to_be_named(cli, logs):
    """With an example of each."""
    for arguments in (["team"], ["team", "--parquet", "--otlp", "http://localhost:4318"]):
        assert cli("export", *arguments) == (
            2,
            "",
            "sessionlog: give one of: sessionlog export --otlp http://localhost:4318, or sessionlog export DEST --parquet\n",
        )
    assert "'otel.json' is no endpoint" in cli("export", "--path", logs, "--otlp", "otel.json").err


def test_damage_and_nothing_are_noted(cli, logs, receiver, tmp_path):
    """On stderr; damage is named by file and line, and an empty export by where logs were looked for."""
    (logs / "torn.jsonl").write_text('{"session_id":"t","seq":0,"type":"session.start"}\nnot json\n')
    ran = cli("export", "--path", logs, "--otlp", receiver.url)
    assert (ran.code, ran.out.split(",")[0]) == (0, "sent 3 requests")
    assert "damaged piece skipped (torn.jsonl:2" in ran.err
    ran = cli("export", "--path", logs, "--otlp", receiver.url, "--model", "none")
    assert ran.out == f"sent nothing new · {receiver.url}\n"
    assert "no session in" in ran.err


def test_parquet_files_are_written_in_few_words(cli, logs, monkeypatch, tmp_path):
    """How much, where to, and as which machine; a second run has nothing new, and a dry run writes nothing."""
    pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    team = tmp_path / "team"
    assert cli("export", team, "--parquet", "--dry-run").out.startswith("would write 3 responses, 3 sessions · ")
    assert not team.exists()
    document = cli("export", team, "--parquet", "--json").json
    assert (document["schema"], document["usage"], document["sessions"]) == ("sessionlog.export.parquet/1", 3, 3)
    assert (document["destination"], len(document["machine_id"])) == (str(team), 16)
    assert cli("export", team, "--parquet") == (0, f"wrote nothing new · {team}\n6 rows there before\n", "")
    ran = cli("export", tmp_path / "other", "--parquet", "--model", "none")
    assert (ran.code, ran.out) == (0, f"wrote nothing new · {tmp_path}/other\n")
    assert "no session in" in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--parquet"], "--parquet needs a folder or URL"),
        (
            ["a", "--otlp", "http://localhost:1"],
            "a: a destination is for --parquet; with --otlp, choose logs with --path",
        ),
        (["--otlp", "http://localhost:1", "--compact"], "--compact is for --parquet"),
        (["a", "--parquet", "--again"], "--again is not for --parquet"),
        (["a", "--parquet", "--header", "x=y"], "--header is not for --parquet"),
        (["a", "--parquet", "--signals", "traces"], "--signals is not for --parquet"),
        (["a", "--parquet", "--live"], "--live is not for --parquet"),
        (["a", "--parquet", "--no-ledger"], "--no-ledger is not for --parquet"),
        (["--otlp", "http://localhost:1", "--redact-projects"], "--redact-projects is for --parquet"),
    ],
)
def test_what_does_not_go_together_exits_2(cli, arguments, message):
    """Before anything is read."""
    ran = cli("export", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"sessionlog: {message}")


def test_a_destination_that_cannot_be_written_exits_3(cli, logs, monkeypatch, tmp_path):
    """With the system's reason; so does a ledger that is none."""
    pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    (tmp_path / "file").write_text("x")
    ran = cli("export", tmp_path / "file", "--parquet")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err == f"sessionlog: {tmp_path}/file: not a directory\n"
    (tmp_path / "book").write_text("this is no database" * 100)
    assert cli("export", tmp_path / "team", "--parquet", "--ledger", tmp_path / "book").code == 3


def test_nothing_of_the_engine_is_left_on_the_screen(process, logs, tmp_path):
    """A process of its own ends without a word on stderr."""
    pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")
    ran = process("export", tmp_path / "team", "--parquet", SESSIONLOG_DIR=str(logs))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("wrote 3 responses")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("export s3:// --parquet", "s3://: it names no bucket; give one, such as s3://bucket/logs"),
        ("export foo://bar --parquet", "foo://bar: there is no protocol foo; URLs begin with s3://, gs://"),
        ("usage s3://", "s3://: it names no bucket; give one, such as s3://bucket/logs"),
        ("usage gs:///", "gs://: it names no bucket; give one, such as gs://bucket/logs"),
        ("usage foo://bar", "foo://bar: there is no protocol foo; URLs begin with s3://, gs://"),
    ],
)  # fmt: skip
def test_a_wrong_url_is_named_with_what_to_do(cli, words, message):
    """As it was given."""
    pytest.importorskip("fsspec")
    ran = cli(*words.split())
    assert (ran.code, ran.err.startswith(f"sessionlog: {message}")) == (3, True)
