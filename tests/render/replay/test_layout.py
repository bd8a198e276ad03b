"""How blocks look: the blank lines between them, the words of each, and that no log can act through them."""

import re

from hypothesis import given
from hypothesis import strategies as st

from sessionlog.events.envelope import Event
from sessionlog.render.escape import terminal
from sessionlog.render.replay import Paint, fold_replay, lay_out
from sessionlog.render.replay.lines import Limits, View
from tests.profiles import examples
from tests.render.replay.test_totals import summary

TERMINAL = View(width=80, exact=False)
PLAIN = View()
SGR = re.compile(r"\x1b\[[0-9;]*m")


def show(*rows, view=PLAIN, paint=None, **options):
    """The lines of a session of (type, data) rows."""
    blocks = fold_replay(events_of(*rows), session_id="s", **options)
    paint = paint or Paint()
    return [paint(line) for lines in lay_out(blocks, view) for line in lines]


def events_of(*rows):
    """Events of (type, data) rows."""
    return [Event(session_id="s", seq=0, type=kind, ts="2026-11-21T10:00:00Z", data=data) for kind, data in rows]


def beside_the_margin(lines):
    """What stands right of the times and numbers."""
    return [line[8:] for line in lines]


def test_tool_calls_stand_with_their_answer():
    """No blank line between an answer and its calls; one before the next thing."""
    call = {"tool": "ls", "output": "a"}
    lines = show(("llm.response", {"content": "so"}), ("tool.call", call), ("tool.call", call), ("compaction.end", {}))
    assert lines[1:9] == ["", "◂ answer", "  so", "  ⚙ ls", "    │ a", "  ⚙ ls", "    │ a", ""]


def test_a_terminal_reads_arguments_as_a_person_says_them():
    """The main argument stands beside the tool's name, short ones after it, texts of several lines below."""
    data = {"tool": "edit", "input": {"new": "a\nb", "path": "src/x.py", "count": 2, "mode": "all of it"}}
    lines = beside_the_margin(show(("tool.call", data), view=TERMINAL))
    assert lines[2:6] == ['  ⚙ edit  src/x.py  count=2 mode="all of it"', "    new:", "    › a", "    › b"]


def test_a_pipe_reads_arguments_as_logged():
    """Plain text has the JSON, compact and in order, on a line of its own."""
    lines = show(("tool.call", {"tool": "edit", "input": {"b": "<x>", "a": [1, None]}, "duration_ms": 0}))
    assert lines[2:4] == ["  ⚙ edit  0 ms", '    {"b":"<x>","a":[1,null]}']


def test_a_script_is_shown_as_lines():
    """A command of several lines is no JSON text full of backslashes."""
    lines = beside_the_margin(show(("tool.call", {"tool": "bash", "input": {"command": "a\nb"}}), view=TERMINAL))
    assert lines[2:5] == ["  ⚙ bash", "    › a", "    › b"]


def test_a_null_argument_is_shown_and_an_absent_one_is_not():
    """The model said null, or it said nothing."""
    assert show(("tool.call", {"tool": "t", "input": None}))[3] == "    null"
    assert "null" not in "".join(show(("tool.call", {"tool": "t"})))


def test_a_failed_tool_says_so_beside_its_name_or_below():
    """A short error is a figure; a long one is a text."""
    assert show(("tool.call", {"tool": "t", "error": "exit 1", "duration_ms": 3}))[2] == "  ⚙ t  ✘ exit 1 · 3 ms"
    long = show(("tool.call", {"tool": "t", "error": "no " * 20}))
    assert long[2] == "  ⚙ t  ✘ failed"
    assert long[3].startswith("    ✘ no no")


def test_the_name_of_a_command_is_no_provider():
    """A harness served the requests in the Go original's logs only; ours name the command that was recorded there."""
    assert show(("session.start", {"v": 1, "resolved_harness": "true"}))[0] == "━━ s · 2026-11-21 10:00:00 UTC ━━"
    assert show(("session.start", {"resolved_harness": "claude"}))[0] == "━━ s · claude · 2026-11-21 10:00:00 UTC ━━"


def test_an_unusual_finish_is_said():
    """An answer that ran into a limit is not one that was finished."""
    assert "stopped: length" in show(("llm.response", {"content": "x", "finish_reason": "length"}))[2]
    assert "stopped" not in show(("llm.response", {"content": "x", "finish_reason": "end_turn"}))[2]


def test_overrides_say_what_differed():
    """The axes that differ first, then those that agree; an axis without a verdict counts as disagreement."""
    pin = {"user_pin": {"harness": "h", "model": "a"}, "auto_decision": {"harness": "h", "model": "b"}}
    partly = {**pin, "axes_overridden": ["harness", "model"], "match_per_axis": {"harness": True, "model": False}}
    assert show(("override", partly))[2] == (
        "⇄ override  you pinned model=a; routing had chosen model=b (disagrees) · agrees on harness=h"
    )
    silent = {**pin, "axes_overridden": ["harness", "model"]}
    assert (
        "you pinned harness=h model=a; routing had chosen harness=h model=b (disagrees)"
        in show(("override", silent))[2]
    )
    same = {"user_pin": {"model": "a"}, "auto_decision": {"model": "a"}, "match_per_axis": {"model": True}}
    assert show(("override", same))[2] == "⇄ override  you pinned model=a; routing had chosen the same (agrees)"


