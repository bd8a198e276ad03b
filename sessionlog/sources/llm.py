"""llm: the `logs.db` of the `llm` command, one SQLite file for all of its conversations.

Where: `$LLM_USER_PATH/logs.db`, else in the folder `io.datasette.llm` of `$XDG_CONFIG_HOME` (`~/.config`),
`~/Library/Application Support` or `%APPDATA%`. Shape, two generations side by side:

- until 0.31 `responses` has a row for each call, in `conversations`, with `tool_calls` and `tool_results`;
- since 0.32 `turns` has it, in `threads`; the conversation is a tree of `messages` with `parts`, each message known by
  its hash and pointing to the one before it. A conversation that goes on keeps its id.

Traps:

- Some alphas wrote a call to both, under one id. Columns come and go.
- `input_tokens` includes what OpenAI and Gemini read from a cache, not what Anthropic did; only `token_details` shows
  which.
- Older Gemini plugins left the thoughts out of `output_tokens` (then the details hold no candidatesTokenCount).
- Plugins may report no tokens: such a call counts, marked `partial`. Only answered calls are logged: none has failed.
- A row's time is that of the question; old rows have no zone, which is UTC. Tool calls may have no id, and ids repeat.
- A fork's first call answers its parent's messages, too: up to the last answer among them they are inherited.

Not read: attachments, fragments of the old tables, and the table `logs` of 2023, which has no tokens. Seen: the schemas
of 0.5 to 0.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct

from sessionlog.sources.databases import Database, tables_of
from sessionlog.sources.kit import (
    UNKNOWN,
    BadNumber,
    Json,
    Problem,
    Prompt,
    Response,
    Session,
    Status,
    Steps,
    Tokens,
    TokenUsage,
    ToolCall,
    ToolResult,
    cost,
    first_words,
    mapping,
    name,
    objects,
    read_counts,
    read_duration,
    read_json,
    read_region,
    read_searches,
    read_tier,
    read_time,
    source,
    whole_log,
)
from sessionlog.sources.places import PLACES

Messages = list[Json]

_STORES = (("turns", "thread_id", "threads"), ("responses", "conversation_id", "conversations"))
"""The newer one first: (calls, their column with the session's id, sessions)."""

_COUNTS = (
    "input_tokens", "output_tokens", "cached_tokens", "cachedContentTokenCount", "cache_write_tokens",
    "thoughtsTokenCount", "reasoning_tokens", "thinking_tokens", "cache_read_input_tokens",
    "cache_creation_input_tokens", "ephemeral_1h_input_tokens",
)  # fmt: skip
_TOOL = ("response_id", "name", "arguments", "output", "exception", "tool_call_id")
_PLUGINS = {"anthropic": "anthropic", "gemini": "google", "mistral": "mistral", "openrouter": "openrouter"}
_FAMILIES = ((r"gpt-(?!oss)|chatgpt-|o\d(-|$)", "openai"), (r"claude-", "anthropic"), (r"gemini-", "google"))


class Row(Struct):
    """One call: its columns, and what is read from other tables.

    Attributes:
        session: The conversation's id; the call's own where it has none.
        title: The conversation's name.
        parent: The conversation that it was forked from.
        sent: The messages since the call before: `{"role", "parts"}`; a part is `{"type", "text"}`, or has what a tool
            needs: `name`, `arguments`, `output`, `exception`, `tool_call_id`.
        answer: The messages of the answer.
    """

    session: Any = None
    datetime_utc: Any = None
    id: Any = None
    model: Any = None
    resolved_model: Any = None
    duration_ms: Any = None
    input_tokens: Any = None
    output_tokens: Any = None
    token_details: Any = None
    parent_message_hash: Any = None
    tip_message_hash: Any = None
    system: Any = None
    prompt: Any = None
    response: Any = None
    reasoning: Any = None
    title: Any = None
    parent: Any = None
    sent: Messages = []
    answer: Messages = []


Reader = Callable[[Row, set[Any]], tuple[Messages, Messages]]
"""(call, what has been seen of its session) → the messages that were sent, those of the answer."""

_COLUMNS = Row.__struct_fields__[1:-4]


class State(Struct):
    """What is known from call to call of one session.

    Attributes:
        session: Its id.
        open_calls: Id or name of a tool call → the keys of those that wait for a result.
    """

    session: str = ""
    open_calls: dict[str, list[str]] = {}


def steps(row: Row, state: State) -> Steps:
    """What a call means."""
    if row.session != state.session:
        state.session, state.open_calls = row.session, {}
    asked = read_time(row.datetime_utc) or read_time(f"{row.datetime_utc}Z")
    latency_ms = read_duration(row.duration_ms)
    time = None if asked is None else min(asked + int((latency_ms or 0) * 1_000_000), 2**63 - 1)
    provider, model = provider_and_model(name(row.model) or UNKNOWN)
    yield Session(
        id=row.session, title=_word(row.title), parent=name(row.parent), provider=provider, model=model, time=asked
    )
    inherited = max((number for number, message in enumerate(row.sent) if message["role"] == "assistant"), default=-1)
    for number, message in enumerate(row.sent):
        yield from _sent(message, asked, state, number <= inherited)
    is_counted = row.input_tokens is not None or row.output_tokens is not None
    details = mapping(read_json(row.token_details))
    searches, issue = read_searches(details)
    cost_nano, issues = _cost(details)
    yield from (BadNumber(f"{row.id}: {flaw}") for flaw in (issue, *issues) if flaw)
    yield Response(
        time=time, asked=asked, latency_ms=latency_ms, key=str(row.id), provider=provider,
        response_model=name(row.resolved_model), tokens=tokens_of(row), quality="exact" if is_counted else "partial",
        text=_words(row.answer, "text"), reasoning=_words(row.answer, "reasoning"),
        cost_nano=cost_nano, searches=searches,
        service_tier=read_tier(details.get("service_tier")), region=read_region(details.get("inference_geo")),
    )  # fmt: skip
    calls = list(tools_in(row.answer, "tool_call"))
    for number, (call_id, part) in enumerate(calls):
        key = f"{row.id}:{number}"
        state.open_calls.setdefault(call_id, []).append(key)
        yield ToolCall(time, key, name(part, "name") or UNKNOWN, part.get("arguments"), id=call_id)
    for message in row.answer:
        yield from _results(message, time, state)
    yield Status(time, None if any(state.open_calls[call_id] for call_id, _ in calls) else "success")


def _sent(message: Json, time: int | None, state: State, is_inherited: bool) -> Steps:
    yield from _results(message, time, state, is_inherited)
    words, role = _words([message], "text"), message["role"]
    if role not in {"user", "assistant"} or not first_words(words):
        role = "system"
    yield Prompt(time, words, role=role, inherited=is_inherited)


def _results(message: Json, time: int | None, state: State, is_inherited: bool = False) -> Steps:
    """The tool results in a message; those of calls that this session has not made are only words."""
    for call_id, part in tools_in([message], "tool_result"):
        keys = state.open_calls.get(call_id)
        if keys:
            yield ToolResult(time, keys.pop(0), part.get("output"), failed=bool(part.get("exception")))
        else:
            yield Prompt(time, part.get("output"), role="tool", inherited=is_inherited)


def provider_and_model(model: str) -> tuple[str, str]:
    """Split off the prefix of a plugin that names its provider; bare names of the three great families are known."""
    prefix, _, rest = model.partition("/")
    if rest and prefix in _PLUGINS:
        return _PLUGINS[prefix], rest
    return next((provider for names, provider in _FAMILIES if re.match(names, model)), UNKNOWN), model


def tokens_of(row: Row) -> Tokens:
    """Return the counts of a call."""
    details = mapping(read_json(row.token_details))
    prompt = details.get("prompt_tokens_details") or details.get("input_tokens_details")
    answer = details.get("completion_tokens_details") or details.get("output_tokens_details")
    given = {**details, **mapping(details, "cache_creation"), **mapping(prompt), **mapping(answer)}
    given |= {"input_tokens": row.input_tokens, "output_tokens": row.output_tokens}
    counts, issues = read_counts(_COUNTS, [*map(given.get, _COUNTS)], f"{row.id}: ")
    whole, output, cached, cached_content, written, thoughts, reasoning, thinking, read, created, created_1h = counts
    inside = min(whole, cached + cached_content)
    written = min(whole - inside, written)
    if "candidatesTokenCount" not in details and output != thoughts:
        output += thoughts
    usage = TokenUsage(
        input=whole - inside - written,
        output=output,
        cache_read=inside + read,
        cache_write=written + created,
        cache_write_1h=min(created, created_1h),
        reasoning=min(output, thoughts + reasoning + thinking),
    )
    return Tokens(usage, issues)


def _cost(details: Json) -> tuple[int | None, tuple[str, ...]]:
    """What OpenRouter has charged; with a key of one's own also what the provider has."""
    charged, issues = cost(details.get("cost"))
    upstream, flaws = cost(mapping(details, "cost_details").get("upstream_inference_cost"))
    has_own_key = details.get("is_byok") is True
    return (charged or 0) + (upstream or 0) if has_own_key and upstream else charged, (*issues, *flaws)


def tools_in(messages: Messages, type_: str) -> Iterator[tuple[str, Json]]:
    """Yield the tool parts of one type, with what names their call: its id, or the tool's name where it has none."""
    for message in messages:
        for part in message["parts"]:
            if part.get("type") == type_:
                yield _word(part.get("tool_call_id")) or _word(part.get("name")), part


def _words(messages: Messages, type_: str) -> str:
    parts = (part for message in messages for part in message["parts"] if part.get("type") == type_)
    return "\n".join(filter(None, (_word(part.get("text")) for part in parts)))


def _word(value: Any) -> str:
    """A text or a number as text, "" for anything else, which may be nested deeper than `str` can follow."""
    return str(value or "") if isinstance(value, str | int | float) else ""


def _stores(database: Database) -> Iterator[tuple[str, str, str]]:
    """The stores that hold what every version has."""
    return (store for store in _STORES if {"id", "model", store[1]} <= database.columns(store[0]))


def _read(path: str, only: str | None = None) -> Iterator[Row | Problem]:
    with Database(path) as database:
        unread = ""
        for table, session, sessions in _stores(database):
            known = {cells[0]: cells[1:] for cells in database.select(sessions, ("id", "name", "forked_from"))}
            read_messages = (_turns if table == "turns" else _responses)(database)
            rest = (
                f"WHERE id IS NOT NULL {unread} AND coalesce(?, {session}, id) = coalesce({session}, id) "
                f"ORDER BY coalesce({session}, id), 2, rowid"
            )
            current, seen = None, set[Any]()
            for cells in database.select(table, (session, *_COLUMNS), rest, only):
                row = Row(*cells)
                row.title, row.parent = known.get(row.session, (None, None))
                row.session = str(row.session or row.id)
                if row.session != current:
                    current, seen = row.session, set()
                row.sent, row.answer = read_messages(row, seen)
                yield row
                yield from database.problems()
            unread = f"AND id NOT IN (SELECT id FROM {table} WHERE id IS NOT NULL)"  # noqa: S608 - a name of ours
        yield from database.problems()


def _turns(database: Database) -> Reader:
    """Read a turn's messages: from its two back to those that have been seen. Early alphas had other tables."""
    is_readable = "message_hash" in database.columns("parts")

    def back_from(message: Any, seen: set[Any]) -> Messages:
        found: Messages = []
        while is_readable and message and message not in seen:
            seen.add(message)
            rows = list(database.select("messages", ("parent_hash", "role"), "WHERE hash = ?", message))
            back, role = rows[0] if rows else (None, None)
            found.insert(0, {"role": role, "parts": [*_parts(database, message)]})
            message = back
        return found

    return lambda row, seen: (back_from(row.parent_message_hash, seen), back_from(row.tip_message_hash, seen))


def _parts(database: Database, message: Any) -> Iterator[Json]:
    columns = ("type", "text", "payload")
    for type_, text, payload in database.select("parts", columns, "WHERE message_hash = ? ORDER BY position", message):
        data = mapping(read_json(payload))
        words = _word(text or data.get("text"))
        for piece in objects(data, "text_ref"):
            rows = database.select("fragments", ("content",), "WHERE id = ?", _word(piece.get("fragment")))
            words += _word(next((content for (content,) in rows), piece.get("literal")))
        yield {**data, "type": type_, "text": words}


def _responses(database: Database) -> Reader:
    """Write a row of the old tables as messages; a system prompt is sent when it is new."""
    calls, results = _tools(database, "tool_calls", "tool_call"), _tools(database, "tool_results", "tool_result")

    def messages(row: Row, seen: set[Any]) -> tuple[Messages, Messages]:
        sent: Messages = [{"role": "tool", "parts": results.get(row.id, [])}, _message("user", row.prompt)]
        if row.system not in seen:
            sent.insert(1, _message("system", row.system))
        seen.add(row.system)
        reasoning = {"type": "reasoning", "text": row.reasoning}
        answer = _message("assistant", row.response)
        answer["parts"] += [reasoning, *calls.get(row.id, [])]
        return sent, [answer]

    return messages


def _message(role: str, text: Any) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "text": text}]}


