"""otel: OpenTelemetry in JSON: GenAI spans, and what Claude Code and Codex log about themselves.

Where: nowhere by convention: exporters to files have no variable in common. Give a path, or name files and folders in
`$SESSIONLOG_OTEL_PATH`, separated as in PATH. Shape: OTLP JSON lines (`{"resourceSpans": …}`, `{"resourceLogs": …}`,
also one pretty object), one span a line, or what console exporters print; metrics are passed over. A session is a
conversation (`gen_ai.conversation.id`, `session.id`), else a trace; a trace whose other spans name one conversation
belongs to it.

Traps of spans:

- `gen_ai.usage.input_tokens` includes what was read from and written to a cache; where it is less than that, the
  writer did not follow the convention, and it is taken as it is. Typed integers are strings. Older names of the same
  counts: prompt_tokens and completion_tokens, `llm.usage.*`; cache_creation, which is cache_write now.
- One request may have several spans: a framework's around the client's, a gateway's or server's inside the client's
  or beside it. It counts once: the outermost one with counts. Spans are of one request when they name one response,
  when one is around the other (unless they name two responses with different counts), or when spans of a client and a
  server, or of two programs, have one model and the same counts, one within the other's time. A call around several
  requests sums them up.
- Only spans of inference are calls: agents and workflows repeat the sum of theirs. An agent's sum counts, as its
  session's, where its trace has nothing else.
- A call repeats the whole history. The n-th of equal messages is new only where fewer than n have been read, so agents
  that take turns in one session do not repeat each other's words.
- Children are exported before their parents; a retried export brings spans twice. Embeddings have no output. Instants
  may be nanoseconds in text, RFC 3339, or `[seconds, nanoseconds]`.

Log records: `claude_code.api_request` (classes are disjoint; `cost_usd` is an estimate), `api_error` (after the
last attempt), `user_prompt`, `assistant_response`, `tool_result`; `codex.sse_event` with `event.kind`
response.completed, twice for each response, once with counts (input_token_count includes cached_token_count and
cache_write_token_count, output_token_count includes reasoning_token_count; tool_token_count is the total of all), or
with `error.message`; `codex.api_request` with `error.message`, `user_prompt`, `tool_result`, `conversation_starts`.
Prompts are redacted unless the user wants them. Numbers are often text. The agents' own logs hold the same responses
and more: where they know the session (`session.id`, `conversation.id`), these records do not count. Spans of the two
repeat the records: Claude Code's are named `claude_code.…`, Codex's have counts and no model; neither is counted.

Seen: the conventions of 1.27 to 1.42, from Python, Go, JavaScript and the collector. Names and units of the log records
are those of Claude Code's documentation of its monitoring (versions up to 2.1.222) and of Codex's source
(`codex-rs/otel/src/events/session_telemetry.rs`; cache_write_token_count only from what others have recorded).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import Any

import orjson
from msgspec import Struct, structs

from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.messages.genai import (
    ANSWERED,
    CONVERSATION,
    DETAILS,
    FINISH_REASONS,
    FOLDER,
    MODEL,
    PROVIDER,
    RESPONSE_ID,
    RESPONSE_MODEL,
    SEARCHES,
    SENT,
    SERVICE_TIER,
    STATUS,
    SYSTEM,
    TOOL,
    TOOL_CALL,
    TOOL_INPUT,
    TOOL_OUTPUT,
    UNIQUE,
    kind_of,
    read_span_usage,
)
from sessionlog.sources.kit import (
    MAIN,
    UNKNOWN,
    At,
    BadNumber,
    CopyRank,
    Json,
    Problem,
    Prompt,
    Request,
    Response,
    Role,
    Session,
    Status,
    Steps,
    Tokens,
    ToolCall,
    ToolResult,
    cost,
    fingerprint,
    first_words,
    folder,
    mapping,
    name,
    read_duration,
    read_json,
    read_tier,
    source,
    text,
    text_of,
    tokens,
    whole_log,
)
from sessionlog.sources.otel.exported import AGENTS, Place, Span, holds_spans, read_spans
from sessionlog.sources.places import PLACES

_MS = 1_000_000
_HEAVY = (SYSTEM, SENT, ANSWERED)
_MESSAGES = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_PROVIDERS = {"claude-code": "anthropic", "codex": "openai"}
_RESPONSES, _COMPLETED = ("api_request", "api_error", "sse_event"), "response.completed"
_CLAUDE_CODE: dict[str, Any] = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_creation_tokens",
}
_CODEX: dict[str, Any] = {
    "input": "input_token_count",
    "output": "output_token_count",
    "cache_read": "cached_token_count",
    "cache_write": "cache_write_token_count",
    "reasoning": "reasoning_token_count",
    "is_inclusive": True,
}
_Messages = dict[tuple[str, bytes], "Message"]  # by their JSON


class Message(Struct):
    """One message: its content, and the tools that it calls or has results of.

    Attributes:
        role: user, assistant, or system for all others.
        parts: Its words and reasoning.
        calls: (call id, tool, arguments) of tool calls.
        results: (call id, output) of tools' results.
        finish: Why an answer ended.
        likeness: What equal messages have in common.
    """

    role: Role
    parts: list[Any]
    calls: list[tuple[str, str, Any]]
    results: list[tuple[str, Any]]
    finish: str
    likeness: str


class Call(Span, kw_only=True):
    """A span, without its messages, or a log record, and what it counts for.

    Attributes:
        kind: `call`, `sum` of an agent's calls, `tool` or `log`; "" for nothing.
        session: Whose it is.
        key: Names its response; "" while another span counts for it.
        tokens: Its token counts; None for none.
        sent: The messages that were sent.
        answered: The answer.
    """

    kind: str
    session: str
    key: str = ""
    tokens: Tokens | None = None
    sent: Sequence[Message] = ()
    answered: Sequence[Message] = ()

    @property
    def usage(self) -> TokenUsage:
        """Its token counts."""
        return self.tokens.usage if self.tokens else TokenUsage()

    @property
    def harness(self) -> str:
        """The program that made it."""
        if self.kind == "log":
            return "codex" if self.name.startswith("codex.") else "claude-code"
        service = name(self.resource, "service.name")
        return "" if service.startswith("unknown_service") else service

    @property
    def response_id(self) -> str:
        """The response's id, where it is its provider's."""
        known = self.first(RESPONSE_ID)
        return known if len(known) >= UNIQUE else ""

    @property
    def took_ms(self) -> float | None:
        """How long it took; None where that was not measured: its start is its end."""
        if self.start is None or self.end is None or self.start == self.end:
            return None
        return read_duration((self.end - self.start) / _MS)


class State(Struct):
    """What is known of a session from row to row.

    Attributes:
        session: Which session.
        status: How the last of its agents has ended; None without agents.
        error: Why it failed.
        known: How often each message was read.
        open: (key, tool) of the tool calls that wait for a result, by their ids.
    """

    session: str | None = None
    status: str | None = None
    error: str = ""
    known: dict[str, int] = {}
    open: dict[str, tuple[str, str]] = {}


def _read(path: str) -> Iterator[Call | Problem]:
    """Yield the sessions of a file one after the other, the rows of each in the order of their ends.

    The file is read whole before: later spans decide what a span counts for, and whose it is.
    """
    found: dict[Place, Call] = {}
    parents: dict[Place, str] = {}
    messages: _Messages = {}
    for span in read_spans(path):
        if isinstance(span, Problem):
            yield span
            continue
        one = Call(**structs.asdict(span), kind=_kind(span), session=span.first(*CONVERSATION))
        parents[one.place] = one.parent
        if one.kind in ("call", "sum"):
            counts = read_span_usage(one.attributes)
            one.tokens = Tokens(*counts) if counts else None
            for issue in one.tokens.issues if one.tokens else ():
                yield Problem(path=path, line=one.line, kind="bad_number", detail=issue)
            one.sent, one.answered = _messages(one, messages)
            one.attributes = {key: value for key, value in one.attributes.items() if key not in _HEAVY}
            one.events = []
        if one.kind:
            found[one.place] = max(found.get(one.place, one), one, key=lambda one: (one.usage.output, one.usage.total))
    _name_requests(found, parents)
    yield from _sorted_by_session(found.values())


def _sorted_by_session(rows: Collection[Call]) -> Iterator[Call]:
    named: dict[str, set[str]] = {}
    for row in rows:
        named.setdefault(row.trace, set()).update(filter(None, [row.session]))
    sessions: dict[str, list[Call]] = {}
    for row in sorted(rows, key=lambda row: (row.end or 0, row.start or 0)):
        trace = row.trace
        row.session = row.session or (min(named[trace]) if trace and len(named[trace]) == 1 else trace) or UNKNOWN
        sessions.setdefault(row.session, []).append(row)
    return chain.from_iterable(sessions.values())


def _kind(span: Span) -> str:
    """Return the kind of a span (see `Call.kind`)."""
    if span.name.startswith(AGENTS):
        return "" if span.trace else "log"  # an agent's own spans repeat its log records
    return kind_of(span.attributes)


def _messages(span: Span, known: _Messages) -> tuple[list[Message], list[Message]]:
    """Return what a call was sent, the system's words first, and what it answered: attributes, before 1.37 events."""
    fields = {**dict(span.events).get(DETAILS, {}), **span.attributes}
    system, sent, answered = (_list(fields.get(field)) for field in _HEAVY)
    found: list[tuple[Any, str]] = [({"parts": system}, "system")] if system else []
    found += [(one, "user") for one in sent]
    answers: list[tuple[Any, str]] = [(one, "assistant") for one in answered]
    for event, details in span.events:
        if event in _MESSAGES:
            found.append((details, _MESSAGES[event]))
        elif event == "gen_ai.choice":
            answers.append(({**details, **mapping(_structured(details.get("message")))}, "assistant"))
    return [_once(*one, known) for one in found], [_once(*one, known) for one in answers]


