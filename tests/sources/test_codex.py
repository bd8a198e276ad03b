"""Codex CLI: where its logs are, whose rows they hold, what they amount to, and how they read."""

import json
import os

import pytest

from sessionlog.analytics.usage import aggregate_usage
from sessionlog.context.snapshots.logged import read_logged_session
from sessionlog.events.envelope import Event
from sessionlog.events.times import parse_time
from sessionlog.reader.unpack import open_unpacked
from sessionlog.sources.codex import SOURCE
from sessionlog.sources.protocol import HEAD
from sessionlog.sources.record import CopyRank
from sessionlog.testing import check_source
from tests.context.reports import xray
from tests.sources.homes import build_home, cases_of

A, B = "019a0000-0001-7000-8000-000000000001", "019a0000-0002-7000-8000-000000000002"
FORK = "019a0010-0005-7000-8000-000000000005"
list_logs, locate, name_sessions = SOURCE.list_logs, SOURCE.locate, SOURCE.name_sessions
read, recognises, scan = SOURCE.read, SOURCE.recognises, SOURCE.scan
VECTOR = ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens")


def at(clock):
    """A clock of the fixtures' day, in nanoseconds."""
    return parse_time(f"2026-11-10T{clock}Z")


def row(clock, type_, **payload):
    """One row."""
    return {"timestamp": f"2026-11-10T{clock}Z", "type": type_, "payload": payload}


def meta(id_=A, clock="10:00:00.000", **more):
    """A thread's session_meta."""
    return row(clock, "session_meta", id=id_, timestamp=f"2026-11-10T{clock}Z", cwd="/w/api", cli_version="1", **more)


def counted(clock, total, last=None, **more):
    """A counter."""
    info = {"total_token_usage": dict(zip(VECTOR, total, strict=True))}
    info["last_token_usage"] = dict(zip(VECTOR, last or total, strict=True))
    return row(clock, "event_msg", type="token_count", info=info, **more)


def write(path, *rows):
    """Write a log of long ago; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item, separators=(",", ":")) + "\n" for item in rows))
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return str(path)


def session_of(path):
    """The one session of a log."""
    [session] = scan(str(path), None).sessions
    return session


def rollout(folder, *rows):
    """Write one rollout and scan it."""
    return session_of(write(folder / f"rollout-2026-11-10T10-00-00-{A}.jsonl", *rows))


def only(home, part):
    """The one log of a home whose name holds this."""
    [path] = [path for path in list_logs(str(home)) if part in path]
    return path


@pytest.fixture
def home(request, tmp_path):
    """The home of a case."""
    return build_home(f"codex/{request.param}", tmp_path)


def test_the_home_is_where_the_environment_says(tmp_path):
    """CODEX_HOME, else ~/.codex, and the homes of OpenClaw's agents."""
    claw = tmp_path / "claw/agents/a/agent/codex-home"
    claw.mkdir(parents=True)
    places = list(locate({"HOME": "/h", "CODEX_HOME": "/c", "OPENCLAW_DIR": str(tmp_path / "claw")}))
    assert places[:3] == ["/c/sessions", "/c/archived_sessions", "/c"]
    assert str(claw / "sessions") in places
    assert next(iter(locate({"HOME": "/h"}))) == "/h/.codex/sessions"


@pytest.mark.parametrize("name", ["OPENCLAW_DIR", "OPENCLAW_STATE_DIR", "HOME"])
def test_openclaw_may_have_several_homes(name, tmp_path):
    """A list of them, a state folder, profiles beside the first one."""
    claw = tmp_path / ".openclaw-work/agents/a/agent/codex-home"
    claw.mkdir(parents=True)
    given = {"OPENCLAW_DIR": f"/none, {tmp_path}/.openclaw-work", "OPENCLAW_STATE_DIR": "~/.openclaw-work"}
    env = {"HOME": str(tmp_path)} | ({name: given[name]} if name in given else {})
    assert str(claw / "sessions") in list(locate(env))


@pytest.mark.parametrize("home", ["exec-streams"], indirect=True)
def test_a_home_lists_rollouts_and_the_streams_beside_them(home):
    """Not the prompts' history, not what is below other folders, not what is no log."""
    names = [os.path.basename(path) for path in list_logs(str(home / ".codex"))]
    assert names == [f"rollout-2026-11-10T10-00-00-{A}.jsonl", "run.jsonl", "told.jsonl"]
    assert list(list_logs(str(home / ".codex/run.jsonl"))) == [str(home / ".codex/run.jsonl")]


