import json
import shutil
from pathlib import Path

import pytest

from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.sources.claude_code import SOURCE
from sessionlog.sources.record import CopyRank

CASES = Path(__file__).parents[2] / "testdata" / "sources" / "claude-code"
ONE, TWO, THREE = (f"{d * 8}-{d * 4}-4{d * 3}-8{d * 3}-{d * 12}" for d in "123")


def log(case, session=ONE, project="-w-api"):
    """The path of a fixture's log."""
    return str(CASES / case / "home" / ".claude" / "projects" / project / f"{session}.jsonl")


def sessions(path):
    """The sessions of a log by id."""
    return {session.session_id: session for session in SOURCE.scan(path, None).sessions}


def events(path, session=None):
    """The session as events."""
    return [item for item in SOURCE.read(path, session) if isinstance(item, Event)]


def of_type(path, kind, session=None):
    """The payloads of the events of one type."""
    return [event.data for event in events(path, session) if event.type == kind]


def test_it_looks_where_the_cli_writes():
    """Without variables: both of the CLI's folders, transcripts beside projects, and the desktop app's folders."""
    places = list(SOURCE.locate({"HOME": "/h"}))
    assert places[:4] == [
        "/h/.config/claude/projects", "/h/.config/claude/transcripts", "/h/.claude/projects", "/h/.claude/transcripts",
    ]  # fmt: skip
    assert "/h/.config/Claude/local-agent-mode-sessions" in places
    assert "/h/Library/Application Support/Claude/local-agent-mode-sessions" in places


def test_variables_move_the_folders():
    """CLAUDE_CONFIG_DIR replaces both folders, entry by entry; XDG_CONFIG_HOME and APPDATA move their parts."""
    env = {"HOME": "/h", "CLAUDE_CONFIG_DIR": "~/x, /y/projects/,", "XDG_CONFIG_HOME": "/c", "APPDATA": "/a"}
    places = list(SOURCE.locate(env))
    assert places[:3] == ["/h/x/projects", "/h/x/transcripts", "/y/projects"]
    assert "/c/Claude/local-agent-mode-sessions" in places
    assert "/a/Claude/local-agent-mode-sessions" in places
    assert not any(place.startswith(("/h/.claude", "/c/claude")) for place in places)


def test_lists_transcripts_only():
    """Workflow journals, metadata and the desktop app's audit logs are not listed; sub-agents' files are."""
    home = CASES / "sub-agents" / "home" / ".claude" / "projects"
    names = sorted(Path(path).name for path in SOURCE.list_logs(str(home)))
    assert names == [f"{ONE}.jsonl", "agent-a1.jsonl", "agent-a2.jsonl", "agent-a3.jsonl"]
    desktop = CASES / "homes" / "home" / ".config" / "Claude" / "local-agent-mode-sessions"
    assert [Path(path).name for path in SOURCE.list_logs(str(desktop))] == [f"{THREE}.jsonl"]


def test_follows_linked_project_folders(tmp_path):
    """A project folder that is a link to one of the same user is walked, once."""
    shutil.copytree(Path(log("streamed-rows")).parent, tmp_path / "elsewhere")
    (tmp_path / "projects").mkdir()
    (tmp_path / "projects" / "-a").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "projects" / "-b").symlink_to(tmp_path / "elsewhere")
    assert len(list(SOURCE.list_logs(str(tmp_path / "projects")))) == 1


