"""Chat: one session, its agent, and the output that shows it."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from sessionlog import files
from sessionlog.analytics.columns import counted
from sessionlog.cli.output import run_command
from sessionlog.cli.repl.outputs import Output
from sessionlog.conversation.history.rules import last_turn
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.errors import SessionLogError, StaleSession


class Terminated(SystemExit):
    """Raised by the handlers of SIGTERM and SIGHUP; any other SystemExit comes from the agent."""


@dataclass(slots=True, kw_only=True)
class Chat:
    """A session and the output that shows it.

    Attributes:
        session: The current session; /fork replaces it.
        name: The agent's name on the command line.
        path: The session's log.
        output: Where the chat is shown.
        parent: The session that this one is a fork of; empty if it is none.
        resumed_size: Bytes of a resumed session's log when the chat began; None for a new session.
        folder: Sessions in this folder are named by id, others by path; empty to name all by id.
        options: Further words of the command that resumes it: the folder, the model.
        log_errors: Why events could not be written to the log since the last turn.
        model: The model of the last answer; empty if it is not known.
        has_failed: A turn or a command failed.
        has_unrecorded_turn: A turn is not in the log, or only a part of it.
        is_over: The chat ends before the next input.
    """

    session: Session
    name: str
    path: str
    output: Output
    parent: str = ""
    resumed_size: int | None = None
    folder: str = ""
    options: tuple[str, ...] = ()
    log_errors: list[str] = field(default_factory=list)
    model: str = field(default="", init=False)
    has_failed: bool = field(default=False, init=False)
    has_unrecorded_turn: bool = field(default=False, init=False)
    is_over: bool = field(default=False, init=False)

    @property
    def speaker(self) -> str:
        """The name above an answer: the model if it is known, else the agent's name."""
        return self.model or self.session.agent.model or self.name.rpartition(":")[2]

    @property
    def is_recorded(self) -> bool:
        """The log exists; a session without a turn has none."""
        return files.stat_path(self.path) is not None

    def open(self) -> None:
        """Show which session it is. Stopping an answer does not end it: the chat's end or a fork does."""
        self.session.ends_on_interrupt = False
        self.output.opened(self.session.session_id, self.path, self.name, self.session.agent.model or "")

    def show_last_turn(self) -> None:
        """Show the last turn of a resumed session."""
        messages = self.session.history()
        self.output.last_turn(messages[last_turn(messages) :], self.speaker)

    def take_turn(self, message: str) -> None:
        """Send a message and show the answer as it streams; Ctrl-C stops the answer.

        Raises:
            KeyboardInterrupt: Ctrl-C, if no person is at the terminal.
            Terminated: SIGTERM or SIGHUP.
        """
        size = self._size
        try:
            self._ask(message)
        except StaleSession:
            self.fail("another process has continued this session: /fork continues this chat in a new session")
            return
        except BaseException:
            self._check_recorded(size)
            raise
        self._check_recorded(size)

    def _ask(self, message: str) -> None:
        output = self.output
        output.turn_started(self.speaker)
        stream = self.session.stream(message)
        try:
            for piece in stream:
                match piece.type:
                    case "text_delta":
                        output.text(piece.text)
                    case "tool_called":
                        output.tool_called(piece.request)
                    case "tool_returned":
                        output.tool_returned(piece)
                    case "done":
                        self.model = piece.response.model or ""
                        output.done(piece.response)
        except StaleSession:
            raise
        except SessionLogError as error:
            self.fail(str(error))
        except (KeyboardInterrupt, SystemExit) as stop:
            with suppress(RuntimeError):  # the stream is being closed already
                stream.interrupted_by(stop)
            if isinstance(stop, SystemExit) and not isinstance(stop, Terminated):
                why = "" if stop.code in {None, 0} else f": {stop.code}"
                self.fail(f"the agent or a tool tried to end the program (sys.exit{why}); the partial answer is kept")
                return
            output.stopped()
            if isinstance(stop, SystemExit) or not output.is_interactive:
                raise
        except BaseException:
            stream.close()
            raise

    def fail(self, reason: str) -> None:
        """Show an error, and set `has_failed`."""
        self.has_failed = True
        self.output.failed(reason)

    def fork(self) -> None:
        """Replace the session by a copy of it; the original ends as it is."""
        copy, before = self.session.fork(), self.session.session_id
        self.end()
        self.session, self.parent, self.resumed_size = copy, before, None
        self.path = copy.path or ""
        self.output.note(f"a fork of {before}, which stays as it is")
        self.open()

    def end(self, status: str | None = None) -> None:
        """End the session in its log; the log of a resumed session without a new turn stays as it is.

        Args:
            status: How it ends; None if the person left: then a stopped answer is no failure.
        """
        if status is None and self.session.state in {"cancelled", "interrupted"}:
            status = "success"
        if self.resumed_size is None or self._size != self.resumed_size:
            self.session.close(status)

    @property
    def _size(self) -> int:
        """Bytes of the log."""
        log = files.stat_path(self.path)
        return 0 if log is None else log.st_size

    def _check_recorded(self, before: int) -> None:
        """Show an error if a turn, or a part of it, is not in the log; `before` is the log's size before the turn."""
        if self._size > before and not self.log_errors:
            return
        why = self.log_errors[-1] if self.log_errors else self.path
        self.log_errors.clear()
        self.has_unrecorded_turn = True
        self.fail(f"this turn is not recorded: {why}")

    def undo(self) -> None:
        """Remove the newest turn from the history."""
        removed = self.session.undo()
        prompt = next((message.text for message in removed if message.role == "user"), None)
        if prompt is None:
            self.output.note("there is no turn to remove")
            return
        quoted = " ".join(prompt.split())
        cut = quoted if len(quoted) <= 60 else f"{quoted[:59]}…"
        rest = f" and {counted(len(removed) - 1, 'message')} after it" if len(removed) > 1 else ""
        self.output.note(f"removed: “{cut}”{rest}")

    def save(self, path: str) -> None:
        """Write the session as a JSON file, by default SESSION_ID.json; overwrite only earlier saves of the session."""
        target = os.path.expanduser(path or f"{self.session.session_id}.json")
        store = MemoryStore()
        self.session.save(store)
        document = dict(store.load(self.session.session_id) or {})
        try:
            existing = files.read_small(target, 1 << 30)
            if existing is not None and _saved_session_id(existing) != self.session.session_id:
                self.fail(f"{target} exists, and is not this session; choose another name")
                return
            text = json.dumps(document, ensure_ascii=False, indent=2)
            files.replace_file(target, [text.encode("utf-8", "replace"), b"\n"])
        except (OSError, SessionLogError) as error:
            self.fail(str(error) if isinstance(error, SessionLogError) else f"{target}: {files.reason_of(error)}")
            return
        self.output.note(f"saved as {target}")

    def report(self, name: str, command: Callable[..., None], *args: Any, **settings: Any) -> None:
        """Run another sessionlog command on this session's log."""
        if not self.is_recorded:
            self.output.note("nothing is recorded yet: send a message first")
            return

        def run() -> None:
            self.has_failed = bool(run_command(command, *args, **settings)) or self.has_failed

        self.output.report(name, run)

    def facts(self) -> list[tuple[str, str]]:
        """Return names and values that describe the session."""
        session, messages = self.session, self.session.history()
        turns = sum(message.role == "user" for message in messages)
        tokens = session.conversation.estimated_tokens
        rows = [
            ("session", session.session_id),
            ("log", self.path),
            ("fork of", self.parent),
            ("agent", self.name),
            ("model", self.model or session.agent.model or ""),
            ("system", session.system or ""),
            ("tools", ", ".join(tool.name for tool in session.agent.tools)),
            ("history", f"{counted(len(messages), 'message')}, {counted(turns, 'turn')}, ~{tokens:,} tokens"),
            ("state", session.state),
            ("go on", self.resume_command),
        ]
        return [(name, text) for name, text in rows if text]

    @property
    def resume_command(self) -> str:
        """The command that resumes this session."""
        has_id = not self.folder or os.path.realpath(os.path.dirname(self.path)) == os.path.realpath(self.folder)
        named = self.session.session_id if has_id else self.path
        return shlex.join(["sessionlog", "chat", self.name, "--resume", named, *self.options])


def _saved_session_id(content: bytes) -> str | None:
    """Return the id of a saved session; None if the content is none."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return document.get("session_id") if isinstance(document, dict) and "messages" in document else None
