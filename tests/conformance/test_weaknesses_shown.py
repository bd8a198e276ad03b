"""The weaknesses of what the original shows, and where it looks, one test each, called by their numbers."""

import csv
import gzip
import io
import json
from itertools import takewhile

import pytest

from sessionlog.analytics.routing import scan_routing_quality
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.reader.follow import follow
from sessionlog.render.replay import replay
from tests.conformance.command import run
from tests.conformance.logs import end, line, start, write_log


def shown(path, **options):
    """A replay as one text."""
    return "\n".join(replay(str(path), **options))


@pytest.mark.parametrize("command", ["usage", "sessions", "routing-quality"])
def test_22_every_command_knows_the_same_windows(command, tmp_path, outside, capsys):
    """One grammar: what one command takes, the others take, and the refusal names the forms."""
    write_log(tmp_path, start(), end())
    for since in ("7d", "168h", "2w", "today", "2026-04-09", "2026-04-09T10:00:00Z", "2026-04-01..", "..2026-04-09"):
        assert run(capsys, command, str(tmp_path), "--since", since, "--now", "2026-04-09T12:00:00Z").code == 0
    for since in ("168", "7D", "1h30m"):
        refused = run(capsys, command, str(tmp_path), "--since", since)
        assert refused.code == 2
        assert "YYYY-MM-DD" in refused.err
        assert "either end open" in refused.err


def test_23_the_title_says_the_last_day_and_the_times(tmp_path, outside, capsys):
    """A window of days names its last day, one of instants its clock times."""
    write_log(tmp_path, start(), end())
    for since, title in (
        ("2026-04-09..2026-04-10", "Usage · 9 Apr – 10 Apr (UTC)"),
        ("2026-04-09T09:30:00Z..2026-04-09T10:45:00Z", "Usage · 9 Apr 09:30 – 10:45 (UTC)"),
    ):
        done = run(capsys, "usage", str(tmp_path), "--since", since, "--now", "2026-04-11T00:00:00Z")
        assert done.out.startswith(title)


def test_24_long_names_break_no_column_and_rates_are_in_every_format(tmp_path, outside, capsys):
    """Columns end where their titles end; CSV and JSON have the derived numbers."""
    name = "a-model-with-a-very-long-name-2026-04-09-preview"
    write_log(tmp_path, start(model=name), end(tokens={"input": 10, "output": 5, "cache_read": 90}))
    write_log(tmp_path, start(), end(), name="t")
    lines = run(capsys, "usage", str(tmp_path), "--wide").out.splitlines()
    table = list(takewhile(bool, lines[lines.index("") + 1 :]))
    edge = table[0].index("SESSIONS") + len("SESSIONS")
    assert [row[edge - 2 : edge + 1] for row in table if "  " in row[:-1]] == ["NS ", " 1 ", " 1 ", " 2 "]
    rows = list(csv.DictReader(io.StringIO(run(capsys, "usage", str(tmp_path), "--csv").out)))
    data = json.loads(run(capsys, "usage", str(tmp_path), "--json").out)
    assert [row["model"] for row in rows[:2]] == [name, "m"]
    assert float(rows[0]["cache_hit_rate"]) == data["rows"][0]["cache_hit_rate"] == 0.9
    assert data["rows"][0]["cost_per_success"] == 0.25


def test_27_replay_shows_what_happened(tmp_path):
    """Failed calls, routing, pins, compaction and, asked for by name, progress; the words of a harness too."""
    path = write_log(
        tmp_path,
        start(provider="", resolved_harness="claude"),
        ("routing_decision", {"harness": "claude", "model": "m", "reason": "cheapest that can"}),
        ("override", {"user_pin": {"model": "x"}, "auto_decision": {"model": "y"}, "axes_overridden": ["model"]}),
        ("progress", {"phase": "tool", "message": "running the tests"}),
        ("llm.response", {"error": "429 slow down", "latency_ms": 3}),
        ("compaction.end", {"success": True, "messages_before": 40, "messages_after": 4, "summary": "what was said"}),
        end(output="It is done."),
    )
    text = shown(path)
    for words in ("cheapest that can", "model=x", "model=y", "429 slow down", "40 → 4", "what was said", "It is done."):
        assert words in text
    assert "running the tests" not in text
    assert "running the tests" in shown(path, only=("progress",))