@pytest.mark.parametrize("path", sorted(CASES.rglob("*.jsonl")), ids=lambda p: f"{p.parents[4].name}-{p.stem[:8]}")
def test_recognises_its_own(path):
    """Every transcript is known by its first rows; journals, histories and audits are not listed."""
    if path.stem not in {"journal", "history", "audit"}:
        assert SOURCE.recognises(str(path), path.read_bytes()[:65536])


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\x00\xff",
        b"[1]\nnull\n",
        b'{"session_id":"s","seq":0,"type":"session.start","ts":"2026-11-10T10:00:00Z","data":{}}\n',
        b'{"timestamp":"2026-11-10T10:00:00Z","type":"session_meta","payload":{"id":"x","cwd":"/w"}}\n',
        (
            b'{"uuid":"u","parentUuid":null,"sessionId":"s","type":"assistant","cwd":"/w","version":"1","model":"qwen3",'
            b'"message":{"role":"model","parts":[]},"usageMetadata":{}}\n'
        ),
        (
            b'{"type":"message","id":"a","timestamp":"2026-01-30T06:18:55Z","message":{"role":"assistant","provider":"x",'
            b'"usage":{"input":1,"output":2}}}\n'
        ),
        b'{"display":"hi","pastedContents":{},"timestamp":1,"project":"/w","sessionId":"s"}\n',
    ],
)
def test_others_are_not_recognised(head):
    """Native logs, Codex, Qwen Code, OpenClaw, the prompt history and garbage are not its own."""
    assert not SOURCE.recognises("/x/y.jsonl", head)


def test_recognises_a_cut_first_row():
    """A first row longer than the head that is shown still tells whose it is."""
    row = Path(log("streamed-rows")).read_bytes().split(b"\n")[0]
    assert SOURCE.recognises("/x/y.jsonl", row[:-40] + b"x" * 70_000)
    assert SOURCE.recognises("/x/y.jsonl", b'{"type":"file-history-snapshot","messageId":"x","snapshot":{"a":"')


def test_retention_is_read_from_the_settings(tmp_path):
    """The settings say how long logs are kept; 30 days where they do not."""
    env = {"HOME": str(tmp_path)}
    assert SOURCE.retention(env).days == 30
    (tmp_path / ".claude").mkdir()
    settings = tmp_path / ".claude" / "settings.json"
    settings.write_text('{"cleanupPeriodDays": 365}')
    assert SOURCE.retention(env).days == 365
    assert str(settings) in SOURCE.retention(env).setting
    settings.write_text('{"cleanupPeriodDays": "long"}')
    assert SOURCE.retention(env).days == 30
    settings.write_text("{")
    assert SOURCE.retention(env).days == 30


def test_sessions_are_named_by_their_files():
    """A sub-agent's file can be asked for by its own name, packed or not."""
    assert list(SOURCE.name_sessions("/p/s-1.jsonl.zst")) == ["s-1"]
    assert list(SOURCE.name_sessions("/p/s-1/subagents/agent-a.jsonl")) == ["s-1/agent-a"]


def test_a_response_has_its_first_rows_time_and_the_wait_until_its_last():
    """Time is that of the first row; latency runs from the user's row to the last one."""
    first, second = sessions(log("streamed-rows"))[ONE].records
    assert (first.time_ns, first.latency_ms, second.latency_ms) == (1_794_304_803_000_000_000, 5000, 2000)
    assert (first.key, first.family, first.copy_rank) == ("msg_1:req_1", "msg_1", 2)
    assert [record.active_ms for record in (first, second)] == [3000, 6000]


def test_hour_long_cache_writes_are_kept_apart():
    """The part that is kept for an hour has its own price."""
    records = sessions(log("cache-writes"))[ONE].records
    assert [r.usage.cache_write for r in records] == [100, 80, 7, 7]
    assert [r.usage.cache_write_1h for r in records] == [0, 50, 0, 0]


def test_recorded_costs_and_times_of_old_rows():
    """Recorded costs and times are taken, once a response."""
    records = sessions(log("recorded-costs"))[ONE].records
    assert [(r.cost_nano, r.latency_ms) for r in records] == [(250_000_000, 2500), (500_000_000, 2500)]
    assert records[0].branch == "unknown"


