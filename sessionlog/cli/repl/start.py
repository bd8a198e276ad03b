"""From the command line to a chat: who answers, which session, and for whom it is told."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext, redirect_stdout
from typing import Any, NamedTuple

from sessionlog import files
from sessionlog.archive.find import open_session
from sessionlog.cli.output import UNREADABLE, fail
from sessionlog.cli.repl.chat import Chat
from sessionlog.cli.repl.faces import Face, JsonFace, PlainFace
from sessionlog.cli.repl.history import TypedBefore
from sessionlog.cli.repl.lines import Lines, PipedLines, TypedLines
from sessionlog.cli.repl.loading import FORMS, absolute, load_agent, on_path
from sessionlog.cli.repl.loop import talk
from sessionlog.cli.repl.terminal import TerminalFace
from sessionlog.cli.repl.words import WORDS
from sessionlog.conversation.agent import Agent
from sessionlog.conversation.session import Session
from sessionlog.errors import InvalidHistory
from sessionlog.events.envelope import Event
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.settings import load_settings

_KEY = "agent"
"""The name under which a log's metadata has who answers."""


def start(
    name: str | None, *, resume: str | None, system: str | None, model: str | None, directory: str | None, as_json: bool
) -> None:
    """Begin a chat, or go on with one; leaves with exit code 2 or 3 and a sentence where that cannot be."""
    folder = os.path.abspath(os.path.expanduser(directory or load_settings().session_dir))
    before = None if resume is None else _find(resume, folder)
    if name is None:
        name = _agent_of(before, folder) if before is not None else fail(f"which agent? {FORMS}")
    name = absolute(name)
    face, lines = _surroundings(as_json=as_json)
    # What an agent prints is no answer: it goes beside them, except for a person, who sees both anyway.
    with on_path(name), nullcontext() if face.is_interactive else redirect_stdout(sys.stderr):
        agent = load_agent(name, model=model)
        if before is None:
            logger = SessionLogger(folder, model=agent.model, provider=agent.provider, metadata={_KEY: name})
            chat = Chat(session=agent.session(system=system, logger=logger), name=name, path=logger.path, face=face)
        else:
            chat = Chat(
                session=_resumed(before, agent, folder), name=name, path=before.path, face=face, parent=before.parent,
                found_size=before.size,
            )  # fmt: skip
        chat.open()
        if before is not None:
            chat.show_last_turn()
        talk(chat, lines)


class _Before(NamedTuple):
    """A session that is to go on.

    Attributes:
        target: As it was named.
        path: Its log.
        agent: Who answered, as its log says; None if it does not say.
        parent: The session that it is a fork of; empty if it is none.
        size: Bytes of its log.
    """

    target: str
    path: str
    agent: str | None
    parent: str
    size: int


def _find(target: str, folder: str) -> _Before:
    with open_session(target, folder, os.environ) as (log, _, entry):
        first = next((item for item in log.source.read(log.path, None) if isinstance(item, Event)), None)
    data = first.data if first is not None and first.type == "session.start" else None
    name, parent = _word(data, "metadata", _KEY), _word(data, "parent", "session")
    path = log.path if entry is None else entry.path
    status = files.stat_path(path)
    return _Before(target, path, name or None, parent, 0 if status is None else status.st_size)


def _word(data: Any, field: str, key: str) -> str:
    """A text two levels deep in what a log says; empty if there is none."""
    inner = data.get(field) if isinstance(data, dict) else None
    word = inner.get(key) if isinstance(inner, dict) else None
    return word if isinstance(word, str) else ""


def _agent_of(before: _Before, folder: str) -> str:
    """Who answered in a session of ours; a log from elsewhere cannot choose what is run here."""
    is_ours = os.path.realpath(os.path.dirname(before.path)) == os.path.realpath(folder)
    if not is_ours or before.agent is None:
        why = "its log does not say who answered" if is_ours else f"its log is not in {folder}"
        fail(f"{before.target}: which agent is to go on with it? {why}; {FORMS}")
    return before.agent


def _resumed(before: _Before, agent: Agent, folder: str) -> Session:
    try:
        session = Session.resume(before.target, agent, directory=folder)
    except InvalidHistory as error:
        fail(str(error), UNREADABLE)
    return session


def _surroundings(*, as_json: bool) -> tuple[Face, Lines]:
    """A person at a terminal, or a program."""
    if as_json:
        return JsonFace(), PipedLines()
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        return PlainFace(), PipedLines()
    face = TerminalFace(os.path.expanduser("~"))
    return face, TypedLines(TypedBefore(os.environ), tuple(WORDS), coloured=face.is_coloured)
