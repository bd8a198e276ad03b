"""OpenClaw: one session in many stores, a database that is another program's, turns that other agents tell better."""

import hashlib
import json
import os
import random
import sqlite3

import pytest

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.times import parse_time
from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.reader import database
from sessionlog.sources import pi
from sessionlog.sources.openclaw import SOURCE
from tests.sources.homes import build_home, cases_of, environment

A, B = "7d0c2a8e-1111-4111-8111-111111111111", "7d0c2a8e-2222-4222-8222-222222222222"
SCHEMA = "CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER, PRIMARY KEY (session_id, seq))"


def header(session=A, **fields):
    """The first row of a session."""
    return {
        "type": "session",
        "version": 4,
        "id": session,
        "timestamp": "2026-11-10T10:00:00.000Z",
        "cwd": "/w",
    } | fields


def answer(clock, **fields):
    """An answer of one token each way unless told otherwise; the clock is seconds after ten."""
    usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0}
    time = parse_time(f"2026-11-10T10:00:{clock:02d}Z") // 1_000_000
    message = {
        "role": "assistant",
        "content": [],
        "provider": "p",
        "model": "m",
        "usage": usage,
        "stopReason": "stop",
        "timestamp": time,
    }
    return {
        "type": "message",
        "id": f"e{clock}",
        "parentId": None,
        "timestamp": f"2026-11-10T10:00:{clock:02d}.000Z",
        "message": message | fields,
    }


@pytest.fixture
def folder(tmp_path):
    """The sessions of an agent."""
    path = tmp_path / ".openclaw/agents/main/sessions"
    path.mkdir(parents=True)
    return path


def write(path, *rows):
    """Write rows as a log; returns its path."""
    path.write_text("".join(json.dumps(item) + "\n" for item in rows))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return str(path)


@pytest.fixture
def agent(tmp_path):
    """Makes an agent's database of sessions; returns its path."""

    def make(*sessions, schema=SCHEMA, wal=False):
        path = tmp_path / "openclaw-agent.sqlite"
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA journal_mode = {'WAL' if wal else 'DELETE'}")
        connection.executescript(schema)
        insert(connection, *sessions)
        connection.close()
        return str(path)

    return make


def insert(connection, *sessions):
    """Add sessions, each an id and its rows."""
    for session, *rows in sessions:
        for seq, item in enumerate(rows):
            connection.execute(
                "INSERT INTO transcript_events VALUES (?, ?, ?, 1794304800000)", (session, seq, json.dumps(item))
            )
    connection.commit()


def traces(path):
    """Everything that reading could change: the files around, their bytes, sizes and times."""
    folder = os.path.dirname(path)
    found = {}
    for name in sorted(os.listdir(folder)):
        status = os.stat(os.path.join(folder, name))
        with open(os.path.join(folder, name), "rb") as file:
            found[name] = status.st_size, status.st_mtime_ns, hashlib.sha256(file.read()).hexdigest()
    return found


def read_all(path):
    """Ask everything that can be asked of a log."""
    found = SOURCE.scan(path, None)
    for session in SOURCE.name_sessions(path):
        list(SOURCE.read(path, session))
    with open(path, "rb") as file:
        assert SOURCE.recognises(path, file.read(1 << 16))
    return found


# --- where


def test_former_names_and_profiles_have_folders():
    """In order of preference, the present name first."""
    assert list(SOURCE.locate({"HOME": "/none"})) == [
        f"/none/{name}/sessions" for name in (".openclaw", ".clawdbot", ".moltbot", ".moldbot")
    ]


