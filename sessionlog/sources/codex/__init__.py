r"""codex: the rollouts of OpenAI's Codex CLI, and saved streams of `codex exec --json`.

Where: `$CODEX_HOME`, else `~/.codex`: `sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl` and `archived_sessions/`
(flat or nested); the home itself is looked at, not below, for saved streams. OpenClaw keeps a Codex home per agent:
`~/.openclaw/agents/*/agent/codex-home` (`$OPENCLAW_DIR`; earlier `~/.clawdbot`, `~/.moltbot`, `~/.moldbot`). Since
0.137 rollouts idle for a week are rewritten as `.jsonl.zst`.

Shape: rows `{"timestamp", "type", "payload"}`. `session_meta` (id, cwd, cli_version, model_provider, source, git,
forked_from_id), `turn_context` (model, cwd, turn_id), `response_item` (message, reasoning, calls and their outputs),
`event_msg` (token_count, user_message, task_started, task_complete, turn_aborted, error, stream_error,
mcp_tool_call_end, …), `compacted`. Until September 2025: a header `{"id", "timestamp", "git"}` and bare items, without
counts.

Traps:
- Counters are running totals and are repeated; see counters. Input includes cached tokens, output reasoning.
- Forks and sub-agents begin with their parent's rows, under new dates or their own; see thread. Copies with their
  own dates bear the key of the original, thread and time and total, and count only where no rollout has made the same
  count at the same moment; under new dates they are only the counter's start.
- The same thread may lie in `sessions` and in the archive, plain and packed: its id names it, keys hold no path.
- A sub-agent with a parent is a part of its session; `review` and the like without one are sessions of their own.
- An error is followed by `task_complete`: without a response or a last word in between the turn has failed. An `error`
  row is one failed request, with no usage and no price, unless it is about something local (sandbox, rollback); its
  `stream_error` rows are attempts of the same request. Where a turn ends in the middle of these, they are the failure.
- `originator` is free text, and other agents write this format too: their models are unknown without a turn_context.
- A crash leaves a torn row; when the thread is resumed, the next row is glued to it.
- `history.jsonl` and `session_index.jsonl` in the home are no logs.

Versions seen: 0.20 (July 2025) to 0.140 (November 2026).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.events.envelope import Event
from sessionlog.reader.unpack import open_unpacked
from sessionlog.reader.walk import LOG_SUFFIXES, walk_files
from sessionlog.settings import user_home
from sessionlog.sources.codex.events import read_rows
from sessionlog.sources.codex.exec import exec_sessions, read_exec, scan_exec
from sessionlog.sources.codex.lane import feed
from sessionlog.sources.codex.rows import RolloutRows
from sessionlog.sources.codex.scan import ID, Rollout
from sessionlog.sources.codex.thread import thread_of
from sessionlog.sources.protocol import HEAD, Env, LogScan, Resume, Source

_FOLDERS = ("sessions", "archived_sessions")
_HOME_FILES = ("config.toml", "auth.json", "history.jsonl", *_FOLDERS)
_CLAWS = (".openclaw", ".clawdbot", ".moltbot", ".moldbot")
_NO_LOGS = frozenset({"history.jsonl", "session_index.jsonl"})
_ROW_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_EXEC_TYPES = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})
_FIRST_ROW = re.compile(
    rb'\s*\{\s*"timestamp"\s*:\s*"[^"]{0,40}"\s*,\s*"type"\s*:\s*"(session_meta|turn_context|response_item|event_msg)"'
    rb'\s*,\s*"payload"\s*:\s*\{'
)
_TRIED_LINES = 8
_ROLLOUT = "rollout-"


def locate(env: Env) -> Iterable[str]:
    """Yield the folders of Codex's own home, the home itself, and the homes that OpenClaw's agents have."""
    home = user_home(env)
    codex = env.get("CODEX_HOME") or os.path.join(home, ".codex")
    yield from _places(codex)
    for claw in _claws(env, home):
        agents = os.path.join(claw, "agents")
        for agent in _names(agents):
            place = os.path.join(agents, agent, "agent", "codex-home")
            if os.path.isdir(place):
                yield from _places(place)


def _claws(env: Env, home: str) -> Iterable[str]:
    """The state folders of OpenClaw: those that are named, its own, its profiles', and those of its former names."""
    named = map(str.strip, (*env.get("OPENCLAW_DIR", "").split(","), env.get("OPENCLAW_STATE_DIR", "")))
    profiles = (name for name in _names(home) if name.startswith(f"{_CLAWS[0]}-"))
    own = (os.path.join(home, name) for name in (*_CLAWS, *profiles))
    return dict.fromkeys((*(home + path[1:] if path.startswith("~") else path for path in named if path), *own))


