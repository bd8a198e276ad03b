"""Record, ToolUse and ScannedSession: the result of a scan, small enough to hold years of logs.

Agents' logs are full of copies: forks, resumed sessions, side questions and progress reports repeat responses that were
billed once. A source therefore names each response with a `key`, and the ledger counts one record per key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal

from msgspec import Struct

from sessionlog.errors import Problem
from sessionlog.events.names import MAIN, UNKNOWN
from sessionlog.events.tokens import TokenUsage

Granularity = Literal["request", "session"]
Quality = Literal["exact", "partial", "estimated"]

LONGEST_NAME = 400
"""No model has a longer name; a hostile one must not fill tables and spreadsheets."""


class CopyRank(IntEnum):
    """Which copy of a response wins over others. Ledgers store these numbers."""

    EMBEDDED = -1
    """Embedded in another session's progress reports, often half-way through; or COPIED, without a provider's id."""
    SIDECHAIN = 0
    """In a side conversation, which may be a replay of its parent; or without a provider's id, so perhaps a copy."""
    COPIED = 1
    """Copied into a forked or resumed session."""
    ORIGINAL = 2
    """Where the response was made."""


class Record(Struct, omit_defaults=True, gc=False):  # the fold adds later rows to an open response
    """One LLM response, or what a session used beyond its responses. Not changed after a scan has returned it.

    Attributes:
        time_ns: When it was answered; None when the log has no times at all.
        provider: Who served it.
        model: The model asked for.
        response_model: The model that answered, as it names itself.
        usage: Tokens in disjoint classes.
        cost_nano: The recorded cost in nano-dollars; None when the log names none.
        latency_ms: Time of the LLM call.
        requests: 1, or 0 for a remainder that is no request of its own.
        failed: The call failed.
        active_ms: The session's active time since the record before. Activity after the last record belongs to none
            until there is a next one, so that a resumed scan gives the same records as a full one.
        granularity: `session` when the log holds only the session's totals.
        quality: `exact`, unless the counts are known to be `partial` or `estimated`.
        priced: False for a session that has used nothing: its cost is neither known nor unknown.
        key: Identifies the response within its source, in all its copies; empty if it is never copied.
        family: A name shared with copies that have another key; empty if there are no such copies.
        copy_rank: Of copies with one key the one of higher copy_rank wins, then the greatest output, then the greatest
            total. Beside a COPIED or an ORIGINAL one of its family a record of a lower rank does not count.
        superseded_by: `source:session` whose own log has this response, too, in better quality: if that session is
            known, this record does not count.
        project: The working folder at that moment; empty = the session's.
        branch: The git branch.
        version: The version of the agent program.
        agent: `main`, or the kind of sub-agent that made the call.
        speed: A kind of request with a price of its own, such as `fast`; empty for the standard one.
        service_tier: The same of its tier, such as `flex`, `priority` or `batch`.
        skill: The skill under whose instructions it was made, as the log names it; empty for none.
        plugin: The plugin that this skill, or the sub-agent, comes from, as the log names it; empty for none.
        mcp: The MCP server that the log names for it, else the one of which it calls a tool first; empty for none.
        response_id: The provider's own id of the response, by which logs of different programs agree on it; "" if the
            log has none.
        summed: It stands for requests of which the log has no rows: a logged sum, or its part beyond other records.
        searches: Web searches of the provider's own tool, which it bills beside the tokens.
        extra_nano: What it cost beside its tokens, in nano-dollars, where the log names that; a part of the cost.
        region: Where it was computed, in lower case, where that has a price of its own; empty for anywhere.
        kind: What it was for, such as `advisor` or `compaction`, if it was made for another response; else empty.
        parent: The key of that response; empty for none.
    """

    time_ns: int | None
    provider: str
    model: str
    response_model: str | None
    usage: TokenUsage
    cost_nano: int | None
    latency_ms: float | None = None
    requests: int = 1
    failed: bool = False
    active_ms: int = 0
    granularity: Granularity = "request"
    quality: Quality = "exact"
    priced: bool = True
    key: str = ""
    family: str = ""
    copy_rank: int = int(CopyRank.ORIGINAL)
    superseded_by: str = ""
    project: str = ""
    branch: str = UNKNOWN
    version: str = UNKNOWN
    agent: str = MAIN
    speed: str = ""
    service_tier: str = ""
    skill: str = ""
    plugin: str = ""
    mcp: str = ""
    response_id: str = ""
    summed: bool = False
    searches: int = 0
    extra_nano: int | None = None
    region: str = ""
    kind: str = ""
    parent: str = ""