@pytest.mark.parametrize("case", cases_of("codex"))
def test_its_own_logs_are_recognised(case, tmp_path):
    """Each listed log, by its first bytes."""
    for path in list_logs(str(build_home(case, tmp_path))):
        with open_unpacked(path)[0] as file:
            assert recognises(path, file.read(HEAD)), path


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"not JSON\n",
        b'{"type":"assistant","timestamp":"2026-11-10T10:00:00Z","message":{"usage":{}}}\n',
        b'{"session_id":"a","seq":0,"type":"session.start","ts":"2026-11-10T10:00:00Z","data":{}}\n',
        b'{"type":"session","version":3,"id":"a","timestamp":"2026-11-10T10:00:00Z","cwd":"/w"}\n',
        b'{"type":"message","id":"a1","timestamp":"2026-11-10T10:00:00Z","message":{"role":"user"}}\n',
        b'{"timestamp":"2026-11-10T10:00:00Z","type":"user","payload":{}}\n',
        b'{"id":"a","timestamp":"2026-11-10T10:00:00Z"}\n',
    ],
)
def test_other_logs_are_not_recognised(head):
    """Neither other agents' nor nobody's."""
    assert not recognises("/x/rollout-1.jsonl", head)


def test_a_first_row_longer_than_the_head_is_recognised():
    """Instructions may fill it."""
    head = (
        b'{"timestamp":"2026-11-10T10:00:00Z", "type":"session_meta", "payload":{"id":"a","base_instructions":{"text":"'
        + b"x" * 70_000
    )
    assert recognises("/x.jsonl", head[:65536])
    assert not recognises("/x/history.jsonl", head[:65536])


def test_sessions_are_named_by_their_files(tmp_path):
    """A rollout's name ends in its thread's id; a stream is read."""
    assert list(name_sessions(f"/x/rollout-2026-11-10T10-00-00-{A}.jsonl.zst")) == [A]
    stream = write(tmp_path / "s.jsonl", {"type": "thread.started", "thread_id": B}, {"type": "turn.started"})
    assert list(name_sessions(stream)) == [f"exec-{B}"]


@pytest.mark.parametrize("home", ["one-session"], indirect=True)
def test_a_session_holds_its_facts(home):
    """Times, folder, branch, version, latency, tools and limits."""
    found = scan(only(home, A), None)
    [session] = found.sessions
    first, second = session.records
    assert (session.start_ns, session.last_ns) == (at("10:00:00"), at("10:00:06.6"))
    assert (first.project, first.branch, first.version, first.agent) == ("/w/api", "main", "0.98.0", "main")
    assert (first.latency_ms, second.latency_ms) == (2200.0, 2500.0)
    assert (first.active_ms, second.active_ms) == (2500, 4000)
    [tool] = session.tools
    assert (tool.tool, tool.finished, tool.failed, tool.duration_ms) == ("exec_command", True, False, 2000.0)
    assert (
        tool.output_bytes
        == len(json.dumps("Chunk ID: 1f\nWall time: 0.1000 seconds\nProcess exited with code 0\nOutput:\nREADME.md\n"))
        - 2
    )
    limits = {limit.name: limit for limit in found.limits}
    assert (limits["primary"].used_percent, limits["primary"].plan) == (12.0, "pro")
    assert limits["secondary"].resets_ns == 1_794_900_000 * 10**9


@pytest.mark.parametrize("home", ["repeated-counts"], indirect=True)
def test_the_latest_word_on_a_limit_counts(home):
    """By the row, also where it says how many seconds are left."""
    limits = {limit.name: limit for limit in scan(only(home, A), None).limits}
    assert (limits["primary"].used_percent, limits["primary"].time_ns) == (12.0, at("10:00:05"))
    other = {"limit_id": "spark", "primary": {"used_percent": 1, "resets_in_seconds": 60}}
    path = write(home / "x.jsonl", meta(), counted("10:00:01.000", (1, 0, 1, 0), rate_limits=other))
    [limit] = scan(path, None).limits
    assert (limit.name, limit.resets_ns, limit.window_minutes) == ("spark/primary", at("10:01:01"), None)