def test_only_where_logs_are_is_looked_at(tmp_path):
    """Workspaces, checkpoints, traces, indices and the logs of Codex below an agent are left alone."""
    names = [
        "agents/main/agent/openclaw-agent.sqlite", "agents/main/sessions/a.jsonl",
        "agents/main/sessions/a.jsonl.deleted.2026-11-11T00-00-00.000Z",
        "agents/main/sessions/a.jsonl.reset.2026-11-11T00-00-00.000Z.0123.zst",
        "agents/main/session-sqlite-import-archive/agent-main.a.imported-1794400000000", "sessions/old.jsonl",
    ]  # fmt: skip
    others = [
        "workspace/x.jsonl", "agents/main/agent/incognito-openclaw-agent.sqlite", "agents/main/sessions/sessions.json",
        "agents/main/agent/codex-home/sessions/rollout-x.jsonl", "agents/main/sessions/a.trajectory.jsonl",
        "agents/main/sessions/a.checkpoint.11111111-2222-4333-8444-555555555555.jsonl",
    ]  # fmt: skip
    for name in (*names, *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    places = SOURCE.locate({"HOME": "/none", "OPENCLAW_STATE_DIR": str(tmp_path)})
    found = [path[len(str(tmp_path)) + 1 :] for place in places for path in SOURCE.list_logs(place)]
    assert sorted(found) == sorted(names)
    assert list(SOURCE.list_logs(str(tmp_path / "agents/main/agent/codex-home"))) != []  # asked for by name


# --- whose


def test_its_rows_and_its_folders_are_recognised():
    """By what only OpenClaw writes, else by where the log lies; pi takes none of them."""
    old = json.dumps(header(version=3)).encode() + b"\n"
    mark = old + b'{"type":"custom","customType":"model-snapshot","data":{}}\n'
    for path, head in (
        ("/tmp/x.jsonl", json.dumps(header()).encode()), ("/tmp/x.jsonl", mark),
        ("/h/.openclaw/agents/main/sessions/x.jsonl", old), ("/tmp/x.jsonl.reset.2026-11-11T00-00-00.000Z", old),
    ):  # fmt: skip
        assert SOURCE.recognises(path, head)
        assert not pi.SOURCE.recognises(path, head)


def test_others_are_not_recognised(tmp_path):
    """Sessions of pi, checkpoints by name, other programs' databases."""
    old = json.dumps(header(version=3)).encode() + b"\n"
    assert not SOURCE.recognises("/tmp/x.jsonl", old)
    assert not SOURCE.recognises(
        "/tmp/x.checkpoint.11111111-2222-4333-8444-555555555555.jsonl", json.dumps(header()).encode()
    )
    path = tmp_path / "foreign.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE message (id TEXT, data TEXT)")
    connection.commit()
    connection.close()
    assert not SOURCE.recognises(str(path), path.read_bytes())


def test_a_database_is_recognised_however_late_it_names_its_table(tmp_path):
    """A schema of many tables does not fit into the beginning of the file."""
    path = tmp_path / "openclaw-agent.sqlite"
    connection = sqlite3.connect(path)
    for number in range(60):
        connection.execute(f"CREATE TABLE t{number} ({', '.join(f'column_{n} TEXT' for n in range(60))})")
    connection.execute(SCHEMA)
    connection.commit()
    connection.close()
    head = path.read_bytes()[: 1 << 16]
    assert b"transcript_events" not in head
    assert SOURCE.recognises(str(path), head)


# --- one session in many stores


def test_an_archive_belongs_to_the_session_in_its_header(folder):
    """The name of an imported file, or of a topic's, is not the session's."""
    assert SOURCE.name_sessions(write(folder / "agent-main.x.imported-1794400000000", header(B), answer(1))) == [B]
    assert SOURCE.name_sessions(write(folder / "y.jsonl.reset.2026-11-11T00-00-00.000Z", answer(1))) == ["y"]


def test_a_fork_in_the_same_database_counts_once(agent):
    """The copied row is told in both sessions and billed in one."""
    path = agent((A, header(A), answer(1)), (B, header(B, parentSession=A), answer(1), answer(2)))
    found = SOURCE.scan(path, None)
    book = Book(PriceBook.load())
    book.add_scan(found)
    assert [len(session.records) for session in found.sessions] == [1, 2]
    assert found.sessions[1].parent == A
    assert book.query("SELECT SUM(output) FROM records", {}) == [(2,)]


def test_one_session_of_a_database_is_read(agent):
    """The named one; without a name the first."""
    path = agent((A, header(A), answer(1)), (B, header(B), answer(2), answer(3)))
    assert SOURCE.name_sessions(path) == [A, B]
    counts = [sum(event.type == "llm.response" for event in SOURCE.read(path, name)) for name in (B, A, None, "none")]
    assert counts == [2, 1, 1, 0]