def _places(home: str) -> Iterator[str]:
    yield from (os.path.join(home, name) for name in _FOLDERS)
    yield home


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def profiles(env: Env) -> Iterable[tuple[str, str]]:
    """Where OpenClaw's profiles, its agents and their homes are looked for."""
    home = user_home(env)
    yield home, f"{_CLAWS[0]}-"
    for claw in _claws(env, home):
        agents = os.path.join(claw, "agents")
        yield agents, ""
        yield from ((os.path.join(agents, agent, "agent"), "codex-home") for agent in _names(agents))


def list_logs(place: str) -> Iterable[str | Problem]:
    """Yield the logs of a home (its folders, and the streams beside them), or all that are in a folder."""
    if not os.path.isdir(place):
        yield place
        return
    names = _names(place)
    if not any(name in names for name in _HOME_FILES):
        yield from _checked(walk_files([place], _is_candidate))
        return
    yield from _checked(walk_files((os.path.join(place, name) for name in _FOLDERS if name in names), _is_candidate))
    beside = (os.path.join(place, name) for name in names if _is_candidate(name))
    yield from _checked(walk_files((path for path in beside if os.path.isfile(path)), _is_candidate))


def _is_candidate(name: str) -> bool:
    return name.endswith(LOG_SUFFIXES) and name not in _NO_LOGS


def _checked(found: Iterable[str | Problem]) -> Iterator[str | Problem]:
    """Leave out files that are named like no rollout and hold none."""
    for item in found:
        if isinstance(item, Problem) or os.path.basename(item).startswith(_ROLLOUT) or recognises(item, _head(item)):
            yield item


def _head(path: str) -> bytes:
    try:
        file, _ = open_unpacked(path)
        with file:
            return file.read(HEAD)
    except (LogNotReadable, MissingExtra, OSError):
        return b""


def recognises(path: str, head: bytes) -> bool:
    """Tell a rollout or a stream by the first rows that can be read."""
    return os.path.basename(path) not in _NO_LOGS and _kind_of(head) != ""


def _kind_of(head: bytes) -> str:
    """`rollout`, `exec`, or nothing."""
    head = head.lstrip(b"\xef\xbb\xbf\x00 \t\r\n")
    for line in head.split(b"\n", _TRIED_LINES)[:_TRIED_LINES]:
        if _FIRST_ROW.match(line):
            return "rollout"
        try:
            row = orjson.loads(line.strip(b"\x00\r "))
        except ValueError:
            continue
        kind = _kind_of_row(row) if isinstance(row, dict) else ""
        if kind:
            return kind
    return ""


def _kind_of_row(row: dict[str, Any]) -> str:
    type_ = row.get("type")
    if "payload" in row:
        return "rollout" if "timestamp" in row and isinstance(type_, str) and type_ in _ROW_TYPES else ""
    if isinstance(type_, str):
        return "exec" if type_ in _EXEC_TYPES else ""
    return "rollout" if "id" in row and "timestamp" in row and ("git" in row or "instructions" in row) else ""


def _form_of(path: str) -> str:
    return "rollout" if os.path.basename(path).startswith(_ROLLOUT) else _kind_of(_head(path))


def scan(path: str, resume: Resume | None) -> LogScan:
    """Scan a rollout from where the last scan ended, or a stream from its start.

    Raises:
        LogNotReadable: The file cannot be opened as a log.
        MissingExtra: A .zst file without a decoder.
    """
    form = _form_of(path)
    if form == "exec":
        return scan_exec(path)
    resume = resume or Resume(offset=0)
    rollout = Rollout(path, resume.state)
    with RolloutRows(path, offset=resume.offset, line=resume.line) as rows:
        feed(rollout, rows)
        resume = Resume(offset=rows.offset, line=rows.line, state=rollout.state())
        for item in rows.last():
            if isinstance(item, Problem):
                rollout.findings.note(item)
            else:
                rollout.line = rows.line
                rollout.take(item, rows.text)
    return LogScan(
        sessions=(rollout.session(),) if rollout.begun else (),
        problems=rollout.findings.problems,
        limits=tuple(rollout.limits.values()),
        resume=resume if form else None,  # a stream's first row may be in the writing
    )


def read(path: str, session_id: str | None) -> Iterator[Event | Problem]:
    """Read a thread as native events.

    Raises:
        LogNotReadable: The file cannot be opened as a log.
        MissingExtra: A .zst file without a decoder.
    """
    if _form_of(path) == "exec":
        yield from read_exec(path, session_id)
        return
    with RolloutRows(path) as rows:
        yield from read_rows(path, rows.all())


def name_sessions(path: str) -> Iterable[str]:
    """Name a rollout by the thread id in its file's name; a stream by what it says."""
    if _form_of(path) == "exec":
        yield from exec_sessions(path)
    else:
        yield thread_of(path)


SOURCE = Source(
    id=ID,
    title="Codex CLI",
    parser=1,
    locate=locate,
    list_logs=list_logs,
    recognises=recognises,
    scan=scan,
    read=read,
    name_sessions=name_sessions,
    profiles=profiles,
)
