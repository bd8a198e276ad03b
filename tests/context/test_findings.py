"""What a session paid for without need: made-up sessions whose every number is known."""

import pytest

from sessionlog.context.findings import LARGE, find_in_session
from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.reader.stream import read_events
from tests.ledger.entries import PRICES
from tests.sources.logs import answered, asked, event, start, write_log

IN, OUT, READ, WRITE = 1_000, 4_000, 100, 1_250
"""Nano-dollars of a token of acme's model `m`."""
USAGE = {"input": 10, "output": 5, "cache_read": 900, "cache_write": 100}
USED = 10 * IN + 5 * OUT + 900 * READ + 100 * WRITE
TEXT = "one line of a file\n" * 200
SERVER = {"name": "mcp__jira__find", "description": "Finds issues " * 40}
READER = {"name": "mcp__files__read", "description": "Reads files " * 40}


class Run:
    """A session that asks, is answered, and calls tools."""

    def __init__(self, folder, **facts):
        self.path = folder / "s.jsonl"
        self.items = [start(provider="acme", model="m", work_dir="/src/api", **facts)]
        self.clock = 0

    def _time(self):
        self.clock += 1
        return f"10:{self.clock // 60:02}:{self.clock % 60:02}"

    def ask(self, *calls, usage=USAGE, **more):
        """A request whose answer makes calls: (tool, input, output, error)."""
        tools = {"tools": more.pop("tools")} if "tools" in more else {}
        self.items.append(asked(self._time(), model="m", messages=[{"role": "user", "content": "go"}], **tools))
        listed = [{"id": f"{self.clock}-{n}", "name": call[0], "arguments": call[1]} for n, call in enumerate(calls)]
        self.items.append(answered(self._time(), content="ok", model="m", usage=usage, tool_calls=listed, **more))
        for told, (tool, given, output, *error) in zip(listed, calls, strict=True):
            data = {"tool": tool, "id": told["id"], "input": given, "output": output}
            self.items.append(event("tool.call", self._time(), data | ({"error": error[0]} if error else {})))

    def compact(self):
        """The history becomes a summary."""
        self.items.append(event("compaction.end", self._time(), {"success": True, "summary": "done so far"}))

    def found(self, kind, source="native"):
        """(subject, request, tokens, known, estimated) of each finding of a kind."""
        write_log(self.path, *self.items)
        events = [one for one in read_events(self.path) if hasattr(one, "data")]
        findings = find_in_session(events, source, PRICES.price).findings
        return [
            (one.subject, one.request, one.tokens, one.known_nano, one.estimated_nano)
            for one in findings
            if one.kind == kind
        ]


@pytest.fixture
def run(tmp_path):
    """A session without a request yet."""
    return Run(tmp_path)


def read(path="/src/api/app.py", output=TEXT, **more):
    """A call that reads a file."""
    return "read", {"file_path": path, **more}, output


def test_a_file_that_is_read_again_unchanged_is_paid_for_by_each_later_request(run):
    """As new by the first request, as cached by the other two; the first reading is no finding."""
    run.ask(read())
    run.ask(read())
    for _ in range(3):
        run.ask()
    tokens = count_tokens(TEXT, "m")
    assert run.found("repeated_result") == [("api/app.py", 3, 3 * tokens, None, tokens * (WRITE + 2 * READ))]


def test_another_part_or_another_content_is_no_repetition(run):
    """Neither is what was read before a compaction, nor a result that no request sends."""
    run.ask(read())
    run.ask(read(offset=10))
    run.ask(read(output=TEXT + "changed"))
    run.compact()
    run.ask(read())
    run.ask(read())
    assert run.found("repeated_result") == []


def test_a_large_result_is_carried_to_the_compaction(run):
    """Named by its tool; what follows the compaction no longer pays for it."""
    text = "alpha beta\n" * LARGE
    run.ask(("bash", {"command": "make"}, text))
    run.ask()
    run.ask()
    run.compact()
    run.ask()
    tokens = count_tokens(text, "m")
    assert run.found("large_result") == [("bash", 2, 2 * tokens, None, tokens * (WRITE + READ))]


def test_without_a_cache_everything_is_paid_for_as_input(run):
    """Each request pays the full price again."""
    plain = {"input": 1000, "output": 5}
    run.ask(read(), usage=plain)
    run.ask(read(), usage=plain)
    run.ask(usage=plain)
    run.ask(usage=plain)
    tokens = count_tokens(TEXT, "m")
    assert run.found("repeated_result") == [("api/app.py", 3, 2 * tokens, None, 2 * tokens * IN)]


def test_a_cache_miss_is_that_of_the_context_report(run):
    """The tokens that had been in the cache, at the price of writing them less that of reading them."""
    run.ask(usage={"input": 0, "output": 5, "cache_write": 10_000})
    run.ask(usage={"input": 0, "output": 5, "cache_read": 4_000, "cache_write": 6_000})
    assert run.found("cache_miss") == [("dropped by the provider", 2, 6_000, None, 6_000 * (WRITE - READ))]


def test_a_compaction_costs_what_is_written_again(run):
    """It is no cache miss."""
    run.ask(usage={"input": 0, "output": 5, "cache_write": 10_000})
    run.compact()
    run.ask(usage={"input": 0, "output": 5, "cache_read": 1_000, "cache_write": 2_000})
    assert run.found("compaction") == [("m", 2, 2_000, None, 2_000 * (WRITE - READ))]
    assert run.found("cache_miss") == []


