"""llm: the `logs.db` of the `llm` command, one SQLite file for all of its conversations.

Where: `$LLM_USER_PATH/logs.db`, else in the folder `io.datasette.llm` of `$XDG_CONFIG_HOME` (`~/.config`),
`~/Library/Application Support` or `%APPDATA%`. Shape, two generations side by side:

- until 0.31 `responses` has a row for each call, in `conversations`, with `tool_calls` and `tool_results`;
- since 0.32 `turns` has it, in `threads`; what was said is a tree of `messages` with `parts`, each message known by its
  hash and pointing to the one before it. A conversation that goes on keeps its id.

Traps: some alphas wrote a call to both, under one id. Columns come and go. `input_tokens` includes what OpenAI and
Gemini read from a cache, not what Anthropic did; only `token_details` tells. Older Gemini plugins left the thoughts out
of `output_tokens` (then the details hold no candidatesTokenCount). Plugins may report no tokens: such a call counts,
marked `partial`. Only answered calls are logged, so none has failed. Tool calls may have no id, and ids repeat. Replay
leaves out attachments, and fragments of the old tables. The table `logs` of 2023 knows no tokens and is not read. Seen:
the schemas of 0.5 to 0.36.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress

from sessionlog.errors import LogNotReadable, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage, read_count
from sessionlog.reader.database import open_database
from sessionlog.reader.walk import walk_files
from sessionlog.settings import user_home
from sessionlog.sources.gather import Findings, Gather, first_words, text_size
from sessionlog.sources.llm.calls import STORES, Call, Json, as_object, columns_of, read_calls, text_in, tools_in
from sessionlog.sources.protocol import Env, LogScan, Resume, Source
from sessionlog.sources.record import UNKNOWN, Record, read_name
from sessionlog.sources.transcript import Transcript

_ID = "llm"
_PLUGINS = {"anthropic": "anthropic", "gemini": "google", "mistral": "mistral", "openrouter": "openrouter"}
_FAMILIES = ((r"gpt-(?!oss)|chatgpt-|o\d(-|$)", "openai"), (r"claude-", "anthropic"), (r"gemini-", "google"))


def _locate(env: Env) -> Iterable[str]:
    if env.get("LLM_USER_PATH"):
        return (os.path.join(env["LLM_USER_PATH"], "logs.db"),)
    home = user_home(env)
    folders = [env.get("XDG_CONFIG_HOME") or f"{home}/.config", f"{home}/Library/Application Support"]
    folders += [env["APPDATA"]] if env.get("APPDATA") else []
    return tuple(os.path.join(folder, "io.datasette.llm", "logs.db") for folder in folders)


def _list_logs(place: str) -> Iterable[str | Problem]:
    return walk_files([place], lambda name: name == "logs.db")


def _recognises(path: str, head: bytes) -> bool:
    """Ask the database itself: names in its first bytes may be somebody's words."""
    if not head.startswith(b"SQLite format 3\x00"):
        return False
    try:
        with closing(open_database(path)) as db:
            return bool(columns_of(db, "_llm_migrations")) and any(columns_of(db, store[0]) for store in STORES)
    except (LogNotReadable, sqlite3.Error):
        return False


def _name_sessions(path: str) -> Iterable[str]:
    names = set[str]()
    with closing(open_database(path)) as db, suppress(sqlite3.Error):  # `scan` tells of damage
        for table, session, _ in STORES:
            if {"id", "model", session} <= set(columns_of(db, table)):
                query = f"SELECT DISTINCT coalesce({session}, id) FROM {table} WHERE id IS NOT NULL"  # noqa: S608 - ours
                names.update(str(name) for (name,) in db.execute(query))
    return sorted(names)


