"""Two lanes, one result: whatever is done to a transcript's rows, skipping and decoding give the same account."""

import random
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.sources.claude_code.lines import LONG
from sessionlog.sources.claude_code.lines import take as take_long
from sessionlog.sources.claude_code.scan import Scan, scan_log
from sessionlog.sources.protocol import Resume

CASES = Path(__file__).parents[2] / "testdata" / "sources" / "claude-code"
ONE, TWO = (f"{d * 8}-{d * 4}-4{d * 3}-8{d * 3}-{d * 12}" for d in "12")
TEXTS = ("ok", 'a\nb "c" é λ \\ end', '{"parentUuid":null,"isSidechain":true}', "x" * LONG, '"}]},"uuid":"x"' * 600)
RARE = ("isMeta", "costUSD", "durationMs", "isApiErrorMessage", "forkedFrom", "agentType")


def stamp(second):
    """A time in the hour after ten."""
    return f"2026-11-10T10:{second // 60 % 60:02}:{second % 60:02}.{second % 1000:03}Z"


def row(second, body, *, session=ONE, side=False, tail=None, **more):
    """A row with its keys in the CLI's order."""
    head = {
        "parentUuid": None if second % 3 else "0" * 36, "isSidechain": side, "userType": "external", "cwd": "/w/api",
        "sessionId": session, "version": "2.1.31", "gitBranch": "fix/λ",
    }  # fmt: skip
    return {**head, **more, **body, "uuid": "1" * 36, "timestamp": stamp(second), **(tail or {})}