def _once(value: Any, role: str, known: _Messages) -> Message:
    """Read a message, if it was not read before: each span repeats those before it."""
    try:
        key = role, orjson.dumps(value)
    except TypeError:  # nested too deep to be written
        return _message(value, role)
    return known.get(key) or known.setdefault(key, _message(value, role))


def _message(value: Any, role: str) -> Message:
    """Read a message of parts, or one with `content` and `tool_calls` as chat APIs have them."""
    fields = mapping(_structured(value))
    role = name(fields, "role") or role
    content = fields.get("content")
    parts = _list(fields.get("parts")) or _list(content)
    if not parts or not all(isinstance(part, dict) for part in parts):
        parts = [{"type": "text", "content": content}]
    words, calls, results = list[Any](), list[tuple[str, str, Any]](), list[tuple[str, Any]]()
    for part in (*parts, *({**mapping(one), "type": "tool_call"} for one in _list(fields.get("tool_calls")))):
        kind, content = part.get("type"), part.get("content", part.get("text"))
        function = mapping(part, "function")
        call_id = name(part.get("id") or fields.get("id") or fields.get("tool_call_id"))
        if kind in ("tool_call", "function_call"):
            tool = name(part.get("name") or function.get("name"))
            calls.append((call_id, tool, part.get("arguments", function.get("arguments"))))
        elif kind in ("tool_call_response", "tool_result") or role == "tool":
            results.append((call_id, part.get("response", part.get("result", content))))
        elif isinstance(content, str):
            words.append({"type": "reasoning" if kind in ("reasoning", "thinking") else "text", "text": content})
        else:
            words.append({"type": part.get("modality", kind)})
    likeness = fingerprint(role, text_of(words), [one[0] for one in (*calls, *results)])
    is_user = role == "user" and bool(first_words(words))
    whose: Role = "user" if is_user else "assistant" if role == "assistant" else "system"
    return Message(whose, words, calls, results, name(fields, "finish_reason"), likeness)