def test_many_candidates_are_counted():
    """Five are shown, all with --full."""
    rows = ("routing_decision", {"model": "m", "candidates": [{"model": f"m{n}", "score": n} for n in range(8)]})
    assert "  │ … +3 candidates (--full)" in show(rows)
    assert "  │ m7 · score 7" in show(rows, view=View(limits=Limits()))


def test_the_end_tells_what_routing_changed():
    """Facts that start and end share are not said twice; those that differ are."""
    start = {"v": 1, "model": "a", "selected_endpoint": "x", "metadata": {"k": 1}}
    same = show(("session.start", start), ("session.end", {**start, "status": "success"}))
    assert same[-2:] == ["", "━━ success ━━"]
    moved = show(("session.start", start), ("session.end", {"selected_endpoint": "y", "model": "b", "metadata": {}}))
    assert "server       endpoint y" in moved
    assert "model        b" in moved


def test_money_says_how_it_is_known():
    """A 0 that no price list was asked about is not called free; an end that says less is quoted."""
    start, zero = ("session.start", {"v": 1, "provider": "p", "model": "m"}), {"cost_usd": 0}
    assert show(start, ("session.end", zero))[-1] == "━━ ended · $0 ━━"
    free, paid = summary(requests=1, known_nano=0), summary(requests=1, known_nano=2_000_000_000)
    assert show(start, ("session.end", zero), totals=lambda: free)[-1] == "━━ ended · 1 request · $0 (free) ━━"
    response = ("llm.response", {"cost_usd": 2})
    assert show(start, response, ("session.end", {"cost_usd": 0.5}), totals=lambda: paid)[-1] == (
        "━━ ended · 1 request · $2.00 (the end has $0.50) ━━"
    )
    assert show(start, response, ("session.end", zero), totals=lambda: paid)[-1].endswith("$2.00 (the end has $0) ━━")
    assert show(start, response, totals=lambda: summary(requests=1))[-1] == "━━ no end · 1 request · cost unknown ━━"
    used = ("session.end", {"tokens": {"input": 5}})
    unknown = lambda: summary(requests=0, input_tokens=5)  # noqa: E731
    assert show(start, used, totals=unknown)[-1] == "━━ ended · 5 in · 0 out · cost unknown ━━"
    first = show(start, response, used, response, used, totals=unknown)
    assert "━━ ended · 5 in · 0 out ━━" in first, "an earlier end that names no cost does not deny those above it"


def test_an_output_is_not_an_answer():
    """What a session gave back is told under its own name, beside what the model said last."""
    lines = show(
        ("llm.response", {"content": "so", "model": "m"}), ("session.end", {"output": "two\nlines", "model": "m"})
    )
    assert lines[2:] == ["◂ m", "  so", "", "output ▸ two", "         lines", "", *lines[-2:]]
    assert lines[-1].startswith("━━ ended")


def test_a_session_that_may_still_run_is_running_only_at_a_terminal():
    """A text for a diff does not depend on when it was made."""
    row = ("llm.response", {"content": "x"})
    young = View(width=80, exact=False, now=TERMINAL.now.replace(year=2026, month=11, day=21, hour=10, minute=5))
    assert "━━ running" in show(row, view=young)[-1]
    assert "no end: killed?" in show(row, view=View(width=80, exact=False, now=young.now.replace(hour=11)))[-1]
    assert show(row)[-1] == "━━ no end ━━"


