"""Recordings: a session's events → its requests to models, each with the answer that it got.

`transcript` folds the conversation; a recording is a snapshot of it at a request. Sub-agents have conversations of
their own. A log of another agent holds the conversation alone: what that agent adds to it (system prompt, reminders,
tools) is no part of its recordings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sessionlog.errors import InvalidHistory, Problem
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.messages.answer_bodies import Answer
from sessionlog.messages.message import Message, ToolRequest
from sessionlog.sources.protocol import Log
from sessionlog.sources.values import text
from sessionlog.testing.replay.request import PARTS, Request, make_request, plain_message
from sessionlog.transcript.damage import Damage
from sessionlog.transcript.fold import OWN, ConversationFold
from sessionlog.transcript.inherited import read_session
from sessionlog.transcript.splice import Splice, answer_entry
from sessionlog.transcript.usages import ResponseUsages

Json = Any
WHOLE_REQUESTS = {"requests": "whole"}
"""The metadata of a log that has all parts of its requests: what no request in it has was not sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recorded request and its answer.

    Attributes:
        number: Its number in the log, from 1.
        request: What was asked; None where the log does not show it: then it is given only in order.
        answer: What the model answered.
        error: The error that came in place of the answer; empty for none.
        provider: Who served it; empty if unknown.
        agent: The sub-agent that asked; empty for the main one.
    """

    number: int
    request: Request | None
    answer: Answer
    error: str = ""
    provider: str = ""
    agent: str = ""

    @property
    def prompt(self) -> str:
        """The text of the last message of the user; empty where it is not known."""
        return "" if self.request is None else self.request.prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLog:
    """What a log holds for a replay.

    Attributes:
        recordings: In order of the answers.
        left_out: The parts of requests that it does not hold, of `PARTS`.
        damaged: Pieces of the log that could not be read.
    """

    recordings: tuple[Recording, ...]
    left_out: tuple[str, ...]
    damaged: int


def read_recordings(log: Log, session: str | None = None) -> RecordedLog:
    """Read the recordings of a session.

    Args:
        log: Its log.
        session: Which of the log's sessions; None for the first.

    Raises:
        InvalidHistory: There is no answer in it, or not all of its answers.
        LogNotReadable: The log cannot be opened.
        MissingExtra: It is packed, and no decoder is installed.
    """
    own = log.source.id in OWN
    fold = _Fold(own=own)
    fold.read(read_session(log, session))
    if not fold.exchanges:
        raise InvalidHistory(f"{log.path}: no answer of a model is in this log")
    if any(one.has_number_of_calls for one in fold.exchanges):
        raise InvalidHistory(f"{log.path}: this log holds the number of tool calls in place of the calls")
    recordings = tuple(fold.recordings())
    requests = [one.request for one in recordings if one.request is not None]
    held = {name for name in PARTS if any(request.part(name) for request in requests)}
    if own:
        held |= {*PARTS} if fold.has_whole_requests else {"system"}
    left_out = tuple(name for name in PARTS if name not in held)
    return RecordedLog(recordings=recordings, left_out=left_out, damaged=fold.damage.count)


@dataclass(slots=True, kw_only=True)
class _Asked:
    """A request, its place in the conversation, and whether another one of its model waited at the same time."""

    place: int
    request: Request | None
    is_shared: bool = False
    is_unsure: bool = False  # its response may be another one's

    @property
    def model(self) -> str | None:
        return None if self.request is None else self.request.model


@dataclass(slots=True, kw_only=True)
class _Exchange:
    """A response and its request."""

    data: Mapping[str, Json]
    messages: Sequence[Message]
    agent: str
    asked: _Asked | None = None
    index: int = 0  # of its usage

    @property
    def request(self) -> Request | None:
        return None if self.asked is None or self.asked.is_unsure else self.asked.request

    @property
    def has_number_of_calls(self) -> bool:
        calls = self.data.get("tool_calls")
        return isinstance(calls, int) and calls > 0

    @property
    def is_failed_attempt(self) -> bool:
        return bool(self.data.get("error")) and "attempt_index" in self.data


class _Fold:
    """Collects the exchanges of a session, in order of their responses."""

    def __init__(self, *, own: bool) -> None:
        self.exchanges: list[_Exchange] = []
        self.damage = Damage()
        self._own = own
        self._conversations: dict[str, _Conversation] = {}
        self._usages = ResponseUsages()

    def read(self, items: Iterable[Event | Problem]) -> None:
        for event in self.damage.events(items):
            data = dict(event.data) if isinstance(event.data, Mapping) else {}
            agent = str(data.pop("agent", "") or "")
            if event.type == "session.start":
                self._usages.begin(data)
            if agent and not self._own:
                continue  # other agents' logs hold no requests of sub-agents
            conversation = self._conversations.setdefault(agent, _Conversation(self._usages.start, own=self._own))
            exchange, replaced = conversation.apply(replace(event, data=data), agent)
            if replaced is not None:
                self.exchanges.remove(replaced)
            if exchange is not None:
                exchange.index = len(self._usages)
                self._usages.add(data)
                self.exchanges.append(exchange)

    @property
    def has_whole_requests(self) -> bool:
        """Whether the log is marked as one that has all parts of its requests."""
        metadata = self._usages.start.get("metadata")
        return isinstance(metadata, Mapping) and metadata.items() >= WHOLE_REQUESTS.items()

    def recordings(self) -> Iterator[Recording]:
        """Yield a recording for each exchange."""
        usages = list(self._usages.read())
        for number, one in enumerate(self.exchanges, start=1):
            yield Recording(
                number=number, request=one.request, answer=_answer(one, number, usages[one.index]), agent=one.agent,
                error=str(one.data.get("error") or ""), provider=self._usages.provider_of(one.data),
            )  # fmt: skip


class _Conversation:
    """The conversation of one agent, and its requests that have no answer yet."""

    def __init__(self, start: Mapping[str, Json], *, own: bool) -> None:
        self._fold = ConversationFold(own=own, finds_new=False)
        self._elements: list[Sequence[Json]] = []  # plain messages, None for empty ones
        self._model = start.get("requested_model") or start.get("model")
        self._own = own
        self._lacks_beginning = False
        self._waiting: list[_Asked] = []
        self._count = self._count_before = 0  # requests: all, and those before the last response
        self._answered: list[_Exchange] = []

    def apply(self, event: Event, agent: str) -> tuple[_Exchange | None, _Exchange | None]:
        """Apply an event; return the exchange that it completes, and the failed attempt that this replaces."""
        data: Mapping[str, Json] = event.data
        streamed = self._fold.streamed
        splices = self._fold.apply(event)
        if event.type == "llm.response":
            before = [splice for splice in splices if splice.cause != "answer"]
            self._change(before)
            found = self._complete(data, answer_entry(data, streamed).messages, agent)
            self._change(splices[len(before) :])
            return found
        self._change(splices)
        if event.type == "llm.request":
            self._ask(self._request(data))
        return None, None

    def _change(self, splices: Iterable[Splice]) -> None:
        for splice in splices:
            splice.split(self._elements, lambda messages: [[message] for message in messages])
            splice.put(self._elements, [[*map(plain_message, one.entry.messages)] for one in splice.added])
            self._lacks_beginning = bool(splice.missing) or (self._lacks_beginning and splice.start > 0)

    def _request(self, data: Mapping[str, Json]) -> Request | None:
        """Return the request that sends the conversation as it is now; None if the log lacks its beginning."""
        if self._lacks_beginning:
            return None
        messages = [message for element in self._elements for message in element if message is not None]
        if not self._own:
            return make_request([one for one in messages if one["role"] != "system"], {"model": data.get("model")})
        if self._fold.system.strip() and not (messages and messages[0]["role"] == "system"):
            messages.insert(0, plain_message(Message.system(self._fold.system)))
        return make_request(messages, {**data, "model": data.get("model") or self._model})

    def _ask(self, request: Request | None) -> None:
        self._count += 1
        asked = _Asked(place=self._count, request=request)
        for one in [one for one in self._waiting if one.model == asked.model]:
            one.is_shared = asked.is_shared = True
        self._waiting.append(asked)

    def _complete(
        self, data: Mapping[str, Json], messages: Sequence[Message], agent: str
    ) -> tuple[_Exchange, _Exchange | None]:
        exchange = _Exchange(data=data, messages=messages, agent=agent)
        last = self._answered[-1] if self._answered else None
        has_asked, self._count_before = self._count != self._count_before, self._count
        if last is not None and last.is_failed_attempt and not has_asked:  # of a request's attempts the last one counts
            exchange.asked, self._answered[-1] = last.asked, exchange
            return exchange, last
        if not self._count:  # a log of answers alone
            exchange.asked = _Asked(place=0, request=self._request(data))
        elif self._waiting:
            exchange.asked = self._take(data.get("requested_model"))
        self._answered.append(exchange)
        return exchange, None

    def _take(self, model: Json) -> _Asked:
        """Return the latest request that waits; if one of the response's model waits, that.

        Where an earlier request is answered after a later one, the log does not show which answer is whose, unless
        their models differ.
        """
        found = ([one for one in self._waiting if one.model == model] or self._waiting)[-1]
        self._waiting.remove(found)
        later = [one.asked for one in self._answered if one.asked is not None and one.asked.place > found.place]
        for one in [found, *later] if later else ():
            one.is_unsure = one.is_shared or model is None
        return found


def _answer(exchange: _Exchange, number: int, usage: TokenUsage) -> Answer:
    data, messages = exchange.data, exchange.messages
    parts = [part for message in messages for part in message.parts]
    beside = [message.extra.get("reasoning") or message.extra.get("reasoning_content") for message in messages]
    thoughts = [*map(text, beside), *(one.text for one in parts if one.is_reasoning)]
    calls = enumerate((call for message in messages for call in message.tool_calls), start=1)
    asked = "" if exchange.request is None else exchange.request.model
    return Answer(
        id=text(data.get("response_id")) or f"replay-{number}",
        model=text(data.get("model")) or asked or "",
        text="".join(one.text or "" for one in parts if one.type == "text"),
        thoughts="\n".join(filter(None, thoughts)),
        calls=tuple(
            ToolRequest.of_model(call.id or f"call_{number}_{index}", call.name, call.arguments)
            for index, call in calls
        ),
        usage=usage,
        finish_reason=text(data.get("finish_reason")) or None,
    )
