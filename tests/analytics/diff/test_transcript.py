"""A transcript: all that was said, once, whatever the requests of a log repeat."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionlog.analytics.diff import transcript as module
from sessionlog.analytics.diff.transcript import fold_transcript
from sessionlog.errors import Problem
from tests.analytics.diff.talks import CALM, as_events, tell
from tests.profiles import examples
from tests.sources.logs import answered, asked, event, start

WORDS = st.sampled_from(["go on", "yes", "look at it", "a longer text\nof two lines"])
RESULTS = st.sampled_from(["", "ok", '{"a": 1}', "one\ntwo"])
CALLS = st.tuples(st.sampled_from(["read", "bash"]), st.dictionaries(st.sampled_from("ab"), st.integers(0, 2)), RESULTS)
ANSWERS = st.tuples(WORDS, st.lists(CALLS, max_size=3))
TALKS = st.lists(st.tuples(WORDS, st.lists(ANSWERS, min_size=1, max_size=3)), max_size=4)


def transcript(*dicts, **options):
    return fold_transcript(as_events(dicts), **options)


def heard(*dicts, **options):
    """Roles and texts."""
    return [(one.role, one.text) for one in transcript(*dicts, **options).messages]


def meant(talk):
    """What a talk says."""
    said = []
    for prompt, answers in talk:
        said.append(("user", prompt))
        for answer in answers:
            text, calls = answer if isinstance(answer, tuple) else (answer, [])
            said += [("assistant", text), *(("tool", result) for _, _, result in calls)]
    return said


@examples(150)
@given(TALKS, st.booleans(), st.booleans())
def test_a_talk_is_the_same_however_its_log_tells_it(talk, whole, beside):
    """Requests that hold everything, or only what is new; results as events, or in the next request."""
    if not beside:  # then nobody tells the results of the last answer
        talk = [(prompt, [*answers, ("Done.", [])]) for prompt, answers in talk]
    told = tell(talk, whole=whole, results_beside=beside)
    assert heard(*told) == meant(talk)
    assert transcript(*told).turns == len(talk)
    assert transcript(*told).messages[:1] == transcript(*tell(talk, ids="other")).messages[:1]


def test_a_foreign_log_tells_only_what_is_new():
    """Also where its first request does not say so."""
    assert heard(*tell(CALM, whole=False), own=False) == meant(CALM)


def test_tools_are_counted_with_their_errors_and_times():
    """Those of sub-agents too, though what they say is beside the conversation."""
    failed = event("tool.call", "10:00:03", {"tool": "read", "error": "no such file", "duration_ms": 3})
    beside = event("tool.call", "10:00:03", {"tool": "grep", "output": "x", "agent": "a-1"})
    found = transcript(*tell(CALM)[:-1], failed, beside)
    assert found.tools["read"].to_dict() == {"calls": 2, "errors": 1, "duration_ms": 10}
    assert found.tools["grep"].to_dict() == {"calls": 1, "errors": 0, "duration_ms": None}
    assert found.messages[-1].text == "no such file"
    assert found.messages[-1].failed


def test_results_that_only_a_request_tells_have_the_name_of_their_call():
    """And count as calls."""
    found = transcript(*tell(CALM, results_beside=False))
    [result] = [one for one in found.messages if one.role == "tool"]
    assert result.tool == "read"
    assert found.tools["read"].calls == 1


def test_the_system_prompt_stands_apart():
    """From the start, beside a request, or as its first message; a later one is said like anything."""
    prompt = {"role": "user", "content": "hello"}
    system = {"role": "system", "content": "Be brief."}
    for told in (
        [start(system_prompt="Be brief."), asked(messages=[system, prompt])],
        [start(), asked(messages=[prompt], system="Be brief.")],
        [start(), asked(messages=[system, prompt])],
    ):
        found = transcript(*told)
        assert found.system == "Be brief."
        assert [one.role for one in found.messages] == ["user"]
    later = {"role": "system", "content": "Be long."}
    assert heard(start(), asked(messages=[system, prompt, later])) == [("user", "hello"), ("system", "Be long.")]


def test_tools_that_are_offered_are_known_by_their_definition():
    """Name by name."""
    one = [{"name": "read", "description": "Read", "input_schema": {}}]
    other = [{"name": "read", "description": "Read a file", "input_schema": {}}, {"name": "bash", "input_schema": {}}]
    first, second = (transcript(start(), asked(messages=[], tools=tools)).offered for tools in (one, other))
    assert (set(first), set(second)) == ({"read"}, {"read", "bash"})
    assert first["read"] != second["read"]


def test_an_answer_that_nothing_closed_is_kept():
    """What had arrived when the agent was killed, marked; a request that repeats it says nothing new."""
    deltas = [event("llm.delta", "10:00:02", {"content": piece}) for piece in ("Let me ", "see")]
    prompt = {"role": "user", "content": "hello"}
    told = [start(), asked(messages=[prompt]), *deltas]
    assert heard(*told) == [("user", "hello"), ("assistant", "Let me see")]
    assert transcript(*told).messages[1].partial
    again = asked(messages=[{"role": "assistant", "content": "Let me see"}, prompt], earlier_messages=1)
    assert heard(*told, again) == [("user", "hello"), ("assistant", "Let me see"), ("user", "hello")]


def test_a_failed_attempt_says_only_what_was_heard_of_it():
    """Nothing, or the beginning of an answer."""
    prompt = asked(messages=[{"role": "user", "content": "hello"}])
    failed = answered(error="overloaded")
    assert heard(start(), prompt, failed, answered(content="Hi.")) == [("user", "hello"), ("assistant", "Hi.")]
    found = transcript(start(), prompt, event("llm.delta", "10:00:02", {"content": "H"}), failed).messages
    assert [(one.text, one.partial) for one in found] == [("hello", False), ("H", True)]


def test_a_log_whose_requests_tell_nothing_has_its_prompt():
    """The oldest logs hold counts; a call that no answer tells stands beside its result."""
    call = event("tool.call", "10:00:02", {"tool": "read", "input": {"path": "a"}, "output": "x"})
    told = [start(prompt="hello"), asked(messages_count=1), call, answered(content="Hi.")]
    assert heard(*told) == [("user", "hello"), ("tool", "x"), ("assistant", "Hi.")]
    assert [(c.tool, c.arguments) for c in transcript(*told).messages[1].calls] == [("read", '{"path": "a"}')]


def test_a_compaction_takes_nothing_back():
    """What it summed up was said; the summary is what the model heard then."""
    done = event("compaction.end", "10:00:04", {"success": True, "summary": "They greeted."})
    told = [
        *tell(CALM)[:-1],
        done,
        asked(messages=[{"role": "user", "content": "They greeted."}, {"role": "user", "content": "more"}]),
    ]
    assert heard(*told) == [*meant(CALM), ("summary", "They greeted."), ("user", "more")]


@pytest.mark.parametrize("reason", ["fork", "restored"])
def test_a_fork_has_said_what_it_inherited(reason):
    """Its first request counts that among the earlier messages."""
    inherited = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Hi."}]
    told = [
        start(parent={"session": "p"}), event("history.add", "10:00:00", {"messages": inherited, "reason": reason}),
        asked(messages=[{"role": "user", "content": "go on"}], earlier_messages=2), answered(content="Ok."),
    ]  # fmt: skip
    assert heard(*told) == [("user", "hello"), ("assistant", "Hi."), ("user", "go on"), ("assistant", "Ok.")]


def test_what_was_added_is_said_once():
    """Though the next request repeats it; what is taken back is not, and what was cleared away was said all the same."""
    added = {"role": "user", "content": "by the way"}
    told = [
        *tell(CALM[:1])[:-1], event("history.add", "10:00:03", {"messages": [added], "reason": "added"}),
        asked(messages=[{"role": "assistant", "content": "Hi."}, added, {"role": "user", "content": "go"}], earlier_messages=1),
        event("history.pop", "10:00:04", {"count": 1}), asked(messages=[{"role": "user", "content": "go"}], earlier_messages=3),
    ]  # fmt: skip
    assert [text for _, text in heard(*told)] == ["hello", "Hi.", "by the way", "go"]
    assert transcript(*told).taken_back == 1
    cleared = [*told, event("history.clear", "10:00:05", {}), asked(messages=[{"role": "user", "content": "hello"}])]
    assert [text for _, text in heard(*cleared)] == ["hello", "Hi.", "by the way", "go", "hello"]


def test_damage_is_counted():
    """And the first of it is named."""
    problem = Problem(path="a.jsonl", line=2, offset=9, kind="not_json", detail="?")
    found = fold_transcript([*as_events(tell(CALM)), *[problem] * 30])
    assert (found.problem_count, len(found.problems)) == (30, 20)


@pytest.mark.parametrize(
    "data",
    [None, 7, "x", {"messages": 7}, {"messages": [None, 7, {"role": 3}]}, {"tools": 9, "earlier_messages": True}],
)
def test_odd_payloads_are_no_error(data):
    """Whatever a log holds."""
    kinds = (
        "session.start",
        "llm.request",
        "llm.delta",
        "llm.response",
        "tool.call",
        "compaction.end",
        "history.add",
        "history.pop",
    )
    transcript(*({"type": kind, "ts": "", "data": data} for kind in kinds))


def test_long_texts_are_kept_in_part():
    """So that memory has an end; they are still told apart by their ends."""
    one, other = (transcript(*tell([("x" * 100 + end, ["ok"])]), kept=10).messages[0] for end in "ab")
    assert one.text == other.text == "x" * 10
    assert one.digest != other.digest


def test_later_texts_of_a_long_session_are_kept_shorter(monkeypatch):
    """So much of all texts is kept; what is left out is counted, and digests are those of whole texts."""
    monkeypatch.setattr(module, "MOST_HELD", 150)
    monkeypatch.setattr(module, "KEPT_LATER", 5)
    talk = tell([(f"{n}" * 100, ["ok"]) for n in range(1, 5)])
    messages = transcript(*talk, kept=80).messages
    asks = [one for one in messages if one.role == "user"]
    assert [len(one.text) for one in asks] == [80, 80, 5, 5]
    assert [one.left_out for one in asks] == [20, 20, 95, 95]
    whole = [one for one in transcript(*talk).messages if one.role == "user"]
    assert [one.digest for one in asks] == [one.digest for one in whole]
    assert [len(one.text) for one in whole] == [100] * 4
