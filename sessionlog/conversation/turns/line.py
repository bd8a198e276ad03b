"""Line: the parts of a session that its turns happen to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.conversation.agents.answerer import Answerer
from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.rules import open_calls
from sessionlog.conversation.log.fold import state_of
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.conversation.turns.retry import Attempts
from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import Message

NOT_RUN = "No result: nobody has run this tool."
CUT_OFF = "No result: the session was interrupted while this tool ran; it may have taken effect."

State = Literal["new", "complete", "failed", "cancelled", "interrupted"]


@dataclass(slots=True, kw_only=True)
class Line:
    """The parts of a session.

    Attributes:
        agent: Who is asked.
        system: What it is told to be.
        conversation: The history.
        recorder: The log.
        save: Puts all of it into the store, if there is one.
        has_store: There is one.
        state: How the last turn ended.
        is_begun: The log knows of it.
        is_resumed: Its log was there before it.
        opened_at: The log's last event when it was opened; None without one.
        ends_on_interrupt: An interrupt ends the session in its log.
        attempts: Makes the attempts of one request.
    """

    agent: Answerer
    system: str | None
    conversation: Conversation
    recorder: Recorder
    save: Callable[[], None] = lambda: None
    has_store: bool = False
    state: State = "new"
    is_begun: bool = False
    is_resumed: bool = False
    opened_at: int | None = None
    ends_on_interrupt: bool = True
    attempts: Callable[..., Attempts] = Attempts

    def begin(self, parent: Mapping[str, Any] | None = None) -> None:
        """Tell the log of the session, once, and of the history that it begins with."""
        if not self.is_begun:
            self.is_begun = True
            used = None if parent else self.conversation.token_counter.usage or None
            history = self.conversation.messages
            self.recorder.begin(system=self.system, parent=parent, inherited=history, usage=used)
            if history and self.state != state_of(history):  # which is what readers see
                self.tell(self.state)
            self.opened_at = self.last_seq

    def enter(self) -> None:
        """Begin a turn or a change from what the log tells: what was changed by hand since is told first.

        Raises:
            StaleSession: Somebody else has written to the log since; nothing is written.
        """
        if self.is_begun:
            self.recorder.check_alone()
        self.begin()
        self.tell()

    def tell(self, state: State | None = None) -> None:
        """Tell the log what it does not know yet of the history; and how the turn stands, where no answer says it."""
        self.recorder.sync(self.conversation.messages, state=state)

    @property
    def last_seq(self) -> int | None:
        """The number of the log's last event."""
        place = self.recorder.parent()
        return place["seq"] if place else None

    @property
    def is_saved(self) -> bool:
        """Every change is saved in a store."""
        return self.has_store and self.conversation.settings.auto_save

    @property
    def is_touched(self) -> bool:
        """Something has come into the log since it was opened."""
        return self.last_seq != self.opened_at

    def check_answer(self, message: Message) -> None:
        """Demand that a tool's message answers a call that is open.

        Raises:
            InvalidHistory: It does not; the message says which are.
        """
        waiting = [request.id for request in open_calls(self.conversation.messages)]
        if message.tool_call_id not in waiting:
            open_ids = ", ".join(waiting) or "none"
            raise InvalidHistory(f"no open call has the id {message.tool_call_id!r:.80}; open are {open_ids}")

    def needs_truncation(self) -> bool:
        """Whether the history is to be cut before the agent is asked."""
        conversation = self.conversation
        return conversation.settings.auto_truncate and conversation.needs_truncation(self.beside())

    def close_calls(self) -> list[Message]:
        """Answer the calls that were left open, for no model takes a history without; return the answers."""
        said = NOT_RUN if self.state == "complete" else CUT_OFF
        return [
            self.conversation.add_message(
                Message("tool", said, tool_call_id=request.id, name=request.name, partial="interrupted")
            )
            for request in open_calls(self.conversation.messages)
        ]

    def beside(self) -> int:
        """Estimate the tokens that every request has besides the history: the system's text and the tools."""
        tools = [[tool.name, tool.description, tool.parameters] for tool in self.agent.tools]
        return int(count_tokens(self.system or "")) + (int(count_tokens_json(tools)) if tools else 0)
