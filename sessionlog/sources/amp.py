"""amp: Amp's threads, a JSON document each, as long as it kept them on the machine.

Where: `threads` in each folder of `$AMP_DATA_DIR` (a list with commas), else in `$XDG_DATA_HOME/amp`: `T-<uuid>.json`.
Since 2026 threads are kept by Amp's servers and the files are stubs without usage. Shape: `{"v", "id", "created": ms,
"title", "messages": [{"role", "messageId", "content", "usage"?}], "usageLedger"?: {"events": […]}, "env"}`. Contents in
Anthropic's words, but for tool results: `{"toolUseID", "run": {"status", "result" | "error"}}`. A usage: `{"model",
"inputTokens", "outputTokens", "cacheCreationInputTokens", "cacheReadInputTokens", "timestamp"?}`.

Traps:

- Older threads count in `usageLedger.events` (`id`, `timestamp`, `model`, `tokens: {input, output}`, `toMessageId`)
  what the usage of the message `toMessageId` counts too, there with the caches: the message's usage is the one that
  counts, and an event only where its message has none.
- Classes are disjoint, but for models of OpenAI, whose whole uncached input is in `cacheCreationInputTokens`.
- The first usages have no time, the oldest no model. `credits` are Amp's own unit, no money.
- What sub-agents used is in no message: the sums are lower bounds.

Known from readers of these files and from issues (until spring 2026); not seen on a real machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from sessionlog.sources.kit import (
    At,
    Json,
    Problem,
    Prompt,
    Response,
    Session,
    Steps,
    ToolResult,
    folder,
    is_failure,
    mapping,
    name,
    objects,
    parts_of,
    read_document,
    read_time,
    source,
    stem_of,
    text,
    text_of,
    tokens,
    tool_uses,
    whole_log,
)
from sessionlog.sources.places import PLACES

_MAKERS = (("claude", "anthropic"), ("gpt-", "openai"), ("gemini", "google"), ("grok", "xai"))
_OUTPUTS = ("output", "content", "diff")


class Row(Struct):
    """The thread without its messages first, then a message in each, with the ledger's event for it."""

    message: Json
    event: Json = {}
    is_thread: bool = False


class State(Struct):
    """The thread's id, and the last time in it: messages need not have one."""

    thread: str = ""
    time: int | None = None


def _read(path: str) -> Iterator[Row | Problem]:
    """Yield a thread and its messages.

    Raises:
        LogNotReadable: It cannot be opened.
    """
    thread = read_document(path)
    if isinstance(thread, Problem):
        yield thread
        return
    events = objects(thread, "usageLedger", "events")
    by_message = {event["toMessageId"]: event for event in events if isinstance(event.get("toMessageId"), int)}
    yield Row(thread, is_thread=True)
    for message in objects(thread, "messages"):
        number = message.get("messageId")
        yield Row(message, by_message.pop(number, {}) if isinstance(number, int) else {})
    for event in events:
        number = event.get("toMessageId")
        if not isinstance(number, int) or number in by_message:
            yield Row({"role": "assistant"}, event)


def steps(row: Row, state: State) -> Steps:
    """What a row means."""
    message = row.message
    if row.is_thread:
        state.thread, state.time = name(message, "id"), read_time(message, "created")
        yield _session(message, state.time)
    elif message.get("role") == "assistant":
        yield from _answer(message, row.event, state)
    else:
        state.time = read_time(message, "meta", "sentAt") or state.time
        yield from _given(message, state.time)


def _session(thread: Json, time: int | None) -> Session:
    from urllib.parse import unquote, urlsplit

    uris = (text(tree, "uri") for tree in objects(thread, "env", "initial", "trees"))
    path = unquote(urlsplit(next(uris, "")).path)  # of a Windows drive it is `/c:/src`
    return Session(time=time, project=folder(path[1:]) or folder(path), title=text(thread, "title"))


def _given(message: Json, time: int | None) -> Steps:
    """A user's message: a prompt, results of tools, or both."""
    for part in parts_of(message.get("content"), "tool_result"):
        yield _result(time, part)
    words = text_of(message.get("content"))
    if words:
        yield Prompt(time, words)
    yield At(time)


def _result(time: int | None, part: Json) -> ToolResult:
    run = mapping(part, "run")
    result = run.get("result")
    value = mapping(result)
    has_failed = run.get("status") in ("error", "cancelled") or value.get("success") is False
    output = text(result) or next(filter(None, (text(value, key) for key in _OUTPUTS)), "") or text_of(result)
    return ToolResult(
        time,
        name(part, "toolUseID"),
        output or text(run, "error", "message"),
        failed=has_failed or is_failure(value, "exitCode"),
    )


def _answer(message: Json, event: Json, state: State) -> Steps:
    usage, content = message.get("usage"), message.get("content")
    model = name(usage, "model") or name(event, "model")
    state.time = read_time(usage, "timestamp") or read_time(event, "timestamp") or state.time
    number = message.get("messageId")
    if isinstance(usage, dict):
        if model.startswith("gpt-"):
            fresh = usage.get("inputTokens") or usage.get("cacheCreationInputTokens")
            usage = {**usage, "inputTokens": fresh, "cacheCreationInputTokens": 0}
        counts = tokens(
            usage, input="inputTokens", output="outputTokens", cache_read="cacheReadInputTokens",
            cache_write="cacheCreationInputTokens",
        )  # fmt: skip
    else:
        counts = tokens(event.get("tokens") if usage is None else usage, input="input", output="output")
    yield Response(
        time=state.time,
        key=f"{state.thread}:{number}" if isinstance(number, int) else name(event, "id"),
        tokens=counts,
        model=model,
        provider=next((maker for begin, maker in _MAKERS if model.startswith(begin)), ""),
        quality="exact" if isinstance(usage, dict) else "partial",
        text=content,
        reasoning=content if isinstance(content, list) else "",
        final=counts is None,
    )
    yield from tool_uses(state.time, content)


def _recognises(path: str, head: bytes) -> bool:
    is_thread = re.search(rb'"id"\s*:\s*"T-[0-9a-f-]{36}"', head) is not None
    return path.endswith(".json") and is_thread and b'"messages"' in head


SOURCE = source(
    id="amp",
    title="Amp",
    places=PLACES["amp"],
    logs="T-*.json",
    rows=whole_log(_read),
    steps=steps,
    state_type=State,
    recognises=_recognises,
    session_of=stem_of,
    parser_version=3,
    caveat="newer versions keep threads on Amp's servers; what is here is without usage then",
)