def _structured(value: Any) -> Any:
    """Return what a JSON text stands for; anything else as it is."""
    decoded = read_json(value) if isinstance(value, str) and value[:1] in ("[", "{") else None
    return value if decoded is None else decoded


def _list(value: Any) -> list[Any]:
    value = _structured(value)
    return value if isinstance(value, list) else []


def _name_requests(found: Mapping[Place, Call], parents: Mapping[Place, str]) -> None:
    """Give a key to the span that counts for each request, and to the sums of agents whose calls are not there."""

    def around(one: Call) -> Iterator[Call]:
        """Yield the spans around this one that count for something, the nearest first."""
        passed = {one.place}
        place = one.trace, one.parent
        while place not in passed:
            passed.add(place)
            if place in found:
                yield found[place]
            place = place[0], parents.get(place, "")

    calls = sorted((one for one in found.values() if one.kind == "call"), key=_begin)
    wrappers = {one.place: [*takewhile(lambda other: other.kind == "call", around(one))] for one in calls}
    wrapping = {other.place for others in wrappers.values() for other in others}
    requests: list[list[Call]] = []
    known: dict[Any, list[Call]] = {}
    inner: dict[Place, list[list[Call]]] = {}
    for one in calls:
        if one.place in wrapping:
            continue
        names = [(one.trace, part) for part in (one.response_id, one.usage) if part]
        near = (known[part] for part in names if part in known)
        request = next((other for other in near if _is_same(other[0], one)), [])
        if not request:
            requests.append(request)
        request.append(one)
        known.update(dict.fromkeys(names, request))
        for other in wrappers[one.place]:
            inner.setdefault(other.place, []).append(request)
    for place, within in inner.items():
        outer = found[place]
        if any(request is not within[0] for request in within):
            continue  # it sums them up
        if _differ(outer, within[0][-1]):
            requests.append([outer])
        else:
            within[0].insert(0, outer)
    for request in requests:
        chosen = next((one for one in sorted(request, key=_begin) if one.usage), request[0])
        response = next(filter(None, (one.response_id for one in request)), request[-1].id)
        chosen.key = f"{chosen.trace}:{response}"
    called = {one.trace for one in calls}
    for one in found.values():
        is_sum = one.kind == "sum" and one.usage and one.trace not in called
        if is_sum and not any(other.kind == "sum" and other.usage for other in around(one)):
            one.key = ":".join(one.place)


