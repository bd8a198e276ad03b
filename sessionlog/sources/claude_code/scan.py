"""Scanning a Claude Code log for reports.

Two lanes with one result: rows as the CLI writes them are measured by their anchored beginnings and ends, without
decoding what was said (`lane`); whatever differs in any way is decoded, here.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

import orjson

from sessionlog import files
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.damaged import without_surrogates
from sessionlog.events.money import read_usd
from sessionlog.events.times import epoch_ns, parse_time
from sessionlog.events.tokens import read_count
from sessionlog.reader.rows import Row, Rows
from sessionlog.sources.claude_code.account import ENDS, FEW_TOKENS, Account, names_of
from sessionlog.sources.claude_code.answer import Answer, Head
from sessionlog.sources.claude_code.lane import Lane
from sessionlog.sources.claude_code.rows import TranscriptRows
from sessionlog.sources.claude_code.shapes import Counts
from sessionlog.sources.gather import Findings, first_words, server_of, text_size
from sessionlog.sources.protocol import LogScan, Resume
from sessionlog.sources.record import UNKNOWN, CopyRank, read_name

SYNTHETIC = "<synthetic>"
"""The model of notices that the CLI words itself."""

SUB_AGENT = "sub-agent"
"""A sub-agent whose kind no log tells."""

_SUFFIX = re.compile(r"\.jsonl(\.gz|\.zst)?\Z")
_WRAPPED = re.compile(
    r"\s*(?:<(?:command-|local-command-|bash-|system-reminder|ide_|user-prompt-submit-hook|task-notification)"
    r"|Caveat: The messages below|\[Request interrupted)"
)
_RESULT = re.compile(rb'"type":"tool_result","content":("[^"\\]*+(?:\\.[^"\\]*+)*+")', re.DOTALL)
_INTERRUPTED = "[Request interrupted"
_HEAD_KEYS = ("sessionId", "cwd", "gitBranch", "version", "isSidechain", "agentType", "attributionAgent")
_REMEMBERED = 256
_FIRST_SECOND = 1_000_000_000  # a number below it is no time of this program
_SPLIT = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")


def stem_of(path: str) -> str:
    """Return a log's name without its suffixes."""
    return _SUFFIX.sub("", os.path.basename(path))


def is_part(path: str) -> bool:
    """Whether a file is a sub-agent's, of a session that has its own."""
    return "subagents" in path.split(os.sep) or os.path.basename(path).startswith("agent-")


def own_session_of(path: str) -> str:
    """Return the session that a file's place and name tell."""
    parts = path.split(os.sep)
    if "subagents" in parts[1:]:
        return parts[parts.index("subagents", 1) - 1]
    return stem_of(path)


def description_of(path: str) -> str:
    """Return where a sub-agent's kind is told, beside its log."""
    return os.path.join(os.path.dirname(path), f"{stem_of(path)}.meta.json")


def kind_of_agent(path: str) -> str | None:
    """Return what the file beside a sub-agent's log says of its kind."""
    try:
        content = files.read_small(description_of(path))
        told = orjson.loads(content or b"null")
    except (LogNotReadable, ValueError):
        return None
    return read_name(told.get("agentType")) if isinstance(told, dict) else None


