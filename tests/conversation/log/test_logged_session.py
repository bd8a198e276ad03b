"""remember: a session read back from its log alone, whatever happened to the process that wrote it."""

import json
import os

import pytest
from hypothesis import given

from sessionlog.conversation.log.logged_session import open_log, read_logged_session
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.conversation.turns.pieces import ToolReturned
from sessionlog.errors import AmbiguousSession, InvalidHistory, LogNotReadable
from sessionlog.events.tokens import TokenUsage
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.messages.message import ContentPart, Message, ToolRequest
from sessionlog.testing import MemorySink
from tests.conversation.log.logs import ANSWER, HALF, USER, lines, record, rewrite, turn
from tests.conversation.log.scripts import SCRIPTS, Player
from tests.profiles import examples


def test_a_session_with_all_that_is_known_of_it(folder, read):
    """History, system, tokens, turns, state and time, by path, by id and by the beginning of an id."""
    recorder = record(folder, clock=lambda: 1_700_000_000_000_000_000)
    history = turn(recorder, turn(recorder, [], "a"), "b")
    found = read("s")
    assert found == read_logged_session(str(folder / "s.jsonl")) == read(folder / "s.jsonl")
    assert (list(found.messages), found.system, found.state) == (history, "be brief", "complete")
    assert (found.usage, found.requests, found.turns) == (TokenUsage(input=4, output=2), 2, 2)
    assert (found.source, found.session_id, found.last_seq, found.earlier) == ("native", "s", 4, 3)
    assert found.start_ns == 1_700_000_000_000_000_000
    assert (found.parent, found.problems, found.closed) == (None, (), "")
    assert found.as_parent() == {"session": "s", "path": str(folder / "s.jsonl"), "seq": 4}


def test_names_that_are_none(folder, read):
    """A session that is not there, or that several have, is an error that says so."""
    with pytest.raises(LogNotReadable, match="nobody"):
        read("nobody")
    record(folder, "s-1"), record(folder, "s-2")
    with pytest.raises(AmbiguousSession):
        read("s-")


@examples(40)
@given(SCRIPTS)
def test_a_log_that_is_cut_anywhere_gives_what_the_session_was(tmp_path_factory, script):
    """Whichever byte was the last to be written: the session as it was after the last whole event."""
    player = Player(MemorySink(redact=False))
    states = {len(player.sink.content): player.expected()}
    for step in script:
        player.play(step)
        states[len(player.sink.content)] = player.expected()
    content, path = player.sink.content, tmp_path_factory.mktemp("cut") / "s.jsonl"
    for size, expected in states.items():
        for more in (0, 1, 20):  # bytes of the next line
            path.write_bytes(content[: size + more])
            found = read_logged_session(str(path))
            assert (list(found.messages), found.usage, found.state) == expected
        path.write_bytes(content[: size - 1])  # all but the line's end
        assert list(read_logged_session(str(path)).messages) == expected[0]


def test_every_cut_of_a_log_keeps_what_was_whole(folder, read):
    """Byte by byte: what is remembered is never less than what the whole lines before say."""
    recorder = record(folder)
    call = ToolRequest("c", "read", {"path": "ä"})
    recorder.request([USER])
    recorder.delta("let ")
    recorder.response(Message.assistant("let me", tool_calls=[call]))
    recorder.tool(ToolReturned(call, Message.tool("text", "c", name="read")))
    whole, content = 0, (folder / "s.jsonl").read_bytes()
    known = {0: ()}
    for line in lines(folder):
        whole += len(line)
        rewrite(folder, content[:whole])
        known[whole] = read().messages
    assert [len(messages) for messages in known.values()] == [0, 0, 1, 2, 2, 3]
    for size in range(1, len(content)):
        rewrite(folder, content[:size])
        last = max(n for n in known if n <= size + 1)  # a line without its end is one
        assert read().messages == known[last]


@pytest.mark.parametrize(
    ("count", "state", "messages"),
    [
        (1, "new", []),
        (2, "interrupted", [USER]),
        (3, "interrupted", [USER, HALF]),
        (4, "complete", [USER, ANSWER]),
    ],
)
def test_the_state_of_a_turn(folder, read, count, state, messages):
    """A request without a whole answer is interrupted; what came of the answer is there, marked."""
    recorder = record(folder)
    recorder.request([USER])
    recorder.delta("half")
    recorder.response(ANSWER)
    rewrite(folder, lines(folder)[:count])
    found = read()
    assert (found.state, list(found.messages)) == (state, messages)


