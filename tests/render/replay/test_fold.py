"""The fold: what is worth showing, once, as soon as it is known, whatever the log holds."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.errors import Problem
from sessionlog.events.envelope import KNOWN_TYPES, Event
from sessionlog.render.replay import fold_replay
from sessionlog.render.replay.blocks import (
    MessageBlock,
    NoteBlock,
    PayloadBlock,
    RequestBlock,
    ResponseBlock,
    RewriteBlock,
    SessionEndBlock,
    SessionStartBlock,
    ToolCallBlock,
)
from tests.profiles import examples


def event(kind, data=None, ts="2026-11-21T10:00:00Z", **extra):
    """An event of one session."""
    return Event(session_id="s", seq=0, type=kind, ts=ts, data=data, extra=extra)


def fold(*events, **options):
    """The blocks of some events, without the end that a log without end gets."""
    return [b for b in fold_replay(events, **options) if not (isinstance(b, SessionEndBlock) and b.end is None)]


def said(blocks):
    """(role, text) of the messages, tool results and answers among the blocks."""
    return [
        (block.role, block.text) if isinstance(block, MessageBlock) else ("answer", block.text)
        for block in blocks
        if isinstance(block, MessageBlock) or (isinstance(block, ResponseBlock) and not block.error)
    ]


SYSTEM = {"role": "system", "content": "be brief"}
HELLO = {"role": "user", "content": "hello"}
START = event("session.start", {"v": 1, "prompt": "hello", "system_prompt": "be brief"})


def answer(text="", *calls, **more):
    """An llm.response."""
    return event("llm.response", {"content": text, "tool_calls": list(calls), **more})


def request(*messages):
    """An llm.request."""
    return event("llm.request", {"messages": list(messages)})


def test_prompts_of_the_start_are_not_said_again_by_the_first_request():
    """session.start and the first llm.request hold the same prompts."""
    assert said(fold(START, request(SYSTEM, HELLO))) == [("system", "be brief"), ("user", "hello")]


def test_another_system_prompt_is_shown():
    """What the model really got is shown where it differs from the start's."""
    blocks = fold(START, request({"role": "system", "content": "be long"}, HELLO))
    assert said(blocks) == [("system", "be brief"), ("user", "hello"), ("system", "be long")]


def test_an_answer_is_not_repeated_by_the_request_that_follows():
    """The next request brings the answer back; only the new prompt is shown."""
    blocks = fold(
        START,
        request(SYSTEM, HELLO),
        answer(" hi \n"),
        request(SYSTEM, HELLO, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "bye"}),
    )
    assert said(blocks)[2:] == [("answer", " hi \n"), ("user", "bye")]


def test_the_same_words_twice_are_two_messages():
    """A person who says `hello` again is shown saying it again."""
    blocks = fold(
        request(HELLO),
        answer("hi"),
        request(HELLO, {"role": "assistant", "content": "hi"}, HELLO),
        answer("hi"),
        request(HELLO, {"role": "assistant", "content": "hi"}, HELLO, {"role": "assistant", "content": "hi"}, HELLO),
    )
    assert [role for role, _ in said(blocks)] == ["user", "answer", "user", "answer", "user"]


def test_a_retried_request_says_nothing_new():
    """The same messages sent again after a failure are not shown again."""
    blocks = fold(request(HELLO), event("llm.response", {"error": "429"}), request(HELLO), answer("hi"))
    assert said(blocks) == [("user", "hello"), ("answer", "hi")]


def test_a_changed_cache_mark_is_not_a_new_message():
    """Providers move their cache marks along the history; what is said stays the same."""
    marked = {"role": "user", "content": [{"type": "text", "text": "hello", "cache_control": {"type": "ephemeral"}}]}
    blocks = fold(request(HELLO), answer("hi"), request(marked, {"role": "assistant", "content": "hi"}))
    assert said(blocks) == [("user", "hello"), ("answer", "hi")]
    assert not [block for block in blocks if isinstance(block, RewriteBlock)]


def test_a_rewritten_history_is_noted_and_only_its_news_shown():
    """After a compaction the request begins with a summary and keeps the last messages."""
    history = [SYSTEM, *({"role": "user", "content": f"question {n}"} for n in range(5))]
    summary = {"role": "user", "content": "so far: five questions"}
    blocks = fold(request(*history), request(SYSTEM, summary, history[-1]))
    [rewritten] = [block for block in blocks if isinstance(block, RewriteBlock)]
    assert (rewritten.left_out, rewritten.kept) == (4, 2)
    assert said(blocks)[-1] == ("user", "so far: five questions")


def test_a_summary_that_was_shown_is_not_said_again():
    """compaction.end shows the summary; the request that begins with it adds nothing."""
    blocks = fold(
        event("compaction.end", {"success": True, "summary": "so far"}), request({"role": "user", "content": "so far"})
    )
    assert said(blocks) == []