class Scan:
    """The scan of one log, row by row."""

    def __init__(self, path: str, resume: Resume | None) -> None:
        state = None if resume is None else resume.state
        self.path = path
        self.part = is_part(path)
        self.stem = own_session_of(path)
        self.kind = kind_of_agent(path) if self.part else None
        self.account = Account(path, self.stem, part=self.part, measure=visible_size, state=state)
        self.findings = Findings()
        self._heads: dict[tuple[Any, ...], Head] = {}

    def take(self, item: Row | Problem, rows: TranscriptRows) -> None:
        """Account for one row."""
        if isinstance(item, Problem):
            self.findings.note(item)
            return
        kind, message = item.get("type"), item.get("message")
        if kind == "assistant" or (kind is None and isinstance(message, dict) and "usage" in message):
            self._assistant(item, message if isinstance(message, dict) else {}, rows)
        elif kind == "user":
            self._user(item, message if isinstance(message, dict) else {}, rows)
        elif kind == "system":
            self._begin(item)
        elif kind == "progress":
            self._progress(item, rows)

    def _heard(self, head: Head, time_ns: int | None) -> None:
        if time_ns is not None:
            self.account.asked[head.side] = time_ns

    def head(self, row: Mapping[str, Any]) -> Head:
        """Read what every row says at its beginning; rows of a log say the same most of the time."""
        told = tuple(map(row.get, _HEAD_KEYS))
        try:
            known = self._heads.get(told)
        except TypeError:  # a list or an object where a name should be
            return self._read_head(row)
        if known is None:
            if len(self._heads) > _REMEMBERED:
                self._heads.clear()
            known = self._heads[told] = self._read_head(row)
        return known

    def _read_head(self, row: Mapping[str, Any]) -> Head:
        project, branch, version = names_of(row, ("cwd", "gitBranch", "version"))
        if not is_absolute(project):
            project = UNKNOWN
        side = row.get("isSidechain") is True
        agent = "main"
        if self.part or side:
            told = read_name(row.get("agentType")) or read_name(row.get("attributionAgent"))
            agent = (self.kind if self.part else None) or told or SUB_AGENT
        return Head(read_name(row.get("sessionId")) or self.stem, side, project, branch, version, agent)

    def _begin(self, row: Mapping[str, Any]) -> tuple[Head, int | None]:
        head, time_ns = self.head(row), moment_of(row)
        account = self.account
        account.begin(account.enter(head), time_ns)
        forked = row.get("forkedFrom")
        if isinstance(forked, dict) and not account.parent:
            account.parent = read_name(forked.get("sessionId")) or ""
        return head, time_ns

    def _assistant(self, row: Row, message: Mapping[str, Any], rows: Rows) -> None:
        head, time_ns = self._begin(row)
        account = self.account
        stop, failed = read_name(message.get("stop_reason")), row.get("isApiErrorMessage") is True
        synthetic = message.get("model") == SYNTHETIC
        if not head.side and not (synthetic and not failed):
            account.status = "error" if failed else "success" if stop in ENDS else None
            account.error = first_words(message.get("content")) if failed else account.error
        if failed or not synthetic:
            copy_rank = CopyRank.SIDECHAIN if head.side else CopyRank.ORIGINAL
            self._answer(row, message, rows, head, time_ns, copy_rank, failed=failed)
        content = message.get("content")
        for number, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, dict) and part.get("type") == "tool_use":
                key = read_name(part.get("id")) or f"{rows.place}#{number}"
                name = read_name(part.get("name")) or UNKNOWN
                account.call(head, account.session(head.session_id), key, *server_of(name), time_ns)

    def _answer(
        self, row: Mapping[str, Any], message: Mapping[str, Any], rows: Rows, head: Head, time_ns: int | None,
        copy_rank: CopyRank, *, failed: bool,
    ) -> None:  # fmt: skip
        usage = message.get("usage")
        if usage is None and not failed:
            return
        account = self.account
        family = read_name(message.get("id")) or ""
        answer = account.answer(key_of(row, message, rows), family, copy_rank, head, time_ns)
        model = read_name(message.get("model"))
        if model == SYNTHETIC:
            model = account.model
        elif model is not None and copy_rank != CopyRank.EMBEDDED:
            account.model = model
        answer.model = answer.model or model
        answer.stop = read_name(message.get("stop_reason"))
        answer.failed = failed
        counts = self._counts(usage, rows)
        answer.tell(counts)
        if isinstance(usage, dict):
            answer.speed = special(usage.get("speed")) or answer.speed
            answer.service_tier = special(usage.get("service_tier")) or answer.service_tier
        if counts[0] <= FEW_TOKENS:
            answer.unread.append(message.get("content"))
        self._cost(row, answer, rows)

    def _counts(self, usage: Any, rows: Rows) -> Counts:
        if not isinstance(usage, dict):
            if usage is not None:
                self.findings.complain(self.path, rows.line, f"usage is a {type(usage).__name__}")
            usage = {}
        split = usage.get("cache_creation")
        if not isinstance(split, dict):
            split = {}
        input_ = self._count(usage, "input_tokens", rows)
        output = self._count(usage, "output_tokens", rows)
        cache_read = self._count(usage, "cache_read_input_tokens", rows)
        flat = self._count(usage, "cache_creation_input_tokens", rows)
        five_minutes, hour = (self._count(split, name, rows) for name in _SPLIT)
        cache_write = max(flat, five_minutes + hour)
        return output, input_ + cache_read + cache_write + output, input_, cache_read, cache_write, hour

    def _count(self, counts: Mapping[str, Any], name: str, rows: Rows) -> int:
        count, issue = read_count(counts.get(name))
        if issue:
            self.findings.complain(self.path, rows.line, f"{name}: {issue}")
        return count

    def _cost(self, row: Mapping[str, Any], answer: Answer, rows: Rows) -> None:
        """Rows of 2025 and before tell their cost and the time of the call."""
        cost_nano, issue = read_usd(row.get("costUSD"))
        if issue:
            self.findings.complain(self.path, rows.line, issue)
        if cost_nano is not None:
            answer.cost_nano = max(answer.cost_nano or 0, cost_nano)
        latency_ms = row.get("durationMs")
        if isinstance(latency_ms, int | float) and latency_ms is not True and 0 < latency_ms < 1 << 40:
            answer.latency_ms = max(answer.latency_ms or 0.0, float(latency_ms))

    def _user(self, row: Row, message: Mapping[str, Any], rows: TranscriptRows) -> None:
        head, time_ns = self._begin(row)
        account, content = self.account, message.get("content")
        results = 0
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and part.get("type") == "tool_result":
                results += 1
                key = read_name(part.get("tool_use_id")) or ""
                failed = part.get("is_error") is True
                account.result(key, time_ns, failed=failed, output_bytes=logged_size(part.get("content"), rows.text))
        self._heard(head, time_ns)
        if head.side:
            return
        words = words_of(content) if not hidden(row) else ""
        if was_interrupted(content):
            account.status = "cancelled"
        elif results or words:
            account.status = None
        if words.strip():
            account.turn(time_ns)
            account.prompt = account.prompt or first_words(words)

    def _progress(self, row: Row, rows: Rows) -> None:
        """A sub-agent's row, embedded in its parent's log; its own log may be gone."""
        found = embedded(row)
        if found is None:
            return
        inner, message = found
        failed = inner.get("isApiErrorMessage") is True
        if message.get("model") == SYNTHETIC and not failed:
            return
        head = self.head({**row, "isSidechain": True})
        self.account.session(head.session_id)
        time_ns = moment_of(inner)
        if time_ns is None:
            time_ns = moment_of(row)
        self._answer(inner, message, rows, head, time_ns, CopyRank.EMBEDDED, failed=failed)


