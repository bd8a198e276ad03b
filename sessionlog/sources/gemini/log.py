"""What the files of Gemini CLI hold, whichever of their forms: a header, messages, and updates of both.

`read_rows` gives every form as one stream of rows, so that those who fold it need not know which it was:

- JSONL: a header, a row per message, `{"$set": {…}}` (facts of the header, or `messages`: the history as it now is),
  `{"$rewindTo": id}`.
- JSON: the header with all `messages` in it. One that was torn in the writing still gives its whole messages.
- What a run with `--output-format json` printed: `stats`, and never a message.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from sessionlog import files
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.damaged import Flaw, find_objects
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.reader.rows import Row, Rows
from sessionlog.sources.google_parts import text_of
from sessionlog.sources.record import read_name

JSONL = (".jsonl", ".jsonl.gz", ".jsonl.zst")
MAX_JSON = 1 << 30
_MESSAGES = re.compile(r'"messages"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder(strict=False)
_API_ERROR = "[API Error"
_CANCELLED = "Request cancelled"
_CONTEXT = ("<session_context>", "This is the Gemini CLI. We are setting up the context")


class Item(NamedTuple):
    """A row, and where it stands.

    Attributes:
        row: The header, a message, or an update.
        place: A name that no other row of the file has.
        line: Its line, or its number among the messages of a JSON file.
        settled: It repeats the history (`$set.messages`): no event, though it may bring news of a message.
    """

    row: Row
    place: str
    line: int
    settled: bool = False

    @property
    def identity(self) -> str:
        """The message's id, the same in every row of it; without one, the place."""
        known = self.row.get("id")
        return known if isinstance(known, str) and known else self.place


def read_rows(path: str) -> Iterator[Item | Problem]:
    """Yield a log's rows in file order; `$set.messages` as the messages in it.

    Raises:
        LogNotReadable: The file cannot be opened as a log.
        MissingExtra: A .zst file without a decoder.
    """
    if not path.endswith(JSONL):
        yield from _read_json(path)
        return
    with Rows(path) as rows:
        for row in rows.all():
            if isinstance(row, Problem):
                yield row
                continue
            item = Item(row, rows.place, rows.line)
            yield item
            update = row.get("$set")
            if isinstance(update, dict):
                yield from _messages(update, item, settled=True)


def _messages(holder: Row, item: Item, *, settled: bool = False) -> Iterator[Item]:
    messages = holder.get("messages")
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        if isinstance(message, dict):
            line = item.line if settled else index + 1
            yield Item(message, f"{item.place}#{index}", line, settled)


def _read_json(path: str) -> Iterator[Item | Problem]:
    with files.open_log(path) as file:
        data = file.read(MAX_JSON + 1)
    if len(data) > MAX_JSON:
        raise LogNotReadable(f"{path}: over {MAX_JSON} bytes in one JSON text")
    name = os.path.basename(path)
    found: Iterator[Row | Flaw]
    try:
        value = orjson.loads(data)
        found = iter([value] if isinstance(value, dict) else [])
    except ValueError:
        found = _mend(data)
    for index, row in enumerate(found):
        if isinstance(row, Flaw):
            yield Problem(
                path=path, line=0, offset=row.start, kind=row.kind, detail=row.detail, length=row.length,
                severity=row.severity,
            )  # fmt: skip
            continue
        header = Item({key: part for key, part in row.items() if key != "messages"}, f"{name}@{index}", index)
        yield header
        yield from _messages(row, header)


def _mend(data: bytes) -> Iterator[Row | Flaw]:
    """What can be read of damaged JSON: its objects, or the header and the whole messages of a torn one."""
    found = list(find_objects(data))
    objects = [item for item in found if not isinstance(item, Flaw)]
    text = data.decode("utf-8", "replace")
    start = _MESSAGES.search(text)
    whole = any("messages" in value or "stats" in value for value, *_ in objects)
    if start is None or whole:
        yield from (item if isinstance(item, Flaw) else item[0] for item in found)
        return
    header = {key: part for key in ("sessionId", "projectHash", "startTime") if (part := _field(text, key))}
    messages: list[Row] = []
    at = start.end()
    while True:
        between = _BETWEEN.match(text, at)
        at = between.end() if between else at
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        messages.append(value)
    yield {**header, "messages": messages}
    yield Flaw(kind="torn_json", detail=f"the JSON breaks off after {len(messages)} messages", length=len(text) - at)


def _field(text: str, key: str) -> str | None:
    found = re.search(rf'"{key}"\s*:\s*"([^"\\]+)"', text)
    return found.group(1) if found else None


def read_tokens(tokens: Row) -> tuple[TokenUsage, list[str]]:
    """Return a message's tokens in disjoint classes, and what was no number.

    `output` is without the thoughts. `cached` is in `input`, unless the total says that it was added, or it is more.
    """
    issues: list[str] = []
    counts: dict[str, int] = {}
    for name in ("input", "output", "cached", "thoughts", "tool", "total"):
        counts[name], issue = read_count(tokens.get(name))
        if issue:
            issues.append(f"{name}: {issue}")
    cached, thoughts = counts["cached"], counts["thoughts"]
    together = counts["input"] + counts["output"] + thoughts + counts["tool"]
    apart = cached > counts["input"] or counts["total"] >= together + cached
    usage = TokenUsage(
        input=counts["input"] - (0 if apart else cached) + counts["tool"],
        output=counts["output"] + thoughts,
        cache_read=cached,
        reasoning=thoughts,
    )
    return usage, issues


def tool_name(name: Any) -> tuple[str, str]:
    """Split a tool's name into (tool, MCP server): `mcp_SERVER_TOOL`, or `SERVER__TOOL` as older versions have it.

    The agent itself cannot tell where a server's name with an underscore ends; nor can we.
    """
    known = read_name(name) or "unknown"
    if known.startswith("mcp_"):
        rest = known[4:].lstrip("_")
        server, _, tool = rest.partition("__") if "__" in rest else rest.partition("_")
    else:
        server, _, tool = known.partition("__")
    return (tool, server) if server and tool else (known, "")


def prompt_of(row: Row) -> str:
    """The words of a user's message as the user wrote them; empty for tool results and the context the agent sends."""
    text = text_of(row.get("displayContent")) or text_of(row.get("content"))
    return "" if text.lstrip().startswith(_CONTEXT) else text


def outcome_of(row: Row, known: str | None) -> str | None:
    """What a message says about how the session stands, in file order: the last word counts.

    An answer without tool calls ends a turn: the agent records it only when it is complete.
    """
    kind = row.get("type")
    text = text_of(row.get("content")).strip()
    if kind == "user":
        return None if prompt_of(row) else known
    if kind == "gemini":
        calls = row.get("toolCalls")
        if not isinstance(calls, list) or not calls:
            return "success" if text else known
        stopped = [call.get("status") == "cancelled" for call in calls if isinstance(call, dict)]
        return "cancelled" if stopped and all(stopped) else None
    if kind == "error":
        return "error" if known is None or is_api_error(row) else known
    return "cancelled" if kind == "info" and text.startswith(_CANCELLED) else known


def is_api_error(row: Row) -> bool:
    """Whether a message is the notice of a failed request."""
    return row.get("type") == "error" and _API_ERROR in text_of(row.get("content"))[:40]