@pytest.mark.parametrize(("details", "duration"), [({"durationMs": 439}, 439.0), ({}, 2000.0), ("odd", 2000.0)])
def test_a_tools_time_is_what_it_measured(folder, details, duration):
    """Not the time between two rows, which stands for it where a tool measures none."""
    call = answer(1, content=[{"type": "toolCall", "id": "t", "name": "exec", "arguments": {}}], stopReason="toolUse")
    result = {"role": "toolResult", "toolCallId": "t", "toolName": "exec", "content": "x", "details": details}
    ended = {"type": "message", "id": "r", "timestamp": "2026-11-10T10:00:03.000Z", "message": result}
    path = write(folder / f"{A}.jsonl", header(), call, ended)
    [session] = SOURCE.scan(path, None).sessions
    assert [(tool.tool, tool.duration_ms, tool.finished) for tool in session.tools] == [("exec", duration, True)]
    [told] = [item.data for item in SOURCE.read(path, None) if item.type == "tool.call"]
    assert told["duration_ms"] == duration


def test_the_writes_of_an_hour_are_told_apart(folder):
    """They are a part of the cache writes."""
    usage = {"input": 1, "output": 1, "cacheWrite": 9, "cacheWrite1h": 4}
    [session] = SOURCE.scan(write(folder / f"{A}.jsonl", header(), answer(1, usage=usage)), None).sessions
    assert [(one.usage.cache_write, one.usage.cache_write_1h) for one in session.records] == [(9, 4)]


# --- told by others


@pytest.mark.parametrize(
    ("message", "entry", "superseded_by"),
    [
        ({"idempotencyKey": "codex-app-server:th-1:turn-2:assistant"}, {}, "codex:th-1"),
        ({"idempotencyKey": "cli-assistant:run"}, {}, ""),
        ({"api": "cli", "provider": "claude-cli"}, {"cliSessionIds": {"claude-cli": "cc"}}, "claude-code:cc"),
        ({}, {"cliSessionIds": {"claude-cli": "cc"}}, "claude-code:cc"),
        ({"api": "anthropic-messages"}, {"cliSessionIds": {"claude-cli": "cc"}}, ""),
        ({"provider": "codex-cli"}, {"cliSessionBindings": {"codex-cli": {"sessionId": "th"}}}, "codex:th"),
    ],
)
def test_other_agents_logs_tell_some_turns_better(folder, message, entry, superseded_by):
    """By the key of a mirrored turn, or by the index; what went to a provider directly is told here alone."""
    (folder / "sessions.json").write_text(json.dumps({"agent:main:main": {"sessionId": A} | entry}))
    [session] = SOURCE.scan(write(folder / f"{A}.jsonl", header(), answer(1, **message)), None).sessions
    assert [record.superseded_by for record in session.records] == [superseded_by]


def test_the_database_has_an_index_of_its_own(agent):
    """session_nodes holds what sessions.json held."""
    schema = f"{SCHEMA}; CREATE TABLE session_nodes (session_key TEXT, entry_json TEXT)"
    path = agent((A, header(), answer(1)), schema=schema)
    connection = sqlite3.connect(path)
    connection.execute(
        "INSERT INTO session_nodes VALUES ('k', ?)", (json.dumps({"sessionId": A, "claudeCliSessionId": "cc"}),)
    )
    connection.commit()
    connection.close()
    [session] = SOURCE.scan(path, None).sessions
    assert session.records[0].superseded_by == "claude-code:cc"


@pytest.mark.parametrize("value", [None, ["x"], {"claude-cli": 7}, {"claude-cli": {"sessionId": None}}])
def test_odd_indices_tell_nothing(folder, value):
    """Whatever an index holds where ids should be."""
    index = {"agent:main:main": {"sessionId": A, "cliSessionIds": value, "cliSessionBindings": value}, "x": value}
    (folder / "sessions.json").write_text(json.dumps(index))
    [session] = SOURCE.scan(write(folder / f"{A}.jsonl", header(), answer(1, api="cli")), None).sessions
    assert [record.superseded_by for record in session.records] == [""]


# --- a database that is another program's


def test_reading_a_closed_database_leaves_no_trace(agent):
    """No file is made, no byte and no time changed."""
    path = agent((A, header(), answer(1)))
    before = traces(path)
    assert len(read_all(path).sessions) == 1
    assert traces(path) == before


def test_reading_beside_a_writer_leaves_no_trace(agent):
    """What the writer has put into its write-ahead log is read, and its files stay as they were."""
    path = agent((A, header(), answer(1)), wal=True)
    writer = sqlite3.connect(path)
    insert(writer, (B, header(B), answer(2)))
    before = traces(path)
    assert {name.rpartition("-")[2] for name in before} >= {"wal", "shm"}
    assert [session.session_id for session in read_all(path).sessions] == [A, B]
    after = traces(path)
    shared = next(name for name in before if name.endswith("-shm"))  # memory, not a file: readers leave marks in it
    assert {n: v for n, v in after.items() if n != shared} == {n: v for n, v in before.items() if n != shared}
    writer.close()