def special(kind: Any) -> str:
    """Return a kind of request that may have a price of its own; "" for the standard one."""
    name = read_name(kind)
    return name if name and name != "standard" else ""


def moment_of(row: Mapping[str, Any]) -> int | None:
    """Return a row's time; exporters write numbers, whose unit their size tells."""
    told = row.get("timestamp")
    if isinstance(told, str):
        return parse_time(told)
    return epoch_ns(told) if isinstance(told, int | float) and told >= _FIRST_SECOND else None


def key_of(row: Mapping[str, Any], message: Mapping[str, Any], rows: Rows) -> str:
    """Return the name that a response has in all logs; one without an id has its place."""
    message_id = read_name(message.get("id"))
    return f"{message_id}:{read_name(row.get('requestId')) or ''}" if message_id else rows.place


def embedded(row: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
    """Return a sub-agent's assistant row that a progress row embeds, and its message."""
    data = row.get("data")
    inner = data.get("message") if isinstance(data, dict) and data.get("type") == "agent_progress" else None
    message = inner.get("message") if isinstance(inner, dict) else None
    if not isinstance(inner, dict) or inner.get("type") != "assistant" or not isinstance(message, dict):
        return None
    return inner, message


def is_absolute(path: str) -> bool:
    """Whether it is a whole path, here or on Windows."""
    return path.startswith(("/", "\\\\")) or path[1:3] in {":\\", ":/"}


def hidden(row: Mapping[str, Any]) -> bool:
    """Whether the CLI wrote a user's row for itself: caveats, skills, the summary of what was compacted."""
    return row.get("isMeta") is True or row.get("isCompactSummary") is True


def words_of(content: Any) -> str:
    """What the user typed: the texts that no wrapper marks as the CLI's own."""
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    texts = (part.get("text") for part in content if isinstance(part, dict)) if isinstance(content, list) else ()
    return "\n".join(text for text in texts if isinstance(text, str) and not is_wrapped(text))


def is_wrapped(text: Any) -> bool:
    """Whether a user's text is the CLI's own: commands, their output, reminders."""
    return isinstance(text, str) and _WRAPPED.match(text) is not None


def was_interrupted(content: Any) -> bool:
    """Whether the user stopped the agent."""
    if isinstance(content, list):
        return any(isinstance(part, dict) and was_interrupted(part.get("text")) for part in content)
    return isinstance(content, str) and content.startswith(_INTERRUPTED)


def visible_size(content: Any) -> int:
    """Bytes of what an assistant says visibly."""
    if isinstance(content, str):
        return text_size(content)
    size = 0
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            size += text_size(part.get("text"))
            if part.get("type") == "tool_use" and isinstance(part.get("input"), dict):
                size += sum(text_size(value) for value in part["input"].values())
    return size


def logged_size(content: Any, line: bytes) -> int:
    """Bytes of what a tool gave back, as the log tells it: with JSON's escapes, which the fast lane does not undo."""
    if isinstance(content, str):
        for told in _RESULT.findall(line):
            if _text_of(told) == content:
                return len(told) - 2
    size, parts = 0, [content]  # not recursive: a hostile log nests them deeper than Python's stack
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            size += len(orjson.dumps(part)) - 2
        elif isinstance(part, list):
            parts += [one.get("text", one.get("content")) for one in part if isinstance(one, dict)]
    return size


def _text_of(told: bytes) -> Any:
    try:
        return without_surrogates(json.loads(told.decode("utf-8", "replace"), strict=False))
    except ValueError:
        return None


def scan_log(path: str, resume: Resume | None, *, fast: bool = True) -> LogScan:
    """Scan a log, or what was appended to it.

    Raises:
        LogNotReadable: It cannot be opened.
        MissingExtra: A .zst file without a decoder.
    """
    start = resume or Resume(offset=0)
    scan = Scan(path, resume)
    with TranscriptRows(path, offset=start.offset, line=start.line) as rows:
        for line in rows.others(Lane(scan.account, scan.head).take) if fast else rows.lines():
            for item in [line] if isinstance(line, Problem) else rows.decode(line):
                scan.take(item, rows)
        kept = Resume(offset=rows.offset, line=rows.line, state=scan.account.state())
        for item in rows.last():
            scan.take(item, rows)
    return LogScan(sessions=scan.account.finish(), problems=scan.findings.problems, resume=kept)