def test_failures_are_not_priced_and_keep_the_model():
    """An error notice is one failed request of the model in use."""
    failed = sessions(log("api-error"))[ONE].records[-1]
    assert (failed.failed, failed.priced, failed.requests, failed.usage.total) == (True, False, 1, 0)
    assert failed.model == "claude-sonnet-4-5-20250929"


def test_failures_of_a_sub_agent_keep_its_model():
    """Its own log names the model that answered before."""
    answered, failed = sessions(log("refused-sub-agent", f"{ONE}/subagents/agent-a1"))[ONE].records
    assert (failed.failed, failed.model) == (True, answered.model)


def test_a_prompt_in_the_queue_is_read_where_no_row_has_it():
    """Of a session that was killed at once; the others' rows repeat it."""
    for session, prompts in ((ONE, ["first"]), (TWO, ["second"])):
        asked = [
            message for data in of_type(log("killed-at-once", session), "llm.request") for message in data["messages"]
        ]
        assert [message["content"] for message in asked] == prompts


def test_each_response_keeps_its_own_surroundings():
    """Folder, branch and version are those of its row, not of the session."""
    records = sessions(log("moving-session"))[ONE].records
    assert [(r.project, r.branch, r.version) for r in records] == [
        ("/w/api", "dev", "2.1.31"), ("/w/api/sub", "main", "2.1.90"),
    ]  # fmt: skip


def test_a_sub_agents_file_is_part_of_its_parent():
    """It has its parent's id, its kind from the file beside it, and no time of the parent's own."""
    [session] = SOURCE.scan(log("sub-agents", f"{ONE}/subagents/agent-a1"), None).sessions
    assert (session.session_id, session.part, session.status, session.prompt) == (ONE, True, None, "")
    assert {record.agent for record in session.records} == {"Explore"}
    assert {record.copy_rank for record in session.records} == {CopyRank.SIDECHAIN}
    assert [record.active_ms for record in session.records] == [0, 0]


def test_a_warm_up_is_read_with_the_session_that_is_resumed():
    """The first row of its log has the id of a session that never was, the second one the resumed one's."""
    answers = {data["content"]: data.get("agent") for data in of_type(log("warm-up"), "llm.response")}
    assert answers == {"one": None, "ready": "sub-agent", "two": None}
    assert list(SOURCE.name_sessions(log("warm-up", "agent-a1"))) == [f"{ONE}/agent-a1"]


def test_tools_have_results():
    """Duration, failure and size of what a tool gave back; a call without a result is not finished."""
    tools = {tool.key: tool for tool in sessions(log("tools"))[ONE].tools}
    facts = {key: (t.server, t.finished, t.failed, t.duration_ms, t.output_bytes) for key, t in tools.items()}
    assert facts == {
        "toolu_1": ("", True, False, 3000, 0),
        "toolu_2": ("tracker", True, True, 2000, 2),
        "toolu_3": ("", True, False, 1000, 2),
        "toolu_4": ("", False, False, None, 0),
    }
    assert sessions(log("streamed-rows"))[ONE].tools[0].output_bytes == len(r"a\nb \"c\" é".encode())


def test_forks_remember_where_they_come_from(tmp_path):
    """A copied row names the session that it was copied from."""
    old = Path(log("fork-copies", TWO)).read_bytes()
    path = tmp_path / f"{TWO}.jsonl"
    path.write_bytes(old.replace(b'.000Z"}\n', b'.000Z","forkedFrom":{"sessionId":"' + ONE.encode() + b'"}}\n'))
    assert sessions(str(path))[TWO].parent == ONE


