r"""codex: the rollouts of OpenAI's Codex CLI, and saved streams of `codex exec --json`.

Where: `$CODEX_HOME`, else `~/.codex`: `sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl` and `archived_sessions/`
(flat or nested); in the home itself, not below, saved streams (see `streams`). OpenClaw keeps a Codex home per agent:
`~/.openclaw/agents/*/agent/codex-home` (`$OPENCLAW_DIR`; earlier `~/.clawdbot`, `~/.moltbot`, `~/.moldbot`). Since
0.137 rollouts idle for a week are rewritten as `.jsonl.zst`.

Shape: rows `{"timestamp", "type", "payload"}`, since 0.160 with an `ordinal`. `session_meta` (id, cwd, cli_version,
model_provider, source, git, forked_from_id), `turn_context` (model, cwd, turn_id), `response_item` (message, reasoning,
calls and their outputs), `event_msg` (token_count, user_message, task_started, task_complete, turn_aborted, error,
stream_error, mcp_tool_call_end, thread_settings_applied, …), `token_usage_record`, `compacted`. Until September 2025: a
header `{"id", "timestamp", "git"}` and bare items, without counts, times and ends.

Traps:
- Counters are running totals and are repeated; see `rows`. Input includes cached tokens, output reasoning. Up to
  0.64 a process that resumes a thread counts from nothing again (0.64 even with each turn, or request): a total that
  is its own share begins a new sum.
- Since 0.140 a counter comes after the outputs of the tools that its response called. Since 0.160 a
  `token_usage_record` holds the same use at once: it counts, and the counter only what no record held.
- Forks and sub-agents begin with their parent's rows, under new times or their own; see `rollout`. Copies with their
  own times have the key of the original (thread, time and total), and count only where no log has the original; under
  new times they are only the counter's start. Since 0.169 a fork's file holds only its own rows, and its counter
  begins at the parent's total.
- The same thread may lie in `sessions` and in the archive, plain and packed: its id names it, keys hold no path.
- A sub-agent with a parent is a part of its session, whose rows name the sub-agent's thread; `review` and the like
  without one are sessions of their own.
- A turn fails by `task_complete` with an error, or by an `error` row before it. Such a failure is one failed request,
  with no usage and no price, unless it is about something local (sandbox, rollback); `stream_error` rows are attempts
  of the same request. Where a turn ends in the middle of these, they are the failure. Some versions log a refused
  request as a turn without a last message, and nothing else.
- `thread_settings_applied.thread_settings.service_tier` is what requests ask for until the next such row; since 0.153
  the usage rows name the tier that was served. `fast` is `priority`; `default`, `auto`, null and nothing are standard.
- A `web_search_call` whose action is `search` is billed by OpenAI; the next usage row is that of its response.
- `originator` is free text, and other agents write this format too: their models are unknown without a turn_context.
- A crash leaves a torn row; when the thread is resumed, the next row is glued to it.
- `history.jsonl` and `session_index.jsonl` in the home are no logs.

Versions seen: 0.20 (July 2025) to 0.169 (November 2026).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from operator import itemgetter
from typing import Any

from sessionlog import files
from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.events.envelope import Event
from sessionlog.reader.unpack import open_unpacked
from sessionlog.reader.walk import LOG_SUFFIXES, walk_files
from sessionlog.sources.codex import streams
from sessionlog.sources.codex.rollout import State, Steps, Unsure, finish, steps
from sessionlog.sources.codex.rows import NumberedRow, Row, thread_of
from sessionlog.sources.kit import head_rows, json_lines, mapping, name, source
from sessionlog.sources.places import CODEX_FOLDERS, PLACES
from sessionlog.sources.protocol import HEAD, Parent, Source

_HOME_FILES = frozenset({"config.toml", "auth.json", "history.jsonl", *CODEX_FOLDERS})
_NO_LOGS = frozenset({"history.jsonl", "session_index.jsonl"})
_ROW_TYPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
_FIRST_ROW = re.compile(  # it may be longer than the bytes that are looked at
    rb'\s*\{\s*"timestamp"\s*:\s*"[^"]{0,40}"\s*,(?:\s*"ordinal"\s*:\s*\d{1,9}\s*,)?\s*"type"\s*:'
    rb'\s*"(session_meta|turn_context|response_item|event_msg)"\s*,\s*"payload"\s*:\s*\{'
)
_THREAD_ID = re.compile(  # escaped in tools' outputs; it begins with a constant, which is searched 20 times as fast
    rb'_id(?:(?<=session_id)|(?<=thread_id)|(?<=agent_id))\\*": ?\\*"([0-9a-f-]{36})'
)
_ROLLOUT = "rollout-"
_LONGEST_HEAD = 8 << 20


def _list_logs(place: str) -> Iterable[str | Problem]:
    """Yield the logs of a home (its folders, and the streams beside them), or all that are in a folder."""
    names = sorted(files.list_names(place))
    found = [place]
    if not _HOME_FILES.isdisjoint(names):
        paths = [os.path.join(place, one) for one in (*CODEX_FOLDERS, *filter(_is_candidate, names)) if one in names]
        found = [path for path in paths if files.is_file(path) or os.path.basename(path) in CODEX_FOLDERS]
    for item in walk_files(found, _is_candidate):
        if isinstance(item, Problem) or item == place or _form_of(item):
            yield item


def _is_candidate(file_name: str) -> bool:
    return file_name.endswith(LOG_SUFFIXES) and file_name not in _NO_LOGS


def _form_of(path: str) -> str:
    """`rollout` or `exec`, by the name or the first rows; "" for a file that is neither."""
    return "rollout" if os.path.basename(path).startswith(_ROLLOUT) else _form_of_rows(_head(path))[0]


def _head(path: str) -> bytes:
    try:
        with open_unpacked(path)[0] as file:
            return file.read(HEAD)
    except (LogNotReadable, MissingExtra, OSError):
        return b""


def _recognises(path: str, head: bytes) -> bool:
    return os.path.basename(path) not in _NO_LOGS and _form_of_rows(head)[0] != ""


def _form_of_rows(head: bytes) -> tuple[str, str]:
    """The form of a log, and the first thread of a stream."""
    if _FIRST_ROW.match(head):
        return "rollout", ""
    forms = ((_form_of_row(row), name(row, "thread_id")) for row in head_rows(head))
    return next(filter(itemgetter(0), forms), ("", ""))


def _form_of_row(row: Mapping[str, Any]) -> str:
    kind = name(row, "type")
    if "payload" in row:
        return "rollout" if "timestamp" in row and kind in _ROW_TYPES else ""
    if kind:
        return "exec" if kind in streams.ROWS else ""
    return "rollout" if "id" in row and "timestamp" in row and ("git" in row or "instructions" in row) else ""


def _begin(path: str) -> State | streams.Stream:
    form = _form_of(path)
    return streams.begin(path) if form == "exec" else (State if form else Unsure)(thread_of(path))


def _session_of(path: str) -> str:
    if os.path.basename(path).startswith(_ROLLOUT):
        return thread_of(path)
    form, thread = _form_of_rows(_head(path))
    return streams.PREFIX + (thread or thread_of(path)) if form == "exec" else thread_of(path)


def _name_sessions(path: str) -> Iterator[str]:
    """Name a rollout by the thread id in its file's name; a stream by its rows."""
    if _form_of(path) != "exec":
        yield thread_of(path)
        return
    for session in SOURCE.scan(path, None).sessions:
        yield session.session_id


