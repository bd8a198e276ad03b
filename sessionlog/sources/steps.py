"""Steps: what the rows of an agent's log mean, as a few types that all sources share.

A source turns rows into steps, once. `fold_usage` makes records, tool calls and session facts of them for reports,
`fold_events` makes events for replay, context and export. Times are nanoseconds since 1970 UTC, or None. Texts are left
as the log has them (`Content`): a str, JSON that is not decoded yet (`msgspec.Raw`), or a list of content parts;
only `fold_events` decodes them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Raw, Struct

from sessionlog.events.tokens import TokenUsage
from sessionlog.sources.record import CopyRank, Granularity, Limit, Quality

Content = str | Raw | list[Any] | dict[str, Any] | None
"""A text, a list of content parts, or the JSON of either."""

Role = Literal["user", "system", "assistant", "tool"]


class Tokens(Struct, frozen=True, gc=False):
    """The token counts of one response.

    Attributes:
        usage: In disjoint classes.
        issues: Messages about logged values that are not valid counts; each is reported as a problem of the log.
    """

    usage: TokenUsage
    issues: tuple[str, ...] = ()


class Session(Struct, kw_only=True):
    """The session of the following steps, and its facts; None (or "") leaves a field unchanged.

    Attributes:
        id: The session that the following steps belong to; until the first one it is the log's own.
        place: Where the id is unique, e.g. a folder; "" for ids that are unique everywhere.
        thread: The conversation within the session: "" for the main one, else a name of a sub-agent's. Steps of a
            sub-agent's thread count for the session but are no part of its conversation.
        agent: The agent of this thread: `main`, or the kind of sub-agent.
        is_subagent_log: The log is a sub-agent's: its session's own facts (prompt, turns, status) are in another log.
        parent: The session that this one was forked from.
        inherited: The following steps were copied from there: they do not count for this session's times, turns and
            status.
        project: The working folder, absolute.
        branch: The git branch.
        version: The version of the agent program.
        provider: Who serves responses that do not name a provider.
        model: The model of responses that do not name one.
        harness: The agent program, where it is not the source's own.
        title: The session's name, used in place of the prompt if there is none.
        system_prompt: The system prompt.
        context_window: The size of the model's context window in tokens, where that is logged.
        time: When this became known.
    """

    id: str = ""
    place: str = ""
    thread: str | None = None
    agent: str = ""
    is_subagent_log: bool | None = None
    parent: str = ""
    inherited: bool | None = None
    project: str = ""
    branch: str = ""
    version: str = ""
    provider: str = ""
    model: str = ""
    harness: str = ""
    title: str = ""
    system_prompt: str = ""
    context_window: int = 0
    time: int | None = None


class At(Struct, gc=False):
    """The session was active at this moment; the row means nothing else."""

    time: int | None


class Prompt(Struct, gc=False):
    """A message that the next request sends.

    Attributes:
        time: When it was sent.
        text: Its text.
        role: `user` for a user's prompt, which begins a turn; `system` for text that the agent program inserts as the
            user's; `assistant` for an answer of another session, and `tool` for a result of its calls.
        inherited: It comes from the session that this one was forked from; it begins no turn here.
    """

    time: int | None
    text: Content = ""
    role: Role = "user"
    inherited: bool = False


class Request(Struct, gc=False):
    """A request was sent to the model, which ends an open answer."""

    time: int | None


class PromptPart(Struct, gc=False):
    """A piece of a request that has a row of its own. Reports skip it: only `full_rows` of a source read it.

    Attributes:
        key: Its name in requests; "" for the system prompt and tools of the requests from here on.
        message: A message, as it was sent.
        system: The system prompt.
        tools: The tool definitions.
    """

    key: str
    message: Content = None
    system: Content = None
    tools: Content = None


class SentRequest(Struct, gc=False):
    """What a request sent, in pieces: the first messages of an earlier request, then others.

    Attributes:
        key: Its name in its response (`Response.request`).
        base: The earlier request; "" for none.
        keep: How many of its messages are sent again.
        messages: The keys of the messages after these; one that no `PromptPart` has is an answer of this log.
        head: The key of its system prompt and tools.
    """

    key: str
    base: str
    keep: int
    messages: tuple[str, ...]
    head: str


class Text(Struct, gc=False):
    """Text of an answer, logged in another row than its token counts (before or after them).

    Attributes:
        time: When.
        text: The text.
        reasoning: The text of its reasoning.
        is_piece: It continues the text before it without a line break.
    """

    time: int | None
    text: Content = ""
    reasoning: Content = ""
    is_piece: bool = False


class Response(Struct, gc=False):
    """One response of a model, or one of several rows that repeat it: rows with one key are one response.

    Attributes:
        time: When it was logged; of several rows the first.
        key: Identifies the response in all its copies; "" for one that is never copied: its place in the log.
        family: A name shared with copies that have another key; "" = the key.
        rank: Which of several copies wins.
        tokens: Its counts; None when the log has none, then it is no request in reports (unless it failed).
        provider: Who served it; "" = the session's.
        model: The model asked for; "" = the last one known.
        response_model: The model that answered, where the log names both.
        finish: Why it stopped, as logged; "" while that is unknown.
        failed: The call failed.
        error: Why.
        quality: `partial` or `estimated` where the counts are known to be.
        text: Its words.
        reasoning: The text of its reasoning.
        speed: As in `Record`.
        service_tier: As in `Record`.
        response_id: As in `Record`.
        final: None of its parts follows.
        is_copy: It was copied from another session and describes that one (its `rank` decides how it counts).
        cost_nano: The recorded cost in nano-USD; None for unknown.
        latency_ms: The recorded duration of the call; None = from the last thing it answers to its last part.
        asked: When it was asked for, where the log records that; None = the last thing before its first part.
        granularity: `session` for a sum that stands for responses which the log does not have.
        superseded_by: As in `Record`.
        skill: As in `Record`.
        plugin: As in `Record`.
        mcp: As in `Record`.
        summed: As in `Record`.
        request: The key of its `SentRequest`; "" where the log does not hold what was sent.
        searches: As in `Record`.
        extra_nano: As in `Record`.
        region: As in `Record`.
        kind: As in `Record`.
        parent: As in `Record`. Such a response is made while its parent is: it begins and ends no answer.
    """

    time: int | None
    key: str = ""
    family: str = ""
    rank: int = int(CopyRank.ORIGINAL)
    tokens: Tokens | None = None
    provider: str = ""
    model: str = ""
    response_model: str = ""
    finish: str = ""
    failed: bool = False
    error: str = ""
    quality: Quality = "exact"
    text: Content = ""
    reasoning: Content = ""
    speed: str = ""
    service_tier: str = ""
    response_id: str = ""
    final: bool = False
    is_copy: bool = False
    cost_nano: int | None = None
    latency_ms: float | None = None
    asked: int | None = None
    granularity: Granularity = "request"
    superseded_by: str = ""
    skill: str = ""
    plugin: str = ""
    mcp: str = ""
    summed: bool = False
    request: str = ""
    searches: int = 0
    extra_nano: int | None = None
    region: str = ""
    kind: str = ""
    parent: str = ""


class ToolCall(Struct, gc=False):
    """A tool call of the answer that is open.

    Attributes:
        time: When it was made.
        key: Identifies the call in all its copies.
        tool: The tool's name, with its MCP server's as `mcp__SERVER__TOOL`, or without.
        input: Its arguments: JSON, or a text.
        server: Its MCP server, where the name does not hold it.
        id: The call's id in the conversation; "" = the key.
        superseded_by: As in `Record`.
        is_copy: It was copied from another session and is not counted.
    """

    time: int | None
    key: str
    tool: str
    input: Any = None
    server: str = ""
    id: str = ""
    superseded_by: str = ""
    is_copy: bool = False


class MoreInput(Struct, gc=False):
    """The next piece of the last tool call's input, for logs that hold it in pieces."""

    time: int | None
    text: str