def _record(call: Call, path: str) -> tuple[Record, list[Problem]]:
    row = call.row
    provider, model = _provider_and_model(read_name(row.get("model")) or UNKNOWN)
    usage, issues = _usage(row)
    told = row.get("input_tokens") is not None or row.get("output_tokens") is not None
    record = Record(
        time_ns=call.end_ns, provider=provider, model=model, response_model=read_name(row.get("resolved_model")),
        usage=usage, cost_nano=None, latency_ms=call.latency_ms, quality="exact" if told else "partial",
        key=str(row["id"]),
    )  # fmt: skip
    return record, [_problem(path, "bad_number", f"{row['id']}: {issue}") for issue in issues]


def _problem(path: str, kind: str, detail: str) -> Problem:
    return Problem(path=path, line=0, offset=0, kind=kind, detail=detail)


def _provider_and_model(model: str) -> tuple[str, str]:
    """Split off the prefix of a plugin that names its provider; the bare names of the great three are theirs."""
    prefix, _, rest = model.partition("/")
    if rest and prefix in _PLUGINS:
        return _PLUGINS[prefix], rest
    return next((provider for names, provider in _FAMILIES if re.match(names, model)), UNKNOWN), model


def _usage(row: Json) -> tuple[TokenUsage, list[str]]:
    """Read the counts into disjoint classes, and say which are none."""
    issues: list[str] = []

    def count(table: Json, *names: str) -> int:
        counts = [(name, *read_count(table.get(name))) for name in names]
        issues.extend(f"{name}: {issue}" for name, _, issue in counts if issue)
        return sum(number for _, number, _ in counts)

    details = as_object(row.get("token_details"))
    prompt = as_object(details.get("prompt_tokens_details") or details.get("input_tokens_details"))
    answer = as_object(details.get("completion_tokens_details") or details.get("output_tokens_details"))
    whole, output = count(row, "input_tokens"), count(row, "output_tokens")
    read = min(whole, count(prompt, "cached_tokens") + count(details, "cachedContentTokenCount"))
    written = min(whole - read, count(prompt, "cache_write_tokens"))
    thoughts = count(details, "thoughtsTokenCount")
    if "candidatesTokenCount" not in details and output != thoughts:
        output += thoughts
    beside = count(details, "cache_creation_input_tokens")
    usage = TokenUsage(
        input=whole - read - written,
        output=output,
        cache_read=read + count(details, "cache_read_input_tokens"),
        cache_write=written + beside,
        cache_write_1h=min(beside, count(as_object(details.get("cache_creation")), "ephemeral_1h_input_tokens")),
        reasoning=min(output, thoughts + count(answer, "reasoning_tokens", "thinking_tokens")),
    )
    return usage, issues


def _scan(path: str, _: Resume | None) -> LogScan:
    """Read the whole database: nothing in it says what is new."""
    findings, sessions = Findings(), dict[str, Gather]()
    waiting: dict[tuple[str, str], list[str]] = {}
    with closing(open_database(path)) as db:
        try:
            for call in read_calls(db):
                session = sessions.setdefault(call.session_id, Gather(_ID, call.session_id, path))
                session.touch(call.start_ns)
                session.touch(call.end_ns)
                session.ask(call.row.get("prompt") or call.row["title"])
                session.turns = session.turns or 0
                for message in call.heard:
                    if _role_of(message) == "user":
                        session.turn(text_in([message]), call.start_ns)
                session.parent = read_name(call.row["origin"]) or ""
                record, problems = _record(call, path)
                session.add(record)
                for problem in problems:
                    findings.note(problem)
                _use_tools(session, call, waiting)
        except sqlite3.Error as error:
            findings.note(_problem(path, "unreadable", str(error)))
    return LogScan(sessions=tuple(s.session() for s in sessions.values()), problems=findings.problems)


