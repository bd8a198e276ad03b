"""The fast lane gives what decoding each line gives, whatever the lines are."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.sources.codex import rows as codex_rows
from sessionlog.sources.codex.rows import RolloutRows, feed, feed_plainly
from sessionlog.sources.codex.scan import Rollout
from tests.sources.homes import CASES

THREAD = "019a0000-0001-7000-8000-000000000001"
NAME = f"rollout-2026-11-10T10-00-00-{THREAD}.jsonl"


def rows_of(*cases):
    """The rows of some cases' rollouts, undamaged ones."""
    paths = [path for case in cases for path in sorted((CASES / "codex" / case).rglob("rollout-*.jsonl"))]
    return [line for path in paths for line in path.read_bytes().splitlines() if line]


ROWS = rows_of(
    "one-session", "repeated-counts", "tools", "sub-agents", "outcomes", "fork-replay", "models", "cache-writes"
)


def account(path, way, *, max_line=1 << 26):
    """Everything that one way of reading gives."""
    rollout = Rollout(str(path))
    with RolloutRows(str(path), max_line=max_line) as rows:
        way(rollout, rows)
        state = json.dumps(rollout.state(), sort_keys=True)
        place = rows.offset, rows.line
        tail = list(rows.last())
    return {
        "state": state,
        "session": rollout.session(),
        "limits": rollout.limits,
        "place": place,
        "tail": tail,
        "problems": rollout.findings.problems,
    }


def assert_equal(content, folder, **options):
    """Both ways agree on a file of these bytes."""
    path = Path(folder) / NAME
    path.write_bytes(content)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    plain, fast = account(path, feed_plainly, **options), account(path, feed, **options)
    for what, value in plain.items():
        assert fast[what] == value, what
    return plain


def respell(row, **options):
    """The same row in another spelling."""
    return json.dumps(json.loads(row), **options).encode()


def turned(row):
    """The same row with its keys the other way round."""
    value = json.loads(row)
    value["payload"] = dict(reversed(value["payload"].items()))
    return json.dumps(dict(reversed(value.items())), separators=(",", ":")).encode()


def swap(old, new):
    """A change of some bytes."""
    return lambda row: row.replace(old, new)


CHANGES = [
    lambda row: row,
    respell,
    lambda row: respell(row, separators=(",", ":"), ensure_ascii=True),
    turned,
    lambda row: row + row,
    lambda row: row[: len(row) // 2] + row,
    lambda row: row[: len(row) * 2 // 3],
    lambda row: row[:-1],
    lambda row: row[:-1] + b',"more":null}',
    lambda row: row[:-2] + b',"more":"}}"}}',
    lambda row: b" " + row,
    lambda row: row + b"\r",
    lambda row: row + b"\x00\x00",
    lambda row: b"\xef\xbb\xbf" + row,
    lambda row: b"",
    swap(b'"type":', b'"t\\u0079pe":'),
    swap(b'"call_id":"c', b'"call_id":"\\u0063'),
    swap(b'"call_id":"c', b'"call_id":"\xff'),
    swap(b'"call_id":"c', b'"call_id":"\\"'),
    swap(b'"output":"', b'"output":"\\"timestamp\\":'),
    swap(b'"output":"', b'"output":"\xe9\\ud83d'),
    swap(b'"output":"', b'"output":"Exit code: 3\\n'),
    swap(b'"arguments":"', b'"namespace":"mcp__docs__","arguments":"'),
    swap(b'"name":"', b'"name":"mcp__docs__'),
    swap(b'"type":"message",', b'"type":"message","id":"msg_1",'),
    swap(b'"info":{', b'"info":{"model":"gpt-x",'),
    swap(b'"input_tokens":', b'"input_tokens":-'),
    swap(b'"input_tokens":', b'"input_tokens":1.0e2,"was":'),
    swap(b'"output_tokens":', b'"output_tokens":null,"was":'),
    swap(b'"input_tokens":1', b'"input_tokens":99999999999999991'),
    swap(b'"rate_limits":', b'"model":"gpt-y","rate_limits":'),
    swap(b'"used_percent":', b'"used_percent":1'),
    swap(b'"secondary":{', b'"secondary":null,"third":{'),
    swap(b".000Z", b"Z"),
    swap(b".000Z", b".000000Z"),
    swap(b".000Z", b".000+01:00"),
    swap(b"T10:00:", b"T10:61:"),
    swap(b"T10:00:0", b"T10:00:7"),
    swap(b"T10:00:0", b"T10:00:+"),
    swap(b"T10:00:", b"T09:00:"),
    swap(b"2026-11", b"2026-13"),
    swap(b'"role":"assistant"', b'"role":"user"'),
]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(ROWS), st.sampled_from(CHANGES)), max_size=25), st.booleans())
def test_both_lanes_agree_on_any_spelling(tmp_path_factory, picked, unfinished):
    """Spaces, orders, escapes, glue, odd numbers and times: the lanes cannot be told apart."""
    content = b"\n".join(change(row) for row, change in picked) + (b"" if unfinished else b"\n")
    assert_equal(content, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("change", CHANGES)
def test_both_lanes_agree_when_all_rows_are_changed(tmp_path, change):
    """Each change by itself, over a whole session."""
    assert_equal(b"\n".join(change(row) for row in ROWS) + b"\n", tmp_path)


def test_over_long_lines_are_named_alike(tmp_path):
    """A line over the limit is skipped and named, in the middle, at the end, and while it has no end."""
    long = ROWS[0][:-1] + b" " * 500 + b"}"
    for content in (b"\n".join([ROWS[1], long, ROWS[2], b""]), b"\n".join([long, long, b""]), ROWS[1] + b"\n" + long):
        found = assert_equal(content, tmp_path, max_line=600)
    assert found["place"] == (len(ROWS[1]) + 1, 1)


def test_canonical_rows_are_not_decoded(tmp_path, monkeypatch):
    """Calls, outputs, counters and the agent's words never reach the decoder."""
    decoded = []
    monkeypatch.setattr(codex_rows, "take_line", lambda _rollout, _rows, line: decoded.append(line))
    path = tmp_path / NAME
    path.write_bytes(b"\n".join(rows_of("one-session")) + b"\n")
    account(path, feed)
    kinds = [json.loads(line)["payload"].get("type", json.loads(line)["type"]) for line in decoded]
    assert kinds == [
        "session_meta",
        "task_started",
        "turn_context",
        "message",
        "message",
        "user_message",
        "task_complete",
    ]


def test_a_quoted_row_is_text(tmp_path):
    """A log that an agent reads aloud is output, not rows."""
    quoted = json.dumps(ROWS[6].decode())[1:-1].encode()
    rows = [row.replace(b'"output":"', b'"output":"' + quoted) for row in rows_of("one-session")]
    found = assert_equal(b"\n".join(rows) + b"\n", tmp_path)
    assert sum(record.usage.total for record in found["session"].records) == 550
