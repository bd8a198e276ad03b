"""Loops: which calls in a row are the same, as the logs of the agents have them."""

import json
from datetime import UTC, datetime

import pytest

from sessionlog.guard.hook import AGENTS, parse_hook
from sessionlog.guard.loops import Call, canonical, count_repeats, find_repeats
from sessionlog.render.guard import Sentences
from tests.guard.agent_logs import LOGS, ClaudeCode, Codex


def calls(text):
    """Calls of a short notation: `a1 b2 a` is tool a with result 1, b with result 2, and a without a result."""
    return [Call((one[0], "{}"), one[1:] or None) for one in text.split()]


COUNTS = [
    ("a", 1), ("a1 a", 2), ("a1 a1 a1 a", 4), ("b1 a1 a1 a", 3), ("a1 a1 b1 a", 1),
    ("a1 a2 a", 2),  # a new result: the call before had one, so this may have one, too
    ("a1 a2 a2 a2 a", 4), ("a1 a2 a3 a4 a", 2),
    ("a1 b1 a1 b1 a1 b", 3), ("a1 b1 a1 b2 a1 b", 2), ("a1 b1 c1 a1 b1 c1 a1 b1 c", 3),
    ("a1 b1 c1 d1 a1 b1 c1 d", 2), ("a1 b1 c1 d1 e1 a1 b1 c1 d1 e", 1),
    ("a a a a a", 1), ("a1 a1 a a", 2),  # calls side by side, as of five sub-agents: what they return is not known
    ("a1 b1 a1 b1 a b", 3),
]  # fmt: skip


@pytest.mark.parametrize(("text", "count"), COUNTS)
def test_the_longest_loop_counts(text, count):
    """One call or a cycle of up to four, with the same results wherever there are results."""
    assert count_repeats(calls(text)) == count


def test_arguments_have_one_form():
    """The order of keys, the quoting of JSON and the remarks beside a command make no difference."""
    one = canonical({"command": "ls", "description": "List", "timeout": 5})
    assert one == canonical('{"timeout": 9, "command": "ls"}') == canonical('"{\\"command\\": \\"ls\\"}"')
    assert one != canonical({"command": "ls src"})
    assert canonical({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1}) != canonical({"a": 2})
    assert canonical({"description": "x"}) != canonical({"description": "y"})
    assert canonical("*** Begin Patch") == "*** Begin Patch"


def repeats(log, hook, least=5):
    """What the guard finds for a hook of a log."""
    return find_repeats(parse_hook(AGENTS[log.agent], json.dumps(hook)), least)


@pytest.mark.parametrize("agent", LOGS)
def test_the_fifth_call_with_the_same_results_is_a_loop(agent, tmp_path):
    """Ids, durations and process numbers in results are not new results."""
    log = LOGS[agent](tmp_path)
    found = []
    for _ in range(6):
        found.append(repeats(log, log.request()))
        log.result(f"call-{log.calls}", "ls src", "main.py")
    assert found == [0, 0, 0, 0, 5, 6]


@pytest.mark.parametrize("agent", LOGS)
def test_new_results_other_arguments_and_prompts_are_no_loop(agent, tmp_path):
    """Whoever waits for something gets another result at last, and a user may ask for the same again."""
    log = LOGS[agent](tmp_path)
    for number in range(8):
        log.finished(result=f"{number} files")
    assert repeats(log, log.request()) == 0
    log.result(f"call-{log.calls}", "ls src", "none")
    for number in range(8):
        log.finished(f"ls src{number}")
    assert repeats(log, log.request("ls src99")) == 0
    log.result(f"call-{log.calls}", "ls src99", "none")
    for _ in range(8):
        log.finished()
        log.prompt("again")
    assert repeats(log, log.request()) == 0


def with_results(log, tool, results):
    """Log calls of a tool without arguments with these results, and return the hook before one more."""
    for number, result in enumerate(results):
        block = {"type": "tool_use", "id": f"{tool}-{number}", "name": tool, "input": {}}
        log._row("assistant", {"id": f"{tool}-{number}", "role": "assistant", "content": [block]})
        log.result(f"{tool}-{number}", "", result)
    return log.hook("PreToolUse", tool_name=tool, tool_input={})