def _begin(one: Call) -> tuple[int, int]:
    """What is around others comes before them."""
    return one.start or 0, -(one.end or 0)


def _differ(outer: Call, inner: Call) -> bool:
    """Whether a call and the one around it are two requests: they have other responses with other counts."""
    counts, responses = {outer.usage, inner.usage}, {outer.response_id, inner.response_id}
    return len(counts - {TokenUsage()}) == len(responses - {""}) == 2


def _is_same(first: Call, one: Call) -> bool:
    """Whether a span of the same trace that has begun later is of the same request."""
    if first.response_id and first.response_id == one.response_id:
        return True
    models = [{call.first(field).rpartition("/")[2] for field in MODEL} - {""} for call in (first, one)]
    return (
        first.usage == one.usage
        and bool(models[0] & models[1])
        and (first.side, first.harness) != (one.side, one.harness)
        and (one.end or 0) <= (first.end or 0)
    )


def steps(row: Call, state: State) -> Steps:
    """What a row means."""
    fields = row.attributes
    is_first = state.session != row.session
    if is_first:
        state.session, state.status, state.error, state.known, state.open = row.session, None, "", {}, {}
    yield Session(
        id=row.session,
        time=row.start,
        harness=row.harness,
        version=row.first("app.version") or name(row.resource, "service.version"),
        project=folder(fields, FOLDER) or folder(row.resource, FOLDER),
        provider=_PROVIDERS.get(row.harness, "") if is_first else "",
        title=first_words(next((message.parts for message in row.sent if message.role == "user"), "")),
    )
    if row.kind == "log":
        yield from _log(row, row.name.rpartition(".")[2], fields)
        return
    if row.kind == "tool":
        yield from _tool(row, state)
    elif row.key:
        yield from _response(row, state)
    if row.kind == "sum":
        known = row.first(STATUS) or ("error" if row.error else "success")
        state.status, state.error = None if known == "unfinished" else known, row.error
    yield Status(row.end, state.status, state.error)


def _response(row: Call, state: State) -> Steps:
    """Yield the new messages of a call, and its answer."""
    is_call = row.kind == "call"
    yield Request(row.start)
    yield from _history(row, state)
    parts = [part for message in row.answered for part in message.parts]
    reasons = _list(row.attributes.get(FINISH_REASONS))
    finish = [*reasons, *(message.finish for message in row.answered)]
    yield Response(
        time=row.end,
        key=row.key,
        family=row.trace,
        rank=int(CopyRank.ORIGINAL if is_call else CopyRank.SIDECHAIN),
        granularity="request" if is_call else "session",
        tokens=Tokens(row.usage),
        provider=row.first(*PROVIDER),
        model=row.first(*MODEL),
        response_model=row.first(*RESPONSE_MODEL),
        latency_ms=row.took_ms if is_call else None,
        finish=next(filter(None, map(name, finish)), ""),
        failed=bool(row.error),
        error=row.error,
        quality="exact" if row.error or row.tokens else "partial",
        text=parts,
        reasoning=parts,
        response_id=row.response_id,
        service_tier=read_tier(row.first(*SERVICE_TIER)),
        searches=read_count(row.attributes.get(SEARCHES))[0],
    )
    for message in row.answered:
        state.known[message.likeness] = state.known.get(message.likeness, 0) + 1
        for call_id, tool, given in message.calls:
            key = f"{row.trace}:{call_id}"
            state.open[call_id] = key, tool
            yield ToolCall(row.end, key, tool, given, id=call_id)