def test_two_conversations_in_one_log_do_not_repeat_each_other():
    """A request for a title between two requests of the main conversation repeats nothing of either."""
    title = [{"role": "system", "content": "make a title"}]
    blocks = fold(request(HELLO), answer("hi"), request(*title), request(HELLO, {"role": "assistant", "content": "hi"}))
    assert said(blocks) == [("user", "hello"), ("answer", "hi"), ("system", "make a title")]


def test_all_messages_shows_them_all():
    """On request the repeated messages are shown, behind a line that counts them."""
    blocks = fold(START, request(SYSTEM, HELLO), all_messages=True)
    [asked] = [block for block in blocks if isinstance(block, RequestBlock)]
    assert (asked.messages, asked.tools) == (2, 0)
    assert len(said(blocks)) == 4


def test_a_call_is_shown_once_with_its_result():
    """The answer's call, the tool.call and the message of the next request are one block."""
    call = {"id": "c1", "name": "ls", "arguments": {"dir": "."}}
    blocks = fold(
        request(HELLO),
        answer("", call),
        event("tool.call", {"tool": "ls", "input": {"dir": "."}, "output": "a\nb", "duration_ms": 5}),
        request(
            HELLO,
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "a\nb and what the log cut off"},
        ),
    )
    [ran] = [block for block in blocks if isinstance(block, ToolCallBlock)]
    assert (ran.call.name, ran.output, ran.duration_ms, ran.answered) == ("ls", "a\nb", 5, True)
    assert said(blocks) == [("user", "hello"), ("answer", "")]


def test_a_result_that_is_only_in_the_next_request_belongs_to_its_call():
    """Agents that log no tool.call still show calls with results."""
    call = {"id": "c1", "name": "ls"}
    reply = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a"}]}
    blocks = fold(request(HELLO), answer("", call), request(HELLO, {"role": "assistant", "tool_calls": [call]}, reply))
    [ran] = [block for block in blocks if isinstance(block, ToolCallBlock)]
    assert (ran.call.name, ran.output) == ("ls", "a")


def test_a_call_that_nobody_answers_is_shown_before_the_log_ends():
    """A killed agent leaves calls behind; they are shown as unanswered."""
    blocks = fold(answer("", {"id": "c1", "name": "rm"}))
    assert [(b.call.name, b.answered) for b in blocks if isinstance(b, ToolCallBlock)] == [("rm", False)]


def test_a_failure_is_a_failure():
    """An llm.response with an error is not an empty answer, and what was streamed before is kept."""
    blocks = fold(
        request(HELLO),
        event("llm.delta", {"content": "half a"}),
        event("llm.response", {"error": "connection reset", "latency_ms": 3, "attempt_index": 2}),
    )
    [failed] = [block for block in blocks if isinstance(block, ResponseBlock)]
    assert (failed.error, failed.text, failed.served.attempt) == ("connection reset", "half a", 2)


def test_an_error_that_is_no_text_is_an_error_all_the_same():
    """Writers put objects there; they are failures too."""
    blocks = fold(event("llm.response", {"error": {"code": 7}}), event("tool.call", {"tool": "t", "error": ["no"]}))
    assert [block.error for block in blocks if isinstance(block, ResponseBlock | ToolCallBlock)] == ['{"code":7}', "no"]


def test_deltas_are_shown_only_where_no_response_follows():
    """A finished stream is its response; a broken one is what had arrived."""
    pieces = [event("llm.delta", {"content": part, "model": "m"}) for part in ("he", "llo")]
    assert said(fold(*pieces, answer("hello"))) == [("answer", "hello")]
    [broken] = [block for block in fold(*pieces) if isinstance(block, ResponseBlock)]
    assert (broken.text, broken.unfinished, broken.served.model) == ("hello", True, "m")


def test_quiet_events_are_shown_when_named():
    """Progress is three quarters of a real log: only a person who asks for it sees it."""
    step = event("progress", {"message": "thinking"})
    assert [b for b in fold(START, step) if isinstance(b, NoteBlock)] == []
    [note] = [b for b in fold(START, step, chosen=lambda kind: kind == "progress") if isinstance(b, NoteBlock)]
    assert (note.type, note.text) == ("progress", "thinking")


def test_blocks_come_as_soon_as_they_can_be_told():
    """Each event gives its blocks before the next one is read: a live log is shown live."""
    asked = []

    def live():
        for item in (START, request(SYSTEM, HELLO), answer("hi")):
            asked.append(item.type)
            yield item

    blocks = fold_replay(live())
    assert isinstance(next(blocks), SessionStartBlock)
    assert asked == ["session.start"]
    while not isinstance(next(blocks), ResponseBlock):
        assert asked[-1] != "session.end"


def test_a_log_without_start_has_a_head_and_one_without_end_has_an_end():
    """Torn logs are sessions too."""
    blocks = list(fold_replay([answer("hi")], session_id="file-name"))
    assert isinstance(blocks[0], SessionStartBlock)
    assert (blocks[0].session_id, blocks[0].start) == ("file-name", None)
    assert isinstance(blocks[-1], SessionEndBlock)
    assert blocks[-1].end is None


