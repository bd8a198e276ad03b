"""The fast lane gives what decoding each line gives, whatever the lines are."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.sources.codex import lane
from sessionlog.sources.codex.lane import feed
from sessionlog.sources.codex.rows import BLOCK, RolloutRows, feed_plainly, take_line
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


def account(path, way, *, max_line=1 << 26, block=BLOCK):
    """Everything that one way of reading gives."""
    rollout = Rollout(str(path))
    with RolloutRows(str(path), max_line=max_line, block=block) as rows:
        way(rollout, rows)
        state = json.dumps(rollout.state(), sort_keys=True)
        place = rows.offset, rows.line
        tail = list(rows.last())
    return {
        "begun": rollout.begun,
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


TURN = b"019a0000-0009-7000-8000-000000000001"


def respell(row, **options):
    """The same row in another spelling."""
    return json.dumps(json.loads(row), **options).encode()


def turned(row):
    """The same row with its keys the other way round."""
    value = json.loads(row)
    value["payload"] = dict(reversed(value["payload"].items()))
    return json.dumps(dict(reversed(value.items())), separators=(",", ":")).encode()


def begun_with(row, *names):
    """The same row with these keys of its payload first."""
    value = json.loads(row)
    payload = value["payload"]
    value["payload"] = {name: payload[name] for name in (*names, *payload) if name in payload}
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


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
    lambda row: begun_with(row, "type", "call_id", "name", "input"),
    lambda row: begun_with(row, "type", "id", "status", "name", "arguments", "input", "call_id"),
    swap(b'"type":"function_call",', b'"type":"function_call","id":"fc_1",'),
    swap(b'"type":"function_call', b'"type":"custom_tool_call'),
    swap(b'"type":"custom_tool_call', b'"type":"function_call'),
    swap(b'"}}', b'","namespace":"mcp__docs__"}}'),
    lambda row: row.replace(b'"}}', b'\\"}}') if b"_call" in row else row,
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
    swap(b'"role":"user"', b'"role":"usher"'),
    swap(b'"input_tokens":', b'"input_tokens":0'),
    swap(b'"total_tokens":', b'"total_tokens":-'),
    swap(b'"reasoning_output_tokens":', b'"reasoning_output_tokens":1'),
    swap(b'"turn_id":"0', b'"turn_id":"f'),
    swap(b'"turn_id":"0', b'"turn_id":"\xff'),
    swap(b'"turn_id":"0', b'"turn_id":"\\u0030'),
    swap(b'"cwd":"/w/api"', b'"cwd":"/w/web"'),
    swap(b'"model":"', b'"model":"\xff'),
    swap(b'"model":"', b'"type":"reasoning","model":"'),
    swap(b'"type":"turn_context","payload":{', b'"type":"turn_context","payload":{"turn_id":"' + TURN + b'",'),
    lambda row: row[:-1] + b',"type":"compacted"}',
    swap(b'"type":"task_complete"', b'"type":"task_completed"'),
    swap(b'"type":"task_complete"', b'"type":"task_started"'),
    swap(b'"type":"task_complete"', b'"type":"error","message":"no quota"'),
    swap(b'"type":"task_started"', b'"type":"stream_error","message":"lost"'),
    swap(b'"last_agent_message":', b'"said":'),
    swap(b'"role":"', b'"id":"a\nb","role":"'),
    swap(b'"name":"', b'"id":"a\nb","name":"'),
    swap(b'"call_id":"c', b'"call_id":"\nc'),
    swap(b'"call_id":"', b'"call_id":"' + b"c" * 401),
    swap(b'"exit_code":0', b'"exit_code":1'),
    swap(b'_end","call_id"', b'_end","type":["x"],"call_id"'),
    swap(b'_end","call_id"', b'_begin","call_id"'),
    swap(b'"payload":{"type":"exec_command_end"', b'"payload":null,"more":{"type":"exec_command_end"'),
    lambda row: row[:-1] + b',"payload":[]}',
]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sampled_from(ROWS), st.sampled_from(CHANGES)), max_size=25),
    st.booleans(),
    st.sampled_from([BLOCK, 1000, 300, 64]),
)
def test_both_lanes_agree_on_any_spelling(tmp_path_factory, picked, unfinished, block):
    """Spaces, orders, escapes, glue, odd numbers and times: the lanes cannot be told apart."""
    content = b"\n".join(change(row) for row, change in picked) + (b"" if unfinished else b"\n")
    assert_equal(content, tmp_path_factory.getbasetemp(), block=block)


@pytest.mark.parametrize("change", CHANGES)
def test_both_lanes_agree_when_all_rows_are_changed(tmp_path, change):
    """Each change by itself, over a whole session."""
    assert_equal(b"\n".join(change(row) for row in ROWS) + b"\n", tmp_path)


@pytest.mark.parametrize("glue", [b"", b'"', b"\\", b'{"timestamp":"2026'])
@pytest.mark.parametrize("place", [0.3, 0.6, 0.95])
def test_both_lanes_agree_on_glued_rows(tmp_path, glue, place):
    """Every kind of row, torn and followed by every kind: what is glued is decoded."""
    torn = [row[: int(len(row) * place)] + glue for row in ROWS]
    lines = [a + b for shift in (1, 2, 5) for a, b in zip(torn, ROWS[shift:], strict=False)]
    lines += [a + respell(b) for a, b in zip(torn, ROWS[3:], strict=False)]
    assert assert_equal(b"\n".join(lines) + b"\n", tmp_path)["problems"].count > len(ROWS)


@pytest.mark.parametrize("block", [1, 2, 7, 64, 500, 501, 4096])
def test_the_size_of_a_block_does_not_matter(tmp_path, block):
    """Lines on its borders, and lines that are longer: rows, problems and their places are the same."""
    damaged = [row[:-9] if number % 5 == 0 else row for number, row in enumerate(ROWS)]
    content = b"\n".join([*damaged, b"", *ROWS, ROWS[0][:-1]])
    found = assert_equal(content, tmp_path, block=block)
    whole = assert_equal(content, tmp_path)
    assert found == whole
    assert found["place"] == (content.rindex(b"\n") + 1, 2 * len(ROWS) + 1)


@pytest.mark.parametrize("cut", range(0, 400, 37))
def test_a_border_may_be_at_any_byte_of_a_line(tmp_path, cut):
    """Blocks as long as the first lines and a bit, with and without the newline."""
    size = len(ROWS[0]) + 1 + cut
    for content in (b"\n".join(ROWS) + b"\n", b"\r\n".join(ROWS), b"\n".join([b"", b"", *ROWS, b"", b""])):
        assert_equal(content, tmp_path, block=size)


def test_a_packed_log_is_read_by_blocks_too(tmp_path):
    """From the place where the last scan ended."""
    content = b"\n".join(ROWS) + b"\n"
    path = tmp_path / f"{NAME}.gz"
    path.write_bytes(gzip.compress(content))
    lines = []
    with RolloutRows(str(path), offset=len(ROWS[0]) + 1, line=1, block=100) as rows:
        for data, start, end in rows.blocks():
            lines += data[start:end].splitlines(keepends=True)
            rows.go_to(data.count(b"\n", start, end), end - start)
        assert (rows.offset, rows.line) == (len(content), len(ROWS))
    assert b"".join(lines) == content[len(ROWS[0]) + 1 :]


def test_values_are_whole(tmp_path):
    """They are made without their classes' help: no field is forgotten."""
    session = assert_equal(b"\n".join(ROWS) + b"\n", tmp_path)["session"]
    assert len(session.records) > 5
    assert any(use.finished for use in session.tools)
    for value in (*session.records, *session.tools, *(record.usage for record in session.records)):
        assert replace(value) == value


