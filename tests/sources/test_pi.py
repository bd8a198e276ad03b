"""pi and its descendants: one header for a family, forks that copy, trees of which every branch was billed."""

import json
import os
import random

import pytest

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.times import parse_time
from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.pi import SOURCE, session_of
from sessionlog.sources.values import read_time
from tests.sources.homes import build_home, cases_of, environment

PRICES = PriceBook.load()
SID = "01a0a000-1111-7111-8111-111111111111"
NAME = f"2026-11-10T10-00-00-000Z_{SID}"
HEADER = {"type": "session", "version": 3, "id": SID, "timestamp": "2026-11-10T10:00:00.000Z", "cwd": "/w/api"}


def row(kind, clock, **fields):
    """One entry; the clock is seconds after ten."""
    return {
        "type": kind,
        "id": f"e{clock}",
        "parentId": None,
        "timestamp": f"2026-11-10T10:00:{clock:02d}.000Z",
        **fields,
    }


def answer(clock, **fields):
    """An answer of one token each way unless told otherwise."""
    usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0}
    message = {"role": "assistant", "content": [], "provider": "p", "model": "m", "usage": usage, "stopReason": "stop"}
    return row("message", clock, message=message | fields)


def user(clock, text):
    """A question."""
    return row("message", clock, message={"role": "user", "content": text})


@pytest.fixture
def log(tmp_path):
    """Writes rows as a session and returns its path."""

    def write(*rows, name=f"{NAME}.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(item) + "\n" for item in (HEADER, *rows)))
        os.utime(path, (1_700_000_000, 1_700_000_000))
        return str(path)

    return write


def only(path):
    """The one session of a log."""
    [session] = SOURCE.scan(path, None).sessions
    return session


def told(path):
    """Its events, without the problems."""
    return [item for item in SOURCE.read(path, None) if not isinstance(item, Problem)]


# --- where


def test_own_folder_comes_first_then_the_descendants():
    """Without variables: pi's, then those of the agents that share its layout."""
    names = list(dict.fromkeys(place.split("/")[2] for place in SOURCE.locate({"HOME": "/h"})))
    assert names == [".pi", ".omp", ".senpi", ".kimchi", ".prime"]


def test_variables_take_the_place_of_the_own_folder():
    """An agent that was moved does not write to its old home; a tilde is the home given."""
    places = SOURCE.locate({"HOME": "/h", "PI_CODING_AGENT_DIR": "~/x", "PI_CODING_AGENT_SESSION_DIR": "/s"})
    assert list(places)[:3] == ["/h/x/sessions", "/s", "/h/.omp/agent/sessions"]


def test_a_place_that_is_not_there_holds_nothing(tmp_path):
    """Most of the places do not exist on most machines."""
    assert list(SOURCE.list_logs(str(tmp_path / "none"))) == []


def test_streams_of_sub_agents_are_not_listed(tmp_path):
    """What an extension keeps in `subagent-artifacts` are streams of events, not sessions."""
    for name in ("--w--/b.jsonl", "--w--/a.jsonl.zst", "--w--/subagent-artifacts/c.jsonl", "--w--/notes.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    found = [path[len(str(tmp_path)) :] for path in SOURCE.list_logs(str(tmp_path))]
    assert found == ["/--w--/a.jsonl.zst", "/--w--/b.jsonl"]


@pytest.mark.parametrize(
    ("path", "session"),
    [
        (f"/s/--w--/{NAME}.jsonl", (SID, False)),
        (f"/s/--w--/{NAME}.jsonl.zst", (SID, False)),
        ("/s/--w--/my_session.jsonl", ("my_session", False)),
        (f"/s/--w--/{NAME}/0-Look.jsonl", (SID, True)),
        (f"/s/--w--/{NAME}/0-Look/1-Deeper.jsonl", (SID, True)),
    ],
)
def test_a_session_is_named_by_its_file_and_a_sub_agent_by_its_folder(path, session):
    """The id in a file's name is the header's; sub-agents lie in a folder named like their parent."""
    assert session_of(path) == session


# --- whose


@pytest.mark.parametrize("below", ["0-Look", "0-Look/1-Deeper"])
def test_a_sub_agents_log_does_not_claim_its_session(below, log, tmp_path):
    """It is named by its place below its parent, and read by that name as by none."""
    (tmp_path / NAME / below).parent.mkdir(parents=True)
    path = log(user(1, "look"), answer(2), name=f"{NAME}/{below}.jsonl")
    assert SOURCE.name_sessions(path) == [f"{SID}/{below}"]
    whole = list(SOURCE.read(path, None))
    assert {event.session_id for event in whole} == {SID}
    assert list(SOURCE.read(path, f"{SID}/{below}")) == whole


def test_a_session_is_read_with_its_sub_agents_logs(log, tmp_path):
    """What they answered belongs to it, beside the conversation; what their tools asked for, too."""
    (tmp_path / NAME).mkdir()
    asked = row("message", 4, message={"role": "toolResult", "toolName": "oracle", "usage": {"input": 5, "output": 5}})
    log(user(1, "look"), answer(3), asked, answer(5), name=f"{NAME}/0-Look.jsonl")
    path = log(user(1, "x"), answer(2), answer(7))
    assert list(SOURCE.subagent_logs(path)) == [str(tmp_path / NAME / "0-Look.jsonl")]
    agents = [event.data.get("agent") for event in told(path) if event.type == "llm.response"]
    assert agents == [None, "sub-agent", "oracle", "sub-agent", None]


@pytest.mark.parametrize(
    "head",
    [
        b'{"type":"session","version":3,"id":"x","timestamp":"2026-11-10T10:00:00Z","cwd":"/w"}\n',
        b'\xef\xbb\xbf{"cwd": "/w", "timestamp": "2026-11-10T10:00:00Z", "id": "x", "type": "session"}\r\n{"torn',
        b'{"type":"title","title":"t"}\n{"type":"session","version":3,"id":"x","timestamp":1794304800000}\n',
    ],
)
def test_a_header_is_recognised(head):
    """First or after a title, spaced or not, the beginning of the next row cut or not."""
    assert SOURCE.recognises("/tmp/anything.jsonl", head)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\x00" * 100,
        b"SQLite format 3\x00",
        b'{"session_id":"s","seq":0,"type":"session.start","ts":"2026-11-10T10:00:00Z","data":{"v":1}}\n',
        b'{"type":"session_meta","payload":{"id":"x"},"timestamp":"2026-11-10T10:00:00Z"}\n',
        b'{"type":"user","sessionId":"x","cwd":"/w","timestamp":"2026-11-10T10:00:00Z","message":{"role":"user"}}\n',
        b'{"type":"session","version":4,"id":"x","timestamp":"2026-11-10T10:00:00Z","cwd":"/w"}\n',
    ],
)
def test_other_files_are_not(head):
    """Other agents' logs, and OpenClaw's, which begin alike but are version 4."""
    assert not SOURCE.recognises("/tmp/anything.jsonl", head)