def _tools(database: Database, table: str, type_: str) -> dict[Any, Messages]:
    """Read a tool table once, by response: it has no index that could find one response's rows."""
    found: dict[Any, Messages] = {}
    for cells in database.select(table, _TOOL, "ORDER BY rowid"):
        part = dict(zip(_TOOL, cells, strict=True))
        found.setdefault(cells[0], []).append({**part, "type": type_, "arguments": mapping(read_json(cells[2]))})
    return found


def _name_sessions(path: str) -> Iterable[str]:
    names = set[str]()
    with Database(path) as database:
        for table, session, _ in _stores(database):
            names.update(str(own or id_) for own, id_ in database.select(table, (session, "id")) if id_ is not None)
    return sorted(names)


def _recognises(path: str, head: bytes) -> bool:
    """Whether the database has the tables; its first bytes may also contain such names as text."""
    tables = tables_of(path, head)
    return "_llm_migrations" in tables and any(table in tables for table, _, _ in _STORES)


SOURCE = source(
    id="llm",
    title="llm",
    places=PLACES["llm"],
    logs="logs.db",
    rows=whole_log(_read, _read),
    steps=steps,
    state_type=State,
    recognises=_recognises,
    name_sessions=_name_sessions,
    is_apart=True,
    parser_version=3,
)
