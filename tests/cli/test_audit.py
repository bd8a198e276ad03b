"""`sessionlog audit`: exit code 1 for what differs, 0 for nothing, 3 for no session or nothing to compare."""

import json
from datetime import UTC, datetime, timedelta

import pytest

AGENTS = "7d3c0000-0000-4000-8000-000000000001"
WIRE = "20261120T120000Z-abcd1234"
SONNET, HAIKU = "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def ts(second):
    return (NOON + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))


def row(second, **fields):
    """A row of a transcript of Claude Code's."""
    head = {"isSidechain": False, "cwd": "/w", "sessionId": AGENTS, "version": "2.1.330", "timestamp": ts(second)}
    return head | {"uuid": f"u{second}"} | fields


def answer(second, name, tokens, output, model=SONNET):
    """A response in a transcript."""
    usage = {"input_tokens": tokens, "cache_read_input_tokens": 5000, "output_tokens": output}
    message = {
        "id": name,
        "model": model,
        "role": "assistant",
        "content": [],
        "stop_reason": "end_turn",
        "usage": usage,
    }
    return row(second, type="assistant", requestId=f"req_{name}", message=message)


def passed(second, name, tokens, output, model=SONNET, cached=5000):
    """A response on the wire, two seconds after its request."""
    usage = {"input": tokens, "output": output, "cache_read": cached}
    data = {"model": model, "usage": usage, "latency_ms": 2000, "response_id": name}
    return {"session_id": WIRE, "seq": second, "type": "llm.response", "ts": ts(second), "data": data}


TITLE = passed(1, "msg_title", 30, 5, HAIKU, 0)
COMPACTION = passed(30, "msg_compaction", 400, 60)


@pytest.fixture
def record(home):
    """Write the transcript of a session, and what passed on the wire; return both paths."""

    def write_both(*on_wire, of="claude-code", compacted=False):
        question = row(0, type="user", message={"role": "user", "content": "do it"})
        rows = [question, answer(4, "msg_a", 10, 98), answer(9, "msg_b", 20, 50)]
        if compacted:
            rows[:0] = [row(0, type="api-request", params={"model": SONNET})]
            after = {"inputTokens": 430, "outputTokens": 208, "cacheReadInputTokens": 15_000}
            rows += [row(31, type="system", subtype="compact_boundary", compactMetadata={"preTokens": 5000})]
            rows += [row(32, type="cost-state", modelUsage={SONNET: after})]
        log = home / f".claude/projects/-w/{AGENTS}.jsonl"
        write(log, rows)
        start = {"v": 1, "wire": of, "provider": "anthropic"}
        start = {"session_id": WIRE, "seq": 0, "type": "session.start", "ts": ts(-1), "data": start}
        wire = home / f".local/state/sessionlog/sessions/{WIRE}.jsonl"
        if on_wire:
            write(wire, [start, *on_wire])
        return log, wire

    return write_both


def test_a_run_without_requests_has_none(cli, record):
    """Its session is listed, and no request of the audit."""
    record({"session_id": WIRE, "seq": 1, "type": "session.end", "ts": ts(2), "data": {"status": "success"}})
    code, out, _ = cli("audit", WIRE, "--json")
    found = json.loads(out)
    assert (code, found["rows"], found["requests"]["wire"]) == (0, [], 0)
    assert found["conclusion"] == "no request to a model passed on the wire"


def test_what_is_equal_exits_0(cli, record):
    """Nothing differs, and the last sentence says so."""
    record(passed(5, "msg_a", 10, 98), passed(10, "msg_b", 20, 50))
    ran = cli("audit", "7d3c", "--tz", "UTC")
    assert (ran.code, ran.err) == (0, "")
    assert "2 requests, 0 with a difference" in ran.out
    assert ran.out.splitlines()[-1] == "the log of claude-code has every request that passed on the wire"


