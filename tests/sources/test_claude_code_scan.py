"""Two lanes, one result: whatever is done to a transcript's rows, skipping and decoding give the same account."""

import random
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionlog.sources.claude_code.lane import Lane
from sessionlog.sources.claude_code.rows import TranscriptRows
from sessionlog.sources.claude_code.scan import Scan, scan_log
from sessionlog.sources.protocol import Resume

CASES = Path(__file__).parents[2] / "testdata" / "sources" / "claude-code"
ONE, TWO = (f"{d * 8}-{d * 4}-4{d * 3}-8{d * 3}-{d * 12}" for d in "12")
USAGES = ("server_tool_use", "service_tier", "cache_creation", "inference_geo", "iterations", "speed")
SPLIT = {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 20}
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


def answer(second, number, blocks, output, stop, *, shape=0, **options):
    """A row of a response; the bits of `shape` choose among the ways in which versions of the CLI tell usage."""
    usage = {
        "input_tokens": 3, "cache_creation_input_tokens": number % 7 * 10, "cache_read_input_tokens": 100 + shape % 3,
        **({"cache_creation": dict(SPLIT)} if shape & 1 else {}), "output_tokens": output,
    }  # fmt: skip
    told = ({"web_search_requests": 0}, "standard", dict(SPLIT), "not_available", [], "standard")
    usage |= {name: value for bit, (name, value) in enumerate(zip(USAGES, told, strict=True), 1) if shape >> bit & 1}
    message = {
        "model": f"claude-opus-4-{number % 2}", "id": f"msg_{number}", "type": "message", "role": "assistant", "content": blocks,
        "stop_reason": stop, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    request = {} if shape & 128 else {"requestId": f"req_{number}"}
    return row(second, {"message": message, **request, "type": "assistant"}, **options)


def result(second, number, text, failed, *, again=None, **options):
    """A row with a tool's result, told twice."""
    part = {"tool_use_id": f"toolu_{number}", "type": "tool_result", "content": text}
    if failed is not None:
        part["is_error"] = failed
    message = {"type": "user", "message": {"role": "user", "content": [part]}}
    tail = {} if again == "" else {"toolUseResult": again or {"stdout": text, "stderr": "", "interrupted": False}}
    return row(second, message, tail=tail, **options)


def echo(second, number, blocks, output, stop, *, kind="assistant", prompt="go", **options):
    """A row of progress that embeds a sub-agent's."""
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 9, "cache_read_input_tokens": 5}
    usage["cache_creation"] = dict(SPLIT)
    message = {
        "model": f"claude-haiku-4-{number % 2}", "id": f"msg_{number}", "type": "message", "role": "assistant",
        "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": {**usage, "output_tokens": output},
    }  # fmt: skip
    inner = {"type": kind, "timestamp": stamp(second + 1), "message": message, "requestId": f"req_{number}"}
    inner["uuid"] = "2" * 36
    data = {"type": "agent_progress", "message": inner, "prompt": prompt, "agentId": "a1"}
    told = {"type": "progress", "data": data, "toolUseID": f"agent_{number}", "parentToolUseID": f"toolu_{number}"}
    return row(second, told, **options)


def block_of(kind, number, text):
    """A block of content."""
    if kind == "text":
        return {"type": "text", "text": text}
    if kind == "thinking":
        return {"type": "thinking", "thinking": text, "signature": "U" * 40}
    given = (
        {"command": text} if number % 2 else {"todos": [{"content": text, "type": "tool_use"}], "U": {"parentUuid": 1}}
    )
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "mcp__a__b" if number == 3 else "Bash", "input": given}


WHOLE = orjson.dumps(answer(5, 2, [block_of("tool", 2, "x")], 70, "end_turn")).decode()
RESULT = orjson.dumps(result(6, 2, "x", None)).decode()
TEXTS = (
    "ok", "", 'a\nb "c" é λ \\ end', "x" * 7000, '"}]},"uuid":"x"' * 300, WHOLE, RESULT, f"a {RESULT}\n{WHOLE}\n", "\x1b[0m,",
    '{"parentUuid":null,"isSidechain":true}', "end{", 'x","y', "<command-name>x", "[Request interrupted by user]", "Do it",
    "    if x:", "  <command-name>x", "<p class=", "\u00a0<command-name>x", "Caveat: The messages below", "  ", "\t<bash-x",
)  # fmt: skip


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
        kind = draw(
            st.sampled_from(
                ("call", "call", "call", "result", "result", "prompt", "progress", "echo", "snapshot", "turn")
            )
        )
        stop = draw(st.sampled_from((None, "end_turn", "tool_use")))
        output = draw(st.sampled_from((0, 2, 10, 11, 500)))
        if kind == "call":
            kinds = draw(st.lists(st.sampled_from(("text", "thinking", "tool", "tool")), min_size=1, max_size=2))
            blocks = [block_of(one, (number + place) % 5, text) for place, one in enumerate(kinds)]
            shape = draw(st.integers(0, 255))
            found.append(answer(second, number, blocks, output, stop, shape=shape, **options))
        elif kind == "result":
            read = {"type": "text", "file": {"filePath": "/x", "content": text}}
            again = draw(st.sampled_from((None, None, "", read, f"Error: {text}", {"structuredPatch": [text]})))
            failed = draw(st.sampled_from((None, True, False)))
            found.append(result(second, number, text, failed, again=again, **options))
        elif kind == "turn":
            found.append(row(second, {"type": "system", "subtype": "turn_duration", "durationMs": 7}, **options))
        elif kind == "prompt":
            message = {"type": "user", "message": {"role": "user", "content": text}}
            found.append(row(second, message, **options))
        elif kind == "echo":
            blocks = [block_of(draw(st.sampled_from(("text", "tool"))), number, text)]
            whose = draw(st.sampled_from(("assistant", "assistant", "user")))
            found.append(echo(second, number, blocks, output, stop, kind=whose, prompt=text, **options))
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