def answer(second, number, block, output, stop, **options):
    """A row of a response."""
    usage = {
        "input_tokens": 3, "cache_creation_input_tokens": number % 7 * 10, "cache_read_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 20}, "output_tokens": output,
        "service_tier": "standard",
    }  # fmt: skip
    message = {
        "model": "claude-opus-4-5", "id": f"msg_{number}", "type": "message", "role": "assistant", "content": [block],
        "stop_reason": stop, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    return row(second, {"message": message, "requestId": f"req_{number}", "type": "assistant"}, **options)


def result(second, number, text, failed, **options):
    """A row with a tool's result, told twice."""
    part = {"tool_use_id": f"toolu_{number}", "type": "tool_result", "content": text}
    if failed is not None:
        part["is_error"] = failed
    message = {"type": "user", "message": {"role": "user", "content": [part]}}
    return row(second, message, tail={"toolUseResult": {"stdout": text}}, **options)


@st.composite
def rows(draw):
    """A transcript of a few rows, most of them as the CLI writes them."""
    found, second = [], 0
    for _ in range(draw(st.integers(1, 12))):
        second += draw(st.sampled_from((1, 2, 30, 301)))
        number = draw(st.integers(0, 5))
        options = {"session": draw(st.sampled_from((ONE, ONE, ONE, TWO))), "side": draw(st.integers(0, 9)) == 0}
        if draw(st.booleans()):
            options["agentId"] = "a1"
        text = draw(st.sampled_from(TEXTS))
        kind = draw(st.sampled_from(("text", "call", "call", "result", "result", "prompt", "progress", "snapshot")))
        stop = draw(st.sampled_from((None, "end_turn", "tool_use")))
        output = draw(st.sampled_from((0, 2, 10, 11, 500)))
        if kind == "text":
            found.append(answer(second, number, {"type": "text", "text": text}, output, stop, **options))
        elif kind == "call":
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": text}}
            found.append(answer(second, number, block, output, stop, **options))
        elif kind == "result":
            found.append(result(second, number, text, draw(st.sampled_from((None, True, False))), **options))
        elif kind == "prompt":
            message = {"type": "user", "message": {"role": "user", "content": text}}
            found.append(row(second, message, **options))
        elif kind == "progress":
            found.append(row(second, {"type": "progress", "data": {"type": "hook_progress", "text": text}}, **options))
        else:
            inner = {"messageId": "m", "trackedFileBackups": {"x": text}}
            found.append({"type": "file-history-snapshot", "messageId": "m", "snapshot": inner})
    return found


def paths_in(value, path=()):
    """Every place in a JSON value."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from paths_in(part, (*path, key))


def change(value, chance):
    """Put something odd in one place of a row."""
    *way, last = chance.choice([path for path in paths_in(value) if path])
    for key in way:
        value = value[key]
    odd = (None, 7, -1, 2.5, 3.0, "12", "", True, [], {}, ["x"], {"y": 1}, 2**60, "\ud83d", "a" * 500)
    match chance.randrange(4):
        case 0 if isinstance(value, dict):
            del value[last]
        case 1 if isinstance(value, dict):
            value[chance.choice(RARE)] = chance.choice((True, 1.5, {"sessionId": TWO}, "Explore"))
        case 2 if isinstance(value, dict):
            value[last] = value.pop(last)
        case _:
            value[last] = chance.choice(odd)


def written(row, chance):
    """A row as bytes, as one of several writers would."""
    if chance.random() < 0.15:
        change(row, chance)
    try:
        line = orjson.dumps(row)
    except TypeError:
        line = orjson.dumps({"type": "assistant"})
    match chance.randrange(12):
        case 0:
            line = line.replace(b'":', b'": ')
        case 1:
            line = line[: chance.randrange(len(line))].rstrip(b"}")  # a text that is torn at a brace is not looked for
        case 2:
            line += b"\r"
        case 3:
            return line  # the next row is glued to it
        case 4:
            return line[: chance.randrange(len(line))]
        case 5:
            line = line.replace("λ".encode(), b"\\u03bb")
        case _:
            pass
    return line + b"\n"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(found=rows(), seed=st.integers(0, 2**32))
def test_skipping_and_decoding_give_the_same_account(found, seed, tmp_path_factory):
    """Sessions, records, tools, problems and the state to go on are equal, whatever the rows look like."""
    chance = random.Random(seed)
    path = tmp_path_factory.getbasetemp() / f"{ONE}.jsonl"
    path.write_bytes(b"".join(written(row, chance) for row in found))
    assert scan_log(str(path), None) == scan_log(str(path), None, fast=False)


@pytest.mark.parametrize("path", sorted(CASES.rglob("*.jsonl")), ids=lambda p: f"{p.parents[4].name}-{p.stem[:8]}")
def test_both_lanes_agree_on_the_cases(path):
    """Each fixture's log gives the same both ways."""
    assert scan_log(str(path), None) == scan_log(str(path), None, fast=False)


def test_long_results_are_not_decoded(tmp_path):
    """The lane for long rows takes what it is there for, and refuses what merely resembles it."""
    scan = Scan(str(tmp_path / f"{ONE}.jsonl"), None)
    line = orjson.dumps(result(1, 1, "y\n" * LONG, None)) + b"\n"
    assert take_long(scan, line)
    assert scan.account.asked[0] is not None
    assert not take_long(
        scan, line.replace(b'"content":"', b'"content":["', 1).replace(b'"}]},"uuid"', b'"]}]},"uuid"')
    )
    assert not take_long(scan, line[:-1])
    assert not take_long(scan, line[:5000] + line)
    assert not take_long(scan, line[:-200] + line)
    assert not take_long(scan, line.replace(b'":', b'": '))


def test_a_scan_goes_on_where_it_ended(tmp_path):
    """Responses and calls that are open at the end of a scan are finished by the next one."""
    first = [answer(1, 1, {"type": "text", "text": "x"}, 2, None)]
    block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
    then = [answer(4, 1, block, 50, "tool_use"), result(9, 1, "ok", None)]
    path = tmp_path / f"{ONE}.jsonl"
    lines = [orjson.dumps(row) + b"\n" for row in first + then]
    path.write_bytes(lines[0] + lines[1][:90])
    begun = scan_log(str(path), None)
    assert begun.resume.offset == len(lines[0])
    path.write_bytes(b"".join(lines))
    kept = orjson.loads(orjson.dumps(begun.resume.state))
    rest = scan_log(str(path), Resume(offset=begun.resume.offset, line=begun.resume.line, state=kept))
    [session] = rest.sessions
    [record] = session.records
    [tool] = session.tools
    whole = scan_log(str(path), None).sessions[0].records[0]
    assert (record.key, record.usage, record.time_ns) == (whole.key, whole.usage, whole.time_ns)
    assert (tool.finished, tool.duration_ms) == (True, 5005.0)


def test_limits_of_memory_hold(tmp_path):
    """Only a few open responses and calls are kept for the next scan, however many there are."""
    block = {"type": "tool_use", "name": "Bash", "input": {}}
    lines = [answer(n, n, {**block, "id": f"toolu_{n}"}, 5, None, session=f"s-{n}") for n in range(300)]
    path = tmp_path / "many.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in lines))
    scan = scan_log(str(path), None)
    assert sum(len(session.records) for session in scan.sessions) == 300
    assert len(orjson.dumps(scan.resume.state)) < 20_000
