"""From the command line to a chat: who answers, which session, and for whom it is told."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
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
from sessionlog.cli.reporting import read_settings
from sessionlog.conversation.agent import Agent
from sessionlog.conversation.log.logged_session import find_logged_session, open_log
from sessionlog.conversation.session import Session
from sessionlog.errors import InvalidHistory, SessionLogError
from sessionlog.events.envelope import Event
from sessionlog.logger.session_logger import SessionLogger

_KEY = "agent"
"""The name under which a log's metadata has who answers."""

_FOR_PYTHON = re.compile(r"[,;] (?=skip_damage|fork_from)")
"""Where the advice of an error begins that is for who writes Python."""


def start(
    name: str | None, *, resume: str | None, system: str | None, model: str | None, directory: str | None, as_json: bool
) -> None:
    """Begin a chat, or go on with one; leaves with exit code 2 or 3 and a sentence where that cannot be."""
    folder = os.path.abspath(os.path.expanduser(directory or read_settings().session_dir))
    before = None if resume is None else _find(resume, folder)
    if name is None:
        fail(f"which agent? {FORMS}" if before is None else _which_agent(before))
    name = absolute(name)
    face, lines = _surroundings(as_json=as_json)
    # What an agent prints is no answer: it goes beside them, except for a person, who sees both anyway.
    with on_path(name), nullcontext() if face.is_interactive else redirect_stdout(sys.stderr):
        agent = load_agent(name, model=model)
        losses: list[str] = []
        known: dict[str, Any] = {"metadata": {_KEY: name}, "notify": lambda said: losses.append(_cause(said))}
        options = (*(("--model", model) if model else ()), *(("--dir", folder) if directory else ()))
        if before is None:
            logger = SessionLogger(folder, model=agent.model, provider=agent.provider, **known)
            session, path = agent.session(system=system, logger=logger), logger.path
        else:
            session, path = _resumed(before, agent, folder, known), os.path.abspath(before.path)
        chat = Chat(
            session=session, name=name, path=path, face=face, folder=folder, options=options, losses=losses,
            parent=before.parent if before else "", found_size=before.size if before else None,
        )  # fmt: skip
        chat.open()
        if (why := _obstacle(path)) is not None:
            chat.has_lost = True
            chat.fail(f"this chat cannot be recorded: {why}; --dir FOLDER names another folder")
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


def _which_agent(before: _Before) -> str:
    """Ask who is to go on: code that a log names runs only if the person names it, too."""
    question = f"{before.target}: which agent is to go on with it?"
    if before.agent is None:
        return f"{question} Its log does not name one; {FORMS}"
    command = shlex.join(["sessionlog", "chat", before.agent, "--resume", before.target])
    return f"{question} Its log names one; if you trust it: {command}"


def _resumed(before: _Before, agent: Agent, folder: str, known: Mapping[str, Any]) -> Session:
    """Go on with a session; its forks will say who answers, too."""
    try:
        logger = open_log(find_logged_session(before.target, directory=folder), **known)
        return agent.session(logger=logger)
    except InvalidHistory as error:
        said = str(error)
        fail(_FOR_PYTHON.split(said)[0], UNREADABLE)


def _obstacle(path: str) -> str | None:
    """Why a log cannot be written; None if it can, as far as that can be known before."""
    folder = os.path.dirname(path)
    try:
        files.make_directories(folder)
    except (OSError, SessionLogError) as error:
        return f"{folder}: {files.reason_of(error) if isinstance(error, OSError) else error}"
    place = folder if files.stat_path(path) is None else path
    return None if os.access(place, os.W_OK) else f"{place} cannot be written"


def _cause(said: str) -> str:
    """What a logger says of an event that it lost, without what is for who writes Python."""
    return said.removeprefix("sessionlog: ").partition("; health()")[0]


def _surroundings(*, as_json: bool) -> tuple[Face, Lines]:
    """A person at a terminal, or a program."""
    if as_json:
        return JsonFace(), PipedLines()
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        return PlainFace(), PipedLines()
    face = TerminalFace(os.path.expanduser("~"))
    return face, TypedLines(TypedBefore(os.environ), tuple(WORDS), coloured=face.is_coloured)
