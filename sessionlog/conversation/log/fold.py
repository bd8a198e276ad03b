"""Fold: a session's events → its history, its tokens and its state, as they were after the last of them.

The history is the conversation as `transcript` folds it, with this strictness: what is no message, what a request goes
on from and the log does not hold, and a change that does not fit are refused by their place.

Invariants: memory is bounded by the history and one answer's pieces; folding a beginning of a log gives what the
session was then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from sessionlog.conversation.log.event_codec import answer_of, read_message, result_of
from sessionlog.errors import InvalidHistory
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
    """The messages of an element of the conversation, and whether a fork has them from its parent."""

    messages: tuple[Message, ...]
    is_inherited: bool

    def split(self) -> list[_Unit]:
        return [_Unit((message,), self.is_inherited) for message in self.messages]


class Fold:
    """What is known half-way through a log.

    Attributes:
        parent: Of a fork, where it left its parent.
        usage: Tokens of all answers.
        requests: Answers without an error.
        state: `new`, or how the newest turn stands.
        is_unanswered: The newest request got no answer, and the history has not changed since.
        run: What was used since the last session.end.
        last_seq: The number of the last event; None while there was none.
        start_ns: The first event's time.
        is_ours: The log says that it counts tokens as we do.
        has_changes: A session has logged what it did to its history, so that each message in it is meant.
    """

    def __init__(self, *, own: bool = True) -> None:
        """Begin. `own` requests hold whole prompts unless they say otherwise; others continue the one before."""
        self._own = own
        self._conversation = ConversationFold(own=own)
        self._units: list[_Unit] = []  # one for each element of the conversation
        self._answer: Message | None = None  # that the event at hand has brought
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

    def take(self, event: Event, place: str) -> None:
        """Take the next event.

        Args:
            event: The event.
            place: Where it stands, for the error's words.

        Raises:
            InvalidHistory: What it says of the history cannot be used.
        """
        self.last_seq = event.seq
        if self.start_ns is None:
            self.start_ns = event.time_ns
        data = event.data
        if isinstance(data, Mapping) and "agent" in data:  # a sub-agent's: beside the conversation
            return
        data = data if isinstance(data, Mapping) else {}
        if data.get("truncated") is True and event.type in _NEEDED:
            raise InvalidHistory(
                f"{place}: this {event.type} was cut when it was written, for it was longer than an event may be; "
                f"fork_from(…, at=SEQ) goes on from an event before it"
            )
        if event.type.startswith("history."):
            self.has_changes = True
        streamed, self._answer = self._conversation.streamed, None
        for splice in self._conversation.apply(event):
            self._apply(splice, data, streamed, place)
        self._count(event.type, data)

    @property
    def system(self) -> str | None:
        """The system's text."""
        return self._conversation.system or None

    @property
    def turns(self) -> int:
        """How often an agent was asked to answer a user."""
        return self._conversation.turns

    @property
    def earlier(self) -> int:
        """How many messages the next request need not repeat; 0 where it had better be whole."""
        return self._conversation.sent if all(len(unit.messages) == 1 for unit in self._units) else 0

    @property
    def inherited(self) -> list[Message]:
        """Of a fork, the messages of its history that are its parent's."""
        return [message for unit in self._units if unit.is_inherited for message in unit.messages]

    def messages(self) -> list[Message]:
        """The history now; what came of an unfinished answer is its last message, marked."""
        messages = [message for unit in self._units for message in unit.messages]
        if not messages and self._conversation.prompt and not self.is_ours:
            messages = [Message.user(self._conversation.prompt)]
        if self._conversation.streamed:
            messages.append(Message.assistant(self._conversation.streamed, partial="interrupted"))
        return messages

    def _apply(self, splice: Splice, data: Mapping[str, Json], streamed: str, place: str) -> None:
        """Change the history as the conversation has changed."""
        if splice.problem:
            raise InvalidHistory(f"{place}: {splice.problem}")
        if splice.missing:
            earlier = data["earlier_messages"]
            raise InvalidHistory(
                f"{place}: this request goes on from {earlier} earlier messages, and the log holds "
                f"{earlier - splice.missing} of them: something between is lost; fork_from(…, at=SEQ) goes on from an "
                f"event before it"
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
        """The messages of each element that comes."""
        if splice.cause == "answer":
            self._answer = answer_of(data, streamed, place)
            return [[self._answer] if self._answer else []]
        if splice.cause == "result":
            call = self._conversation.answered
            return [[result_of(data, *call, place)] if call else []]  # the oldest logs do not name their calls
        if splice.cause in ("partial", "prompt"):
            return [one.entry.messages for one in splice.added]
        given = data.get("messages")
        listed = given if isinstance(given, list | tuple) else ()
        places = {id(value): f"{place}: messages[{n}]" for n, value in enumerate(listed)}  # they live as long as data
        return [
            read_message(one.raw, places.get(id(one.raw), place), is_transcript=not self._own) for one in splice.added
        ]

    def _count(self, type_: str, data: Mapping[str, Json]) -> None:
        """Follow the state, and what was used."""
        match type_:
            case "session.start" if not self._started:  # the first one counts
                self._started, self.is_ours = True, data.get("v") is not None
                self.parent = data["parent"] if isinstance(data.get("parent"), Mapping) else None
            case "llm.request":
                self.state, self.is_unanswered = "interrupted", True
            case "llm.response":
                self._response(data)
            case "history.add" if data.get("reason") in UNREPEATED:
                self.usage += read_usage(data.get("usage"))[0]
                self.state = state_of(self.messages())
            case "history.add":
                self.state = read_state(data.get("state"), self.state)
            case "history.pop" | "history.clear":
                self.state = state_of(self.messages())
            case "session.end" if data.get("status") != CLOSED:  # else no run ends: the next end has what it used
                self._end(data)

    def _response(self, data: Mapping[str, Json]) -> None:
        self.usage += read_usage(data.get("usage"))[0]
        self.run.add(data)
        failed, message = bool(data.get("error")), self._answer
        word = message.partial if message is not None and message.partial else data.get("partial")
        self.requests += not failed and not word
        whole: TurnState = "interrupted" if message is not None and message.tool_calls else "complete"
        self.state = read_state(word, "failed" if failed else whole)

    def _end(self, data: Mapping[str, Json]) -> None:
        if self.state == "interrupted":
            status = str(data.get("status"))
            last = self._units[-1].messages[-1] if self._units and self._units[-1].messages else None
            is_whole = status == "success" and last is not None and last.role == "assistant" and not last.partial
            self.state = "complete" if is_whole else _BY_STATUS.get(status, "interrupted")
        self.usage += read_usage(data.get("tokens"))[0].beyond(self.run.usage)
        self.run = Totals()


def state_of(messages: Sequence[Message]) -> TurnState:
    """Return the state that a history's last message shows, for want of anything that says it."""
    if not messages:
        return "new"
    last = messages[-1]
    is_answered = last.role in ("assistant", "system") and not last.tool_calls
    return read_state(last.partial, "complete" if is_answered else "interrupted")


def read_state(word: Json, otherwise: TurnState) -> TurnState:
    """Return the state that a word of a log or a store names."""
    return _STATES.get(word, otherwise) if isinstance(word, str) else otherwise