def test_the_folder_decides_where_the_rows_do_not():
    """OpenClaw's logs lie under agents/<id>/sessions, pi's never do."""
    head = json.dumps(HEADER).encode() + b"\n"
    assert not SOURCE.recognises("/h/.openclaw/agents/main/sessions/x.jsonl", head)
    assert SOURCE.recognises(f"/h/.pi/agent/sessions/--w--/{NAME}.jsonl", head)


# --- numbers


@pytest.mark.parametrize(
    ("value", "time"),
    [
        ("2026-11-10T10:00:00.000Z", "2026-11-10T10:00:00Z"),
        (1794304800, "2026-11-10T10:00:00Z"),
        (1794304800.5, "2026-11-10T10:00:00.5Z"),
        (1794304800000, "2026-11-10T10:00:00Z"),
        (1794304800000000, "2026-11-10T10:00:00Z"),
        (1794304800000000000, "2026-11-10T10:00:00Z"),
        (True, None),
        (-1, None),
        (None, None),
        (float("inf"), None),
        ([], None),
    ],
)
def test_times_are_told_by_their_magnitude(value, time):
    """Seconds, milli-, micro- and nanoseconds since 1970, or RFC 3339."""
    assert read_time(value) == (parse_time(time) if time else None)


@pytest.mark.parametrize(("total", "nano"), [(0.2, 200_000_000), (0, None), (-1, None), (None, None)])
def test_a_cost_counts_only_above_zero(log, total, nano):
    """0 is what the agents write where they know no price."""
    [record] = only(log(answer(1, usage={"input": 1, "cost": {"total": total}}))).records
    assert record.cost_nano == nano