def _subagent_logs(path: str) -> list[str]:
    """The rollouts of a session's sub-agents: of younger threads that its rows name, and whose first row names it.

    They are in the same folder of the home: threads are archived with their sub-agents.

    Raises:
        LogNotReadable: The log cannot be opened.
        MissingExtra: A packed log without a decoder.
    """
    own = thread_of(path).encode()
    with open_unpacked(path)[0] as file:
        younger = {thread for line in file for thread in _THREAD_ID.findall(line) if thread > own}
    above, folder, _ = path.rpartition("sessions")
    return [
        log
        for log in walk_files([above + folder or os.path.dirname(path)] if younger else (), _is_candidate)
        if isinstance(log, str)
        and thread_of(log).encode() in younger
        and own in _THREAD_ID.findall(_head(log).partition(b"\n")[0])
    ]


def _parent_of(path: str) -> Parent | None:
    """The thread that a fork goes on with: since 0.169 its file holds only its own rows."""
    with suppress(LogNotReadable, MissingExtra, OSError), open_unpacked(path)[0] as file:
        meta = mapping(next(head_rows(file.readline(_LONGEST_HEAD)), {}), "payload")
        session, until = name(meta, "forked_from_id"), meta.get("forked_from_ordinal_exclusive")
        if session and session != name(meta, "id") and type(until) is int and until > 0:
            parent = _find_thread(path, session)
            return Parent(session=session, path=parent, read=lambda: _read_until(parent, until) if parent else iter(()))
    return None


def _find_thread(path: str, thread: str) -> str:
    """The rollout of a thread in the home that a log is in; "" where it has none."""
    path = files.absolute_path(path)
    folder = next((one for one in CODEX_FOLDERS if f"{os.sep}{one}{os.sep}" in path), "")
    home = path.rpartition(f"{os.sep}{folder}{os.sep}")[0] if folder else os.path.dirname(path)
    places = [os.path.join(home, one) for one in CODEX_FOLDERS] if folder else [home]
    found = (item for item in walk_files(places, _is_candidate) if isinstance(item, str) and thread_of(item) == thread)
    return next(found, "")


def _read_until(path: str, ordinal: int) -> Iterator[Event | Problem]:
    """Read the rows of a thread that a fork has taken over."""

    def steps_until(row: NumberedRow, state: State) -> Steps:
        is_inherited = type(row.ordinal) is not int or row.ordinal < ordinal
        return steps(row, state) if is_inherited else ()

    return _make_source(NumberedRow, steps_until).read(path, None)


def _make_source(row: type[Row], meaning: Callable[[Any, Any], Steps]) -> Source:
    return source(
        id="codex",
        title="Codex CLI",
        places=PLACES["codex"],
        logs="",
        list_logs=_list_logs,
        recognises=_recognises,
        rows=json_lines(row, row_start=b'{"timestamp"'),
        steps=meaning,
        state=_begin,
        state_type=State,
        basis=lambda state: type(state) is State or None,
        finish=finish,
        session_of=_session_of,
        name_sessions=_name_sessions,
        parser_version=8,
        subagent_logs=_subagent_logs,
        parent_of=_parent_of,
    )


SOURCE = _make_source(Row, steps)