def taken(rows, path):
    """Which of these rows are not decoded."""
    scan = Scan(str(path), None)
    lane = Lane(scan.account, scan.head)
    return [lane.take(line) for line in rows]


def test_usual_rows_are_not_decoded(tmp_path):
    """The lane takes what it is there for: with every way of telling usage, and texts that quote whole rows."""
    path = tmp_path / f"{ONE}.jsonl"
    rows = [answer(n % 60, 1, [block_of("tool", 1, WHOLE)], 5, "tool_use", shape=n) for n in range(256)]
    rows += [result(7, 1, text, failed) for text in (WHOLE, RESULT, "ok", "") for failed in (None, True, False)]
    rows += [answer(8, 1, [block_of(kind, 1, RESULT)], 5, None) for kind in ("text", "thinking")]
    rows += [
        echo(9, n, [block_of("tool", n, WHOLE)], 5, stop, prompt=RESULT) for n in (1, 3) for stop in (None, "tool_use")
    ]
    assert all(taken([orjson.dumps(row) + b"\n" for row in rows], path))


def test_prompts_after_the_first_are_not_decoded(tmp_path):
    """Words of the user's own are told from the CLI's wrappers without decoding, whatever they begin with."""
    told = ("Do it", "    if x:", "<p class", "# λ", "- x", "Caveat emptor")
    wrapped = (
        "<command-name>x",
        "  <bash-input>",
        "[Request interrupted by user]",
        "Caveat: The messages below",
        " ",
        "",
    )
    rows = [
        row(n, {"type": "user", "message": {"role": "user", "content": text}})
        for n, text in enumerate((*told, *wrapped))
    ]
    path = tmp_path / f"{ONE}.jsonl"
    scan = Scan(str(path), None)
    lane = Lane(scan.account, scan.head)
    scan.account.prompt = "go"
    expected = [True] * len(told) + [False] * len(wrapped)
    assert [lane.take(orjson.dumps(row) + b"\n") for row in rows] == expected


def test_what_merely_resembles_an_echo_is_decoded(tmp_path):
    """Echoes that say more, that are torn, or hold another row, are refused."""
    path = tmp_path / f"{ONE}.jsonl"
    line = orjson.dumps(echo(1, 1, [block_of("text", 1, "x" * 900)], 5, None)) + b"\n"
    odd = [line[:-2] + b',"sessionId":"x"}\n', line.replace(b'":', b'": '), line[:-1], line[:-1] + b"\r\n"]
    odd += [line.replace(b'"requestId"', b'"isApiErrorMessage":true,"requestId"'), line.replace(b"T10:", b"T99:")]
    odd += [line.replace(b"claude-haiku-4-1", b"<synthetic>"), line.replace(b'"agentId"', b'"type":"x","agentId"')]
    odd += [line[:cut] + line for cut in range(1, len(line) - 1, 7)]
    assert not any(taken(odd, path))


