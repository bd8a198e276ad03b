"""Rows of a rollout mean the same in any spelling, and glued, quoted and over-long ones cost nothing but themselves."""

import json
import os
import re

import orjson
import pytest

from sessionlog.sources.codex import SOURCE
from tests.sources.homes import CASES

THREAD = "019a0000-0001-7000-8000-000000000001"


def rows_of(case):
    """The rows of a case's rollout."""
    [path] = sorted((CASES / "codex" / case).rglob(f"rollout-*{THREAD}.jsonl"))
    return [line for line in path.read_bytes().splitlines() if line]


def scan(folder, lines):
    """The session of a rollout with these lines, and how many problems it has."""
    path = folder / f"rollout-2026-11-10T10-00-00-{THREAD}.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    found = SOURCE.scan(str(path), None)
    [session] = found.sessions
    return session, found.problems.count


def turned(row):
    """The same row with its keys the other way round."""
    value = json.loads(row)
    value["payload"] = dict(reversed(value["payload"].items()))
    return json.dumps(dict(reversed(value.items()))).encode()


SPELLINGS = {
    "spaced": lambda row: json.dumps(json.loads(row)).encode(),
    "turned": turned,
    "escaped": lambda row: re.sub(rb'"t(\w+)":', rb'"\\u0074\1":', row),
    "with NaN": lambda row: row[:-1] + b',"odd":NaN}',
    "with a lone surrogate": lambda row: row[:-2] + rb',"model_provider_name":"\ud83d","type_":"\ud83d"}}',
    "with bad UTF-8": lambda row: row[:-1] + b',"odd":"\xff"}',
    "Windows": lambda row: row + b"\r",
}


@pytest.mark.parametrize("case", ["one-session", "tools", "repeated-counts", "cache-writes"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_rows_mean_the_same_in_any_spelling(tmp_path, case, spelling):
    """Spaces, orders and escapes; what does not fit the types is read leniently, with the same meaning."""
    rows = rows_of(case)
    plain, _ = scan(tmp_path, rows)
    found, _ = scan(tmp_path, map(SPELLINGS[spelling], rows))
    assert found.records == plain.records
    assert [(use.key, use.failed, use.duration_ms) for use in found.tools] == [
        (use.key, use.failed, use.duration_ms) for use in plain.tools
    ]
    assert (found.prompt, found.turns, found.status) == (plain.prompt, plain.turns, plain.status)


@pytest.mark.parametrize("number", range(1, 13))
def test_a_row_that_is_glued_to_a_torn_one_is_found(tmp_path, number):
    """Every kind of row: only the torn one is lost."""
    rows = rows_of("one-session")
    torn = b'{"timestamp":"2026-11-10T10:00:00.000Z","type":"response_item","payload":{"type":"mess'
    plain, _ = scan(tmp_path, rows)
    found, problems = scan(tmp_path, [*rows[:number], torn + rows[number], *rows[number + 1 :]])
    assert (found.records, found.tools, found.turns, problems) == (plain.records, plain.tools, plain.turns, 1)


def test_a_quoted_row_is_text(tmp_path):
    """A log that an agent reads aloud is output, not rows."""
    rows = rows_of("one-session")
    quoted = orjson.dumps(rows[6].decode())[1:-1]
    found, problems = scan(tmp_path, [row.replace(b'"output":"', b'"output":"' + quoted) for row in rows])
    assert (sum(record.usage.total for record in found.records), problems) == (550, 0)


def test_the_context_of_a_turn_is_that_of_its_own_row(tmp_path):
    """Each response has the model and the folder of its own turn."""
    rows = rows_of("one-session")[:1]
    for second, (model, folder) in enumerate([("a", "/w"), ("a", "/w"), ("b", "/w"), ("a", "/w"), ("a", "/x")]):
        total = {"input_tokens": second + 1, "cached_input_tokens": 0, "output_tokens": 1, "reasoning_output_tokens": 0}
        for type_, payload in (
            ("turn_context", {"cwd": folder, "model": model}),
            ("event_msg", {"type": "token_count", "info": {"total_token_usage": total}}),
        ):
            row = {"timestamp": f"2026-11-10T10:00:0{second}.000Z", "type": type_, "payload": payload}
            rows.append(json.dumps(row).encode())
    session, _ = scan(tmp_path, rows)
    places = [(record.model, record.project) for record in session.records]
    assert places == [("a", "/w"), ("a", "/w"), ("b", "/w"), ("a", "/w"), ("a", "/x")]