def test_it_names_exactly_what_the_agent_does_not_log(cli, record):
    """Titles and compactions: each is a row, and the last sentence sums them up."""
    record(TITLE, passed(5, "msg_a", 10, 98), passed(10, "msg_b", 20, 50), COMPACTION, compacted=True)
    ran = cli("audit", "7d3c", "--json", "--tz", "UTC")
    assert ran.code == 1
    missing = [row for row in ran.json["rows"] if row["differences"]]
    assert [(row["time"], row["model"], row["differences"]) for row in missing] == [
        ("2026-11-20T12:00:01.000000Z", HAIKU, ["only on the wire"]),
        ("2026-11-20T12:00:30.000000Z", SONNET, ["only on the wire"]),
    ]
    summary = "the log of claude-code leaves out 2 of 4 requests: "
    assert ran.json["conclusion"] == f"{summary}1 of {HAIKU}, 1 of {SONNET}; it has a sum of such"


def test_each_counts_once(cli, record):
    """What the log has, also as a sum, and what it leaves out, in the agent's session; also in a part of its time."""
    record(TITLE, passed(5, "msg_a", 10, 98), passed(10, "msg_b", 20, 50), COMPACTION, compacted=True)
    for window in ((), ("--since", "2026-11-20T11:59:00Z", "--until", "2026-11-20T12:01:00Z")):
        [row] = cli("usage", "--by", "session", "--json", *window).json["rows"]
        assert (row["session"], row["requests"], row["input_tokens"], row["output_tokens"]) == (AGENTS, 4, 460, 213)
    assert [row["session"] for row in cli("sessions", "--json").json["rows"]] == [AGENTS]


def test_nothing_is_listed_twice(cli, record):
    """Where the log has every request, the session on the wire is not listed."""
    record(passed(5, "msg_a", 10, 98), passed(10, "msg_b", 20, 50))
    assert [row["session"] for row in cli("sessions", "--json").json["rows"]] == [AGENTS]
    assert [row["session"] for row in cli("usage", "--by", "session", "--json").json["rows"]] == [AGENTS]


def test_what_is_only_on_the_wire_is_of_one_session(cli, record):
    """Of two that passed on one wire, that in which most of the requests are; the wire's audit has both."""
    log, _ = record(
        TITLE, *(passed(second, name, 10, 98) for second, name in ((5, "msg_a"), (6, "msg_b"), (7, "msg_c")))
    )
    other = AGENTS.replace("7d3c", "9e4d")
    write(log.with_name(f"{other}.jsonl"), [answer(7, "msg_c", 10, 98) | {"sessionId": other}])
    wires = [cli("audit", name, "--json").json["requests"]["wire"] for name in (AGENTS, other, WIRE)]
    assert wires == [3, 1, 4]


def test_counts_that_differ_are_named(cli, record):
    """The wire's, then the log's."""
    record(passed(5, "msg_a", 10, 120), passed(10, "msg_b", 20, 50))
    ran = cli("audit", AGENTS, "--tz", "UTC")
    assert ran.code == 1
    assert "20 Nov 12:00:05" in ran.out
    assert "id  output 120 ≠ 98" in ran.out


@pytest.mark.parametrize("name", [AGENTS, WIRE, "7d3c", "abcd1234", 0, 1])
def test_either_session_may_be_named(cli, record, name):
    """By its id, the beginning or the end of it, or its log."""
    paths = record(TITLE, passed(5, "msg_a", 10, 98), passed(10, "msg_b", 20, 50))
    ran = cli("audit", paths[name] if isinstance(name, int) else name, "--json")
    assert (ran.json["session"], ran.json["requests"]) == (AGENTS, {"wire": 3, "log": 2, "otel": 0})


def test_only_the_time_on_the_wire_is_compared(cli, record):
    """What the agent asked before or after is counted in a sentence."""
    log, _ = record(passed(5, "msg_a", 10, 98), passed(10, "msg_b", 20, 50))
    with log.open("a") as file:
        file.write(json.dumps(answer(5000, "msg_later", 7, 7)) + "\n")
    ran = cli("audit", "7d3c")
    assert ran.code == 0
    assert "1 request of the log are of times when nothing was recorded on the wire" in ran.out


def test_a_log_that_is_not_known_has_nothing(cli, record):
    """Then all requests are only on the wire."""
    record(passed(5, "msg_x", 1, 1), of="codex")
    ran = cli("audit", WIRE)
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "no agent's log has any of the 1 request on the wire")