@pytest.mark.parametrize("home", ["archived-copies"], indirect=True)
def test_copies_of_a_file_have_the_same_keys(home):
    """In the archive, packed, or cut short: keys hold no path."""
    keys = [[record.key for record in session_of(path).records] for path in list_logs(str(home))]
    assert sorted(map(len, keys)) == [1, 2, 2]
    assert {key for some in keys for key in some} == set(max(keys, key=len))


@pytest.mark.parametrize("home", ["branch-copy"], indirect=True)
def test_copies_with_their_own_dates_stand_beside_the_original(home):
    """They bear its family, and its key where a row says whose they are."""
    original = session_of(only(home, A))
    marked = session_of(only(home, "T11-00-00"))
    bare = session_of(only(home, "T12-00-00"))
    for copy in (marked, bare):
        assert [record.copy_rank for record in copy.records] == [
            CopyRank.SIDECHAIN,
            CopyRank.SIDECHAIN,
            CopyRank.ORIGINAL,
        ]
        assert [record.family for record in copy.records[:2]] == [record.family for record in original.records]
    assert [record.key for record in marked.records[:2]] == [record.key for record in original.records]


@pytest.mark.parametrize("home", ["fork-replay"], indirect=True)
def test_a_fork_names_its_parent(home):
    """And has a session of its own, without its parent's tools."""
    fork = session_of(only(home, FORK))
    assert (fork.session_id, fork.parent, fork.part, fork.tools) == (FORK, A, False, ())
    assert fork.start_ns == at("11:00:00")


def test_the_root_of_a_tree_of_agents_is_the_session(tmp_path):
    """Newer rows name it; a sub-agent of a sub-agent then is a part of the root's session."""
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "middle", "depth": 2}}}
    assert rollout(tmp_path, meta(source=source, session_id="root")).session_id == "root"
    assert rollout(tmp_path, meta(source=source, session_id=A)).session_id == "middle"
    other = rollout(
        tmp_path,
        meta(source={"subagent": {"other": "guardian"}}, parent_thread_id=B),
        counted("10:00:01.000", (1, 0, 1, 0)),
    )
    assert (other.session_id, other.part, other.records[0].agent) == (B, True, "guardian")


def test_a_replay_that_takes_seconds_ends_with_the_own_turn(tmp_path):
    """Turn ids tell, not seconds, where there are any."""
    old = row("10:00:00.000", "event_msg", type="task_started", turn_id="01990000-0001-7000-8000-000000000001")
    own = row("10:00:09.000", "event_msg", type="task_started", turn_id="019a0000-0009-7000-8000-000000000001")
    session = rollout(
        tmp_path, meta(forked_from_id=B), old, counted("10:00:02.000", (50, 0, 5, 0)), own, counted("10:00:10.000", (70, 0, 7, 0), (20, 0, 2, 0))
    )  # fmt: skip
    assert [record.usage.input for record in session.records] == [20]


def test_a_fork_without_a_replay_counts_its_own_share(tmp_path):
    """Its first total is its parent's."""
    session = rollout(tmp_path, meta(forked_from_id=B), counted("10:00:10.000", (70, 0, 7, 0), (20, 0, 2, 0)))
    assert [record.usage.input for record in session.records] == [20]


def test_the_folder_is_that_of_the_moment(tmp_path):
    """A turn may move; the session stays where it began."""
    turn = row("10:00:01.000", "turn_context", cwd="/w/web", model="m")
    session = rollout(tmp_path, meta(), turn, counted("10:00:02.000", (1, 0, 1, 0)))
    assert (session.project, session.records[0].project, session.records[0].model) == ("/w/api", "/w/web", "m")


def test_an_unreadable_log_is_said(tmp_path):
    """Not an empty session."""
    with pytest.raises(OSError, match="no such file"):
        scan(str(tmp_path / "rollout-x.jsonl"), None)


@pytest.mark.parametrize("home", ["one-session"], indirect=True)
def test_a_rollout_reads_as_a_conversation(home):
    """Requests with what is new, answers with their calls and use, results with their durations."""
    events = [item for item in read(only(home, A), A) if isinstance(item, Event)]
    kinds = ["session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end"]
    assert [event.type for event in events] == kinds
    start, asked, answered, tool, again, last, end = (event.data for event in events)
    assert (start["model"], start["work_dir"], start["provider"]) == ("gpt-5.3-codex", "/w/api", "openai")
    assert asked["messages"][-1] == {"role": "user", "content": "What is here?"}
    assert answered["tool_calls"] == [{"id": "call_1", "name": "exec_command", "arguments": {"cmd": "ls"}}]
    assert (answered["usage"]["total"], answered["latency_ms"]) == (130, 2200.0)
    assert (tool["tool"], tool["duration_ms"], "error" in tool) == ("exec_command", 2000.0, False)
    assert again["messages"][-1]["role"] == "tool"
    assert (last["content"], last["usage"]["cache_read"]) == ("A README.", 270)
    assert end == {"status": "success"}


