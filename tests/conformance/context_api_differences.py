"""Where the context API is deliberately better than the original: a closed list of rules, each with its reason.

A rule lists cases, and for each the facts that differ with what ours says there; `GONE` is a fact that ours has not.
What the table does not name is the same in both. `ADDED` names the facts that only ours has in every case.
"""

import re

GONE = object()
"""A fact of the original that ours does not state."""

ADDED = {
    "cached tokens are visible": (
        "what came from a cache is the largest part of a long session's prompts, and was seen nowhere",
        re.compile(r"_usage\.cache_(read|write)_tokens$|\.cache(Read|Write)Tokens$"),
    ),
    "durations are in the JSON": (
        "a step and a turn took the time they took; it was shown as 0, or left out",
        re.compile(r"(perRequestUsage|per_request)\[\d+\]\.durationMs$|^dict\.turnUsage\.durationSeconds$"),
    ),
    "estimates say so": (
        "a number that was guessed must not look like one that was counted",
        re.compile(r"^(dict|tokenSummary)\.estimated$"),
    ),
    "what the provider counted is the total": (
        "the parts of a log are a fraction of its prompt, and a percentage of a window that nobody knows is a guess",
        re.compile(
            r"^dict\.(notInMessages|contextTokens|contextPercentage)$|^(dict|tokenSummary)\.contextWindowKnown$"
        ),
    ),
}

SUPERSEDED = {
    "costs": "the per-run and cumulative budgets of AgentCostStore; superseded by the budgets, which the ledger keeps",
    "usage_tracker_window": "the second window table of AgentUsageTracker; superseded by the one table of windows",
    "usage_tracker_window_table": "as above: two tables that disagree are one too many",
}
"""Parts of the data that no test compares, by decision."""

ELSEWHERE = {"context_window", "context_window_table", "count_tokens", "count_tokens_json"}
"""Parts that the tests of windows and tokens compare."""

_NO_TIME = {"dict.messages[0].timestamp": None}
_TURNS = {f"dict.perRequestUsage[{n}].turnId": turn for n, turn in enumerate((1, 1, 2, 2))}
_PROMPT = {"dict.systemPrompts[2]": "You are terse."}
_ARGUMENTS = {"dict.currentToolCallTokens": 35, "dict.toolCallTokens": 53}
_TRAFFIC = {"table: CONTEXT / Assistant": ["19", ""], "table: CONTEXT / Tool Usage": ["77", ""]}


def _sums(total, *, call, more):
    return {
        "dict.totalTokens": total,
        "dict.distribution.value": total,
        f"dict.distribution.children[{call}].value": more,
    }


def _both(facts):
    """Facts that both tables have."""
    return {f"{table}: {place}": said for table in ("table", "table_no_context") for place, said in facts.items()}


def _message(role, content, tokens, ts=None, tool=None, call=None, *, called=False, returned=False):
    return {
        "role": role, "content": content, "estimatedTokens": tokens, "timestamp": ts, "inContext": True,
        "toolName": tool, "toolCallId": call, "isToolCall": called, "isToolResult": returned,
    }  # fmt: skip


_START = 1_777_629_600_000_000_000  # 2026-05-01T10:00:00Z
_MESSAGES = (
    _message("user", "First question?", 3),
    _message("assistant", '{"path": "a.py"}', 4, _START, "read", "c1", called=True),
    _message("tool", "file body " * 5, 12, None, "read", "c1", returned=True),
    _message("assistant", "hmm hmm hmm", 2, _START + 2_000_000_000),
    _message("assistant", "First answer.", 3, _START + 2_000_000_000),
    _message("user", "Second question?", 4),
    _message("assistant", '{"path":"b.py"}', 3, _START + 60_000_000_000, "read", "c2", called=True),
    _message("assistant", '{"q": "x"}', 2, _START + 60_000_000_000, "grep", "c3", called=True),
    _message("tool", "b body", 1, None, "read", "c2", returned=True),
    _message("tool", "bad args", 2, None, "grep", "c3", returned=True),
    _message("assistant", "Second answer.", 3, _START + 63_000_000_000),
)