def test_reads_as_a_native_session():
    """Prompt, requests with what is new, responses with reasoning and calls, results, and how it ended."""
    told = events(log("streamed-rows"))
    assert [event.type for event in told] == [
        "session.start", "llm.request", "llm.response", "tool.call", "llm.request", "llm.response", "session.end",
    ]  # fmt: skip
    start, request, response, tool, again, last, end = (event.data for event in told)
    assert (start["work_dir"], start["provider"]) == ("/w/api", "anthropic")
    assert request["messages"] == [{"role": "user", "content": "make it faster"}]
    assert (response["content"], response["reasoning"], response["latency_ms"]) == ("I look.", "Hm.", 5000)
    assert response["tool_calls"] == [{"id": "toolu_1", "name": "Bash", "arguments": {"command": "ls"}}]
    assert response["usage"]["output"] == 159
    assert (tool["tool"], tool["output"], tool["duration_ms"]) == ("Bash", 'a\nb "c" é', 2000)
    assert again["earlier_messages"] == 1
    assert [message["role"] for message in again["messages"]] == ["assistant", "tool"]
    assert (last["content"], end["status"]) == ("Done.", "success")


def test_results_between_a_responses_rows_come_after_it():
    """A tool may be done before the response is: the response is told whole."""
    types = [event.type for event in events(log("tools"))]
    assert types[-3:] == ["llm.response", "tool.call", "tool.call"]
    assert [len(data["tool_calls"]) for data in of_type(log("tools"), "llm.response")] == [2, 2]


def test_reads_failures_compactions_and_echoes():
    """An error notice is a failed response; a compaction is told; echoes are responses of their own."""
    assert of_type(log("api-error"), "llm.response")[-1]["error"] == "API Error: 529 overloaded_error"
    assert of_type(log("not-the-users-words"), "compaction.end")[0]["tokens_before"] == 155_000
    echoed = of_type(log("progress-echo"), "llm.response")
    assert [data["usage"]["output"] for data in echoed] == [30, 140, 60]
    assert of_type(log("partial"), "llm.response")[0]["quality"] == "partial"


@pytest.mark.parametrize("path", sorted(CASES.rglob("*.jsonl")), ids=lambda p: f"{p.parents[4].name}-{p.stem[:8]}")
def test_events_and_records_tell_the_same_tokens(path):
    """Each response is told once, with the tokens of its best record."""
    best = {}
    logs = [str(path), *SOURCE.subagent_logs(str(path))]
    sessions = [session for log in logs for session in SOURCE.scan(log, None).sessions]
    records = [record for session in sessions for record in session.records]
    top = {}
    for record in records:
        top[record.family] = max(top.get(record.family, CopyRank.EMBEDDED), record.copy_rank)
    records = [one for one in records if one.copy_rank == top[one.family] or top[one.family] < CopyRank.COPIED]
    for record in (record for record in records if record.requests):
        weight = (record.copy_rank, record.usage.output, record.usage.total)
        best[record.key] = max(best.get(record.key, (weight, record)), (weight, record), key=lambda pair: pair[0])
    told = of_type(str(path), "llm.response")
    assert {data["key"]: data.get("usage") for data in told} == {
        key: record.usage.to_dict() if record.usage or not record.failed else None for key, (_, record) in best.items()
    }
    assert len(told) == len(best)


def test_rows_of_another_session_can_be_read_alone():
    """A resumed session's file tells its past too, and the older session's part of it by that id."""
    assert len(of_type(log("resume-keeps-ids", TWO), "llm.response", TWO)) == 2
    assert [data["key"] for data in of_type(log("resume-keeps-ids", TWO), "llm.response", ONE)] == ["msg_1:req_1"]


def test_damage_is_named_and_passed_over():
    """Torn rows are problems of the scan and of the replay, with their place."""
    problems = [item for item in SOURCE.read(log("torn-rows"), None) if isinstance(item, Problem)]
    assert [(problem.line, problem.kind) for problem in problems] == [(3, "not_json"), (4, "not_json")]
    assert SOURCE.scan(log("torn-rows"), None).problems.count == 2


