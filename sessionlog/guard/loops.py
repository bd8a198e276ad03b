"""Loops: the same calls with the same results, again and again, as the end of the session's log has them.

A loop is one call, or a short cycle of calls, that is repeated without another call or a prompt between and without a
new result. The log shows the calls before; the call that the hook is asked about is the last one, and has no result
yet. What differs from call to call without meaning anything (a chunk's id, the remark about a command) does not count
as new. Calls that run side by side are no loop, because none has a result, and neither are those that only wait for a
program or a sub-agent in the background.
"""

from __future__ import annotations

from sessionlog.guard.fresh_ledger import read_end

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from sessionlog.guard.hook import Agent, Hook

LONGEST_CYCLE = 4
"""Calls of the longest cycle that is searched for."""

_TAIL = 1 << 20
"""Bytes of the log that are searched."""

_COMMANDS = ("command", "cmd")
_REMARKS = frozenset({"description", "justification", "timeout", "timeout_ms", "yield_time_ms", "max_output_tokens"})
"""Arguments beside a command that do not change what it does."""

_UNESCAPED = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/")
"""Characters that the agents' JSON never escapes."""

_LONGEST_TEXT, _LONGEST_WORDS = 4096, 8

_DENIED = "The agent goes in circles: "
"""How the sentence of a denied loop begins (see `render.guard`), which Codex logs as the result of the call."""


class Call:
    """A tool call.

    Attributes:
        what: The tool and its arguments, in one form.
        result: Its result, without what always differs; None while it has none.
    """

    __slots__ = ("result", "what")

    def __init__(self, what: tuple[str, str], result: str | None = None) -> None:
        self.what = what
        self.result = result


def find_repeats(hook: Hook, least: int) -> int:
    """Return how often the hook's call, or a cycle that ends with it, was made in a row; 0 if less than `least` times.

    The call itself is counted.
    """
    if hook.moment != "call" or not least or not _may_repeat(hook, least - 1):
        return 0
    count = count_repeats(logged_calls(hook))
    return count if count >= least else 0


def _may_repeat(hook: Hook, times: int) -> bool:
    """Whether the end of the log has each long word of the call's arguments so often: few calls need a closer look.

    A word is in the log as it is, however deep its JSON is quoted.
    """
    words = sorted(set(_words(_without_remarks(hook.tool_input))), key=len)[-_LONGEST_WORDS:]
    end = read_end(hook.call_log, _TAIL)
    return all(end.count(word.encode()) >= times for word in words)


def _words(value: Any) -> Iterator[str]:
    """Yield the words of the texts in a JSON value, of a long one of its beginning."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _words(one)
    elif isinstance(value, str):
        yield from "".join(sign if sign in _UNESCAPED else " " for sign in value[:_LONGEST_TEXT]).split()


def count_repeats(calls: Sequence[Call]) -> int:
    """Return how often the last call, or the cycle that ends with it, occurs at the end, at least 1."""
    return max((_count(calls, period) for period in range(1, LONGEST_CYCLE + 1)), default=1)


def _count(calls: Sequence[Call], period: int) -> int:
    """How often a cycle of so many calls ends with the last call."""
    length = 0
    while length + period < len(calls):
        one, before = calls[-1 - length], calls[-1 - length - period]
        is_new = before.result is None or (one.result is not None and one.result != before.result)
        if one.what != before.what or is_new:
            break
        length += 1
    return length // period + 1


def logged_calls(hook: Hook) -> list[Call]:
    """Return the calls since the last prompt or wait, as the end of the log has them, up to the hook's.

    The hook's call is as the log has it, if it is there: Codex gives its hooks other names and arguments.
    """
    from sessionlog.sources.contents import text_of
    from sessionlog.sources.registry import source_of
    from sessionlog.sources.steps import Prompt, ToolCall, ToolResult

    calls: dict[str, Call] = {}
    present = Call((hook.tool, canonical(hook.tool_input)))
    for step in source_of(hook.agent.id).read_tail(hook.call_log, _TAIL):
        if isinstance(step, ToolCall):
            if step.tool in hook.agent.waits:
                calls.clear()
            call = Call((step.tool, canonical(step.input)))
            if hook.call_id and hook.call_id == (step.id or step.key):
                present = call
                break
            calls[step.key] = call
        elif isinstance(step, ToolResult) and step.key in calls and not step.pending:
            calls[step.key].result = _result(step.output, hook.agent)
        elif isinstance(step, Prompt) and step.role == "user" and text_of(step.text):  # results come without a text
            calls.clear()
    return [*(call for call in calls.values() if _DENIED not in (call.result or "")), present]


def canonical(given: Any) -> str:
    """Return arguments as one text: JSON with sorted keys, without remarks; a text that is no JSON as it is."""
    import json

    value = _without_remarks(_decoded(_decoded(given)))  # Codex logs the arguments as a text of JSON
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _without_remarks(value: Any) -> Any:
    if isinstance(value, dict) and any(key in value for key in _COMMANDS):
        return {key: one for key, one in value.items() if key not in _REMARKS}
    return value


def _decoded(given: Any) -> Any:
    from sessionlog.sources.contents import read_json

    value = read_json(given)
    return given if value is None and isinstance(given, str) else value


def _result(output: Any, agent: Agent) -> str:
    """Return a result without the lines that always differ; pictures and other parts without a text as their JSON."""
    import json

    from sessionlog.sources.contents import parts_of, text_of
    from sessionlog.sources.volatile_lines import VOLATILE_LINES

    lines = text_of(output).split("\n")
    others = [part for part in parts_of(output) if not isinstance(part.get("text"), str)]
    kept = [line for line in lines if not line.startswith(VOLATILE_LINES.get(agent.id, ()))]
    return "\n".join([*kept, *(json.dumps(part, sort_keys=True, default=str) for part in others)])