def test_a_loop_costs_the_requests_after_the_first(run):
    """The same call with the same failed result four times; it is no repeated result."""
    for _ in range(4):
        run.ask(("bash", {"command": "make"}, "no rule" * 100, "exit 2"))
    run.ask()
    assert run.found("loop") == [("bash make", 2, 3 * 1_015, None, 3 * USED)]
    assert run.found("repeated_result") == []


@pytest.mark.parametrize("between", [read(), ("bash", {"command": "make"}, "other", "exit 2")])
def test_other_calls_and_other_results_end_a_loop(run, between):
    """Twice before and twice after are none, and neither are successes, or calls of one answer."""
    same = ("bash", {"command": "make"}, "no rule", "exit 2")
    for call in (same, same, between, same, same):
        run.ask(call)
    run.ask(*[("bash", {"command": "ls"}, "no", "exit 1")] * 3)
    for _ in range(3):
        run.ask(("bash", {"command": "true"}, "fine"))
    assert run.found("loop") == []


def test_failed_requests_cost_what_they_used(run):
    """By the log's cost where it has one; a failure without tokens is no finding."""
    run.ask(error="overloaded", usage={"input": 100, "output": 0})
    run.ask(error="overloaded", usage={"input": 100, "output": 0}, cost_usd=0.5)
    run.ask(error="overloaded", usage=None)
    assert run.found("failed_request") == [("m", 1, 100, None, 100 * IN), ("m", 2, 100, 500_000_000, None)]


def test_tools_that_are_sent_and_never_called(run):
    """An MCP server by its tools together; one that was called is none."""
    run.ask(tools=[SERVER, READER])
    run.ask(("mcp__files__read", {"path": "a"}, "text"))
    run.ask()
    size = count_tokens_json(SERVER, "m")
    assert run.found("unused_tools") == [("mcp jira", 1, 3 * size, None, size * (WRITE + 2 * READ))]


def test_a_removed_tool_is_paid_for_until_then(run):
    """Later requests no longer send it."""
    run.ask(tools=[SERVER])
    run.ask(tools=[])
    run.ask()
    size = count_tokens_json(SERVER, "m")
    assert run.found("unused_tools") == [("mcp jira", 1, size, None, size * WRITE)]


def test_tools_of_ones_own_agent_are_findings_those_of_a_recorded_one_are_not(tmp_path):
    """Whoever writes an agent chooses its tools; those built into another program stay there."""
    for facts, wanted in (({}, ["tool grep"]), ({"wire": "claude-code"}, [])):
        run = Run(tmp_path, **facts)
        run.ask(tools=[{"name": "grep", "description": "Searches"}])
        assert [one[0] for one in run.found("unused_tools")] == wanted


def test_calls_of_sub_agents_use_a_tool_and_are_no_findings(run):
    """Their results are not in the conversation."""
    run.ask(tools=[SERVER])
    for _ in range(3):
        data = {"tool": "mcp__jira__find", "input": {}, "output": TEXT, "agent": "helper"}
        run.items.append(event("tool.call", "10:30:00", data))
    run.ask()
    assert run.found("unused_tools") == run.found("repeated_result") == []


def test_without_a_price_a_finding_has_its_tokens(tmp_path):
    """Its cost is unknown, not 0."""
    run = Run(tmp_path)
    run.items = [start(provider="nobody", model="of-no-list")]
    run.ask(read())
    run.ask(read())
    run.ask()
    write_log(run.path, *run.items)
    found = find_in_session(list(read_events(run.path)), "native", lambda *_: None).findings
    assert [(one.tokens > 0, one.estimated_nano) for one in found] == [(True, None)]


def test_agents_that_log_what_they_sent_have_findings_of_tools(run):
    """Their requests name the tools where these change; built-in ones are theirs."""
    run.ask()
    run.items[-2]["data"]["sent"] = {"keep": 0, "messages": [], "tools": [SERVER, {"name": "Read"}]}
    run.ask()
    run.items[-2]["data"]["sent"] = {"keep": 0, "messages": []}
    size = count_tokens_json(SERVER, "m")
    assert run.found("unused_tools", "claude-code") == [("mcp jira", 1, 2 * size, None, size * (WRITE + READ))]


def test_what_codex_adds_to_each_output_makes_no_difference(run):
    """The times of two equal commands differ."""
    for number in range(2):
        run.ask(("exec_command", {"cmd": "cat a"}, f"Chunk ID: {number}\nWall time: {number} s\n{TEXT}"))
    run.ask()
    assert [one[0] for one in run.found("repeated_result", "codex")] == ["cat a"]


def test_what_a_fork_copied_was_paid_by_the_session_that_it_was_forked_from(run):
    """Inherited requests have no findings; of what stays in the context, a fork pays for its own requests."""
    copied = {"inherited": True, "cost_usd": 0.5}
    failing = ("bash", {"command": "make"}, "no rule", "exit 2")
    run.ask(read(), failing, **copied)
    run.ask(read(), failing, **copied)
    run.ask(failing, error="overloaded", **copied)
    run.ask(usage={**USAGE, "cache_read": 0}, **copied)
    run.ask(failing)
    run.ask(failing)
    run.ask()
    tokens = count_tokens(TEXT, "m")
    assert run.found("repeated_result") == [("api/app.py", 5, 3 * tokens, None, 3 * tokens * READ)]
    assert run.found("failed_request") == run.found("cache_miss") == []
    assert run.found("loop") == [("bash make", 5, 2 * (10 + 5 + 1000), None, 2 * USED)]


def test_a_result_that_only_inherited_requests_sent_is_no_finding_of_the_fork(run):
    """It had left the context before the fork."""
    run.ask(read(), inherited=True)
    run.ask(read(), inherited=True)
    run.ask(inherited=True)
    run.compact()
    run.ask()
    assert run.found("repeated_result") == []
