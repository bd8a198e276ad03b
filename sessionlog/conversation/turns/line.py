"""Line: the parts of a session that its turns happen to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sessionlog.context.tokens import count_tokens, count_tokens_json
from sessionlog.conversation.agents.answerer import Answerer
from sessionlog.conversation.history.conversation import Conversation
from sessionlog.conversation.history.message import Message
from sessionlog.conversation.history.rules import open_calls
from sessionlog.conversation.log.recorder import Recorder
from sessionlog.conversation.turns.retry import Attempts

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
        state: How the last turn ended.
        is_begun: The log knows of it.
        ends_on_interrupt: An interrupt ends the session in its log.
        attempts: Makes the attempts of one request.
    """

    agent: Answerer
    system: str | None
    conversation: Conversation
    recorder: Recorder
    save: Callable[[], None] = lambda: None
    state: State = "new"
    is_begun: bool = False
    ends_on_interrupt: bool = True
    attempts: Callable[..., Attempts] = Attempts

    def begin(self, parent: Mapping[str, Any] | None = None) -> None:
        """Tell the log of the session, once, and of the history that it begins with."""
        if not self.is_begun:
            self.is_begun = True
            used = None if parent else self.conversation.token_counter.usage or None
            self.recorder.begin(system=self.system, parent=parent, inherited=self.conversation.messages, usage=used)

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
