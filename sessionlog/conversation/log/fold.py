"""Fold: a session's events → its history, its tokens and its state, as they were after the last of them.

Requests hold all that is said, or what is new behind `earlier_messages`; what is said between two requests (answers,
tool results, messages that were added or taken back, a truncation) has events of its own, and the next request says it
again. So the history is what the last request held and what was heard since.

Invariants: memory is bounded by the history and one answer's pieces; folding a beginning of a log gives what the
session was then; what a request leans on but the log does not hold is a hole, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, get_args

from sessionlog.conversation.history.rules import open_calls
from sessionlog.conversation.log.cut import apply_cut
from sessionlog.conversation.log.event_codec import answer_of, read_message, result_of, text_of
from sessionlog.errors import InvalidHistory
from sessionlog.events.envelope import CLOSED, Event
from sessionlog.events.payloads import UNREPEATED
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.logger.totals import Totals
from sessionlog.messages.message import Message, ToolRequest

Json = Any
State = Literal["new", "complete", "failed", "cancelled", "interrupted"]
_STATES: Mapping[str, State] = {state: state for state in get_args(State)}
_BY_STATUS: Mapping[str, State] = {"cancelled": "cancelled", "error": "failed"}
_NEEDED = frozenset(
    {"session.start", "llm.request", "llm.response", "tool.call", "compaction.end", "history.add", "history.pop"}
)  # fmt: skip
_Unit = tuple[Message, ...]


class Fold:
    """What is known half-way through a log.

    Attributes:
        system: The system's text.
        parent: Of a fork, where it left its parent.
        usage: Tokens of all answers.
        requests: Answers without an error.
        turns: How often an agent was asked to answer a user.
        state: `new`, or how the newest turn stands.
        run: What was used since the last session.end.
        ended: The last run has an end.
        last_seq: The number of the last event; None while there was none.
        start_ns: The first event's time.
        inherited: Of a fork, the messages that are its parent's; some may be gone from its history.
        is_ours: The log says that it counts tokens as we do.
        is_told: A session has told what it did to its history, so that each message in it is meant.
    """

    def __init__(self, *, own: bool = True) -> None:
        """Begin. `own` requests hold whole prompts unless they say otherwise; others continue the one before."""
        self._own = own
        self._said: list[_Unit] = []
        self._told = 0
        self._pieces: list[str] = []
        self._since = self._stale = 0
        self._started = False
        self._prompt = ""
        self._asked: tuple[int, Message] | None = None
        self.system: str | None = None
        self.parent: Mapping[str, Json] | None = None
        self.usage = TokenUsage()
        self.requests = self.turns = 0
        self.state: State = "new"
        self.run = Totals()
        self.ended = False
        self.last_seq: int | None = None
        self.start_ns: int | None = None
        self.inherited: list[Message] = []
        self.is_ours = self.is_told = False
        self._takers: Mapping[str, Callable[[Mapping[str, Json], str], None]] = {
            "session.start": self._start,
            "llm.request": self._request,
            "llm.delta": self._delta,
            "llm.response": self._response,
            "tool.call": self._tool,
            "compaction.end": self._compacted,
            "history.add": self._added,
            "history.pop": self._popped,
            "history.clear": self._cleared,
            "session.end": self._end,
        }

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
        taker, data = self._takers.get(event.type), event.data
        if taker is None or (isinstance(data, Mapping) and "agent" in data):  # a sub-agent's: beside the conversation
            return
        data = data if isinstance(data, Mapping) else {}
        if data.get("truncated") is True and event.type in _NEEDED:
            raise InvalidHistory(
                f"{place}: this {event.type} was cut when it was written, for it was longer than an event may be; "
                f"fork_from(…, at=SEQ) goes on from an event before it"
            )
        if event.type.startswith("history."):
            self.is_told = True
        taker(data, place)

    @property
    def told(self) -> int:
        """How many messages the next request need not repeat; 0 where it had better be whole."""
        return self._told if all(len(unit) == 1 for unit in self._said) else 0

    def messages(self) -> list[Message]:
        """The history now; what came of an unfinished answer is its last message, marked."""
        said = list(chain.from_iterable(self._said))
        if not said and not self._asked and self._prompt and not self.is_ours:
            said = [Message.user(self._prompt)]
        if self._pieces:
            said.append(Message.assistant("".join(self._pieces), partial="interrupted"))
        return said

    def _start(self, data: Mapping[str, Json], place: str) -> None:
        del place
        if self._started:
            return  # the first one counts
        self._started, self.is_ours = True, data.get("v") is not None
        self.system = text_of(data.get("system_prompt")) or self.system
        self._prompt = text_of(data.get("prompt"))
        self.parent = data["parent"] if isinstance(data.get("parent"), Mapping) else None

    def _request(self, data: Mapping[str, Json], place: str) -> None:
        for key in ("instructions", "system"):
            if isinstance(data.get(key), str):
                self.system = data[key] or None
        given = data.get("messages")
        if isinstance(given, list | tuple):
            self._hold(self._read(given, place), data.get("earlier_messages"), place)
        else:  # the oldest logs hold a count: what was heard stands for the messages
            self._settle("interrupted")
            if not self._said and self._prompt:
                self._said = [(Message.user(self._prompt),)]
        self._pieces = []
        self._told, self._since, self._stale = len(self._said), 0, 0
        last = self._said[-1][-1] if self._said else None
        if last is not None and last.role == "user" and self._asked != (len(self._said), last):
            self.turns += 1
            self._asked = (len(self._said), last)
        self.state, self.ended = "interrupted", False

    def _hold(self, units: list[_Unit], earlier: Json, place: str) -> None:
        """Put a request's messages behind those that it does not repeat."""
        known = earlier if isinstance(earlier, int) and not isinstance(earlier, bool) and earlier > 0 else 0
        if not self._own:
            self._put(self._told, self._fresh(units))
            return
        if known > self._told:
            raise InvalidHistory(
                f"{place}: this request goes on from {known} earlier messages, and the log holds {self._told} of them: "
                f"something between is lost; fork_from(…, at=SEQ) goes on from an event before it"
            )
        self._put(known, units)

    def _put(self, place: int, units: list[_Unit]) -> None:
        del self._said[place:]
        self._said.extend(units)

    def _fresh(self, units: list[_Unit]) -> list[_Unit]:
        """What is new, less the answers and results that a compaction has swallowed."""
        fresh = []
        for unit in units:
            if self._stale and unit[0].role in ("assistant", "tool"):
                self._stale -= 1
            else:
                fresh.append(unit)
        return fresh

    def _read(self, given: Iterable[Json], place: str) -> list[_Unit]:
        units = []
        for n, value in enumerate(given):
            unit = read_message(value, f"{place}: messages[{n}]", is_transcript=not self._own)
            if unit:
                units.append(unit)
        return units

    def _delta(self, data: Mapping[str, Json], place: str) -> None:
        del place
        if isinstance(data.get("content"), str):
            self._pieces.append(data["content"])

    def _response(self, data: Mapping[str, Json], place: str) -> None:
        self.usage += read_usage(data.get("usage"))[0]
        self.run.add(data)
        self.ended = False
        failed = bool(data.get("error"))
        message = answer_of(data, "".join(self._pieces), place) if self._own or not failed else None
        word = message.partial if message is not None and message.partial else data.get("partial")
        self.requests += not failed and not word
        self._pieces = []
        if message is not None:
            self._said.append((message,))
            self._since += 1
        whole: State = "interrupted" if message is not None and message.tool_calls else "complete"
        self.state = _state(word, "failed" if failed else whole)

    def _tool(self, data: Mapping[str, Json], place: str) -> None:
        self._since += 1
        self.ended = False
        call = self._call_of(data)
        if call is not None:  # else nobody asked for it: it was run beside the conversation
            self._said.append((result_of(data, call, place),))

    def _call_of(self, data: Mapping[str, Json]) -> ToolRequest | None:
        """The unanswered call of a tool's run: by its id, else by its name."""
        tail: list[Message] = []
        for unit in reversed(self._said):
            tail[:0] = unit
            if unit[0].role != "tool":
                break
        calls = open_calls(tail)
        call_id, name = data.get("id"), data.get("tool")
        same = [call for call in calls if call.id == call_id]
        return next(iter(same or ([] if call_id else [call for call in calls if call.name == name])), None)

    def _compacted(self, data: Mapping[str, Json], place: str) -> None:
        if data.get("success") is False or data.get("no_compaction"):
            return
        self._settle("interrupted")
        if "dropped" in data:
            try:
                added = [(item["at"], read_message(item["message"], place)) for item in data.get("added") or ()]
                self._said = self._one_by_one()
                self._said = apply_cut(self._said, data["dropped"], added)
            except (TypeError, KeyError, ValueError) as error:
                if isinstance(error, InvalidHistory):
                    raise
                raise InvalidHistory(f"{place}: this truncation does not fit the history before it: {error}") from None
            self._told = 0
        else:
            summary = text_of(data.get("summary"))
            self._said = [(Message("user", summary, extra={"summary": True}),)] if summary else []
            self._told, self._stale = len(self._said), self._since
        self._asked = None

    def _added(self, data: Mapping[str, Json], place: str) -> None:
        self._settle("interrupted")
        given = data.get("messages")
        if not isinstance(given, list | tuple):
            raise InvalidHistory(f"{place}: history.add without messages")
        units = self._read(given, place)
        if data.get("reason") in UNREPEATED:
            self._put(self._told, units)
            self._told = len(self._said)
            if data.get("reason") == "fork":
                known = {id(message) for message in chain(self.inherited, *units)}
                self.inherited = [m for m in chain.from_iterable(self._said) if id(m) in known]
            self.usage += read_usage(data.get("usage"))[0]
            self.state = state_of(self.messages())
        else:
            self._said.extend(units)
            self.state = _state(data.get("state"), self.state)

    def _popped(self, data: Mapping[str, Json], place: str) -> None:
        self._settle("interrupted")
        count = data.get("count")
        self._said = self._one_by_one()
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= len(self._said):
            raise InvalidHistory(f"{place}: history.pop takes {count!r} of {len(self._said)} messages")
        del self._said[len(self._said) - count :]
        self._left()

    def _cleared(self, data: Mapping[str, Json], place: str) -> None:
        del data, place
        self._pieces, self._said = [], []
        self._left()

    def _one_by_one(self) -> list[_Unit]:
        """What a session says of its history counts single messages, also of a log that others began."""
        return [(message,) for message in chain.from_iterable(self._said)]

    def _left(self) -> None:
        self._told, self._asked = 0, None
        self.state = state_of(self.messages())

    def _end(self, data: Mapping[str, Json], place: str) -> None:
        del place
        status = str(data.get("status"))
        if status == CLOSED:  # no run ends: what it used is part of the next end
            return
        self._settle(_BY_STATUS.get(status, "interrupted"))
        if self.state == "interrupted":
            last = self._said[-1][-1] if self._said else None
            is_whole = status == "success" and last is not None and last.role == "assistant" and not last.partial
            self.state = "complete" if is_whole else _BY_STATUS.get(status, "interrupted")
        self.usage += read_usage(data.get("tokens"))[0].beyond(self.run.usage)
        self.run, self.ended = Totals(), True

    def _settle(self, why: str) -> None:
        """Nothing finishes the answer that was under way: what came of it is of the history."""
        if self._pieces:
            self._said.append((Message.assistant("".join(self._pieces), partial=why),))
            self._pieces = []


def state_of(messages: Sequence[Message]) -> State:
    """Return the state that a history's last message shows, for want of anything that says it."""
    if not messages:
        return "new"
    last = messages[-1]
    is_answered = last.role in ("assistant", "system") and not last.tool_calls
    return _state(last.partial, "complete" if is_answered else "interrupted")


def _state(word: Json, otherwise: State) -> State:
    return _STATES.get(word, otherwise) if isinstance(word, str) else otherwise