class ToolUse(Struct, omit_defaults=True, gc=False):  # not frozen: the fold adds the result
    """One tool call, finished or not.

    Attributes:
        key: Identifies the call within its source, in all its copies: the call's id. Of two copies a finished one wins.
        time_ns: When the model asked for it.
        tool: Its name, without the server's.
        server: The MCP server that it belongs to; empty for the agent's own tools.
        agent: As in Record.
        project: As in Record.
        finished: Its result is in the log.
        failed: The result was an error.
        duration_ms: From call to result; None when the log does not have it.
        output_bytes: Length of the text that it gave back to the model, as UTF-8; with the escapes of JSON where a log
            is so large that it is measured without being decoded (Claude Code, Codex).
        superseded_by: As in Record.
    """

    key: str
    time_ns: int | None
    tool: str
    server: str = ""
    agent: str = MAIN
    project: str = ""
    finished: bool = False
    failed: bool = False
    duration_ms: float | None = None
    output_bytes: int = 0
    superseded_by: str = ""


class Limit(Struct, frozen=True, kw_only=True):
    """What a provider reported about a rate limit at one moment.

    Attributes:
        time_ns: The moment.
        name: The limit's name as logged, e.g. `primary`.
        used_percent: How much of it is used.
        window_minutes: Its length; None when it is not logged.
        resets_ns: When it starts anew.
        plan: The plan that it belongs to.
    """

    time_ns: int
    name: str
    used_percent: float
    window_minutes: float | None = None
    resets_ns: int | None = None
    plan: str = ""


class Problems(Struct, frozen=True, kw_only=True):
    """The damage of a log.

    Attributes:
        count: The number of all problems.
        first: The first of them; at least one if there are any.
    """

    count: int = 0
    first: tuple[Problem, ...] = ()


NO_PROBLEMS = Problems()


class ScannedSession(Struct, frozen=True, kw_only=True):
    """What one log holds of one session. Other logs may hold more of it; the ledger merges them.

    Attributes:
        source: Id of the source, e.g. `native`.
        session_id: The session's id within the source.
        path: The file it was read from.
        place: What the id needs to be unique, as the first event of a native log; empty where it needs nothing.
        part: A sub-agent's log: it adds records and times to its parent's session, and nothing else.
        parent: Id of the session that this one was forked from.
        start_ns: Its start; None when the log has no times.
        last_ns: Its last event.
        status: The status in session.end; None without an end.
        project: Absolute work_dir as logged, else `unknown`.
        harness: Which agent program ran it.
        route: Which route was chosen for it.
        duration_ms: The duration in session.end; None when it has none that is usable.
        prompt: The first words of the user, cut.
        error: Why it failed, one line, cut.
        metadata: Values to group and filter by.
        turns: How many prompts of the user's it holds, as of now; None when it has none. A sub-agent's does not.
        last_turn_ns: When the last of them came; None when that is not logged.
        counted: Whether it counts in usage; one without a response is only listed.
        on_wire_of: It was recorded on the wire, between an agent and its providers: the source whose own log may hold
            the same requests, "" for any source. None for an agent's own log.
        records: Its records in file order; a tuple, or for many of them a sequence that decodes them on each access.
        tools: Its tool calls, likewise.
    """

    source: str
    session_id: str
    path: str
    place: str = ""
    part: bool = False
    parent: str = ""
    start_ns: int | None = None
    last_ns: int | None = None
    status: str | None = None
    project: str = UNKNOWN
    harness: str = UNKNOWN
    route: str = UNKNOWN
    duration_ms: int | None = None
    prompt: str = ""
    error: str = ""
    metadata: Mapping[str, Any] = {}
    turns: int | None = None
    last_turn_ns: int | None = None
    counted: bool = True
    on_wire_of: str | None = None
    records: Sequence[Record] = ()
    tools: Sequence[ToolUse] = ()


def cut_name(name: str) -> str:
    """Return a name, truncated: a hostile one must not fill tables and spreadsheets."""
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME]


def server_of(name: str) -> tuple[str, str]:
    """Split the name that most agents give to an MCP server's tool: `mcp__SERVER__TOOL` → (tool, server)."""
    if name.startswith("mcp__"):
        server, found, tool = name[5:].partition("__")
        if found and server and tool:
            return tool, server
    return name, ""