def test_calls_without_a_result_are_an_interrupted_turn(folder, read):
    """Until the model has answered to the results, the turn is not complete."""
    recorder, call = record(folder), ToolRequest("c", "read", {})
    asks = Message.assistant("", tool_calls=[call])
    recorder.request([USER])
    recorder.response(asks)
    assert (read().state, read().messages) == ("interrupted", (USER, asks))
    recorder.tool(ToolReturned(call, Message.tool("text", "c", name="read")))
    assert read().state == "interrupted"


@pytest.mark.parametrize(
    ("status", "state"), [("cancelled", "cancelled"), ("error", "failed"), ("success", "interrupted")]
)
def test_an_end_in_the_middle_of_an_answer(folder, read, status, state):
    """The end says how the turn ended that nothing else ends, and its pieces are marked so."""
    recorder = record(folder)
    recorder.request([USER])
    recorder.delta("half")
    recorder.end(status)
    assert read().state == state
    assert read().messages == (USER, Message.assistant("half", partial=state))


def test_a_torn_tail_is_no_damage_and_neither_is_a_healed_one(folder, read):
    """A killed writer's last line is passed over and named, also where the next writer has gone on behind it."""
    history = turn(record(folder), [], "a")
    torn = b'{"session_id":"s","seq":3,"type":"llm.delta","ts":"2026-11-22T10:00:00Z","data":{"content":"lo'
    for size in (1, 10, 40, len(torn)):
        rewrite(folder, [*lines(folder)[:3], torn[:size]])
        os.utime(folder / "s.jsonl", (1, 1))
        first = read()
        assert (list(first.messages), [problem.kind for problem in first.problems]) == (history, ["torn_tail"])
        recorder = Recorder(open_log(first))
        recorder.continue_log(first)
        longer = turn(recorder, list(first.messages), "b")
        again = read()
        assert list(again.messages) == longer
        assert [(problem.line, problem.kind) for problem in again.problems] == [(4, "not_json")]


def test_a_session_that_is_resumed_goes_on_in_its_log(folder, read):
    """Nothing is written by remembering; what is written then leans on what was there before."""
    history = turn(record(folder), [], "a")
    before = (folder / "s.jsonl").read_bytes()
    found = read()
    recorder = Recorder(open_log(found))
    recorder.continue_log(found)
    assert recorder.as_parent()["seq"] == 2
    assert (folder / "s.jsonl").read_bytes() == before
    history = turn(recorder, history, "b")
    recorder.end("success")
    assert json.loads(lines(folder)[3])["data"] == {
        "messages": [{"role": "assistant", "content": "ho"}, {"role": "user", "content": "b"}], "earlier_messages": 1
    }  # fmt: skip
    assert (list(read().messages), read().turns, read().usage.total) == (history, 2, 6)
    assert json.loads(lines(folder)[-1])["data"]["tokens"]["total"] == 6, "the first run had no end of its own"


def test_several_runs_with_their_ends(folder, read):
    """Each process adds its run; ends tell nothing twice."""
    history = []
    for n in range(3):
        if n:
            recorder = Recorder(open_log(read()))
            recorder.continue_log(read())
        else:
            recorder = record(folder)
        history = turn(recorder, history, str(n))
        recorder.end("success")
        recorder.close()
    assert (list(read().messages), read().usage.total, read().state) == (history, 9, "complete")
    assert [json.loads(line)["data"]["tokens"]["total"] for line in lines(folder) if b"session.end" in line] == [3] * 3


def test_damage_in_the_middle_is_refused_by_name(folder, read):
    """A line that was whole and is not any more: file, line, and what to do; or it is passed over when asked to."""
    history = turn(record(folder), [], "a")
    kept = lines(folder)
    damaged = kept[2].replace(b'"ho"', b'"h\x01o"x')
    rewrite(folder, [*kept[:2], damaged, b""])
    with pytest.raises(InvalidHistory, match=r"s\.jsonl:3 .*check --repair.*skip_damage"):
        read()
    found = read(skip_damage=True)
    assert (found.messages, found.problems[0].line) == ((history[0],), 3)
    assert read(at=1).messages == (history[0],), "what is before the damage can be gone on from"


@pytest.mark.parametrize("content", [b"\x00" * 300 + b"\n", b'"text"\n', b"rubbish\n", b'{"session_id":"s"}\n'])
def test_other_kinds_of_damage_are_refused(folder, read, content):
    """NULs, values that are no events, and texts are not what a killed writer leaves."""
    turn(record(folder), [], "a")
    rewrite(folder, [*lines(folder)[:2], content, *lines(folder)[2:]])
    with pytest.raises(InvalidHistory, match=r"s\.jsonl:3 "):
        read()