def test_over_long_lines_are_named_alike(tmp_path):
    """A line over the limit is skipped and named, in the middle, at the end, and while it has no end."""
    long = ROWS[0][:-1] + b" " * 500 + b"}"
    for content in (b"\n".join([ROWS[1], long, ROWS[2], b""]), b"\n".join([long, long, b""]), ROWS[1] + b"\n" + long):
        for block in (1, 50, 299, 300, 301, BLOCK):
            found = assert_equal(content, tmp_path, max_line=600, block=block)
    assert found["place"] == (len(ROWS[1]) + 1, 1)


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_limit_of_a_line_is_exact(tmp_path, over):
    """A line as long as the limit is taken, one byte more is not."""
    row = ROWS[1][:-1] + b" " * (700 - len(ROWS[1]) + over) + b"}"
    for block in (1, 100, BLOCK):
        found = assert_equal(b"\n".join([row, row, ROWS[2], b""]), tmp_path, max_line=700, block=block)
        assert found["problems"].count == (2 if over > 0 else 0)


def decoded_kinds(path, monkeypatch):
    """The kinds of the rows that the fast lane decodes."""
    decoded = []

    def take(rollout, rows, line):
        row = json.loads(line)
        decoded.append(row["payload"].get("type", row["type"]))
        take_line(rollout, rows, line)

    monkeypatch.setattr(lane, "take_line", take)
    account(path, feed)
    return decoded