@pytest.mark.parametrize("odd", [[], {}, ["assistant"]])
def test_odd_types_break_nothing(tmp_path, odd):
    """Rows and parts whose type is a list say nothing."""
    path = tmp_path / "s.jsonl"
    message = {"id": "m", "usage": {"output_tokens": 1}, "content": [{"type": odd}]}
    rows = [json.dumps({"type": type_, "message": message}) for type_ in (odd, "assistant")]
    path.write_text("\n".join(rows) + "\n")
    assert not SOURCE.recognises(str(path), rows[0].encode())
    told = [item.type for item in SOURCE.read(str(path), None) if isinstance(item, Event)]
    assert told.count("llm.response") == 1


def rows_of(case, session=ONE):
    """The lines of a fixture's log."""
    return Path(log(case, session)).read_bytes().splitlines(keepends=True)


def test_a_scan_goes_on_where_it_ended(tmp_path):
    """Responses and calls that are open at the end of a scan are finished by the next one."""
    lines, path = rows_of("streamed-rows"), tmp_path / f"{ONE}.jsonl"
    path.write_bytes(b"".join(lines[:3]) + lines[3][:90])
    begun = SOURCE.scan(str(path), None)
    assert begun.resume.offset == sum(map(len, lines[:3]))
    path.write_bytes(b"".join(lines))
    rest, whole = SOURCE.scan(str(path), begun.resume).sessions[0], SOURCE.scan(str(path), None).sessions[0]
    assert rest.records[-1] == whole.records[-1]
    assert rest.tools[-1] == whole.tools[-1]


def test_limits_of_memory_hold(tmp_path):
    """Only a few open responses and calls are kept for the next scan, however many there are."""
    line = next(line for line in rows_of("tools") if b"toolu_4" in line)
    path = tmp_path / "many.jsonl"
    path.write_bytes(
        b"".join(
            line.replace(b"toolu_4", b"toolu_%d" % n).replace(b"_2", b"_%d" % n).replace(ONE.encode(), b"s-%d" % n)
            for n in range(300)
        )
    )
    scan = SOURCE.scan(str(path), None)
    assert sum(len(session.records) for session in scan.sessions) == 300
    assert len(scan.resume.state) < 40_000


@pytest.mark.parametrize("odd", [{"speed": "fast"}, {"service_tier": "priority"}])
def test_requests_with_a_price_of_their_own_say_so(tmp_path, odd):
    """What they cost depends on more than their tokens."""
    row = json.loads(rows_of("streamed-rows")[1])
    row["message"]["usage"] |= odd
    path = tmp_path / f"{ONE}.jsonl"
    path.write_text(json.dumps(row) + "\n")
    [record] = sessions(str(path))[ONE].records
    assert {name: getattr(record, name) for name in odd} == odd


def test_searches_of_the_providers_tool_are_counted_once(tmp_path):
    """The rows of a response repeat their number; a number that is none is damage, and the tokens stay."""
    row = json.loads(rows_of("streamed-rows")[1])
    path = tmp_path / f"{ONE}.jsonl"
    for number, searches in ((2, 2), ("many", 0), (-1, 0), (None, 0)):
        row["message"]["usage"]["server_tool_use"] = {"web_search_requests": number, "web_fetch_requests": 3}
        path.write_text(2 * f"{json.dumps(row)}\n")
        scan = SOURCE.scan(str(path), None)
        [record] = scan.sessions[0].records
        assert (record.searches, record.usage.output) == (searches, row["message"]["usage"]["output_tokens"])
        assert bool(scan.problems.count) == (number in ("many", -1))
        assert of_type(str(path), "llm.response")[0].get("searches", 0) == searches


def test_a_fork_says_nothing_of_its_parents_turns():
    """Copied prompts begin no turn, are marked in the replay, and the copies name the parent."""
    fork = sessions(log("fork-sorts-first"))[ONE]
    assert (fork.parent, fork.turns, fork.prompt, len(fork.tools)) == (TWO, 1, "other way", 0)
    assert [record.copy_rank for record in fork.records] == [CopyRank.COPIED, CopyRank.COPIED, CopyRank.ORIGINAL]
    asked = [message for data in of_type(log("fork-sorts-first"), "llm.request") for message in data["messages"]]
    told = [(message["content"], message.get("inherited", False)) for message in asked if message["role"] == "user"]
    assert told == [("first", True), ("other way", False)]


