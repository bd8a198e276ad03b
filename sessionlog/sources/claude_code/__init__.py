"""claude-code: the transcripts of Claude Code, one JSONL file a session and one for each of its sub-agents.

Where: `projects` in each folder of `$CLAUDE_CONFIG_DIR` (a list with commas; an entry may be `projects` itself), else
in both `$XDG_CONFIG_HOME/claude` and `~/.claude`; `transcripts` beside it; and in the desktop app's
`Claude/local-agent-mode-sessions`. There: `<slug>/<session>.jsonl`, `<slug>/<session>/subagents/**/agent-<id>.jsonl`
with its kind in `agent-<id>.meta.json`, formerly `<slug>/agent-<id>.jsonl`. The `journal.jsonl` of a workflow is none.
Logs are deleted after `cleanupPeriodDays`.

Shape: a row a content block, `{"parentUuid","isSidechain","cwd","sessionId","version","gitBranch",…}` and `message`, in
the API's own words. The rows of one response share `message.id` and `requestId` and repeat its input; only the last one
tells its output (some versions never write it: such a response is marked `partial`).

Traps:

- Resumed and forked sessions copy earlier rows into a new file, with or without their old session id: keys are global.
  A side question replays its parent's rows as a sidechain, with other request ids; gateways give no request id at all.
- `agent_progress` rows embed a sub-agent's rows in its parent's log, often half-way; sometimes no other log has them.
- The result of a sub-agent's call carries the sub-agent's totals: they are in its own log.
- The model `<synthetic>` marks the CLI's own notices; with `isApiErrorMessage` it is a failed request, else nothing.
  `api_error` rows are retries, which nobody billed.
- Cache writes are told flat and split by duration, and either may be zero.
- `costUSD` and `durationMs` are told until 1.0.9. Exporters space their JSON and write times as numbers.
- A row of a sub-agent names its parent's session.

Seen: 1.0 to 2.1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from sessionlog import files
from sessionlog.errors import LogNotReadable, Problem
from sessionlog.reader.walk import LOG_SUFFIXES, walk_files
from sessionlog.settings import user_home
from sessionlog.sources.claude_code.account import SOURCE_ID
from sessionlog.sources.claude_code.events import read_session
from sessionlog.sources.claude_code.scan import description_of, is_part, scan_log, stem_of
from sessionlog.sources.protocol import Env, LogScan, Resume, Retention, Source

RETENTION_DAYS = 30
"""After which logs are deleted unless the settings say otherwise."""

_DESKTOP = "local-agent-mode-sessions"
_HEAD_ROWS = 40
_OWN_KEYS = re.compile(rb'"isSidechain"\s*:\s*(?:true|false)')
_SNAPSHOT = re.compile(rb'\s*\{\s*"type"\s*:\s*"file-history-snapshot"')


def _config_dirs(env: Env) -> list[str]:
    """The folders of settings and projects, in order of preference."""
    home = user_home(env)
    named = [entry.strip() for entry in env.get("CLAUDE_CONFIG_DIR", "").split(",") if entry.strip()]
    if named:
        return [os.path.normpath(re.sub(r"\A~(?=[/\\]|\Z)", lambda _: home, entry)) for entry in named]
    config = env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return [os.path.join(config, "claude"), os.path.join(home, ".claude")]


def locate(env: Env) -> list[str]:
    """Return the folders of transcripts, existing or not."""
    places: list[str] = []
    for folder in _config_dirs(env):
        if os.path.basename(folder) == "projects":
            places.append(folder)
        else:
            places += [os.path.join(folder, "projects"), os.path.join(folder, "transcripts")]
    home = user_home(env)
    apps = [
        env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"),
        os.path.join(home, "Library", "Application Support"),
        env.get("APPDATA", ""),
    ]
    places += [os.path.join(app, "Claude", _DESKTOP) for app in apps if app]
    return list(dict.fromkeys(places))


def list_logs(place: str) -> Iterator[str | Problem]:
    """Yield the transcripts under a folder; in the desktop app's, only what is under a `projects`."""
    for path in walk_files([place], lambda name: name.endswith(LOG_SUFFIXES)):
        if isinstance(path, Problem) or path == place or _is_log(path):
            yield path


def _is_log(path: str) -> bool:
    parts = path.split(os.sep)
    if _DESKTOP in parts and "projects" not in parts[parts.index(_DESKTOP) :]:
        return False
    return not ("subagents" in parts and stem_of(path) == "journal") and parts[-1] != "history.jsonl"


def recognises(path: str, head: bytes) -> bool:
    """Tell a transcript by its first rows: only Claude Code says of each row whether it is a sidechain."""
    if "subagents" in path.split(os.sep) and stem_of(path) == "journal":
        return False
    for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n", _HEAD_ROWS)[:_HEAD_ROWS]:
        try:
            row = orjson.loads(line)
        except ValueError:  # cut at the head's end, or damaged
            if _SNAPSHOT.match(line) or (b'"sessionId"' in line and _OWN_KEYS.search(line)):
                return True
            continue
        if isinstance(row, Mapping) and _is_row(row):
            return True
    return False


def _is_row(row: Mapping[str, Any]) -> bool:
    kind, message = row.get("type"), row.get("message")
    if kind == "summary":
        return "leafUuid" in row
    if kind == "file-history-snapshot":
        return "snapshot" in row
    if isinstance(message, Mapping) and "parts" in message:
        return False  # Qwen Code writes rows with the same keys around Google's messages
    if isinstance(row.get("isSidechain"), bool):
        return "sessionId" in row or "parentUuid" in row
    if not isinstance(message, Mapping) or kind not in ("assistant", None) or "provider" in message:
        return False
    usage = message.get("usage")
    named = any(name in row for name in ("sessionId", "requestId", "costUSD"))
    return named and isinstance(usage, Mapping) and "input_tokens" in usage


def scan(path: str, resume: Resume | None) -> LogScan:
    """Scan a log for reports."""
    return scan_log(path, resume)


def name_sessions(path: str) -> Iterable[str]:
    """A transcript is named by its file, a sub-agent's too: so it can be replayed by itself."""
    return (stem_of(path),)


def beside(path: str) -> Iterable[str]:
    """What tells a sub-agent's kind."""
    return (description_of(path),) if is_part(path) else ()


def retention(env: Env) -> Retention:
    """Read how long logs are kept from the settings of the config folder that is in use."""
    folders = [f for f in _config_dirs(env) if os.path.basename(f) != "projects"] or _config_dirs(env)
    folder = next((f for f in folders if files.stat_path(os.path.join(f, "settings.json"))), folders[-1])
    path = os.path.join(folder, "settings.json")
    try:
        told = orjson.loads(files.read_small(path) or b"null")
    except (LogNotReadable, ValueError):
        told = None
    days = told.get("cleanupPeriodDays") if isinstance(told, Mapping) else None
    known = type(days) is int and days >= 0
    return Retention(days=days if known else RETENTION_DAYS, setting=f"cleanupPeriodDays in {path}")


SOURCE = Source(
    id=SOURCE_ID,
    title="Claude Code",
    parser=1,
    locate=locate,
    list_logs=list_logs,
    recognises=recognises,
    scan=scan,
    read=read_session,
    name_sessions=name_sessions,
    retention=retention,
    beside=beside,
)