def test_28_texts_are_cut_between_characters_and_say_how_much_is_left(tmp_path):
    """No half character; what is left out is counted, and shown whole on demand."""
    output = "a" + "é" * 5000
    path = write_log(tmp_path, start(), ("tool.call", {"tool": "t", "input": {}, "output": output, "duration_ms": 1}))
    text = shown(path)
    kept = text.count("é")
    assert 0 < kept < 5000
    assert f"+{5000 - kept:,} characters (--full)" in text
    assert "\ufffd" not in text
    assert output in shown(path, full=True)


def test_29_times_numbers_and_orders_are_as_logged(tmp_path):
    """UTC is UTC, metadata and arguments keep their order, numbers all their digits, and `<` is `<`."""
    arguments = b'{"z":12345678901234567890,"a":2.50,"html":"<b>"}'
    head = line(0, *start(metadata={"z": "1", "a": "2"}), at="2026-04-09T14:30:00+05:00")
    call = line(1, "tool.call", {"tool": "t", "input": "ARGUMENTS", "duration_ms": 1})
    text = shown(write_log(tmp_path, head, call.replace(b'"ARGUMENTS"', arguments)))
    assert "2026-04-09 09:30:00 UTC" in text
    assert "z=1 · a=2" in text
    assert arguments.decode() in text


def test_30_the_oldest_spellings_are_read(tmp_path):
    """Tool calls as a number, `timestamp` for `ts`, and a benchmark's files without payloads."""
    counted = write_log(tmp_path, start(), ("llm.response", {"content": "old words", "tool_calls": 1, "latency_ms": 7}))
    assert "old words" in shown(counted)
    assert "1 tool call" in shown(counted)
    dated = write_log(
        tmp_path, *(line(0, *event).replace(b'"ts"', b'"timestamp"') for event in (start(), end())), name="t"
    )
    assert aggregate_usage(dated, window="2026-04-09").totals.sessions == 1
    bench = write_log(
        tmp_path, b'{"type":"session.start","session_id":"b"}\n{"type":"session.end","status":"graded_pass"}\n'
    )
    assert "graded_pass" in shown(bench)


def test_31_a_missing_folder_is_the_same_for_every_command(tmp_path, outside, capsys):
    """A named path that is not there is told, with exit code 3; the library finds nothing in it."""
    missing = str(tmp_path / "missing")
    for command in ("usage", "sessions", "routing-quality", "check"):
        done = run(capsys, command, missing)
        assert (done.code, done.out) == (3, "")
        assert missing in done.err
    assert aggregate_usage(missing).totals.sessions == 0
    assert scan_routing_quality(missing).total_requests == 0


def test_35_packed_and_sorted_away_logs_count_by_session_and_day(tmp_path):
    """Subfolders and .gz are read, reports can be by session and by day, and a log can be followed as it grows."""
    (tmp_path / "2026").mkdir()
    path = write_log(tmp_path, start(), end())
    with gzip.open(tmp_path / "2026" / "t.jsonl.gz", "wb") as file:
        file.write(path.read_bytes().replace(b"2026-04-09", b"2026-04-10"))
    report = aggregate_usage(tmp_path, by=("day", "session"))
    assert [tuple(row.keys.values()) for row in report.rows] == [("2026-04-09", "s"), ("2026-04-10", "t")]
    grown = iter([lambda: path.write_bytes(path.read_bytes() + line(2, "note", {"late": True})), None])

    def stop():
        grow = next(grown)
        return grow is None or not grow()

    assert [item.type for item in follow(str(path), stop=stop, sleep=lambda _: None)][-1] == "note"