def _history(row: Call, state: State) -> Steps:
    """The messages of a call that no call before it held."""
    time, seen = row.start, dict[str, int]()
    for message in row.sent:
        count = seen[message.likeness] = seen.get(message.likeness, 0) + 1
        if count <= state.known.get(message.likeness, 0):
            continue
        state.known[message.likeness] = count
        for call_id, tool, _ in message.calls:  # of answers that are not in the file
            state.open[call_id] = f"{row.trace}:{call_id}", tool
        for call_id, output in message.results:
            if call_id in state.open:
                key, tool = state.open.pop(call_id)
                yield ToolResult(time, key, output, tool=tool)
        if message.parts:
            yield Prompt(time, message.parts, message.role)


def _tool(row: Call, state: State) -> Steps:
    """A tool's use; without an id it answers the first open call of that tool."""
    tool, fields = row.first(TOOL), row.attributes
    known = row.first(TOOL_CALL)
    call_id = known or next((one for one, (_, called) in state.open.items() if called == tool), row.id)
    key, _ = state.open.pop(call_id, ("", ""))
    if not key:
        key = f"{row.trace}:{call_id}"
        yield ToolCall(row.start, key, tool, fields.get(TOOL_INPUT), id=call_id)
    output = fields.get(TOOL_OUTPUT, row.error)
    yield ToolResult(row.end, key, output, failed=bool(row.error), duration_ms=row.took_ms)


def _log(row: Call, event: str, fields: Json) -> Steps:
    """What Claude Code or Codex has logged about itself."""
    time, agent, session = row.end, row.first("agent.name"), row.first(*CONVERSATION)
    key = row.first("request_id", "tool_use_id", "call_id") or row.id
    owner = f"{row.harness}:{session}" if session else ""
    error = row.first("error", "error.message")
    took = fields.get("duration_ms")
    took_ms = read_duration(read_json(took) if isinstance(took, str) else took)
    names = _CODEX if row.harness == "codex" else _CLAUDE_CODE
    counts = tokens(fields, **names) if names["input"] in fields else None
    yield Session(thread=agent, agent=agent or MAIN)
    if event == "conversation_starts":
        yield Session(provider=row.first("provider_name").lower())
    elif event == "user_prompt":
        yield Prompt(time, text(fields, "prompt"))
    elif event == "assistant_response":
        yield Response(time=time, key=key, text=text(fields, "response"))
    elif event == "tool_result":
        details, size = mapping(_structured(fields.get("tool_parameters"))), fields.get("tool_result_size_bytes")
        begun = time if time is None or took_ms is None else time - int(took_ms * _MS)
        tool = name(details, "mcp_tool_name") or row.first("tool_name")
        server = name(details, "mcp_server_name") or row.first("mcp_server")
        given = fields.get("tool_input", fields.get("arguments"))
        failed = fields.get("success") in ("false", False)
        yield ToolCall(begun, key, tool, given, server, superseded_by=owner)
        yield ToolResult(
            time, key, text(fields, "output") or error, failed=failed, duration_ms=took_ms,
            size=None if size is None else read_count(size)[0],
        )  # fmt: skip
    elif event in _RESPONSES and (counts or error) and fields.get("event.kind", _COMPLETED) == _COMPLETED:
        cost_nano, issues = cost(fields.get("cost_usd"))
        yield from map(BadNumber, issues)
        yield Response(
            time=time, key=key, tokens=counts, model=row.first("model"), cost_nano=cost_nano, latency_ms=took_ms,
            failed=bool(error), error=error, speed=row.first("speed").replace("normal", ""), superseded_by=owner,
        )  # fmt: skip
    else:
        yield At(time)


def _session_names(path: str) -> Iterable[str]:
    return dict.fromkeys(row.session for row in _read(path) if isinstance(row, Call))


SOURCE = source(
    id="otel",
    title="OpenTelemetry",
    places=PLACES["otel"],
    logs=("*.jsonl", "*.json"),
    rows=whole_log(_read),
    steps=steps,
    state_type=State,
    recognises=holds_spans,
    name_sessions=_session_names,
    is_apart=True,
    harness=UNKNOWN,
    parser_version=4,
)