def _use_tools(session: Gather, call: Call, waiting: dict[tuple[str, str], list[str]]) -> None:
    """Take a call's tool calls and the results it was sent; an answer that leaves none open ends the session well."""
    _take_results(session, call, call.heard, waiting)
    asked = list(tools_in(call.said, "tool_call"))
    for number, (name, part) in enumerate(asked):
        key = f"{call.row['id']}:{number}"
        waiting.setdefault((call.session_id, name), []).append(key)
        session.call(key, call.end_ns, read_name(part.get("name")) or UNKNOWN)
    _take_results(session, call, call.said, waiting)
    session.status = None if any(waiting[call.session_id, name] for name, _ in asked) else "success"


def _take_results(session: Gather, call: Call, messages: list[Json], waiting: dict[tuple[str, str], list[str]]) -> None:
    for name, part in tools_in(messages, "tool_result"):
        keys = waiting.get((call.session_id, name))
        if keys:
            size, failed = text_size(part.get("output")), bool(part.get("exception"))
            session.result(keys.pop(0), call.start_ns, failed=failed, output_bytes=size)


def _read(path: str, session_id: str | None) -> Iterator[Event | Problem]:
    session_id = session_id or next(iter(_name_sessions(path)), "")
    transcript, done_ns, waiting, asked = Transcript(session_id), None, set[str](), set[str]()
    with closing(open_database(path)) as db:
        try:
            for call in read_calls(db, session_id):
                record, problems = _record(call, path)
                if not transcript.started:
                    yield transcript.start(call.start_ns, provider=record.provider, model=record.model)
                yield from problems
                yield from _hear(transcript, call.heard, call.start_ns, asked)
                yield from _answer(transcript, call, record)
                done_ns, waiting = call.end_ns, {name for name, _ in tools_in(call.said, "tool_call")}
                asked |= waiting
                waiting -= {name for name, _ in tools_in(call.said, "tool_result")}
            if transcript.started and not waiting:
                yield transcript.end(done_ns, "success")
        except sqlite3.Error as error:
            yield _problem(path, "unreadable", str(error))


def _answer(transcript: Transcript, call: Call, record: Record) -> Iterator[Event]:
    exact = record.quality == "exact"
    calls = [
        {"id": name, "name": read_name(part.get("name")) or UNKNOWN, "arguments": part.get("arguments")}
        for name, part in tools_in(call.said, "tool_call")
    ]
    yield from transcript.response(
        call.end_ns, content=text_in(call.said), reasoning=text_in(call.said, "reasoning"), tool_calls=calls,
        usage=record.usage if exact else None, model=record.response_model or record.model, provider=record.provider,
        latency_ms=record.latency_ms, key=record.key, quality=None if exact else record.quality,
    )  # fmt: skip
    yield from _results(transcript, call.said, call.end_ns)


def _hear(transcript: Transcript, messages: list[Json], ts: int | None, asked: set[str]) -> Iterator[Event]:
    """Hear messages; results of tools that a forked conversation's parent called are only words."""
    for message in messages:
        if all(name in asked for name, _ in tools_in([message], "tool_result")):
            yield from _results(transcript, [message], ts)
        else:
            for _, part in tools_in([message], "tool_result"):
                transcript.hear("tool", part.get("output"), ts)
        if text_in([message]):
            transcript.hear(_role_of(message), text_in([message]), ts)


def _role_of(message: Json) -> str:
    """Whose message it is; what has no words is nobody's prompt."""
    role = str(message["role"])
    return "system" if role == "user" and not first_words(text_in([message])) else role


def _results(transcript: Transcript, messages: list[Json], ts: int | None) -> Iterator[Event]:
    for name, part in tools_in(messages, "tool_result"):
        tool, failed = read_name(part.get("name")), bool(part.get("exception"))
        yield transcript.result(ts, name, part.get("output"), failed=failed, name=tool)


SOURCE = Source(
    id=_ID,
    title="llm",
    parser=1,
    locate=_locate,
    list_logs=_list_logs,
    recognises=_recognises,
    scan=_scan,
    read=_read,
    name_sessions=_name_sessions,
)
