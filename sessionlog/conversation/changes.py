"""Changes: the half of a session that changes its history between two turns, by hand.

The history, the log and the store change together, and nothing changes while the agent is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sessionlog.conversation.history.rules import last_turn
from sessionlog.conversation.history.truncation import Truncation
from sessionlog.conversation.log.fold import state_of
from sessionlog.conversation.opening import Opened
from sessionlog.conversation.turns.line import Line
from sessionlog.conversation.turns.turns import Turns
from sessionlog.errors import StaleSession
from sessionlog.messages.message import Message, Role


class Changes(Turns):
    """Changes a session's history, tells its log, and saves it.

    Every change raises `StaleSession` where somebody else has written to the log or saved the session meanwhile, and
    RuntimeError while a turn is under way.
    """

    def __init__(self, opened: Opened) -> None:
        super().__init__(opened.session_id, opened.line)
        self._shelf = opened.shelf
        opened.line.save, opened.line.has_store = self._auto_save, opened.shelf.store is not None

    def add_message(self, role: Role | Message, content: Any = None, **extra: Any) -> Message:
        """Add a message to the history; see `Conversation.add_message`.

        A tool's message answers a call that is open. Before any other, the calls that nobody has answered are closed.

        Raises:
            InvalidHistory: It is no message, or answers no open call; the history is as it was.
        """
        with self._between_turns() as line:
            conversation, closed = line.conversation, list[Message]()
            message = conversation.add_message(role, content, **extra)
            conversation.pop_last_message()
            if message.role == "tool":
                line.check_answer(message)
            else:
                closed = line.close_calls()
            conversation.add_message(message)
            line.recorder.added([*closed, message])
        return message

    def undo(self) -> list[Message]:
        """Take the newest turn back, the user's message and all that followed, and return it."""
        with self._between_turns() as line:
            history = line.conversation.messages
            gone = history[last_turn(history) :]
            for _ in gone:
                line.conversation.pop_last_message()
            line.recorder.popped(len(gone))
            if gone:
                line.state = state_of(line.conversation.messages)
        return list(gone)

    def clear(self) -> None:
        """Forget the history; the id, the system's text, and what was used stay."""
        with self._between_turns() as line:
            used = line.conversation.token_counter
            line.conversation.clear_history()
            line.conversation.token_counter = used
            line.recorder.cleared()
            line.state = "new"

    def truncate(self) -> Truncation:
        """Cut the history now, if it has reached its threshold, and say what that did.

        Raises:
            InvalidHistory: The strategy or the summary of the settings gave what cannot be used. Whatever is raised, by
                them too, the history is as it was.
        """
        with self._between_turns() as line:
            before = line.conversation.messages
            cut = line.conversation.truncate_history(line.beside())
            line.recorder.truncated(before, line.conversation.messages, cut)
        return cut

    @contextmanager
    def _between_turns(self) -> Iterator[Line]:
        """Change the history while nobody is asked; then it is saved."""
        self._claim()
        try:
            self._line.enter()
            yield self._line
            self._auto_save()
        finally:
            self._busy.release()

    def _tell(self) -> None:
        """Tell the log what was changed by hand; not in the midst of a turn, nor in a log that is somebody else's."""
        if self._line.is_begun and not self._is_closed and self._course() is None:
            with suppress(StaleSession):
                self._line.enter()

    def _auto_save(self) -> None:
        if self._line.conversation.settings.auto_save:
            self._shelf.save(self._line)