TEXT = st.text(alphabet=st.sampled_from("ab \n\r\t\x00\x1b\x07\x7f\x9b\u202e\u200b\ud800\U000e0041日[<"), max_size=30)
JSON = st.recursive(
    TEXT | st.integers(-(10**30), 10**30) | st.none() | st.booleans() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
FIELDS = {
    "session.start": ["provider", "model", "work_dir", "prompt", "system_prompt", "metadata", "sticky", "utilization",
                      "attempted_providers", "failover_count", "selected_route", "resolved_model", "reasoning"],
    "llm.request": ["messages", "tools", "model", "messages_count"],
    "llm.response": ["content", "tool_calls", "usage", "cost_usd", "model", "error", "finish_reason", "attempt_index"],
    "llm.delta": ["content", "tool_call_name", "tool_call_args", "err"],
    "tool.call": ["tool", "input", "output", "error", "duration_ms", "id"],
    "routing_decision": ["provider", "model", "reason", "candidates", "endpoint"],
    "override": ["user_pin", "auto_decision", "axes_overridden", "match_per_axis", "auto_score", "reason_hint", "outcome"],
    "rejected_override": ["user_pin", "rejection_error"],
    "compaction.end": ["summary", "error", "warning", "file_ops", "tokens_before", "messages_after"],
    "reasoning.stall": ["model", "timeout_ms", "reasoning_tail"],
    "log.gap": ["events", "reason"],
    "\x1b[31mnew": ["anything"],
    "session.end": ["status", "output", "error", "tokens", "cost_usd", "metadata", "model", "cost_cap_usd"],
}  # fmt: skip
ROWS = st.sampled_from(sorted(FIELDS)).flatmap(
    lambda kind: st.tuples(st.just(kind), st.dictionaries(st.sampled_from(FIELDS[kind]), JSON))
)


@examples(100)
@given(st.lists(ROWS, max_size=6))
def test_p18_nothing_in_a_log_can_act_on_a_terminal(rows):
    """Plain, wrapped or coloured: no character that acts, and no sequence but colours of our own."""
    for view, paint in ((PLAIN, Paint()), (TERMINAL, Paint()), (TERMINAL, Paint(color_system="standard"))):
        lines = show(*rows, view=view, paint=paint, all_messages=True, chosen=lambda _: True)
        text = SGR.sub("", "\n".join(lines)) if paint._system else "\n".join(lines)
        assert terminal(text, newline=True, tab=True) == text


def test_thoughts_stand_before_the_answer_and_are_cut():
    """A person sees that they are none of it, and how much more there is."""
    thought = "\n".join(f"step {n}" for n in range(20))
    lines = show(("llm.response", {"content": "Done.", "reasoning": thought}))
    assert lines[3:5] == ["  thinking ▸ step 0", "             step 1"]
    assert lines[9:11] == ["             … +14 lines, 108 characters (--full)", "  Done."]
    message = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "A"}]}
    assert "  thinking ▸ Hm." in show(("llm.response", {"content": "A", "message": message}))


def test_what_a_sub_agent_does_stands_behind_its_own_bar():
    """Its name is said where it begins; the session's own answers have none, and numbers are of these alone."""
    side = {"content": "found it", "agent": "explore"}
    rows = (
        ("llm.response", {"content": "look"}), ("llm.response", side), ("tool.call", {"tool": "rg", "agent": "explore"}),
        ("llm.response", {"content": "so"}),
    )  # fmt: skip
    assert show(*rows)[2:-2] == [
        "◂ answer", "  look", "", "  ┆ sub-agent explore", "  ┆ ◂ answer", "  ┆   found it", "  ┆   ⚙ rg", "", "◂ answer",
        "  so",
    ]  # fmt: skip
    blocks = list(fold_replay(events_of(*rows), session_id="s"))
    assert [(block.agent, getattr(block, "request", None)) for block in blocks[1:-1]] == [
        ("", 1), ("explore", 0), ("explore", None), ("", 2)
    ]  # fmt: skip
    assert [block.agent for block in fold_replay(events_of(*rows), subagents="only")][1:-1] == ["explore", "explore"]
    assert [block.agent for block in fold_replay(events_of(*rows), subagents="none")][1:-1] == ["", ""]


def test_the_margin_has_times_that_change_and_numbers():
    """The number is on an answer's first line, the minute once, the day where it changes; a narrow terminal has none."""
    rows = [
        ("2026-11-21T10:00:00Z", "session.start", {"prompt": "go"}),
        ("2026-11-21T10:00:59Z", "llm.response", {"content": "one"}),
        ("2026-11-21T10:01:00Z", "llm.response", {"content": "two"}),
        ("2026-11-22T10:01:00Z", "llm.response", {"content": "three\nlines\nof text"}),
    ]
    events = [Event(session_id="s", seq=0, type=kind, ts=ts, data=data) for ts, kind, data in rows]
    plain = Paint()
    lines = [plain(line) for lines in lay_out(fold_replay(events, session_id="s"), TERMINAL) for line in lines]
    assert [line[:8] for line in lines[2:-2]] == [
        " 10:00  ", "", "    #1  ", "        ", "", "    #2  ", " 10:01  ", "", "    #3  ", "22 Nov  ", " 10:01  ", "        "
    ]  # fmt: skip
    narrow = View(width=59, exact=False)
    assert [plain(line) for lines in lay_out(fold_replay(events, session_id="s"), narrow) for line in lines][
        2
    ] == "you ▸ go"


def test_a_time_that_goes_back_over_midnight_has_its_day():
    """A sub-agent's log is later in the file and earlier in time."""
    times = ("2026-11-22T23:59:10Z", "2026-11-23T00:00:05Z", "2026-11-22T23:59:30Z", "2026-11-23T00:00:06Z")
    rows = [Event(session_id="s", seq=0, type="llm.response", ts=ts, data={"content": "a"}) for ts in times]
    lines = [Paint()(line) for lines in lay_out(fold_replay(rows, session_id="s"), TERMINAL) for line in lines]
    assert [line[:6] for line in lines[1:-2] if line[:6].strip()] == [
        "    #1", " 23:59", "    #2", "23 Nov", "    #3", "22 Nov", "    #4", "23 Nov",
    ]  # fmt: skip
