"""Chat: one session at a terminal, who answers in it, and how it is told."""

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
from sessionlog.cli.output import ended
from sessionlog.cli.repl.faces import Face
from sessionlog.conversation.history.rules import last_turn
from sessionlog.conversation.session import Session
from sessionlog.conversation.stores.memory import MemoryStore
from sessionlog.errors import SessionLogError, StaleSession


class ToldToEnd(SystemExit):
    """A signal has told the process to end; any other SystemExit is the agent's."""


@dataclass(slots=True, kw_only=True)
class Chat:
    """A session, and the face that tells it.

    Attributes:
        session: The session at hand; a fork takes its place.
        name: The agent, as it was named.
        path: The session's log.
        face: How it is told.
        parent: The session that this one is a fork of; empty if it is none.
        found_size: The bytes of a log that was gone on with; None of a new one.
        folder: Where sessions are known by their ids; a log elsewhere is known by its path. Empty if that is not told.
        options: What else to type to go on with it: the folder, the model.
        losses: What its log could not take; empty as long as all is recorded.
        model: Who answered last; empty if that is not known.
        has_failed: A turn or a command failed.
        has_lost: Something that was said is not in the log.
        is_over: There is nothing more to read.
    """

    session: Session
    name: str
    path: str
    face: Face
    parent: str = ""
    found_size: int | None = None
    folder: str = ""
    options: tuple[str, ...] = ()
    losses: list[str] = field(default_factory=list)
    model: str = field(default="", init=False)
    has_failed: bool = field(default=False, init=False)
    has_lost: bool = field(default=False, init=False)
    is_over: bool = field(default=False, init=False)

    @property
    def speaker(self) -> str:
        """Who answers: the model as far as it is known, else the agent's name."""
        return self.model or self.session.agent.model or self.name.rpartition(":")[2]

    @property
    def is_recorded(self) -> bool:
        """There is a log already; a session in which nothing was said has none."""
        return files.stat_path(self.path) is not None

    def open(self) -> None:
        """Tell which session it is. It ends with the chat or with a fork, and not with an answer that is stopped."""
        self.session.ends_on_interrupt = False
        self.face.opened(self.session.session_id, self.path, self.name, self.session.agent.model or "")

    def show_last_turn(self) -> None:
        """Tell what was said last."""
        messages = self.session.history()
        self.face.before(messages[last_turn(messages) :], self.speaker)

    def take_turn(self, message: str) -> None:
        """Ask, and tell the answer as it comes; Ctrl-C stops it where a person can go on."""
        size = self._size
        try:
            self._ask(message)
        except StaleSession:
            self.fail("somebody else goes on with this session: /fork goes on from what was said here, in a new one")
            return
        except BaseException:
            self._check_recorded(size)
            raise
        self._check_recorded(size)

    def _ask(self, message: str) -> None:
        face = self.face
        face.asking(self.speaker)
        stream = self.session.stream(message)
        try:
            for piece in stream:
                match piece.type:
                    case "text_delta":
                        face.text(piece.text)
                    case "tool_called":
                        face.called(piece.request)
                    case "tool_returned":
                        face.returned(piece)
                    case "done":
                        self.model = piece.response.model or ""
                        face.done(piece.response)
        except StaleSession:
            raise
        except SessionLogError as error:
            self.fail(str(error))
        except (KeyboardInterrupt, SystemExit) as stop:
            with suppress(RuntimeError):  # it is being closed already
                stream.interrupted_by(stop)
            if isinstance(stop, SystemExit) and not isinstance(stop, ToldToEnd):
                why = "" if stop.code in {None, 0} else f": {stop.code}"
                self.fail(f"the agent or a tool tried to end the program (sys.exit{why}); what was said is kept")
                return
            face.stopped()
            if isinstance(stop, SystemExit) or not face.is_interactive:
                raise
        except BaseException:
            stream.close()
            raise

    def fail(self, reason: str) -> None:
        """Tell what went wrong, and remember that something did."""
        self.has_failed = True
        self.face.failed(reason)

    def fork(self) -> None:
        """Go on in a copy of the session; the one at hand stays as it is."""
        copy, before = self.session.fork(), self.session.session_id
        self.end()
        self.session, self.parent, self.found_size = copy, before, None
        self.path = copy.path or ""
        self.face.say(f"a fork of {before}, which stays as it is")
        self.open()

    def end(self, status: str | None = None) -> None:
        """End the session in its log; a log that was only looked at stays as it is.

        Args:
            status: How it ends; None is by the person's own word: an answer that was stopped is no failure.
        """
        if status is None and self.session.state in {"cancelled", "interrupted"}:
            status = "success"
        if self.found_size is None or self._size != self.found_size:
            self.session.close(status)

    @property
    def _size(self) -> int:
        """Bytes of the log."""
        log = files.stat_path(self.path)
        return 0 if log is None else log.st_size

    def _check_recorded(self, before: int) -> None:
        """Say it where a turn is not in the log, or not all of it."""
        if self._size > before and not self.losses:
            return
        why = self.losses[-1] if self.losses else self.path
        self.losses.clear()
        self.has_lost = True
        self.fail(f"this turn is not recorded: {why}")

    def undo(self) -> None:
        """Take back the newest turn."""
        removed = self.session.undo()
        said = next((message.text for message in removed if message.role == "user"), None)
        if said is None:
            self.face.say("there is no turn to take back")
            return
        quoted = " ".join(said.split())
        cut = quoted if len(quoted) <= 60 else f"{quoted[:59]}…"
        rest = f" and {counted(len(removed) - 1, 'message')} after it" if len(removed) > 1 else ""
        self.face.say(f"taken back: “{cut}”{rest}")

    def save(self, path: str) -> None:
        """Write the session as a JSON file; another file of that name stays as it is."""
        place = os.path.expanduser(path or f"{self.session.session_id}.json")
        store = MemoryStore()
        self.session.save(store)
        document = dict(store.load(self.session.session_id) or {})
        try:
            known = files.read_small(place, 1 << 30)
            if known is not None and _session_in(known) != self.session.session_id:
                self.fail(f"{place} is there, and is not this session; choose another name")
                return
            text = json.dumps(document, ensure_ascii=False, indent=2)
            files.replace_file(place, [text.encode("utf-8", "replace"), b"\n"])
        except (OSError, SessionLogError) as error:
            self.fail(str(error) if isinstance(error, SessionLogError) else f"{place}: {files.reason_of(error)}")
            return
        self.face.say(f"saved as {place}")

    def report(self, name: str, command: Callable[..., None], *args: Any, **settings: Any) -> None:
        """Let a command of the program tell of this session's log."""
        if not self.is_recorded:
            self.face.say("nothing is recorded yet: say something first")
            return

        def run() -> None:
            self.has_failed = bool(ended(command, *args, **settings)) or self.has_failed

        self.face.report(name, run)

    def facts(self) -> list[tuple[str, str]]:
        """What there is to say of the session itself."""
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
            ("go on", self.resume_line),
        ]
        return [(name, text) for name, text in rows if text]

    @property
    def resume_line(self) -> str:
        """What to type to go on with this session later."""
        is_known = not self.folder or os.path.realpath(os.path.dirname(self.path)) == os.path.realpath(self.folder)
        named = self.session.session_id if is_known else self.path
        return shlex.join(["sessionlog", "chat", self.name, "--resume", named, *self.options])


def _session_in(content: bytes) -> str | None:
    """The id of a session that was saved before."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return document.get("session_id") if isinstance(document, dict) and "messages" in document else None
