"""Fold: a session's events → its history, token usage and state after the last of them.

The history is the conversation as `transcript` folds it, but stricter: an invalid message, a missing message that a
request refers to, and a change that does not fit raise InvalidHistory with their place.

Invariants: memory is bounded by the history and the deltas of one answer; folding the first events of a log gives the
session at that point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from sessionlog.conversation.log.event_codec import read_answer, read_message, read_tool_result
from sessionlog.errors import InvalidHistory
from sessionlog.events.billing import read_whole
from sessionlog.events.envelope import CLOSED, Event
from sessionlog.events.payloads import UNREPEATED
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.logger.totals import Totals
from sessionlog.messages.message import Message
from sessionlog.transcript.fold import ConversationFold
from sessionlog.transcript.splice import Splice

Json = Any
TurnState = Literal["new", "complete", "failed", "cancelled", "interrupted"]
_STATES: Mapping[str, TurnState] = {state: state for state in get_args(TurnState)}
_BY_STATUS: Mapping[str, TurnState] = {"cancelled": "cancelled", "error": "failed"}
_NEEDED = frozenset(
    {"session.start", "llm.request", "llm.response", "tool.call", "compaction.end", "history.add", "history.pop"}
)  # fmt: skip


class _Unit(NamedTuple):
    """The messages of one element of the conversation, and whether a fork inherited them."""

    messages: tuple[Message, ...]
    is_inherited: bool

    def split(self) -> list[_Unit]:
        return [_Unit((message,), self.is_inherited) for message in self.messages]


class Fold:
    """The state of a session after the events so far.

    Attributes:
        parent: The fork point in the parent; None without a parent.
        usage: Tokens of all answers.
        requests: The number of answers without an error.
        state: `new`, or the state of the newest turn.
        is_unanswered: The newest request got no answer, and the history has not changed since.
        run: Totals since the last session.end.
        last_seq: The number of the last event; None before the first.
        start_ns: The first event's time.
        is_ours: The log has a format version, so its token classes are disjoint.
        has_changes: The log has history.* events: a session wrote it, so that every message in it is intended.
    """

    def __init__(self, *, own: bool = True) -> None:
        """Start empty. `own`: requests of our logs are whole unless they state otherwise; others are incremental."""
        self._own = own
        self._conversation = ConversationFold(own=own)
        self._units: list[_Unit] = []  # one for each element of the conversation
        self._answer: Message | None = None  # in the current event
        self._started = False
        self.parent: Mapping[str, Json] | None = None
        self.usage = TokenUsage()
        self.requests = 0
        self.state: TurnState = "new"
        self.is_unanswered = False
        self.run = Totals()
        self.last_seq: int | None = None
        self.start_ns: int | None = None
        self.is_ours = self.has_changes = False

    def apply(self, event: Event, place: str) -> None:
        """Apply the next event; `place` is its position, for error messages.

        Raises:
            InvalidHistory: The event does not fit the history, or holds no valid message.
        """
        self.last_seq = event.seq
        if self.start_ns is None:
            self.start_ns = event.time_ns
        data = event.data
        if isinstance(data, Mapping) and "agent" in data:  # a sub-agent's event is not part of the conversation
            return
        data = data if isinstance(data, Mapping) else {}
        if data.get("truncated") is True and event.type in _NEEDED:
            raise InvalidHistory(
                f"{place}: this {event.type} was too long and was cut when it was written; "
                f"fork_from(…, at=SEQ) continues from an event before it"
            )
        if event.type.startswith("history."):
            self.has_changes = True
        streamed, self._answer = self._conversation.streamed, None
        for splice in self._conversation.apply(event):
            self._apply_splice(splice, data, streamed, place)
        self._count(event.type, data)

    @property
    def system(self) -> str | None:
        """The system text; None without one."""
        return self._conversation.system or None

    @property
    def turns(self) -> int:
        """The number of user prompts sent to the agent."""
        return self._conversation.turns

    @property
    def earlier(self) -> int:
        """The number of messages that the next request need not repeat; 0 if it has to hold the whole history."""
        return self._conversation.sent if all(len(unit.messages) == 1 for unit in self._units) else 0

    @property
    def inherited(self) -> list[Message]:
        """The messages that a fork inherited from its parent."""
        return [message for unit in self._units if unit.is_inherited for message in unit.messages]

    def messages(self) -> list[Message]:
        """Return the history; the text of an unfinished answer is its last message, marked as partial."""
        messages = [message for unit in self._units for message in unit.messages]
        if not messages and self._conversation.prompt and not self.is_ours:
            messages = [Message.user(self._conversation.prompt)]
        if self._conversation.streamed:
            messages.append(Message.assistant(self._conversation.streamed, partial="interrupted"))
        return messages

    def _apply_splice(self, splice: Splice, data: Mapping[str, Json], streamed: str, place: str) -> None:
        """Apply one change of the conversation to the history."""
        if splice.problem:
            raise InvalidHistory(f"{place}: {splice.problem}")
        if splice.missing:
            earlier = data["earlier_messages"]
            raise InvalidHistory(
                f"{place}: this request continues {earlier} earlier messages, but the log holds only "
                f"{earlier - splice.missing} of them: events are missing; fork_from(…, at=SEQ) continues from an event "
                f"before it"
            )
        if splice.cause not in ("request", "inherited"):
            self.is_unanswered = False
        splice.split(self._units, _Unit.split)
        is_inherited = splice.cause == "inherited" and data.get("reason") == "fork"
        found = self._messages(splice, data, streamed, place)
        splice.put(self._units, [_Unit(tuple(messages), is_inherited) for messages in found])

    def _messages(
        self, splice: Splice, data: Mapping[str, Json], streamed: str, place: str
    ) -> Iterable[Iterable[Message]]:
        """The messages of each added element."""
        if splice.cause == "answer":
            self._answer = read_answer(data, streamed, place)
            return [[self._answer] if self._answer else []]
        if splice.cause == "result":
            call = self._conversation.answered
            return [[read_tool_result(data, *call, place)] if call else []]  # the oldest logs do not name their calls
        if splice.cause in ("partial", "prompt"):
            return [one.entry.messages for one in splice.added]
        given = data.get("messages")
        listed = given if isinstance(given, list | tuple) else ()
        places = {
            id(value): f"{place}: messages[{n}]" for n, value in enumerate(listed)
        }  # by id: the values live as long as data
        return [
            read_message(one.raw, places.get(id(one.raw), place), is_transcript=not self._own) for one in splice.added
        ]

    def _count(self, type_: str, data: Mapping[str, Json]) -> None:
        """Update the state and the usage."""
        match type_:
            case "session.start" if not self._started:  # the first one counts
                self._started, self.is_ours = True, data.get("v") is not None
                self.parent = data["parent"] if isinstance(data.get("parent"), Mapping) else None
            case "llm.request":
                self.state, self.is_unanswered = "interrupted", True
            case "llm.response":
                self._response(data)
            case "history.add" if data.get("reason") in UNREPEATED:
                self.usage += read_whole(data.get("usage"))[0]
                self.state = state_of(self.messages())
            case "history.add":
                self.state = read_state(data.get("state"), self.state)
            case "history.pop" | "history.clear":
                self.state = state_of(self.messages())
            case "session.end" if (
                data.get("status") != CLOSED
            ):  # CLOSED ends no run: its usage is in the next session.end
                self._end(data)

    def _response(self, data: Mapping[str, Json]) -> None:
        self.usage += read_whole(data.get("usage"))[0]
        self.run.add(data)
        failed, message = bool(data.get("error")), self._answer
        partial = message.partial if message is not None and message.partial else data.get("partial")
        self.requests += not failed and not partial
        whole: TurnState = "interrupted" if message is not None and message.tool_calls else "complete"
        self.state = read_state(partial, "failed" if failed else whole)

    def _end(self, data: Mapping[str, Json]) -> None:
        if self.state == "interrupted":
            status = str(data.get("status"))
            last = self._units[-1].messages[-1] if self._units and self._units[-1].messages else None
            is_whole = status == "success" and last is not None and last.role == "assistant" and not last.partial
            self.state = "complete" if is_whole else _BY_STATUS.get(status, "interrupted")
        self.usage += read_usage(data.get("tokens"))[0].beyond(self.run.usage)
        self.run = Totals()


def state_of(messages: Sequence[Message]) -> TurnState:
    """Derive the state from the last message, where no event states it."""
    if not messages:
        return "new"
    last = messages[-1]
    is_answered = last.role in ("assistant", "system") and not last.tool_calls
    return read_state(last.partial, "complete" if is_answered else "interrupted")


def read_state(value: Json, otherwise: TurnState) -> TurnState:
    """Return the state that a value of a log or a store names, else `otherwise`."""
    return _STATES.get(value, otherwise) if isinstance(value, str) else otherwise
