"""Turns: what a scan counts is what reading the same log shows to have been asked."""

import json
from pathlib import Path

import pytest

from sessionlog.errors import Problem
from sessionlog.events.times import SECOND, parse_time
from sessionlog.sources import native
from sessionlog.sources.codex.lane import feed
from sessionlog.sources.codex.rows import RolloutRows, feed_plainly
from sessionlog.sources.codex.scan import Rollout
from sessionlog.sources.gather import first_words
from sessionlog.sources.opencode.parts import prompt_of, read_message
from sessionlog.sources.registry import load_source
from tests.bench import agent_homes, corpus
from tests.sources.homes import all_cases, build_home

TESTDATA = Path(__file__).parents[2] / "testdata"
NATIVE = sorted(
    path for room in ("replay", "reader", "routing", "usage") for path in (TESTDATA / room).rglob("*.jsonl")
)
THREAD = "019a0000-0001-7000-8000-000000000001"


def requests_of(events):
    """The user's messages in each request, whether it holds only new ones, and the prompt the session starts with."""
    start, requests = "", []
    for event in events:
        data = event.data if isinstance(event.data, dict) else {}
        if event.type == "session.start":
            start = start or first_words(data.get("prompt"))
        if event.type == "llm.request" and isinstance(data.get("messages"), list):
            said = [one for one in data["messages"] if isinstance(one, dict) and one.get("role") == "user"]
            contents = [one["content"] for one in said if not one.get("inherited")]
            requests.append((bool(data.get("earlier_messages")), contents))
    return start, requests


def asked_in(events):
    """How many prompts another agent's session has: each request holds what is new."""
    start, requests = requests_of(events)
    return sum(len(said) for _, said in requests) or int(bool(start))


def told_by(source, log):
    """(session, what the scan says of its turns, the prompts that reading it gives) of each session of a log."""
    sessions = source.scan(log, None).sessions
    names = list(source.name_sessions(log))
    for name in names:
        read = asked_in(item for item in source.read(log, name) if not isinstance(item, Problem))
        scanned = [one for one in sessions if len(names) == 1 or one.session_id == name][:1]
        yield from ((name, one.turns, read) for one in scanned if not one.part)


def counted(source, place):
    """The turns of all sessions in a place, each proved."""
    told = [one for log in source.list_logs(str(place)) for one in told_by(source, log)]
    assert [one for one in told if one[1] not in (None, one[2])] == []
    return sum(turns or 0 for _, turns, _ in told)


@pytest.mark.parametrize("case", all_cases())
def test_a_scan_counts_the_prompts_that_are_read(case, tmp_path):
    """In every log of every agent, whatever is wrong with it."""
    counted(load_source(case.split("/")[0]), build_home(case, tmp_path))


@pytest.mark.parametrize("source", ["claude-code", "codex"])
def test_so_does_the_scan_of_a_home(source, tmp_path):
    """Of many sessions, with all that goes wrong in a home."""
    agent_homes.generate(tmp_path, claude_megabytes=1, codex_megabytes=1)
    assert counted(load_source(source), tmp_path) > 10


def prompts_in(path):
    """How many prompts a native log has: each request repeats those before, but for a title's, which is made aside."""
    start, requests = requests_of(item for item in native.read(str(path), None) if not isinstance(item, Problem))
    turns, held = 0, [0]
    for goes_on, said in requests:
        now = sum(first_words(content) != "" for content in said)
        if goes_on:
            turns += now
            continue
        turns += max(0, now - (max(held) if now - held[-1] > 1 and now >= max(held) else held[-1]))
        held.append(now)
    return turns or int(bool(start))


def turns_of(path):
    """What the scan of a native log says."""
    return [one.turns for one in native.scan(str(path), None).sessions]


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: path.stem)
def test_a_native_scan_counts_what_its_requests_add(path):
    """The log as it was written by hand."""
    assert turns_of(path) in ([], [prompts_in(path)])


def test_so_does_the_scan_of_a_native_corpus(tmp_path):
    """Of logs that are spaced, packed and torn."""
    corpus.generate(tmp_path, megabytes=3)
    logs = [log for log in native.list_logs(str(tmp_path)) if not isinstance(log, Problem)]
    assert [turns_of(log) for log in logs] == [[prompts_in(log)] for log in logs]


def user(content):
    """A user's message."""
    return {"role": "user", "content": content}


RESULT = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": 'a "role":"user" {['}]}
ANSWER = {"role": "assistant", "content": "yes" * 400}


