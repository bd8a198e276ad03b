"""Runs a command whose requests to models are recorded: the proxy, the child and the session, from begin to end.

The command comes first: what cannot be recorded is counted and named at the end, and never stops or delays it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Timer
from typing import Any

from sessionlog import files
from sessionlog.errors import InvalidSettings
from sessionlog.logger.health import Health
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.proxy.agents import plan
from sessionlog.proxy.child import find_command, run_child
from sessionlog.proxy.launch import Launch
from sessionlog.proxy.recording import Recording
from sessionlog.proxy.server import ProxyServer
from sessionlog.proxy.upstream import OUTER_PROXY, Upstream, parse_upstream

LAST_SECONDS = 5.0
"""How long answers are read that are under way when the command has ended."""
NOTE_SECONDS = 0.5
"""After how much of that a note names what the user waits for."""

_CANCELLING = {getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL", "SIGPIPE")}
"""Signals by which someone stops a program; others, such as SIGSEGV, are its own failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What became of a command.

    Attributes:
        exit_code: Its exit code; 128 + N if signal N ended it.
        session_id: The session that was recorded.
        path: Its log.
        requests: The requests to models whose answers, or failures, were recorded.
        refused: WebSockets that were refused.
        health: What the logger wrote, and what it could not.
        notices: What the logger reported meanwhile, one line each.
    """

    exit_code: int
    session_id: str
    path: str
    requests: int
    refused: int
    health: Health
    notices: tuple[str, ...]


def record_command(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    upstreams: Mapping[str, str] | None = None,
    directory: str | None = None,
    note: Callable[[str], None],
) -> Run:
    """Run a command and record its requests to models in a session of its own.

    Args:
        command: The program and its arguments, at least one word.
        environment: The variables that it would have without the proxy.
        upstreams: Routes that lead elsewhere than the agent's own: name → base URL.
        directory: The folder of the log, as for `SessionLogger`.
        note: Takes sentences about how the command is started, before it is, and about what is done after its end.

    Raises:
        CommandNotStarted: There is no such command, or the system refuses to start it.
        InvalidSettings: A route is unknown, or its URL is none of a server.
    """
    server = ProxyServer(environment)
    try:
        with _private_files() as private_file:
            inner = {**environment, OUTER_PROXY: server.authority}
            try:
                launch = plan(command, inner, server.url, upstreams=upstreams, private_file=private_file)
            except OSError:  # no room for such a file: a note names what is not recorded without it
                launch = plan(command, inner, server.url, upstreams=upstreams)
            routes = _routes(launch, upstreams or {})
            find_command(launch.command[0], launch.environment)
            for text in launch.notes:
                note(text)
            metadata = {"command": os.path.basename(command[0]), "recorder": "run"}
            return _record(server, launch, routes, metadata, directory, note)
    finally:
        server.close()


def _record(
    server: ProxyServer,
    launch: Launch,
    routes: Mapping[str, Upstream],
    metadata: Mapping[str, Any],
    directory: str | None,
    note: Callable[[str], None],
) -> Run:
    notices: list[str] = []
    log = SessionLogger(directory, metadata=metadata, notify=notices.append)
    recording = Recording(log)
    log.emit("session.start", {"resolved_harness": launch.harness, "wire": launch.source or ""})
    with log:
        server.start(routes, recording)
        code = run_child(launch.command, launch.environment)
        _read_last_answers(server, note)
        log.end(_status(code), process_outcome=_outcome(code), metadata={**metadata, "exit_code": code})
    return Run(
        exit_code=code,
        session_id=log.session_id,
        path=log.path,
        requests=log.totals.responses,
        refused=len(recording.refused),
        health=log.health(),
        notices=tuple(notices),
    )


def _routes(launch: Launch, upstreams: Mapping[str, str]) -> dict[str, Upstream]:
    """Return the server of each route of the agent; those that the user gave are checked as well."""
    for name, url in upstreams.items():
        parse_upstream(url)
        if name not in launch.upstreams:
            known = ", ".join(sorted(launch.upstreams)) or "none"
            raise InvalidSettings(f"{launch.harness} has no route {name!r}; it has: {known}")
    return {name: parse_upstream(url) for name, url in launch.upstreams.items()}


def _read_last_answers(server: ProxyServer, note: Callable[[str], None]) -> None:
    """Read the answers that are still under way, until the user interrupts that; what takes a while has a note."""
    waiting = Timer(NOTE_SECONDS, note, ["reading the last answers; Ctrl-C stops that"])
    waiting.daemon = True
    try:
        waiting.start()
        server.close(LAST_SECONDS)
    except KeyboardInterrupt:
        server.close()
    finally:
        waiting.cancel()


def _status(code: int) -> str:
    if code == 0:
        return "success"
    return "cancelled" if code - 128 in _CANCELLING else "error"


def _outcome(code: int) -> str | None:
    """Return an exit code in words: `exit 2`, `SIGTERM`; None for 0."""
    with suppress(ValueError):
        return signal.Signals(code - 128).name
    return f"exit {code}" if code else None


@contextmanager
def _private_files() -> Iterator[Callable[[str, str], str]]:
    """Return a context in which files for the command can be written; their folder is made for the first one."""
    folders: list[str] = []

    def write(name: str, text: str) -> str:
        if not folders:
            folders.append(files.temporary_directory("sessionlog-run-"))
        path = os.path.join(folders[0], name)
        files.append_private(path, [text.encode()])
        return path

    try:
        yield write
    finally:
        for folder in folders:
            files.remove_directory(folder)