@pytest.mark.parametrize("home", ["fork-replay"], indirect=True)
def test_a_fork_reads_with_what_it_was_told_before(home):
    """Its parent's words are in its first request; they are nobody's answer."""
    events = [item for item in read(only(home, FORK), FORK) if isinstance(item, Event)]
    [request] = [event for event in events if event.type == "llm.request"]
    said = [(message["role"], message["content"]) for message in request.data["messages"]]
    assert said == [("user", "Write a parser"), ("assistant", "Done."), ("user", "Now a printer")]


@pytest.mark.parametrize("home", ["review"], indirect=True)
def test_a_review_is_read_with_the_session_that_asked_for_it(home):
    """What it used comes beside the conversation; read by its own name it is all there is."""
    for thread, answers in ((A, [("review", 120)]), (B, [(None, 120)])):
        events = [item for item in read(only(home, thread), thread) if isinstance(item, Event)]
        found = [event.data for event in events if event.type == "llm.response"]
        assert [(data.get("agent"), data["usage"]["total"]) for data in found] == answers


def test_other_threads_that_a_log_names_are_not_its_sub_agents(tmp_path):
    """A tool may print rows of any log, a fork's too; a sub-agent's first row names its session."""
    output = json.dumps([{"thread_id": B}, {"agent_id": FORK}])
    printed = row("10:00:01.000", "response_item", type="function_call_output", call_id="c", output=output)
    path = write(tmp_path / "sessions" / "10" / f"rollout-a-{A}.jsonl", meta(session_id=A), printed)
    write(tmp_path / "sessions" / "10" / f"rollout-b-{B}.jsonl", meta(B, session_id=B, forked_from_id=A), meta())
    spawned = meta(FORK, source={"subagent": {"thread_spawn": {"parent_thread_id": A}}})
    part = write(tmp_path / "sessions" / "11" / f"rollout-c-{FORK}.jsonl", spawned)
    assert list(SOURCE.subagent_logs(path)) == [part]
    assert list(SOURCE.subagent_logs(part)) == []


@pytest.mark.parametrize("home", ["killed-in-a-tool"], indirect=True)
def test_an_answers_text_is_read_from_the_event_before_its_count(home):
    """Once, though an item with the same text may follow when the answer's tools have run."""
    for thread, texts in ((A, ["I look.", "Again."]), (B, ["I look.", "Gone on."])):
        events = [item for item in read(only(home, thread), thread) if isinstance(item, Event)]
        assert [event.data["content"] for event in events if event.type == "llm.response"] == texts
        assert not [event for event in events if event.type == "llm.delta" and event.data.get("content")]


@pytest.mark.parametrize("home", ["old-header"], indirect=True)
def test_what_was_never_counted_reads_as_begun(home):
    """Logs without counters have words, but no responses that anybody could add up."""
    types = [item.type for item in read(only(home, A), A) if isinstance(item, Event)]
    assert types == ["session.start", "llm.request", "llm.delta", "tool.call", "llm.request", "llm.delta"]


@pytest.mark.parametrize("home", ["exec-streams"], indirect=True)
def test_a_stream_reads_turn_by_turn(home):
    """Each of its threads by its name, the first by default."""
    path = only(home, "run.jsonl")
    named = {name: [i for i in read(path, name) if isinstance(i, Event)] for name in name_sessions(path)}
    failed = named[f"exec-{B}"]
    assert [event.type for event in failed] == ["session.start", "llm.request", "llm.response", "session.end"]
    assert failed[2].data["error"] == "no quota"
    first = [item for item in read(path, None) if isinstance(item, Event)]
    tools = [event.data for event in first if event.type == "tool.call"]
    assert [(tool["tool"], "error" in tool) for tool in tools] == [("shell", False), ("docs/search", True)]
    [answer, _] = [event.data for event in first if event.type == "llm.response"]
    assert (answer["content"], answer["reasoning"]) == ("A README.", "**Looking**")