@pytest.mark.parametrize(
    ("requests", "turns"),
    [
        ([], 1),
        ([[]], 1),
        ([[user("a")]], 1),
        ([[user("a")], [user("a"), ANSWER], [user("a"), ANSWER, ANSWER, user("b")]], 2),
        ([[user("é")], [user("é"), user([{"type": "text", "text": "b"}])], [user("é"), user("b"), user("<c>")]], 3),
        ([[user("a")], [user("a"), user([RESULT])], [user("a"), user([RESULT, RESULT]), user("b")]], 2),
        ([[user("a")], [user("a"), user([RESULT, {"type": "text", "text": "b"}])]], 2),
        ([[user("a")], [user("a"), user(" ")], [user("a"), user("")], [user("a"), user([])]], 1),
        ([[user("a")], [user("a"), {"content": "b", "role": "user"}], [user("a"), user("b"), user("c")]], 3),
        ([[user("a"), user("b"), user("c")], [user("sum")], [user("sum"), user("d")]], 4),
        ([[user("a"), user("b"), user("c")], [user("title?")], [user("a"), user("b"), user("c")]], 3),
        ([[user("a"), user("b"), user("c")], [user("x")], [user("a"), user("b"), user("c"), user("d")]], 4),
        ([[user("\n" * 99 + "a")], [user("\n" * 99 + "a"), user('"role":"user"')]], 2),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_prompts_of_requests(requests, turns, separators, cut, tmp_path):
    """Results of tools, blanks, compactions and requests made aside begin no turn, wherever a scan stops and goes on."""
    events = [("session.start", {"v": 1, "prompt": "a"})]
    events += [("llm.request", {"messages": messages, "model": "m"}) for messages in requests]
    lines = [
        json.dumps(
            {"session_id": "s", "seq": seq, "type": type_, "ts": f"2026-11-20T10:00:{seq:02}.000000Z", "data": data},
            separators=separators, ensure_ascii=False,
        ) + "\n"
        for seq, (type_, data) in enumerate(events)
    ]  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text("".join(lines[: 1 + cut]), "utf-8")
    begun = native.scan(str(path), None).resume
    path.write_text("".join(lines), "utf-8")
    assert [one.turns for one in native.scan(str(path), begun).sessions] == [turns]
    assert turns_of(path) == [turns]


def codex_rows(*told):
    """A rollout: `i` a prompt's item, `e` its event, each with its second and words."""
    yield {"type": "session_meta", "payload": {"id": THREAD, "timestamp": "2026-11-10T10:00:00.000Z", "cwd": "/w"}}
    for kind, second, words in told:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}
        event = {"type": "user_message", "message": words, "images": []}
        row = {"timestamp": f"2026-11-10T10:{second // 60:02}:{second % 60:02}.000Z"}
        yield row | (
            {"type": "response_item", "payload": item} if kind == "i" else {"type": "event_msg", "payload": event}
        )


@pytest.mark.parametrize(
    ("told", "turns", "last"),
    [
        ("", 0, None),
        ("i1a e1a i30b e30b", 2, 30),
        ("e1a i1a e30b i30b", 2, 30),
        ("i1a i30b i31c", 3, 31),
        ("e1a e2b", 2, 2),
        ("i1a i2b e3a e4b", 2, 2),
        ("i1a e40b", 2, 40),
        ("i1<environment_context>x i2a e2a i3<turn_aborted>", 1, 2),
        ("i1a e1a i20<b> e20<b>", 2, 20),
        ("i1a e1a e20<environment_context>x", 1, 1),
        ("i1a e1a i20#b e20#b i40é e40é i60→ e60→ i80“b” e80“b”", 5, 80),
        ("i1a e1a i20\u3000 e20\u3000 i40\u3000b e40\u3000b i60\tb e60\tb", 3, 60),
        ('i1a e1a i20"b" e20"b" i40\\b e40\\b', 3, 40),
    ],
)
def test_codex_tells_a_prompt_twice(told, turns, last, tmp_path):
    """As an item and as an event, in either order; both lanes count it once."""
    rows = [(one[0], int("".join(filter(str.isdecimal, one[1:3]))), one[1:].lstrip("0123456789")) for one in told.split(" ")
            if one]  # fmt: skip
    path = tmp_path / f"rollout-2026-11-10T10-00-00-{THREAD}.jsonl"
    path.write_text(
        "".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in codex_rows(*rows)), "utf-8"
    )
    for way in (feed, feed_plainly):
        rollout = Rollout(str(path))
        with RolloutRows(str(path)) as lines:
            way(rollout, lines)
        when = None if last is None else parse_time("2026-11-10T10:00:00Z") + last * SECOND
        assert (rollout.turns, rollout.last_turn_ns) == (turns, when)


def test_opencode_s_own_words_are_no_prompt():
    """It goes on after a compaction by asking itself."""
    data = {"role": "user", "content": [{"type": "text", "text": "Continue", "synthetic": True}]}
    message = read_message("m", "s", data)
    assert prompt_of(message.parts) == ""
    data["content"].append({"type": "text", "text": "and this"})
    message = read_message("m", "s", data)
    assert prompt_of(message.parts) == "and this"
