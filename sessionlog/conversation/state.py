"""SessionState: the state of a session; turns and changes of the history work on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.conversation.agents.base import BaseAgent
from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.rules import open_calls
from sessionlog.conversation.history.weight import cap_message
from sessionlog.conversation.log.fold import TurnState, state_of
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.conversation.stores.protocol import StoreSlot
from sessionlog.errors import InvalidHistory
from sessionlog.messages.message import Message

NOT_RUN = "No result: this tool was not run."
CUT_OFF = "No result: the session was interrupted while this tool ran; it may have taken effect."


@dataclass(slots=True, kw_only=True)
class SessionState:
    """The state of a session.

    Attributes:
        session_id: The session's id.
        agent: The agent.
        conversation: The history.
        recorder: Writes the log.
        slot: The session's key and version in its store.
        system: The system prompt.
        turn: The state of the last turn.
        is_begun: session.start is written.
        is_resumed: The log existed before this session object.
        unanswered: The last message of a turn that ended without any answer.
        opened_at: The number of the log's last event at opening; None without one.
        ends_on_interrupt: An interrupt writes session.end.
    """

    session_id: str
    agent: BaseAgent
    conversation: Conversation
    recorder: Recorder
    slot: StoreSlot
    system: str | None = None
    turn: TurnState = "new"
    is_begun: bool = False
    is_resumed: bool = False
    unanswered: Message | None = None
    opened_at: int | None = None
    ends_on_interrupt: bool = True

    def use_system_of_agent(self) -> None:
        """Use the agent's system text where neither the caller nor the history has one."""
        if self.system is None:
            self.system = self.agent.system

    def begin(self, parent: Mapping[str, Any] | None = None) -> None:
        """Write session.start and the initial history, once."""
        if not self.is_begun:
            self.is_begun = True
            used = None if parent else self.conversation.token_counter.usage or None
            history = self.conversation.messages
            self.recorder.begin(system=self.system, parent=parent, inherited=history, usage=used)
            if history and self.turn != state_of(history):  # which is what readers would derive
                self.record(self.turn)
            self.opened_at = self.recorder.last_seq

    def enter(self) -> None:
        """Prepare a turn or a change: log direct changes of the history since the last one.

        Raises:
            StaleSession: Another writer has appended to the log; nothing is written.
        """
        if self.is_begun:
            self.recorder.check_sole_writer()
        self.begin()
        self.record()

    def record(self, turn: TurnState | None = None) -> None:
        """Log the changes of the history, and the turn's state where no answer states it."""
        self.recorder.sync(self.conversation.messages, state=turn)

    @property
    def is_saved(self) -> bool:
        """Whether every change is saved in a store."""
        return self.slot.store is not None and self.conversation.settings.auto_save

    @property
    def is_touched(self) -> bool:
        """Whether anything was written to the log since it was opened."""
        return self.recorder.last_seq != self.opened_at

    def is_unanswered(self, message: Message) -> bool:
        """Whether the message ends the history because its turn ended without an answer."""
        history = self.conversation.messages
        return bool(history) and history[-1] is self.unanswered and history[-1] == cap_message(message)

    def check_answer(self, message: Message) -> None:
        """Check that a tool message answers an open call.

        Raises:
            InvalidHistory: It does not; the error lists the open calls.
        """
        ids = [request.id for request in open_calls(self.conversation.messages)]
        if message.tool_call_id not in ids:
            listed = ", ".join(ids) or "none"
            raise InvalidHistory(f"no open call has the id {message.tool_call_id!r:.80}; open calls: {listed}")

    def close_calls(self) -> list[Message]:
        """Add a placeholder result for each open call, which models require, and return these results."""
        text = NOT_RUN if self.turn == "complete" else CUT_OFF
        return [
            self.conversation.add_message(
                Message("tool", text, tool_call_id=request.id, name=request.name, partial="interrupted")
            )
            for request in open_calls(self.conversation.messages)
        ]

    def needs_truncation(self) -> bool:
        """Whether the history has to be truncated before the next request."""
        conversation = self.conversation
        return conversation.settings.auto_truncate and conversation.needs_truncation(self.system_estimate())

    def system_estimate(self) -> int:
        """Estimate the tokens of a request besides the history: system text and tools."""
        tools = [[tool.name, tool.description, tool.parameters] for tool in self.agent.tools]
        return int(count_tokens(self.system or "")) + (int(count_tokens_json(tools)) if tools else 0)