def test_the_stored_time_is_the_end_and_the_message_s_time_the_beginning(log):
    """The latency lies between them; without a beginning it is the wait since the question."""
    begun = answer(5, timestamp=parse_time("2026-11-10T10:00:03Z") // 1_000_000)
    first, second = only(log(user(1, "x"), begun, user(10, "y"), answer(14))).records
    assert (first.latency_ms, first.time_ns) == (2000.0, parse_time("2026-11-10T10:00:05Z"))
    assert second.latency_ms == 4000.0


def test_the_served_name_is_kept(log):
    """`responseModel` is what the answer calls itself."""
    [record] = only(log(answer(1, responseModel="m-2026"))).records
    assert (record.model, record.response_model) == ("m", "m-2026")


def test_a_response_without_any_name_is_named_by_its_place(log):
    """Two equal rows without ids and times are two responses."""
    bare = {"type": "message", "message": {"role": "assistant", "usage": {"input": 1, "output": 1}}}
    keys = [record.key for record in only(log(bare, bare)).records]
    assert len(set(keys)) == 2


def test_a_fork_began_when_it_was_forked(log):
    """Copied entries name a fork without a prompt of its own, but not its times, its turns or how it ended."""
    header = HEADER | {"timestamp": "2026-11-10T10:00:30.000Z", "parentSession": f"/s/{NAME}.jsonl"}
    path = log(user(1, "first"), answer(2))
    with open(path, "w") as file:
        file.writelines(json.dumps(item) + "\n" for item in (header, user(1, "first"), answer(2)))
    fork = only(path)
    assert (fork.parent, fork.prompt, fork.status, fork.turns) == (SID, "first", None, 0)
    assert fork.start_ns == fork.last_ns == parse_time("2026-11-10T10:00:30Z")
    with open(path, "a") as file:
        file.writelines(json.dumps(item) + "\n" for item in (user(40, "second"), answer(42)))
    fork = only(path)
    assert (fork.prompt, fork.status, fork.turns, len(fork.records)) == ("second", "success", 1, 2)
    asked = [event.data["messages"] for event in told(path) if event.type == "llm.request"]
    assert [[m.get("inherited") for m in messages if m["role"] == "user"] for messages in asked] == [[True], [None]]


# --- replay


def test_a_turn_is_told_in_order(log):
    """Question, answer with its calls, the result with its error, the answer after it, the end."""
    call = {"type": "toolCall", "id": "t1", "name": "bash", "arguments": {"command": "false"}}
    result = {
        "role": "toolResult",
        "toolCallId": "t1",
        "toolName": "bash",
        "isError": True,
        "content": [{"type": "text", "text": "no"}],
    }
    path = log(
        user(1, "go"), answer(3, content=[call], stopReason="toolUse"), row("message", 4, message=result), answer(6)
    )
    events = told(path)
    assert [event.type for event in events] == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    assert events[0].data["work_dir"] == "/w/api"
    assert events[1].data["messages"] == [{"role": "user", "content": "go"}]
    assert events[2].data["tool_calls"] == [{"id": "t1", "name": "bash", "arguments": {"command": "false"}}]
    assert (events[3].data["input"], events[3].data["error"]) == ({"command": "false"}, "no")
    assert events[-1].data["status"] == "success"


def test_shell_commands_and_what_programs_add_are_messages(log):
    """What the user ran by hand, or an extension or a summary adds, is no prompt."""
    shell = {"role": "bashExecution", "command": "ls", "output": "a", "exitCode": 2}
    path = log(
        row("message", 1, message=shell),
        row("custom_message", 2, content="context", customType="x"),
        row("branch_summary", 3, summary="tried"),
        row("message", 4, message={"role": "custom", "content": "more"}),
        answer(5),
    )
    said = [(m["role"], m["content"]) for m in told(path)[1].data["messages"]]
    assert said == [
        ("system", "! ls\na\n(exit code 2)"),
        ("system", "context"),
        ("system", "(of the branch that was left) tried"),
        ("system", "more"),
    ]


def test_a_compaction_says_what_was_kept(log):
    """Its summary and its size; what was said before is not sent again."""
    events = told(log(user(1, "x"), answer(2), row("compaction", 3, summary="sum", tokensBefore=900), answer(4)))
    [compaction] = [event for event in events if event.type == "compaction.end"]
    assert (compaction.data["summary"], compaction.data["tokens_before"]) == ("sum", 900)


def test_pictures_are_parts_of_messages(log):
    """As in logs of our own: base64 with its type, beside the words."""
    picture = {
        "role": "user",
        "content": [{"type": "text", "text": "see"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}],
    }
    [_, asked, *_] = told(log(row("message", 1, message=picture), answer(2)))
    assert asked.data["messages"][0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "media_type": "image/png", "data": "AAAA"},
    ]