def test_there_must_be_something_to_compare(cli, record):
    """A session that did not pass on the wire names the next step."""
    record()
    ran = cli("audit", "7d3c")
    assert (ran.code, ran.out) == (3, "")
    assert "`sessionlog run`" in ran.err


def test_an_unknown_session_exits_3(cli, record):
    """With the command that lists them."""
    record()
    ran = cli("audit", "nowhere")
    assert (ran.code, ran.out) == (3, "")
    assert "nowhere: no such file, and no session has this id; `sessionlog sessions` lists them" in ran.err


def test_names_of_logs_do_not_act_on_the_terminal(cli, record):
    """Neither a session's nor a model's, in the title, the table and the last sentence."""
    _, wire = record(passed(5, "msg_a", 10, 98, "\x1b[31mred"), passed(6, "msg_x", 1, 1, "\x1b]0;title\x07"))
    named = wire.with_name("\x1b[2Jgone.jsonl")
    wire.rename(named)
    for log in (named, "7d3c"):
        ran = cli("audit", log)
        assert ran.code == 1
        assert "\x1b" not in ran.out + ran.err
        assert "\x07" not in ran.out + ran.err


def test_clocks_that_differ_hide_no_pair(cli, record):
    """A row that was paired by its id is compared, however far its time is from the wire's."""
    log, _ = record(passed(5, "msg_a", 10, 98), passed(10, "msg_b", 20, 50), passed(100, "msg_c", 7, 7))
    with log.open("a") as file:
        file.write(json.dumps(answer(200, "msg_c", 7, 7)) + "\n")
    ran = cli("audit", "7d3c", "--json")
    assert (ran.code, ran.json["requests"], ran.json["not_compared"]) == (0, {"wire": 3, "log": 3, "otel": 0}, 0)


def test_the_export_is_compared_too(cli, record, home, monkeypatch):
    """What the agent exports by OTel of the same session, request by request."""
    record(TITLE, passed(5, "msg_a", 10, 98), passed(10, "msg_b", 20, 50))
    export = home / "otel.jsonl"
    write(export, [exported(1, 30, 5, 0, HAIKU), exported(5, 10, 98, 5000), exported(60, 1, 1, 0)])
    monkeypatch.setenv("SESSIONLOG_OTEL_PATH", str(export))
    ran = cli("audit", "7d3c", "--json")
    assert ran.json["requests"] == {"wire": 3, "log": 2, "otel": 2}
    assert [row["differences"] for row in ran.json["rows"]] == [["only on the wire"], [], ["not in OTel"]]
    assert ran.json["totals"]["otel_output_tokens"] == 103


def exported(second, tokens, output, cached, model=SONNET):
    """A request as Claude Code exports it."""
    fields = {"event.name": "api_request", "session.id": AGENTS, "model": model, "input_tokens": tokens}
    fields |= {"output_tokens": output, "cache_read_tokens": cached, "cache_creation_tokens": 0, "duration_ms": 2000}
    attributes = [{"key": key, "value": {"stringValue": str(value)}} for key, value in fields.items()]
    nanoseconds = str(int((NOON + timedelta(seconds=second)).timestamp()) * 10**9)
    log = {"timeUnixNano": nanoseconds, "body": {"stringValue": "claude_code.api_request"}, "attributes": attributes}
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "claude-code"}}]}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [log]}]}]}


def test_a_log_that_exists_is_not_denied(cli, record, tmp_path):
    """A link to it names its session; elsewhere, or without a session, the message says what to do."""
    log, wire = record(passed(5, "msg_a", 10, 98), passed(10, "msg_b", 20, 50))
    link = tmp_path / "link.jsonl"
    link.symlink_to(log)
    assert cli("audit", link, "--json").json["session"] == AGENTS
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(wire.read_bytes())
    ran = cli("audit", copy)
    assert (ran.code, "no such file" in ran.err) == (3, False)
    assert f"{copy}: this file is in no folder where agents write (`sessionlog sources`)" in ran.err
    empty = wire.with_name("empty.jsonl")
    empty.write_text("")
    ran = cli("audit", empty)
    assert (ran.code, "no such file" in ran.err) == (3, False)
    assert f"{log.parent}: this is a folder; name a log in it" in cli("audit", log.parent).err
    assert "no such file, and no session has this id" in cli("audit", tmp_path / "none.jsonl").err