def test_results_go_to_the_session_that_called(tmp_path):
    """A result right after its call counts where the call was made, though a side conversation spoke in between."""
    block = {"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {}}
    rows = [
        answer(1, 1, [block], 50, "tool_use"), answer(2, 2, [block_of("text", 2, "x")], 50, "end_turn", side=True),
        answer(4, 2, [block_of("text", 2, "x")], 51, "end_turn", side=True), result(5, 1, "ok", None),
        answer(7, 3, [block_of("text", 3, "x")], 9, "end_turn"),
    ]  # fmt: skip
    path = tmp_path / f"{ONE}.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    assert taken(path.read_bytes().splitlines(keepends=True), path) == [True] * 5
    scan = scan_log(str(path), None)
    assert scan == scan_log(str(path), None, fast=False)
    assert scan.sessions[0].tools[0].duration_ms == 4004.0
    assert [record.latency_ms for record in scan.sessions[0].records] == [None, None, 2002.0]


def test_repeated_endings_are_told_from_changed_ones(tmp_path):
    """Rows of a response that repeat its numbers, change them, its request or why it stopped, count as decoded ones do."""
    text = [block_of("text", 1, "x")]
    first = answer(1, 1, text, 2, None, shape=7)
    odd = [answer(2, 1, text, 11, "end_turn", shape=7), answer(3, 1, text, 11, "max_tokens", shape=7)]
    odd += [answer(4, 1, text, output, None, shape=shape) for output in (11, 2, 900) for shape in (7, 8, 135)]
    changes = [
        (b'"input_tokens":3', b'"input_tokens":4'),
        (b"req_1", b"req_9"),
        (b'"stop_sequence":null', b'"stop_sequence":"}"'),
    ]
    changes += [
        (b'"stop_reason":null', b'"stop_reason":"odd"'),
        (b'"output_tokens":', b'"output_tokens":-'),
        (b"T10:", b"T55:"),
    ]
    changes += [(b"1" * 36, b'","isMeta":true,"costUSD":1,"id":"11'), (b"req_1", b"req_1")]
    path = tmp_path / f"{ONE}.jsonl"
    for old, new in changes:
        lines = [orjson.dumps(row) + b"\n" for row in (first, *odd)]
        path.write_bytes(lines[0] + b"".join(line.replace(old, new) + lines[0] for line in lines[1:]))
        assert scan_log(str(path), None) == scan_log(str(path), None, fast=False)


def test_lines_longer_than_the_buffer_and_the_limit_are_counted_alike(tmp_path):
    """Whether a line is taken or not, the next one has its number and place; one beyond the limit is named."""
    lines = [b"x" * (3 << 20) + b"\n", b"{}\r\n", b"y" * (5 << 20) + b"\n", b"\n", b"z\n", b"torn"]
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"".join(lines))

    def told(take):
        with TranscriptRows(str(path), max_line=4 << 20) as rows:
            places = [(rows.line, rows.start, type(line)) for line in rows.others(take)]
            return places, rows.line, rows.offset

    with TranscriptRows(str(path), max_line=4 << 20) as rows:
        places = [(rows.line, rows.start, type(line)) for line in rows.lines()]
        whole = places, rows.line, rows.offset
    assert told(lambda _: False) == whole
    some, *end = told(lambda line: len(line) < 3)
    assert (set(some) < set(whole[0]), tuple(end)) == (True, whole[1:])


@pytest.mark.parametrize("odd", [{"speed": "fast"}, {"service_tier": "priority"}])
def test_requests_with_a_price_of_their_own_are_decoded(tmp_path, odd):
    """What they cost depends on more than their tokens."""
    row = answer(1, 1, [block_of("text", 1, "x")], 5, "end_turn")
    row["message"]["usage"] = row["message"]["usage"] | odd
    path = tmp_path / f"{ONE}.jsonl"
    assert taken([orjson.dumps(row) + b"\n"], path) == [False]
    path.write_bytes(orjson.dumps(row) + b"\n")
    [record] = scan_log(str(path), None).sessions[0].records
    assert {name: getattr(record, name) for name in odd} == odd


def test_what_merely_resembles_a_usual_row_is_decoded(tmp_path):
    """Unfinished, spaced and glued rows, and rows that say more, are refused."""
    path = tmp_path / f"{ONE}.jsonl"
    call = orjson.dumps(answer(1, 1, [block_of("tool", 1, "x" * 900)], 5, None)) + b"\n"
    told = orjson.dumps(result(2, 1, "y\n" * 900, None)) + b"\n"
    two = orjson.dumps(answer(1, 1, [block_of("text", 1, "x"), block_of("tool", 1, "x")], 5, None)) + b"\n"
    short = [orjson.dumps(result(2, 1, "ok", failed)) + b"\n" for failed in (None, True)]
    odd = [two, told.replace(b'"content":"', b'"content":["', 1).replace(b'"}]},"uuid"', b'"]}]},"uuid"')]
    odd += [told[:-2] + b',"forkedFrom":{"sessionId":"x"}}\n', call[:-2] + b',"costUSD":1}\n']
    for line in (call, told):
        odd += [line[:-1], line[:-1] + b"\r\n", line.replace(b'":', b'": ')]
        odd += [line[:cut] + other for cut in range(1, len(line) - 1, 7) for other in (call, told)]
        odd += [line[:cut] for cut in range(1, len(line))]
    odd += [row[:cut] for row in short for cut in range(1, len(row))]
    assert not any(taken(odd, path))


def test_a_scan_goes_on_where_it_ended(tmp_path):
    """Responses and calls that are open at the end of a scan are finished by the next one."""
    first = [answer(1, 1, [block_of("text", 1, "x")], 2, None)]
    block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}
    then = [answer(4, 1, [block], 50, "tool_use"), result(9, 1, "ok", None)]
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
    lines = [answer(n, n, [{**block, "id": f"toolu_{n}"}], 5, None, session=f"s-{n}") for n in range(300)]
    path = tmp_path / "many.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in lines))
    scan = scan_log(str(path), None)
    assert sum(len(session.records) for session in scan.sessions) == 300
    assert len(orjson.dumps(scan.resume.state)) < 20_000