def test_a_locked_database_is_reported(agent, monkeypatch):
    """A writer that lets nobody in: what was known of the log before is not replaced by nothing."""
    monkeypatch.setitem(database.open_database.__kwdefaults__, "wait_seconds", 0.0)
    path = agent((A, header(), answer(1)), wal=True)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA locking_mode = EXCLUSIVE")
    insert(writer, (B, header(B), answer(2)))
    for ask in (
        lambda: SOURCE.scan(path, None),
        lambda: list(SOURCE.read(path, A)),
        lambda: SOURCE.name_sessions(path),
    ):
        with pytest.raises(LogNotReadable):
            ask()
    writer.close()


def test_a_foreign_database_is_a_problem(agent):
    """Another program's database under the name of an agent's."""
    path = agent(schema="CREATE TABLE other (id TEXT)")
    found = SOURCE.scan(path, None)
    assert (found.sessions, [problem.kind for problem in found.problems.first]) == ((), ["bad_database"])
    assert [problem.kind for problem in SOURCE.read(path, None)] == ["bad_database"]


def test_a_truncated_database_gives_what_can_be_read(agent):
    """The rows before the damage count, and the damage is one problem."""
    path = agent(
        (A, header(), *(answer(n, content="x" * 3000) for n in range(50))), schema=f"PRAGMA page_size = 1024; {SCHEMA}"
    )
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(size * 3 // 4)
        file.write(b"\xff" * (size // 4))
    found = SOURCE.scan(path, None)
    assert [problem.kind for problem in found.problems.first] == ["bad_database"]
    assert 0 < len(found.sessions[0].records) < 50
    *_, answered, ended = SOURCE.read(path, A)  # what was read before the problem
    assert (answered.type, ended.type) == ("llm.response", "session.end")
    assert any(isinstance(item, Problem) for item in SOURCE.read(path, A))


def test_any_damage_to_a_database_is_told_or_harmless(agent):
    """Random bytes anywhere: refused as a whole, or read with problems."""
    path = agent((A, header(), *(answer(n) for n in range(20))))
    with open(path, "rb") as file:
        content = file.read()
    chance = random.Random(7)
    for _ in range(150):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 8)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with open(path, "wb") as file:
            file.write(damaged[: chance.choice([len(damaged), chance.randrange(len(damaged))])])
        try:
            SOURCE.scan(path, None)
            for name in (*SOURCE.name_sessions(path), None):
                list(SOURCE.read(path, name))
        except LogNotReadable:
            continue


# --- laws


@pytest.mark.parametrize("case", cases_of("openclaw"))
def test_scan_and_replay_agree(case, tmp_path):
    """The responses that are told carry the tokens and keys that are counted."""
    home = build_home(case, tmp_path)
    paths = [path for place in SOURCE.locate(environment(case, home)) for path in SOURCE.list_logs(place)]
    assert paths
    for path in paths:
        counted = {s.session_id: {(r.key, r.usage.total) for r in s.records} for s in SOURCE.scan(path, None).sessions}
        for name in SOURCE.name_sessions(path):
            told = [e.data for e in SOURCE.read(path, name) if not isinstance(e, Problem) and e.type == "llm.response"]
            sums = {(data["key"], data.get("usage", {}).get("total", 0)) for data in told if "key" in data}
            assert sums == counted.get(name, set())


def test_a_scan_goes_on_at_any_byte(folder):
    """The beginning and the rest, put together, are the whole; the session keeps its name."""
    path = write(
        folder / "topic.jsonl",
        header(),
        {"type": "model_change", "provider": "q", "modelId": "n"},
        answer(1, provider=None, model=None),
        answer(2),
    )
    with open(path, "rb") as file:
        content = file.read()
    for cut in range(0, len(content), 7):
        with open(path, "wb") as file:
            file.write(content[:cut])
        begun = SOURCE.scan(path, None)
        with open(path, "wb") as file:
            file.write(content)
        rest = SOURCE.scan(path, begun.resume)
        records = {
            r.key: (s.session_id, r.provider, r.model)
            for scan in (begun, rest)
            for s in scan.sessions
            for r in s.records
        }
        assert set(records.values()) == {(A, "q", "n"), (A, "p", "m")}, cut