def _picture(data):
    return [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}]


@pytest.mark.parametrize(("last", "count"), [("AAAA", 5), ("BBBB", 2)])
def test_another_picture_is_a_new_result(last, count, tmp_path):
    """An agent that looks at a screen gets nothing but pictures."""
    log = ClaudeCode(tmp_path)
    hook = with_results(log, "screenshot", [*[_picture("AAAA")] * 3, _picture(last)])
    assert repeats(log, hook, least=2) == count


def test_waiting_for_the_background_is_no_loop(tmp_path):
    """A build may take an hour, and each look at it has the same result until then; the calls around it are no loop."""
    log = ClaudeCode(tmp_path)
    assert repeats(log, with_results(log, "TaskOutput", ["running"] * 8)) == 0
    for number in range(8):
        log.finished("tail build.log")
        with_results(log, "TaskOutput", [f"running {number}"])
    assert repeats(log, log.request("tail build.log")) == 0


def test_a_denied_call_does_not_end_a_loop(tmp_path):
    """Codex asks its model again after a denial: its sentence is no new result."""
    log = Codex(tmp_path)
    for _ in range(4):
        log.finished()
    words = Sentences(config_path="/c", home="/", tz="UTC", now=datetime.now(UTC)).repeated("Bash", "ls src", 5)
    found = []
    for _ in range(3):
        found.append(repeats(log, log.request()))
        log.result(f"call-{log.calls}", "ls src", f"Command blocked by PreToolUse hook: {words}. Command: ls src")
    assert found == [5, 5, 5]


def test_remarks_may_differ(tmp_path):
    """A model describes the same command in other words."""
    log = ClaudeCode(tmp_path)
    for _ in range(4):
        log.finished("make")
    hook = log.request("make")
    hook["tool_input"]["description"] = "Compile everything once more"
    assert repeats(log, hook) == 5


def test_repeats_of_zero_turn_it_off(tmp_path):
    """The log is not even read."""
    log = ClaudeCode(tmp_path)
    for _ in range(8):
        log.finished()
    assert repeats(log, log.request(), least=0) == 0
    assert repeats(log, log.prompt_hook()) == 0


def test_a_subagents_loop_is_in_its_own_log(tmp_path):
    """Its hook names the session's log, and the sub-agent."""
    main, log = ClaudeCode(tmp_path), ClaudeCode(tmp_path, subagent="a17")
    for _ in range(4):
        log.finished("make test")
    hook = log.request("make test") | {"transcript_path": str(main.path)}
    assert repeats(main, hook) == 0
    assert repeats(main, hook | {"agent_id": "a17"}) == 5


def test_a_call_without_text_can_be_a_loop(tmp_path):
    """As one without arguments."""
    log = ClaudeCode(tmp_path)
    for number in range(4):
        block = {"type": "tool_use", "id": f"c-{number}", "name": "TaskList", "input": {}}
        log._row("assistant", {"id": f"m-{number}", "role": "assistant", "content": [block]})
        log.result(f"c-{number}", "", "none")
    hook = log.hook("PreToolUse", tool_name="TaskList", tool_input={})
    assert repeats(log, hook) == 5


@pytest.mark.parametrize("damage", [b"", b"{", b"\xff\0\n" * 9, b'{"type":"assistant"}\n', b"[" * 9000 + b"\n"])
def test_a_damaged_log_has_no_loop(damage, tmp_path):
    """Nor has one that is missing."""
    log = Codex(tmp_path)
    hook = log.call_hook()
    log.path.write_bytes(damage)
    assert repeats(log, hook) == 0
    log.path.unlink()
    assert repeats(log, hook) == 0


def test_a_long_log_is_searched_at_its_end(tmp_path):
    """The megabyte that is read begins within a row."""
    log = ClaudeCode(tmp_path)
    log.finished(result="x" * 3_000_000)
    for _ in range(4):
        log.finished("make test")
    assert repeats(log, log.request("make test")) == 5