RULES = {
    "totals are sums": (
        "a usage that does not spell its total still has one; it was 0",
        {
            "tracker plain_two_turns": {"session_data.total_tokens": 175, "session_data.billable_tokens": 175},
            "tracker object_usage": {"session_data.total_tokens": 100, "session_data.billable_tokens": 10},
            "tracker string_numbers": {"session_data.total_tokens": 15, "session_data.billable_tokens": 15},
            "tracker codemode_cumulative": {"session_data.total_tokens": 22, "session_data.billable_tokens": 22},
            "tracker codemode_no_counts": {"session_data.total_tokens": 11, "session_data.billable_tokens": 11},
            "tracker mcp_key_present": {"session_data.total_tokens": 2, "session_data.billable_tokens": 2},
        },
    ),
    "cached tokens are a part of the prompt": (
        "90 tokens read from a cache beside 7 others are a prompt of 97, and they are seen",
        {
            "tracker object_usage": {
                "session_data.cached_tokens": 90, "session_data.input_tokens": 97, "session_usage.input_tokens": 97,
                "turn 0.turn_usage.input_tokens": 97,
            },
        },
    ),
    "a turn has the requests that were recorded": (
        "no request is no request: the session said 0 where its turn said 1",
        {f"tracker {name}": {"turn 0.turn_usage.requests": 0} for name in ("none_usage", "string_numbers", "zero_requests")},
    ),
    "a tool call is counted once": (
        "2 calls of an MCP server among 4 were 2 in their turn and 6 in the session",
        {
            "tracker mcp_key_present": {
                "turn 0.turn_usage.tool_calls": 4, "session_data.mcp_tool_calls": 2, "session_usage.tool_calls": 4,
            },
        },
    ),
    "arguments given as a text are counted": (
        "a call with its arguments as a text of JSON was counted as one without any",
        {
            "extract full": {**_ARGUMENTS, **_sums(258, call=4, more=127)},
            "extract no_usage": {**_ARGUMENTS, **_sums(214, call=3, more=127)},
        },
    ),
    "the window holds the current turn": (
        "the answers and tool traffic since the last prompt fill the window as everything else does",
        {
            "extract full": {
                "context_total": 258, "context_percentage": 258 / 8192 * 100, **_TRAFFIC,
                "table: CONTEXT / → Total": ["258", "3.1% of 8K"],
            },
            "extract no_usage": {
                "context_total": 214, "context_percentage": 214 / 128_000 * 100, **_TRAFFIC,
                "table: CONTEXT / → Total": ["214", "0.2% of 128K (assumed)"],
            },
        },
    ),
    "a window that nobody knows is assumed": (
        "without a model and a window there is a default, and a percentage of it is a guess",
        {"extract no_history": {"table: CONTEXT / → Total": ["52", "0.0% of 128K (assumed)"]}},
    ),
    "a time that nobody says is null": (
        "`None` is no time",
        {
            "extract full": {**_NO_TIME, "dict.messages[2].timestamp": None},
            "extract no_usage": {**_NO_TIME, "dict.messages[2].timestamp": None},
            "extract zero_window": _NO_TIME,
        },
    ),
    "real turns": (
        "a step belongs to the turn of its prompt; it belonged to none, and a session had as many turns as runs",
        {
            "extract full": _TURNS,
            "extract no_usage": _TURNS,
            "registry": {"per_request[0].turnId": 1, "per_request[1].turnId": 1, "session_usage.turns": 1},
        },
    ),
    "system prompts that are counted are listed": (
        "a prompt of the history was counted and not shown",
        {
            "extract full": _PROMPT,
            "extract no_usage": _PROMPT,
            "extract zero_window": _PROMPT,
            "full_snapshot": {
                "systemPrompts[2].content": "You are terse.", "systemPrompts[2].tokens": 3, "systemPromptTokens": 11,
                "tokenSummary.systemPrompts": 11,
            },
        },
    ),
    "usage is what the history tells": (
        "responses say what they used; nobody has to say it again",
        {
            "extract no_usage": {
                "dict.turnUsage": GONE, "dict.turnUsage.inputTokens": 460, "dict.turnUsage.outputTokens": 23,
                "dict.turnUsage.requests": 2, "dict.turnUsage.toolCalls": 2, "dict.turnUsage.toolNames[0]": "read",
                "dict.turnUsage.toolNames[1]": "grep",
                "dict.sessionUsage": GONE, "dict.sessionUsage.inputTokens": 710, "dict.sessionUsage.outputTokens": 45,
                "dict.sessionUsage.requests": 4, "dict.sessionUsage.toolCalls": 3, "dict.sessionUsage.turns": 2,
                "dict.sessionUsage.durationSeconds": 5.0,
                **_both({
                    "TURN / No usage data": GONE, "TURN / Tool Calls": ["2", "read, grep"], "TURN / Steps": ["2", ""],
                    "TURN / Duration": ["3.00s", ""], "TURN / Step 1": ["200 in / 14 out", "read, grep"],
                    "TURN / Step 2": ["260 in / 9 out", ""], "TURN / Total Input": ["460", ""],
                    "TURN / Total Output": ["23", ""],
                    "SESSION / No session data": GONE, "SESSION / Turns": ["2", ""], "SESSION / Tool Calls": ["3", ""],
                    "SESSION / Steps": ["4", ""], "SESSION / Total Input": ["710", ""],
                    "SESSION / Total Output": ["45", ""],
                }),
            },
        },
    ),
    "a stored history is read": (
        "messages that were kept as JSON were lost whole",
        {"dict_history_is_lost": {"messages": 4, "per_request": 4, "total_tokens": 214}},
    ),
    "the window holds a suffix of everything": (
        "in its order, each counted on its own text, thinking and refused calls too; a system prompt cannot fall out",
        {
            "full_snapshot": {
                **{f"messages[{n}].{key}": said for n, one in enumerate(_MESSAGES) for key, said in one.items()},
                "tokenSummary.current": 39, "tokenSummary.history": 0, "tokenSummary.total": 50,
                "tokenSummary.usagePercent": 83.3,
            },
        },
    ),
    "what was recorded is what is told": (
        "three requests are three, each call of a tool is one with its name, and 1234.5 ms are not 0",
        {
            "registry": {
                "turn_usage.requests": 4, "turn_usage.tool_calls": 3, "turn_usage.tool_names[2]": "read",
                "turn_usage.duration_seconds": 1.2345, "session_usage.tool_calls": 3,
                "session_usage.duration_seconds": 1.2345,
            },
        },
    ),
}  # fmt: skip
