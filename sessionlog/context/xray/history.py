"""History: a session's events → what was in the window at one of its requests.

The conversation is folded by `transcript`; here its elements are sized. In what is made from other agents' logs
reasoning that is logged beside an answer is in the window until the next prompt. What comes between two requests is
sized when the next one repeats it; only the oldest logs, whose requests hold no messages, have nothing else.

Counting tokens takes longer than reading, and nearly all that a log tells is gone at its last request. So texts are
kept uncounted while they may be needed, up to `_KEPT` bytes; beyond that they are counted and dropped; what remains
are sizes, short names and digests; of messages before the last `_LONGEST` only sums. Other requests than the one that
was asked for are sized by their length, at that one's rate of bytes to tokens. So memory is bounded by what one request
holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import Any

from sessionlog.context.xray.measure import HOW_TO_CALL, SizedMessage, Summed, measure_tools
from sessionlog.context.xray.pieces import size_of, sum_up, total
from sessionlog.context.xray.requests import History, Sample, Window, name_results
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.transcript.damage import Damage
from sessionlog.transcript.fold import ConversationFold, has_compacted
from sessionlog.transcript.sent_prompt import SentPrompt
from sessionlog.transcript.splice import Added, Splice
from sessionlog.transcript.usages import ResponseUsages

Json = Any
_KEPT = 2 << 20
_LONGEST = 5_000  # messages
_NAMES = 5_000
_NOTHING = Summed((), 0)
"""An element that the next request repeats, or that is among those summed up."""


def fold_history(items: Iterable[Event | Problem], *, request: int | None = None, own: bool = True) -> History:
    """Fold a session's events.

    Args:
        items: Events in file order, with the problems the reader met.
        request: The request to look at, from 1; None for the last.
        own: Whether requests hold whole prompts unless they say otherwise, as in our own logs; else each continues the
            one before.
    """
    fold = _Fold(request, own=own)
    for event in fold.damage.events(items):
        fold.take(event)
    return fold.history()


@dataclass(slots=True)
class _Look:
    """The request that is looked at: its window, still empty, and what was sent with it, still uncounted."""

    window: Window
    head: Sequence[SizedMessage]
    messages: list[SizedMessage]
    end: int  # messages that come later stand behind it
    thoughts: Sequence[SizedMessage]
    tools: Json

    def counted(self, names: Mapping[str, str]) -> Window:
        sent = [*self.head, *self.messages[: self.end], *self.thoughts]
        pieces = name_results([piece for one in sent for piece in one.pieces()], names)
        tools = measure_tools(self.tools, self.window.model or None)
        return replace(self.window, pieces=tuple(pieces), tools=tools)


class _Fold:
    def __init__(self, wanted: int | None, *, own: bool) -> None:
        self.damage = Damage()
        self._wanted = wanted
        self._own = own
        self._conversation = ConversationFold(own=own, finds_new=False)
        self._system: list[SizedMessage] = []
        self._messages: list[SizedMessage] = []  # one for each element of the conversation
        self._size = self._uncounted = 0  # bytes of all that, and of what is kept as text
        self._thoughts: list[SizedMessage] = []
        self._sent = SentPrompt[SizedMessage]()
        self._sent_head: list[SizedMessage] = []
        self._is_cut = False  # whether a compaction has told no summary yet
        self._names: dict[str, str] = {}
        self._latest = ""  # who answered last: a request that is not answered may name nobody
        self._look: _Look | None = None
        self._sizes: list[int] = []
        self._usages = ResponseUsages()  # of each request but the last, which may wait
        self._compactions: list[int] = []

    def take(self, event: Event) -> None:
        data = event.data if isinstance(event.data, Mapping) else {}
        splices = self._conversation.apply(event)
        if event.type == "session.start" and not self._usages.start:
            self._usages.begin(data)
            if self._conversation.system:
                self._system = [self._message("system", self._conversation.system)]
        if "agent" in data:
            return  # a sub-agent's, or what wrote a summary: beside the conversation
        before = tuple(splice for splice in splices if splice.cause != "answer")
        for splice in before:
            self._apply(splice, data)
        match event.type:
            case "llm.request":
                self._ask(event, data)
            case "llm.response":
                if self._conversation.requests > len(self._sizes):  # a log that tells answers only
                    self._ask(event, {})
                if self._conversation.answers > len(self._usages):
                    self._answer(data)
                for splice in splices[len(before) :]:
                    self._apply(splice, data)
            case "tool.call":
                self._name(data)
            case "compaction.end" if has_compacted(data):
                self._compact(data)

    def _message(self, role: str, content: Json) -> SizedMessage:
        return SizedMessage({"role": role, "content": content}, self._model({}), placeholders=not self._own)

    def _apply(self, splice: Splice, data: Mapping[str, Json]) -> None:
        """Change the elements as the conversation has changed."""
        if self._look is not None and (splice.is_split or splice.start < self._look.end):
            self._look.messages = self._look.messages[: self._look.end]
        splice.split(self._messages, lambda one: [one] if one.count == 1 else [_NOTHING] * one.count)
        if splice.cause == "request" and any(one.fields.get("role") == "user" for one in splice.added):
            self._forget_thoughts()
        come = [self._element(one, splice, data) for one in splice.added]
        gone = splice.put(self._messages, come)
        self._size += sum(one.size for one in come) - sum(one.size for one in gone)
        self._uncounted += _uncounted(come) - _uncounted(gone)
        if self._uncounted > _KEPT:
            self._count()

    def _element(self, one: Added, splice: Splice, data: Mapping[str, Json]) -> SizedMessage:
        count = len(one.entry.messages) if self._own else 1
        message = one.raw
        if splice.cause in ("answer", "result", "added", "partial") and self._conversation.holds_messages:
            return _NOTHING if count == 1 else Summed((), 0, count=count)  # the next request repeats it
        if splice.cause == "answer":
            message = {"role": "assistant", "content": data.get("content"), "tool_calls": data.get("tool_calls")}
        elif splice.cause == "result":
            call_id, name = _word(data.get("id")), _word(data.get("tool"))
            message = {"role": "tool", "content": data.get("output"), "tool_call_id": call_id, "name": name}
        elif splice.cause == "compaction" and one.is_summary:
            message = {"role": "summary", "content": message.get("content")}
        elif splice.cause == "request" and not self._own:
            if self._is_cut and one.fields.get("role") == "system":  # the first after a cut is what is left
                message = {**message, "role": "summary"}
            self._is_cut = False
        return SizedMessage(message, self._model(data), placeholders=not self._own, count=count)

    def _ask(self, event: Event, data: Mapping[str, Json]) -> None:
        model = self._model(data)
        is_whole = self._own and self._conversation.holds_messages and not data.get("earlier_messages")
        has_own = is_whole and bool(self._messages) and self._messages[0].role in ("system", "developer")
        beside = data.get("system") or data.get("instructions")
        if isinstance(beside, str) and beside:
            self._system, has_own = [self._message("system", beside)], False
        head, tools = [] if has_own else self._system, data.get("tools")
        sent, size, thoughts = self._messages, self._size, self._thoughts
        self._take_sent(data.get("sent"), model)
        if self._sent_head:
            head, tools = self._sent_head, self._sent.tools
        if self._sent.messages is not None:
            is_whole, sent, thoughts = True, self._sent.messages, []
            size = sum(one.size for one in sent)
        aside = sum(one.size for one in chain(head, thoughts))
        number = self._conversation.requests
        self._sizes[number - 1 :] = [size + aside + (size_of(tools) if tools else 0)]  # the one before may be none
        if self._wanted in (None, number):
            window = Window(
                number=number, time_ns=event.time_ns, model=model or "",
                provider=_word(self._usages.start.get("provider")), is_whole=is_whole,
                has_prompt=is_whole or bool(head),
            )  # fmt: skip
            self._look = _Look(window, head, sent, len(sent), list(thoughts), tools)

    def _take_sent(self, sent: Json, model: str | None) -> None:
        def read(message: Json) -> SizedMessage:
            return SizedMessage(message, model, placeholders=False)

        if self._sent.apply(sent, read):
            self._sent_head = [read({"role": "system", "content": part}) for part in self._sent.system]
        messages = self._sent.messages or ()
        if _uncounted(messages) > _KEPT:
            for one in messages:
                one.pieces()

    def _count(self) -> None:
        """Let texts go; and of what is older than a window holds all but sums."""
        pieces = [one.pieces() for one in self._messages]
        for thought in self._thoughts:
            thought.pieces()
        self._uncounted = 0
        old = len(self._messages) - _LONGEST
        if old > _LONGEST:
            named = name_results(list(chain.from_iterable(pieces[:old])), self._names)
            summed = Summed(sum_up(named), sum(one.size for one in self._messages[:old]))
            self._messages = [summed, *[_NOTHING] * (old - 1), *self._messages[old:]]

    def _answer(self, data: Mapping[str, Json]) -> None:
        self._usages.add(data)
        model, size = _word(data.get("model")), data.get("context_window")
        self._latest = model or self._latest
        if self._look is not None and self._look.window.number == len(self._sizes):
            asked = self._look.window
            self._look.window = replace(
                asked, model=asked.model or model, served=model,
                provider=self._usages.provider_of(data) or asked.provider,
                size=size if type(size) is int and size > 0 else None,
            )  # fmt: skip
        thought = data.get("reasoning")
        if not self._own and not data.get("error") and isinstance(thought, str) and thought:
            self._thoughts.append(self._message("assistant", [{"type": "thinking", "thinking": thought}]))
            self._uncounted += self._thoughts[-1].size

    def _name(self, data: Mapping[str, Json]) -> None:
        call_id, name = _word(data.get("id")), _word(data.get("tool"))
        if call_id and name:
            self._names[call_id] = name
            if len(self._names) > _NAMES:
                del self._names[next(iter(self._names))]

    def _compact(self, data: Mapping[str, Json]) -> None:
        number = len(self._sizes) + (not self._conversation.is_waiting)
        if not self._compactions or self._compactions[-1] != number:
            self._compactions.append(number)
        self._is_cut = data.get("dropped") is None and not data.get("summary")
        self._forget_thoughts()

    def _forget_thoughts(self) -> None:
        self._uncounted -= _uncounted(self._thoughts)
        self._thoughts = []

    def _model(self, data: Mapping[str, Json]) -> str | None:
        start = self._usages.start
        named = (data.get("model"), start.get("resolved_model"), start.get("model"), start.get("requested_model"))
        return next(filter(None, map(_word, named)), self._latest or None)

    def history(self) -> History:
        """What was folded so far."""
        window = None if self._look is None else self._look.counted(self._names)
        size = 0 if window is None else self._sizes[window.number - 1]
        words = HOW_TO_CALL.tokens if window is not None and window.tools else 0  # of no bytes, so beside the rate
        tokens = 0 if window is None else total(window.pieces) + total(window.tools) - words
        estimates = (words + (one * tokens // size if size else 0) for one in self._sizes)
        return History(
            window=window, is_waiting=self._conversation.is_waiting,
            samples=tuple(self._samples(estimates)),
            compactions=tuple(number for number in self._compactions if number <= len(self._sizes)),
            problem_count=self.damage.count, problems=self.damage.problems,
        )  # fmt: skip

    def _samples(self, estimates: Iterable[int]) -> Iterator[Sample]:
        """The size of each request."""
        for estimate, usage in zip_longest(estimates, self._usages.reported()):
            if usage is not None and usage.prompt:
                yield Sample(estimate=estimate, reported=usage.prompt, cached=usage.cache_read)
            else:
                yield Sample(estimate=estimate)


def _uncounted(messages: Iterable[SizedMessage]) -> int:
    """The bytes of those that are kept as text."""
    return sum(one.size for one in messages if not one.is_measured)


def _word(value: Json) -> str:
    return value[:200] if isinstance(value, str) else ""
