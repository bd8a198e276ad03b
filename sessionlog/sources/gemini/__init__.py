"""gemini: Gemini CLI.

Where: `$GEMINI_DATA_DIR` (a comma list), else `$GEMINI_CLI_HOME/.gemini/tmp` (or `$GEMINI_CLI_HOME/tmp`), else
`~/.gemini/tmp`: `<slug or project hash>/chats/session-<minute>-<8 of the id>.json` until 2025, `.jsonl` since 2026;
`chats/<session id>/<agent id>.jsonl` for sub-agents. Chats are deleted after 30 days. `logs.json` holds prompts only;
`checkpoint-*.json`, `logs/`, `tool-outputs/` are no chats. Forms: see `gemini.log`; projects: see `gemini.project`.

A message has `id`, `timestamp`, `type` (user, gemini, info, warning, error), `content`; gemini also `model`,
`thoughts`, `tokens`, `toolCalls` [{id, name, args, status, timestamp, result}].

Traps:
- A message is written again, with the same id, when its tokens or tool results come, and once more in `$set.messages`
  when old output is masked. The last row with `tokens` counts, also where its numbers are smaller: so a grown log is
  read again from its start, for a stored record could only be outdone by a greater one. A row whose `tokens` is null
  has not learned them; it takes nothing back.
- A message that a rewind or a compression took out of the history has been paid for: it counts.
- Resuming a `.json` chat copies it into a `.jsonl` beside it, with the same session id and message ids: the key.
- `thoughts` are not in `output` and are billed as output; `tool` is input beyond `input`; `cached` is a part of
  `input` (`total` proves it).
- A failed request leaves a message of type `error` that says `[API Error`, and no tokens.
- Finished runs with `--output-format json` hold a sum per model (`stats.models`), without times. Where the session's
  own chat is known as well, it counts and the sum does not.

Known from the agent's published recorder, of 2025 and as of mid-2026; not from logs of every version between.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from sessionlog.errors import Problem
from sessionlog.reader.unpack import open_unpacked
from sessionlog.reader.walk import walk_files
from sessionlog.settings import user_home
from sessionlog.sources.gemini.events import read
from sessionlog.sources.gemini.fold import ID, fold_log, run_name
from sessionlog.sources.gemini.log import JSONL
from sessionlog.sources.gemini.project import files_beside, parent_of
from sessionlog.sources.protocol import HEAD, Env, LogScan, Resume, Retention, Source

_HEADER_ID = re.compile(rb'"(sessionId|session_id)"\s*:\s*"([^"\\]+)"')
_OUTSIDE = re.compile(r"[/\\](logs|tool[-_]outputs?|checkpoints|plans|tracker|tasks)[/\\]")


def locate(env: Env) -> Iterator[str]:
    """The folders where chats are kept."""
    given = env.get("GEMINI_DATA_DIR", "")
    if given.strip():
        home = user_home(env)
        yield from (re.sub(r"\A~(?=/|\Z)", lambda _: home, part.strip()) for part in given.split(",") if part.strip())
        return
    home = env.get("GEMINI_CLI_HOME", "")
    if home:
        yield os.path.join(home, ".gemini", "tmp")
        yield os.path.join(home, "tmp")
        return
    yield os.path.join(user_home(env), ".gemini", "tmp")


def list_logs(place: str) -> Iterator[str | Problem]:
    """Yield the chats, those of sub-agents last: the first log of a session is the one that is read."""
    parts: list[str] = []
    for path in walk_files([place], _is_chat):
        if isinstance(path, Problem) or path == place:
            yield path
        elif not _OUTSIDE.search(path[len(place) :]):
            if parent_of(path):
                parts.append(path)
            else:
                yield path
    yield from parts


def _is_chat(name: str) -> bool:
    return name.endswith(JSONL) or (name.startswith("session-") and name.endswith(".json"))


def recognises(path: str, head: bytes) -> bool:
    """A header with the session's id and the project's hash, a message's row, or a run's sums."""
    if b'"projectHash"' in head and b'"sessionId"' in head:
        return True
    if b'"stats"' in head and b'"models"' in head and b'"candidates"' in head:
        return not path.endswith(JSONL)
    return path.endswith(JSONL) and re.search(rb'"type"\s*:\s*"gemini"', head) is not None


def name_sessions(path: str) -> Iterator[str]:
    """The parent's id of a sub-agent's log, else the id in the header."""
    parent = parent_of(path)
    if parent:
        yield parent
        return
    file, _ = open_unpacked(path)
    with file:
        found = _HEADER_ID.search(file.read(HEAD))
    told = found.group(2).decode("utf-8", "replace") if found else None
    yield told if found and told and found.group(1) == b"sessionId" else run_name(path, told)


def scan(path: str, resume: Resume | None) -> LogScan:  # noqa: ARG001 - a message may be rewritten with less: see above
    """Read one log for reports, always whole."""
    fold = fold_log(path)
    session = fold.finish()
    return LogScan(sessions=(session,) if session is not None else (), problems=fold.findings.problems)


def retention(env: Env) -> Retention:  # noqa: ARG001 - its settings are of several files and levels
    """Thirty days, unless it was set."""
    return Retention(days=30, setting="general.sessionRetention.maxAge in ~/.gemini/settings.json")


SOURCE = Source(
    id=ID,
    title="Gemini CLI",
    parser=1,
    locate=locate,
    list_logs=list_logs,
    recognises=recognises,
    scan=scan,
    read=read,
    name_sessions=name_sessions,
    retention=retention,
    beside=files_beside,
)