def test_rows_that_a_compaction_writes_again_are_read_once():
    """Prompts, results and earlier compactions, too; the same words under a new id are another prompt."""
    asked = [message for data in of_type(log("compacted-twice"), "llm.request") for message in data["messages"]]
    assert [one["content"] for one in asked if one["role"] == "user"] == ["first", "second", "first"]
    assert sessions(log("compacted-twice"))[ONE].turns == 3
    assert len(of_type(log("compacted-twice"), "tool.call")) == 1
    assert len(of_type(log("compacted-twice"), "compaction.end")) == 2


def test_what_is_written_again_ends_with_the_first_new_row(tmp_path):
    """A prompt that was never written before is one, whatever its time is."""
    lines = rows_of("compacted-twice")
    again = next(number for number, line in enumerate(lines) if line in lines[:number])
    late = json.loads(lines[0]) | {"uuid": "00000000-0000-4000-8000-999999999999"}
    late["message"]["content"] = "late"
    path = tmp_path / f"{ONE}.jsonl"
    path.write_bytes(b"".join([*lines[: again + 2], json.dumps(late).encode() + b"\n", *lines[again + 2 :]]))
    asked = [message for data in of_type(str(path), "llm.request") for message in data["messages"]]
    assert [one["content"] for one in asked if one["role"] == "user"] == ["first", "second", "late", "first"]


def test_a_compactions_request_is_beside_the_conversation():
    """What it used is one response of no words, which the next request does not repeat."""
    told = of_type(log("compaction-request"), "llm.response")
    assert [(data["key"].partition(":")[0], data["usage"]["input"]) for data in told] == [
        ("msg_1", 10), ("compaction", 50), ("msg_2", 20),
    ]  # fmt: skip


def test_a_responses_region_and_searches_are_its_own_and_its_advisors(tmp_path):
    """What an advisor says of itself counts for it, else what its response says; no place is anywhere."""
    row = json.loads(rows_of("advisor")[2])
    path = tmp_path / f"{ONE}.jsonl"
    usage, advisor = row["message"]["usage"], row["message"]["usage"]["iterations"][1]
    for geo, own, regions in (
        ("US", None, ("us", "us")),
        ("global", "us", ("", "us")),
        ("not_available", None, ("", "")),
    ):
        usage |= {"inference_geo": geo, "service_tier": "priority", "speed": "fast"}
        usage["server_tool_use"] = {"web_search_requests": 2}
        advisor["inference_geo"] = own
        path.write_text(f"{json.dumps(row)}\n")
        answer, advice = sessions(str(path))[ONE].records
        assert (answer.region, advice.region) == regions
        assert (answer.searches, advice.searches) == (2, 1)
        assert (advice.kind, advice.parent, advice.key) == ("advisor", answer.key, f"{answer.key}#advisor-1")
        assert (answer.service_tier, advice.service_tier) == ("priority", "priority")
        assert (answer.speed, advice.speed) == ("fast", "")


@pytest.mark.parametrize(
    "odd", [{}, "x", 1, [1], [None], [{"type": {}}], [{"type": "advisor_message", "input_tokens": "x"}]]
)
def test_odd_iterations_cost_no_response(tmp_path, odd):
    """The response keeps its counts; a count that is none is damage."""
    row = json.loads(rows_of("advisor")[2])
    row["message"]["usage"]["iterations"] = odd
    path = tmp_path / f"{ONE}.jsonl"
    path.write_text(f"{json.dumps(row)}\n")
    scan = SOURCE.scan(str(path), None)
    assert [record.usage.output for record in scan.sessions[0].records] == [40]
    assert scan.problems.count == (odd == [{"type": "advisor_message", "input_tokens": "x"}])
