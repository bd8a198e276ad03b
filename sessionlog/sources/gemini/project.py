"""Where a chat of Gemini CLI belongs: its project's path, and who made it.

A chat lies in `tmp/<slug or hash>/chats/`; the log itself has only `projectHash`, the SHA-256 of the path. The path is
told by `.project_root` in the slug's folder, or by `projects.json` beside `tmp` (`{"projects": {path: slug}}`), whose
paths also explain a hash. A sub-agent's chat lies in `chats/<the parent's session id>/`; only the parent's call of it
(`agentId`, `args.agent_name`) says what kind of agent it was.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator

import orjson

from sessionlog import files
from sessionlog.errors import LogNotReadable, MissingExtra, Problem
from sessionlog.reader.rows import Row, Rows
from sessionlog.sources.google_parts import is_absolute
from sessionlog.sources.record import UNKNOWN, read_name

SUBAGENT = "subagent"


def parent_of(path: str) -> str:
    """The session whose sub-agent wrote a log, by the folder it lies in; empty for a main log."""
    folder = os.path.dirname(os.path.abspath(path))
    above, name = os.path.split(folder)
    return name if os.path.basename(above) == "chats" else ""


def project_of(path: str, project_hash: object) -> str:
    """The project's absolute path, `unknown` when nothing tells it."""
    chats = os.path.dirname(os.path.abspath(path))
    home = os.path.dirname(os.path.dirname(chats) if parent_of(path) else chats)
    tmp, slug = os.path.split(home)
    marker = (_small(os.path.join(home, ".project_root")) or b"").decode("utf-8", "replace").strip()
    if is_absolute(marker):
        return marker
    hashes = (slug, project_hash)  # compared only: a hostile one need not be hashable
    for known, its_slug in _projects(os.path.join(os.path.dirname(tmp), "projects.json")):
        if its_slug == slug or hashlib.sha256(known.encode("utf-8", "replace")).hexdigest() in hashes:
            return known
    return UNKNOWN


def files_beside(path: str) -> Iterator[str]:
    """The files that tell a log's project, and for a sub-agent's those that tell its kind."""
    chats = os.path.dirname(os.path.abspath(path))
    home = os.path.dirname(os.path.dirname(chats) if parent_of(path) else chats)
    yield os.path.join(home, ".project_root")
    yield os.path.join(os.path.dirname(os.path.dirname(home)), "projects.json")
    yield from _logs_of_parent(path)


def _projects(registry: str) -> Iterator[tuple[str, object]]:
    try:
        value = orjson.loads(_small(registry) or b"{}")
    except ValueError:
        return
    projects = value.get("projects") if isinstance(value, dict) else None
    if isinstance(projects, dict):
        yield from ((path, slug) for path, slug in projects.items() if is_absolute(path))


def _small(path: str) -> bytes | None:
    try:
        return files.read_small(path, 1 << 24)
    except (LogNotReadable, OSError):
        return None


def agent_of(path: str, agent_id: str) -> str:
    """The kind of a sub-agent, from the log of its parent."""
    wanted = json.dumps(agent_id, ensure_ascii=False).encode("utf-8", "replace")
    for log in _logs_of_parent(path):
        try:
            with Rows(log) as rows:
                found = next(
                    (kind for row in rows.all(lambda line: wanted in line) if (kind := _kind(row, agent_id))), None
                )
        except (LogNotReadable, MissingExtra):
            continue
        if found:
            return found
    return SUBAGENT


def _logs_of_parent(path: str) -> Iterator[str]:
    parent = parent_of(path)
    folder = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    try:
        names = sorted(os.listdir(folder)) if parent else []
    except OSError:
        return
    for name in names:
        if name.startswith("session-") and f"-{parent[:8]}.jsonl" in name:
            yield os.path.join(folder, name)


def _kind(row: Row | Problem, agent_id: str) -> str | None:
    calls = None if isinstance(row, Problem) else row.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and call.get("agentId") == agent_id:
            arguments = call.get("args")
            return (
                read_name(arguments.get("agent_name")) if isinstance(arguments, dict) else read_name(call.get("name"))
            )
    return None
