"""Start a chat from the command line: its agent, its session, its input and output."""

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
from sessionlog.cli.repl.commands import COMMANDS
from sessionlog.cli.repl.history import InputHistory
from sessionlog.cli.repl.inputs import Input, PipedInput, TerminalInput
from sessionlog.cli.repl.loading import FORMS, absolute, load_agent, on_path
from sessionlog.cli.repl.loop import run_chat
from sessionlog.cli.repl.outputs import JsonOutput, Output, PlainOutput
from sessionlog.cli.repl.terminal import TerminalOutput
from sessionlog.cli.reporting import read_settings
from sessionlog.conversation.agent import Agent
from sessionlog.conversation.log.logged_session import find_logged_session, open_log
from sessionlog.conversation.session import Session
from sessionlog.errors import InvalidHistory, SessionLogError
from sessionlog.events.envelope import Event
from sessionlog.logger.session_logger import SessionLogger

_KEY = "agent"
"""The key of the agent's name in a log's metadata."""

_FOR_PYTHON = re.compile(r"[,;] (?=skip_damage|fork_from)")
"""Where the part of an error message begins that is for Python code only."""


def start(
    name: str | None, *, resume: str | None, system: str | None, model: str | None, directory: str | None, as_json: bool
) -> None:
    """Start a chat, or resume one.

    Raises:
        Exit: With exit code 2 for wrong usage, 3 if a session cannot be read, 1 as `run_chat` raises it.
    """
    folder = os.path.abspath(os.path.expanduser(directory or read_settings().session_dir))
    resumed = None if resume is None else _find_session(resume, folder)
    if name is None:
        fail(f"which agent? {FORMS}" if resumed is None else _no_agent_text(resumed))
    name = absolute(name)
    output, lines = _output_and_input(as_json=as_json)
    # What an agent prints is no answer: it goes to stderr, unless both are on the same terminal.
    with on_path(name), nullcontext() if output.is_interactive else redirect_stdout(sys.stderr):
        agent = load_agent(name, model=model)
        log_errors: list[str] = []
        log_options: dict[str, Any] = {
            "metadata": {_KEY: name}, "notify": lambda message: log_errors.append(_cause(message)),
        }  # fmt: skip
        options = (*(("--model", model) if model else ()), *(("--dir", folder) if directory else ()))
        if resumed is None:
            logger = SessionLogger(folder, model=agent.model, provider=agent.provider, **log_options)
            session, path = agent.session(system=system, logger=logger), logger.path
        else:
            session, path = _resume(resumed, agent, folder, log_options), os.path.abspath(resumed.path)
        chat = Chat(
            session=session, name=name, path=path, output=output, folder=folder, options=options,
            log_errors=log_errors, parent=resumed.parent if resumed else "",
            resumed_size=resumed.size if resumed else None,
        )  # fmt: skip
        chat.open()
        if (why := _why_not_writable(path)) is not None:
            chat.has_unrecorded_turn = True
            chat.fail(f"this chat cannot be recorded: {why}; --dir FOLDER names another folder")
        if resumed is not None:
            chat.show_last_turn()
        run_chat(chat, lines)


class _Resumed(NamedTuple):
    """A session to resume.

    Attributes:
        target: Its name on the command line.
        path: Its log.
        agent: The agent that its log names; None if it names none.
        parent: The session that it is a fork of; empty if it is none.
        size: Bytes of its log.
    """

    target: str
    path: str
    agent: str | None
    parent: str
    size: int


def _find_session(target: str, folder: str) -> _Resumed:
    with open_session(target, folder, os.environ) as (log, _, entry):
        first = next((item for item in log.source.read(log.path, None) if isinstance(item, Event)), None)
    data = first.data if first is not None and first.type == "session.start" else None
    name, parent = _nested_text(data, "metadata", _KEY), _nested_text(data, "parent", "session")
    path = log.path if entry is None else entry.path
    status = files.stat_path(path)
    return _Resumed(target, path, name or None, parent, 0 if status is None else status.st_size)


def _nested_text(data: Any, field: str, key: str) -> str:
    """Return the text `data[field][key]`; empty if there is none."""
    inner = data.get(field) if isinstance(data, dict) else None
    text = inner.get(key) if isinstance(inner, dict) else None
    return text if isinstance(text, str) else ""


def _no_agent_text(resumed: _Resumed) -> str:
    """Return the error for a missing agent: code that a log names runs only if the user names it, too."""
    question = f"{resumed.target}: which agent should resume it?"
    if resumed.agent is None:
        return f"{question} Its log does not name one; {FORMS}"
    command = shlex.join(["sessionlog", "chat", resumed.agent, "--resume", resumed.target])
    return f"{question} Its log names one; if you trust it: {command}"


def _resume(resumed: _Resumed, agent: Agent, folder: str, log_options: Mapping[str, Any]) -> Session:
    try:
        logger = open_log(find_logged_session(resumed.target, directory=folder), **log_options)
        return agent.session(logger=logger)
    except InvalidHistory as error:
        message = str(error)
        fail(_FOR_PYTHON.split(message)[0], UNREADABLE)


def _why_not_writable(path: str) -> str | None:
    """Return why a log cannot be written; None if no obstacle is known."""
    folder = os.path.dirname(path)
    try:
        files.make_directories(folder)
    except (OSError, SessionLogError) as error:
        return f"{folder}: {files.reason_of(error) if isinstance(error, OSError) else error}"
    target = folder if files.stat_path(path) is None else path
    return None if os.access(target, os.W_OK) else f"{target} cannot be written"


def _cause(message: str) -> str:
    """Return a logger's message about a lost event without its advice for Python code."""
    return message.removeprefix("sessionlog: ").partition("; health()")[0]


def _output_and_input(*, as_json: bool) -> tuple[Output, Input]:
    if as_json:
        return JsonOutput(), PipedInput()
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout)):
        return PlainOutput(), PipedInput()
    output = TerminalOutput(os.path.expanduser("~"))
    return output, TerminalInput(InputHistory(os.environ), tuple(COMMANDS), coloured=output.is_coloured)
