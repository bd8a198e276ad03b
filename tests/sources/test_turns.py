"""Turns: what a scan counts is what reading the same log shows to have been asked."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import agent_homes, corpus
from sessionlog.errors import Problem
from sessionlog.events.times import SECOND, parse_time
from sessionlog.sources import native
from sessionlog.sources.contents import first_words
from sessionlog.sources.registry import load_source
from tests.profiles import examples
from tests.sources.homes import build_home
from tests.turns import cases_by_turns

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


def superseded_by(source, log):
    """(session, what the scan says of its turns, the prompts that reading it gives) of each session of a log."""
    sessions = source.scan(log, None).sessions
    names = list(source.name_sessions(log))
    for name in names:
        read = asked_in(item for item in source.read(log, name) if not isinstance(item, Problem))
        scanned = [one for one in sessions if len(names) == 1 or one.session_id == name][:1]
        yield from ((name, one.turns, read) for one in scanned if not one.part)


def counted(source, place):
    """The turns of all sessions in a place, each proved."""
    told = [one for log in source.list_logs(str(place)) for one in superseded_by(source, log)]
    assert [one for one in told if one[1] not in (None, one[2])] == []
    return sum(turns or 0 for _, turns, _ in told)


@pytest.mark.parametrize("case", cases_by_turns(3))
def test_a_scan_counts_the_prompts_that_are_read(case, tmp_path):
    """In every log of every agent, whatever is wrong with it."""
    counted(load_source(case.split("/")[0]), build_home(case, tmp_path))


@pytest.mark.parametrize("source", ["claude-code", "codex"])
def test_so_does_the_scan_of_a_home(source, tmp_path):
    """Of many sessions, with all that goes wrong in a home."""
    agent_homes.generate(tmp_path, claude_megabytes=1, codex_megabytes=1)
    assert counted(load_source(source), tmp_path) > 10


def words_in(content):
    """The words of a prompt."""
    parts = [{"text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
    return " ".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def step_before(steps, prompts):
    """(its place, how many prompts are new behind it) of the request that one goes on from; None if it is none's."""
    for place, step in [*enumerate(steps)][:-9:-1]:
        last, first, now = step["first"][-1], step["first"], step["now"]
        if prompts[-1] == last and (
            len(prompts) <= len(now) or (len(prompts), prompts[-2:]) == (len(first), first[-2:])
        ):
            return place, 0
        behind = [back for back in (1, 2, 3) if prompts[-1 - back :][:1] == [last] and len(prompts) > back]
        if behind:
            return place, max(behind[0], len(prompts) - len(first))
    return None


def turns_among(requests):
    """How many turns begin in requests of (whether it holds only new prompts, prompts)."""
    turns, most, steps = 0, 0, []
    for goes_on, prompts in requests:
        if not prompts:
            continue
        new, known = len(prompts), None
        if goes_on:
            prompts = [*(steps[-1]["now"] if steps else []), *prompts]
        else:
            known = step_before(steps, prompts)
            new = known[1] if known else max(1, new - most)
        if known:
            aside = steps[known[0] + 1 :]
            steps = steps[: known[0] + 1]
            if not new or all(one["first"][-2:-1] != steps[-1]["first"][-1:] for one in aside):
                turns = steps[-1]["turns"]
        most, turns = max(most, len(prompts)), turns + new
        if new:
            steps.append({"first": prompts, "turns": turns})
        steps[-1]["now"] = prompts
    return turns


def prompts_in(path):
    """How many turns a native log has, as its messages tell when they are read."""
    start, requests = requests_of(item for item in native.read(str(path), None) if not isinstance(item, Problem))
    told = [(goes_on, [words_in(one) for one in said if first_words(one) != ""]) for goes_on, said in requests]
    return turns_among(told) or int(bool(start))


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
        ([[user("a"), user("b"), user("c")], [user("sum"), user("d")], [user("sum"), user("d"), user("e")]], 5),
        ([[user("a"), user("b"), user("c")], [user("sum")], [user("sum"), user("d")]], 5),
        ([[user("a"), user("b"), user("c")], [user("title?")], [user("a"), user("b"), user("c")]], 3),
        ([[user("a"), user("b"), user("c")], [user("x")], [user("a"), user("b"), user("c"), user("d")]], 4),
        ([[user("a")], [user("title?")], [user("a"), ANSWER, user("b")]], 2),
        ([[user("a"), user("b")], [user("a"), user("b"), user("sum up")], [user("sum"), user("b")]], 2),
        ([[user("a"), user("b")], [user("b")], [user("a"), user("b"), ANSWER], [user("a"), user("b"), user("c")]], 3),
        ([[user("a")], [user("a"), user("b")], [user("a"), user("c")], [user("a"), user("d")]], 4),
        ([[user("go on")], [user("go on"), user("go on")], [user("go on"), user("go on")]], 2),
        ([[user(f"say {n}, in {'so many ' * 99}words")] for n in range(5)], 5),
        ([[user([{"type": "text", "text": f"{n}", "cache_control": {"type": "x"}}])] for n in range(9)], 9),
        ([[user("a")], [user([{"type": "text", "text": "a"}])], [user("<a")], [user([{"type": "image"}])]], 2),
        (
            [[user("a"), user("b"), user("c")], *([user(f"{n}")] for n in range(9)), [user("a"), user("b"), user("c")]],
            13,
        ),
        ([[user("\n" * 99 + "a")], [user("\n" * 99 + "a"), user('"role":"user"')]], 2),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_prompts_of_requests(requests, turns, separators, cut, tmp_path):
    """Results of tools, blanks, compactions and requests made aside begin no turn, wherever a scan stops and goes on."""
    lines = lines_of(requests, separators=separators, ensure_ascii=False)
    path = tmp_path / "s.jsonl"
    assert scanned_twice(path, lines, 1 + cut) == turns
    assert turns_of(path) == [turns]


