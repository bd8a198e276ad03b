"""SessionState: all that a session consists of, as one value; turns and changes work on it."""

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
    """What a session consists of.

    Attributes:
        session_id: Its id.
        agent: Who is asked.
        conversation: The history.
        recorder: Writes the log.
        slot: Its place in a store.
        system: What the agent is told to be.
        turn: How the last turn ended.
        is_begun: The log has its start.
        is_resumed: The log was there before it.
        unanswered: The last message of a turn that ended without any answer to it.
        opened_at: The number of the log's last event when it was opened; None without one.
        ends_on_interrupt: An interrupt ends the session in its log.
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
        """Take the agent's own system text where neither the caller nor the history has one."""
        if self.system is None:
            self.system = self.agent.system

    def begin(self, parent: Mapping[str, Any] | None = None) -> None:
        """Write the start, once, and the history that the session begins with."""
        if not self.is_begun:
            self.is_begun = True
            used = None if parent else self.conversation.token_counter.usage or None
            history = self.conversation.messages
            self.recorder.begin(system=self.system, parent=parent, inherited=history, usage=used)
            if history and self.turn != state_of(history):  # which is what readers see
                self.record(self.turn)
            self.opened_at = self.recorder.last_seq

    def enter(self) -> None:
        """Begin a turn or a change: what was changed by hand since the last one is written first.

        Raises:
            StaleSession: Somebody else has written to the log since; nothing is written.
        """
        if self.is_begun:
            self.recorder.check_sole_writer()
        self.begin()
        self.record()

    def record(self, turn: TurnState | None = None) -> None:
        """Write what the log does not have yet of the history; and how the turn stands, where no answer says it."""
        self.recorder.sync(self.conversation.messages, state=turn)

    @property
    def is_saved(self) -> bool:
        """Every change is saved in a store."""
        return self.slot.store is not None and self.conversation.settings.auto_save

    @property
    def is_touched(self) -> bool:
        """Something was written to the log since it was opened."""
        return self.recorder.last_seq != self.opened_at

    def is_unanswered(self, message: Message) -> bool:
        """Whether the message is the end of the history, because a turn that asked it has ended without an answer."""
        history = self.conversation.messages
        return bool(history) and history[-1] is self.unanswered and history[-1] == cap_message(message)

    def check_answer(self, message: Message) -> None:
        """Demand that a tool's message answers a call that is open.

        Raises:
            InvalidHistory: It does not; the message says which are.
        """
        waiting = [request.id for request in open_calls(self.conversation.messages)]
        if message.tool_call_id not in waiting:
            open_ids = ", ".join(waiting) or "none"
            raise InvalidHistory(f"no open call has the id {message.tool_call_id!r:.80}; open are {open_ids}")

    def close_calls(self) -> list[Message]:
        """Answer the calls that were left open, for no model takes a history without; return the answers."""
        text = NOT_RUN if self.turn == "complete" else CUT_OFF
        return [
            self.conversation.add_message(
                Message("tool", text, tool_call_id=request.id, name=request.name, partial="interrupted")
            )
            for request in open_calls(self.conversation.messages)
        ]

    def needs_truncation(self) -> bool:
        """Whether the history is to be cut before the agent is asked."""
        conversation = self.conversation
        return conversation.settings.auto_truncate and conversation.needs_truncation(self.system_estimate())

    def system_estimate(self) -> int:
        """Estimate the tokens that every request has besides the history: the system's text and the tools."""
        tools = [[tool.name, tool.description, tool.parameters] for tool in self.agent.tools]
        return int(count_tokens(self.system or "")) + (int(count_tokens_json(tools)) if tools else 0)