def test_a_request_that_leans_on_what_is_lost_is_refused(folder, read):
    """A hole is never filled by what happens to stand there."""
    recorder = record(folder)
    turn(recorder, turn(recorder, turn(recorder, [], "a"), "b"), "c")
    kept = lines(folder)
    rewrite(folder, [*kept[:3], *kept[4:]])
    with pytest.raises(InvalidHistory, match=r"s\.jsonl:5: .* 3 earlier messages, but the log holds only 1"):
        read()


def test_a_gap_is_named_and_matters_only_where_something_leans_on_it(folder, read):
    """Events that a full disk swallowed are told by the log; the requests after it tell what they would have."""
    recorder = record(folder)
    history = turn(recorder, [], "a")
    recorder._logger.emit("log.gap", {"events": 3, "reason": "ENOSPC"})
    history = turn(recorder, history, "b")
    assert list(read().messages) == history
    assert [str(problem) for problem in read().problems] == [
        f"{folder}/s.jsonl:4 seq_gap 3 events were not recorded: ENOSPC"
    ]


def test_an_event_that_was_cut_is_refused_by_name(folder, read):
    """A message whose text is lost is not passed off as the message."""
    logger = SessionLogger(folder, "s", max_event=2000)
    recorder = Recorder(logger)
    recorder.begin(system=None)
    turn(recorder, [], "x" * 5000)
    with pytest.raises(InvalidHistory, match=r"s\.jsonl:2: this llm.request was too long.*at=SEQ"):
        read(skip_damage=True)
    assert read(at=0).messages == ()


def test_lines_longer_than_readers_take_are_read(folder, read):
    """A picture of many megabytes is no reason to refuse a session."""
    picture = Message.user([ContentPart.of_image(b"x" * (7 << 20))])
    recorder = record(folder, redact=False)
    recorder.request([picture])
    recorder.response(ANSWER)
    assert read().messages == (picture, ANSWER)


def test_an_event_by_its_number(folder, read):
    """Up to and with that event: in the middle of a tool group, of an answer, or before anything."""
    recorder, call = record(folder), ToolRequest("c", "read", {})
    asks, result = Message.assistant("", tool_calls=[call]), Message.tool("text", "c", name="read")
    recorder.request([USER])
    recorder.response(asks)
    recorder.tool(ToolReturned(call, result))
    recorder.request([USER, asks, result])
    recorder.delta("half")
    recorder.delta(" an answer")
    recorder.response(ANSWER)
    found = [list(read(at=n).messages) for n in range(8)]
    assert found[:5] == [[], [USER], [USER, asks], [USER, asks, result], [USER, asks, result]]
    assert found[5:] == [[USER, asks, result, said] for said in (
        HALF, Message.assistant("half an answer", partial="interrupted"), ANSWER
    )]  # fmt: skip
    assert [read(at=n).last_seq for n in (0, 7)] == [0, 7]
    with pytest.raises(LookupError, match=r"no event has seq 8; there are 0 to 7, `sessionlog replay --json`"):
        read(at=8)


def test_a_number_that_several_events_have(folder, read):
    """Two processes may have written it: which one is meant cannot be known, and both are named."""
    turn(record(folder), [], "a")
    rewrite(folder, [*lines(folder), lines(folder)[2]])
    with pytest.raises(LookupError, match=r"2 events have seq 2: .*s\.jsonl:3, .*s\.jsonl:4"):
        read(at=2)


def test_forks_and_forks_of_forks_stand_alone(folder, read):
    """Each holds what it inherits: it is remembered without its parent, which may be gone."""
    recorder = record(folder)
    history = turn(recorder, [], "a")
    made = {}
    for name in ("f1", "f2"):
        fork = recorder.sibling(name)
        fork.begin(system="be brief", parent=recorder.as_parent(), inherited=history)
        made[name] = turn(fork, history, name)
        grandchild = fork.sibling(f"{name}-g")
        grandchild.begin(system="be brief", parent=fork.as_parent(), inherited=made[name])
        made[f"{name}-g"] = turn(grandchild, made[name], "deep")
    (folder / "s.jsonl").unlink()
    (folder / "f1.jsonl").unlink()
    for name in ("f2", "f1-g", "f2-g"):
        found = read(name)
        assert (list(found.messages), found.turns, found.usage.total) == (made[name], 1, 3)
    assert read("f2-g").parent == {"session": "f2", "path": str(folder / "f2.jsonl"), "seq": 3}