def test_the_system_prompt_is_a_message_of_sections(log):
    """It is the session's, and no message of the conversation."""
    sections = {"preamble": "You help.", "tools": "read, bash", "rules": ""}
    path = log(row("message", 1, message={"role": "system", "content": "", "sections": sections}), user(2, "x"))
    start, asked = told(path)
    assert start.data["system_prompt"] == "You help.\n\nread, bash"
    assert [message["content"] for message in asked.data["messages"]] == ["x"]


def test_a_compaction_at_the_end_leaves_the_outcome(log):
    """The session has succeeded, and nothing is asked since."""
    assert only(log(user(1, "x"), answer(2), row("compaction", 3, summary="sum"))).status == "success"


def test_an_open_question_has_no_end(log):
    """No outcome is made up where the log tells none; what was asked is told."""
    last = told(log(user(1, "x"), answer(2), user(3, "y")))[-1]
    assert (last.type, [m["content"] for m in last.data["messages"] if m["role"] == "user"]) == ("llm.request", ["y"])


# --- laws


def dump(*scans):
    """What a book makes of scans."""
    book = Book(PRICES)
    for scan in scans:
        book.add_scan(scan)
    return book.query("SELECT key, input, output, cache_read, latency_ms FROM records ORDER BY key", {}), book.query(
        "SELECT session, start_ns, last_ns, end_status, prompt, parent FROM sessions", {}
    )


@pytest.mark.parametrize("step", [61, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", ["pi/plain-turn", "pi/branches", "pi/odd-bytes", "pi/version-1"])
def test_a_scan_goes_on_at_any_byte(case, step, tmp_path):
    """The beginning and the rest, put together, are the whole."""
    home = build_home(case, tmp_path)
    [path] = [path for place in SOURCE.locate(environment(case, home)) for path in SOURCE.list_logs(place)]
    with open(path, "rb") as file:
        content = file.read()
    whole = dump(SOURCE.scan(path, None))
    for cut in range(0, len(content), step):
        with open(path, "wb") as file:
            file.write(content[:cut])
        begun = SOURCE.scan(path, None)
        with open(path, "wb") as file:
            file.write(content)
        rest = SOURCE.scan(path, begun.resume)
        assert dump(*([begun] if begun.resume else []), rest) == whole, cut  # else the log is read whole again


@pytest.mark.parametrize("case", cases_of("pi"))
def test_any_json_in_any_place_raises_nothing(case, tmp_path):
    """Every value of every row, replaced by null, a list, a text, a number."""
    home = build_home(case, tmp_path)
    chance = random.Random(case)
    for place in SOURCE.locate(environment(case, home)):
        for path in SOURCE.list_logs(place):
            if not path.endswith(".jsonl"):
                continue
            rows = [json.loads(line) for line in _lines(path)]
            for _ in range(25):
                broken = json.loads(json.dumps(rows))
                _break(broken, chance)
                with open(path, "w") as file:
                    file.writelines(json.dumps(item) + "\n" for item in broken)
                SOURCE.scan(path, None)
                list(SOURCE.read(path, None))


def _lines(path):
    with open(path, "rb") as file:
        for line in file:
            try:
                json.loads(line)
            except ValueError:
                continue
            yield line


def _break(value, chance):
    """Go down to a random place and put something else there."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = chance.choice(keys)
        if not isinstance(value[key], dict | list) or chance.random() < 0.2:
            value[key] = chance.choice([None, [], {}, "x", -1, 1.5, True, [None], {"type": None}, 10**30])
            return
        value = value[key]


def test_what_cannot_be_opened_raises(tmp_path):
    """A bad call, not bad data."""
    with pytest.raises(LogNotReadable):
        SOURCE.scan(str(tmp_path / "none.jsonl"), None)
    os.mkdir(tmp_path / "x.jsonl")
    with pytest.raises(LogNotReadable):
        list(SOURCE.read(str(tmp_path / "x.jsonl"), None))


@pytest.mark.parametrize("odd", [9.9e10, 2**63, 10**400])
def test_a_stamp_beyond_64_bits_is_none(odd):
    """A number that gives no instant of 64 bits is no time."""
    assert read_time(odd) is None