def test_events_after_the_end_do_not_end_it_twice():
    """A progress line behind session.end is no second session; a request is one that has not ended."""
    end = event("session.end", {"status": "success"})
    assert len([b for b in fold_replay([START, end, event("progress", {})]) if isinstance(b, SessionEndBlock)]) == 1
    assert len([b for b in fold_replay([START, end, request(HELLO)]) if isinstance(b, SessionEndBlock)]) == 2


def test_the_end_says_an_output_only_where_no_answer_did():
    """A harness logs its output in session.end alone."""
    end = event("session.end", {"status": "success", "output": "done"})
    assert fold(START, end)[-1].output == "done"
    assert fold(START, answer("done"), end)[-1].output == ""


def test_fields_beside_the_envelope_are_read_where_data_is_missing():
    """Bench harnesses write `status` next to `type`."""
    [end] = [
        b for b in fold_replay([event("session.end", None, status="graded_pass")]) if isinstance(b, SessionEndBlock)
    ]
    assert end.end.status == "graded_pass"


def test_failures_and_calls_are_read_beside_the_envelope_too():
    """What makes an answer a failure, and what a tool was given, as much as its name."""
    call = event("tool.call", None, tool="ls", input={"dir": "."}, error="exit 1", agent="explore")
    [failed, ran] = fold(event("llm.response", None, error="429"), call)[1:]
    assert (failed.agent, ran.agent) == ("", "explore")
    assert (failed.error, ran.call.name, ran.call.arguments, ran.error) == ("429", "ls", {"dir": "."}, "exit 1")


def test_everything_else_has_a_block():
    """Routing, pins, compaction, gaps, stalls, plans, unknown types and damage are told."""
    blocks = fold(
        START,
        event("routing_decision", {"model": "m"}),
        event("override", {"user_pin": {"model": "m"}}),
        event("rejected_override", {"rejection_error": "no"}),
        event("compaction.start", None),
        event("compaction.end", {"success": True}),
        event("reasoning.stall", {"model": "m"}),
        event("planning.turn", {"plan": "first"}),
        event("log.gap", {"events": 2, "reason": "ENOSPC"}),
        event("from.the.future", [1]),
        Problem(path="x.jsonl", line=7, offset=9, kind="not_json", detail="5 bytes are not JSON"),
        Problem(path="x.jsonl", line=8, offset=9, kind="bad_envelope", detail="no ts", severity="info"),
    )
    kinds = [type(block) for block in blocks[3:]]
    assert kinds == [*[PayloadBlock] * 5, NoteBlock, MessageBlock, NoteBlock, NoteBlock, NoteBlock]
    assert [b.text for b in blocks if isinstance(b, NoteBlock) and b.severity == "damage"] == [
        "2 events were not recorded: ENOSPC",
        "x.jsonl:7 not_json 5 bytes are not JSON",
    ]


def test_a_plan_that_has_been_answered_is_not_said_again():
    """planning.turn repeats the answer of its own request."""
    assert said(fold(answer("the plan"), event("planning.turn", {"plan": "the plan"}))) == [("answer", "the plan")]


def test_memory_does_not_grow_with_what_was_said():
    """Messages are remembered by digest: 20 MB of conversation is folded in a tenth of that."""

    def session():
        for turn in range(200):
            yield request({"role": "user", "content": f"{turn} " + "x" * 50_000})
            yield answer(f"{turn} " + "y" * 50_000, {"id": str(turn), "name": "t"})
            yield event("tool.call", {"tool": "t", "output": f"{turn} " + "z" * 5_000})

    tracemalloc.start()
    try:
        count = sum(1 for _ in fold_replay(session()))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count >= 600
    assert peak < 2_000_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
WORDS = st.sampled_from(
    ["messages", "content", "role", "tool_calls", "error", "usage", "tokens", "cost_usd", "output", "input", "attempt",
     "sticky", "utilization", "candidates", "user_pin", "metadata", "prompt", "latency_ms", "duration_ms", "tools", "id",
     "messages_count", "failover_count", "attempted_providers", "axes_overridden", "match_per_axis", "summary", "plan",
     "count", "reason", "state", "parent", "dropped", "added", "earlier_messages"]
)  # fmt: skip


@examples(150)
@given(st.lists(st.tuples(st.sampled_from(sorted(KNOWN_TYPES)), st.dictionaries(WORDS, JSON, max_size=5) | JSON)))
def test_no_payload_breaks_the_fold(rows):
    """Whatever a log holds where, every event is folded and the session has an end."""
    blocks = list(fold_replay([event(kind, data) for kind, data in rows], all_messages=True, chosen=lambda _: True))
    assert not rows or any(isinstance(block, SessionEndBlock) for block in blocks)