def test_canonical_rows_are_not_decoded(tmp_path, monkeypatch):
    """Only what begins a thread is: its meta row and the user's first words, and where its counter begins anew."""
    rows = [row if b"token_count" in row else begun_with(row, "type", "turn_id") for row in rows_of("one-session")]
    path = tmp_path / NAME
    path.write_bytes(b"\n".join(rows) + b"\n")
    begun = ["session_meta", "message", "message"]
    assert decoded_kinds(path, monkeypatch) == begun
    path.write_bytes(b"\n".join(rows + rows[1:]) + b"\n")
    assert decoded_kinds(path, monkeypatch) == [*begun, "token_count"]


def test_the_context_of_a_turn_is_that_of_its_own_row(tmp_path):
    """Turns that say the same are read once; a turn that says something else is read anew."""
    turns = []
    for second, (model, folder) in enumerate([("a", "/w"), ("a", "/w"), ("b", "/w"), ("a", "/w"), ("a", "/x")]):
        turns += turn_rows(second, model, folder)
    found = assert_equal(rows_of("one-session")[0] + b"\n" + b"\n".join(turns) + b"\n", tmp_path)
    places = [(record.model, record.project) for record in found["session"].records]
    assert places == [("a", "/w"), ("a", "/w"), ("b", "/w"), ("a", "/w"), ("a", "/x")]


def turn_rows(second, model, folder):
    """A turn's context and its counter."""
    total = dict.fromkeys(
        ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"), second + 1
    )
    info = {"total_token_usage": {**total, "total_tokens": 2}, "last_token_usage": {**total, "total_tokens": 2}}
    payloads = {
        "turn_context": {
            "turn_id": f"019a0000-0009-7000-8000-00000000000{second}",
            "cwd": folder,
            "model": model,
            "x": {},
        },
        "event_msg": {"type": "token_count", "info": {**info, "model_context_window": 1}, "rate_limits": None},
    }
    return [
        json.dumps(
            {"timestamp": f"2026-11-10T10:00:0{second}.000Z", "type": type_, "payload": payload}, separators=(",", ":")
        ).encode()
        for type_, payload in payloads.items()
    ]


@pytest.mark.parametrize("kind", ["turn", "counter"])
def test_a_rollout_of_canonical_rows_alone_has_begun(tmp_path, kind):
    """Also without a row that must be decoded: as when its beginning was lost."""
    turn, counter = turn_rows(1, "a", "/w")
    found = assert_equal((turn if kind == "turn" else counter) + b"\n", tmp_path)
    assert found["begun"]


def test_a_quoted_row_is_text(tmp_path):
    """A log that an agent reads aloud is output, not rows."""
    quoted = json.dumps(ROWS[6].decode())[1:-1].encode()
    rows = [row.replace(b'"output":"', b'"output":"' + quoted) for row in rows_of("one-session")]
    found = assert_equal(b"\n".join(rows) + b"\n", tmp_path)
    assert sum(record.usage.total for record in found["session"].records) == 550