def lines_of(requests, **spelling):
    """A log of these requests."""
    events = [("session.start", {"v": 1, "prompt": "a"})]
    events += [("llm.request", {"messages": messages, "model": "m"}) for messages in requests]
    return [
        json.dumps(
            {"session_id": "s", "seq": seq, "type": type_, "ts": f"2026-11-20T10:00:{seq:02}.000000Z", "data": data},
            **spelling,
        ) + "\n"
        for seq, (type_, data) in enumerate(events)
    ]  # fmt: skip


def scanned_twice(path, lines, cut):
    """The turns that a scan tells which goes on where one of the first lines ended."""
    path.write_text("".join(lines[:cut]), "utf-8")
    begun = native.scan(str(path), None).resume
    path.write_text("".join(lines), "utf-8")
    [session] = native.scan(str(path), begun).sessions
    return session.turns


def spelled(words, way):
    """A user's message in one of the ways that agents have."""
    parts = [{"type": "text", "text": words}]
    marked = [{"type": "text", "text": words, "cache_control": {"type": "ephemeral"}}]
    image = [{"type": "image", "source": {"data": ["x"]}}, *parts]
    ways = [user(words), user(parts), user(marked), user(image), {"content": words, "role": "user"}]
    return ways[way]


LONG = " ".join(map(str, range(200)))
TALK = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask", "ask", "tool", "retry", "aside", "cut", "sum up", "again", "rewind"]),
        st.sampled_from(["go on", "yes", '"é" <\\', "a", "b", LONG + "a", LONG + "b", "b" + LONG]),
        st.sampled_from([0, 0, 0, 1, 2, 3, 4]),
    ),
    max_size=14,
)


def requests_in(talk):
    """What an agent sends while this is done."""
    held = []
    for act, words, way in talk:
        message = spelled(words, way)
        if act == "aside":
            yield [message]
            continue
        held += [message] if act == "ask" else [ANSWER, user([RESULT])] if act == "tool" else []
        held += [message, ANSWER, message] if act == "again" else []
        held = held[-3:] if act == "cut" else [message, *held[-1:]] if act == "sum up" else held
        held = [*held[:-2], message] if act == "rewind" else held
        yield [*held]


@given(TALK, st.booleans(), st.booleans(), st.integers(0, 14))
@examples(80)
def test_whatever_is_said_is_counted_by_one_rule(tmp_path_factory, talk, packed, ascii_only, cut):
    """By a scan, by one that stopped and went on, and by what reading it gives; a message may be spelled in any way."""
    path = tmp_path_factory.getbasetemp() / "talk.jsonl"
    separators = (",", ":") if packed else (", ", ": ")
    lines = lines_of(list(requests_in(talk)), separators=separators, ensure_ascii=ascii_only)
    turns = scanned_twice(path, lines, 1 + cut)
    assert (turns, turns_of(path)) == (prompts_in(path), [turns])


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
    """As an item and as an event, in either order."""
    rows = [(one[0], int("".join(filter(str.isdecimal, one[1:3]))), one[1:].lstrip("0123456789")) for one in told.split(" ")
            if one]  # fmt: skip
    path = tmp_path / f"rollout-2026-11-10T10-00-00-{THREAD}.jsonl"
    path.write_text(
        "".join(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n" for row in codex_rows(*rows)), "utf-8"
    )
    [session] = load_source("codex").scan(str(path), None).sessions
    when = None if last is None else parse_time("2026-11-10T10:00:00Z") + last * SECOND
    assert (session.turns, session.last_turn_ns) == (turns, when)