def test_a_stream_whose_turns_count_alone_is_taken_as_it_is(tmp_path):
    """A counter that falls is no running total."""
    turns = [{"type": "turn.completed", "usage": {"input_tokens": n, "output_tokens": 1}} for n in (50, 20, 30)]
    session = session_of(write(tmp_path / "s.jsonl", {"type": "thread.started", "thread_id": A}, *turns))
    assert [record.usage.input for record in session.records] == [50, 20, 10]
    assert {record.superseded_by for record in session.records} == {f"codex:{A}"}
    assert {record.time_ns for record in session.records} == {1_700_000_000 * 10**9}


@pytest.mark.parametrize("home", ["one-session", "fork-replay", "tools", "damaged-rows"], indirect=True)
def test_a_scan_goes_on_from_anywhere(home):
    """And events agree with it, and damage never raises."""
    assert check_source(SOURCE, home, cuts=8, damages=2) > 0


def test_an_archive_that_nobody_can_unpack_is_named(tmp_path):
    """No rollouts found is not the same as one that cannot be read."""
    archive = tmp_path / f".codex/sessions/2026/11/10/rollout-2026-11-10T10-00-00-{A}.jsonl.zst"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"not packed at all")
    report = aggregate_usage(None, env={"HOME": str(tmp_path)}, filters={"source": ["codex"]})
    assert report.rows == ()
    assert [problem.path for problem in report.problems] == [str(archive)]


@pytest.mark.parametrize("odd", [9.9e10, 2**63, 10**400])
def test_times_beyond_64_bits_are_none(odd, tmp_path):
    """A number that gives no instant of 64 bits is no time."""
    session = rollout(tmp_path, meta(), counted("10:00:01.000", (1, 0, 1, 0)) | {"timestamp": odd})
    assert [record.time_ns for record in session.records] == [None]


def test_a_limit_ends_no_later_than_time_does(tmp_path):
    """Seconds until a reset may be odd."""
    window = {"used_percent": 1, "resets_in_seconds": 9e11}
    row = counted("10:00:01.000", (1, 0, 1, 0), rate_limits={"primary": window})
    [limit] = scan(write(tmp_path / f"rollout-{A}.jsonl", meta(), row), None).limits
    assert limit.resets_ns == 2**63 - 1


@pytest.mark.parametrize("odd", [[], {}, ["message"]])
def test_an_item_of_an_odd_type_says_nothing(tmp_path, odd):
    """A type may be a list; the rest of the rollout reads as ever."""
    said = row("10:00:02.000", "response_item", type="message", role="assistant", content="hello")
    path = write(
        tmp_path / f"rollout-2026-11-10T10-00-00-{A}.jsonl", meta(), row("10:00:01", "response_item", type=odd), said
    )
    events = [item for item in read(path, None) if isinstance(item, Event)]
    assert [event.data["content"] for event in events if event.type == "llm.delta"] == ["hello"]


@pytest.mark.parametrize("home", ["usage-records"], indirect=True)
def test_a_response_ends_before_its_tools_run(home):
    """However late its counter comes: its time is that of its usage record, its latency the model's."""
    first, second = session_of(only(home, A)).records
    assert (first.time_ns, first.latency_ms) == (at("10:00:02.205"), 2005.0)
    assert (second.time_ns, second.latency_ms) == (at("10:00:10.004"), 1004.0)


def test_a_counter_behind_the_tools_does_not_make_a_response_longer(tmp_path):
    """Also without usage records: the answer has ended with its last part."""
    asked = row("10:00:01.000", "event_msg", type="user_message", message="Go")
    called = row("10:00:03.000", "response_item", type="function_call", name="x", arguments="{}", call_id="c")
    returned = row("10:00:30.000", "response_item", type="function_call_output", call_id="c", output="ok")
    session = rollout(tmp_path, meta(), asked, called, returned, counted("10:00:30.001", (1, 0, 1, 0)))
    assert [(one.time_ns, one.latency_ms) for one in session.records] == [(at("10:00:03"), 2000.0)]


@pytest.mark.parametrize("home", ["usage-records"], indirect=True)
def test_the_logged_context_window_goes_with_the_session(home):
    """In its metadata, and in its responses."""
    path = only(home, A)
    assert session_of(path).metadata == {"context_window": 258400}
    events = [item for item in read(path, None) if isinstance(item, Event)]
    assert {event.data["context_window"] for event in events if event.type == "llm.response"} == {258400}
    assert xray(path).window_tokens == 258400
    assert read_logged_session(path).window == 258400