class ToolResult(Struct, gc=False):
    """The result of a tool call.

    Attributes:
        time: When.
        key: The call's key.
        output: The output that the model gets.
        failed: It is an error; None = that is unknown, or in another step.
        duration_ms: The logged duration; None = from the call to this.
        size: Bytes of the output; None = they are counted.
        tool: The tool's name, where the log may not hold the call.
        pending: It is not the result yet, but only facts about the outcome (`failed`, `duration_ms`, `server`).
        server: The call's MCP server, where only the outcome names it.
    """

    time: int | None
    key: str
    output: Content = ""
    failed: bool | None = False
    duration_ms: float | None = None
    size: int | None = None
    tool: str = ""
    pending: bool = False
    server: str = ""


class Totals(Struct, kw_only=True):
    """The session's total usage up to now, as the agent itself logs it.

    The part of it beyond the responses and sums of the thread so far (tokens by class, requests, cost) becomes its own
    record: of granularity `session` if the thread has no responses.

    Attributes:
        time: When it was summed up.
        tokens: The sum; None for none.
        provider: Who served it; "" = the session's.
        model: Which model the sum is of; "" = the session's.
        cost_nano: The recorded cost of all of it, which covers the responses without one; None for unknown.
        requests: How many requests it sums up, where the log has no responses.
        failed_requests: How many more failed.
        scope: A name of the part of the session that the sum covers (a model, a task); "" for all of it.
        quality: `partial` or `estimated` where the sum is known to be.
        superseded_by: As in `Record`.
    """

    time: int | None
    tokens: Tokens | None
    provider: str = ""
    model: str = ""
    cost_nano: int | None = None
    requests: int = 1
    failed_requests: int = 0
    scope: str = ""
    quality: Quality = "exact"
    superseded_by: str = ""


class Compaction(Struct):
    """From now on requests send a summary in place of the earlier messages."""

    time: int | None
    summary: Content = ""
    facts: Mapping[str, Any] | None = None


class Status(Struct, gc=False):
    """The session's status: success, error, cancelled …; None = it continues."""

    time: int | None
    status: str | None
    error: str = ""


class RateLimit(Struct):
    """What the provider reported about a rate limit."""

    limit: Limit


class BadNumber(Struct, gc=False):
    """An invalid logged number; the driver adds its place."""

    detail: str


Step = (
    Session | At | Prompt | Request | Text | Response | ToolCall | MoreInput | ToolResult | Totals | Compaction | Status
    | RateLimit | BadNumber | PromptPart | SentRequest
)  # fmt: skip
