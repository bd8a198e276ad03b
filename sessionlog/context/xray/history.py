"""History: a session's events → what was in the window at one of its requests.

`transcript` folds the conversation; this module measures its elements. Answers, results and added messages between two
requests are measured when the next request repeats them; in the oldest logs, whose requests hold no messages, at once.
In events made from other agents' logs, reasoning logged beside an answer stays in the window until the next prompt.

Counting tokens takes longer than reading, and most messages are no longer in the window at the last request. So texts
are kept uncounted, up to `_MAX_TEXT_BYTES`; beyond that they are counted and dropped, and only sizes, short names and
digests remain; of messages before the last `_MAX_MESSAGES` only sums. The sizes of the other requests are estimated
from their length in bytes, at the selected request's ratio of tokens to bytes. So memory is bounded by one request.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from sessionlog.context.xray.measure import TOOL_INSTRUCTIONS, SizedMessage, Summed, measure_tools
from sessionlog.context.xray.pieces import size_of, sum_up, total
from sessionlog.context.xray.requests import History, Packed, Sample, Window, name_results
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.times import parse_time
from sessionlog.transcript.damage import Damage
from sessionlog.transcript.fold import ConversationFold, has_compacted
from sessionlog.transcript.sent_prompt import SentPrompt
from sessionlog.transcript.splice import Added, Splice
from sessionlog.transcript.usages import ResponseUsages

Json = Any
_MAX_TEXT_BYTES = 2 << 20
_MAX_MESSAGES = 5_000  # messages
_MAX_NAMES = 5_000
_EMPTY = Summed((), 0)
"""An element that the next request repeats, or that is in a sum."""


def fold_history(items: Iterable[Event | Problem], *, request: int | None = None, own: bool = True) -> History:
    """Fold a session's events.

    Args:
        items: Events and problems in file order.
        request: The selected request, from 1; None for the last.
        own: Whether requests hold whole prompts, except with `earlier_messages`, as in our own logs; else each
            continues the one before.
    """
    fold = _Fold(request, own=own)
    for event in fold.damage.events(items):
        fold.apply(event)
    return fold.history()


@dataclass(slots=True)
class _Selected:
    """The selected request, with its messages and tools not counted yet; else every request is, until the next one."""

    number: int
    ts: str
    model: str
    provider: str
    is_whole: bool
    head: Sequence[SizedMessage]
    messages: list[SizedMessage]
    end: int  # later messages begin here
    reasoning: Sequence[SizedMessage]
    tools: Json
    served: str = ""
    size: int | None = None

    def counted(self, names: Mapping[str, str]) -> Window:
        sent = [*self.head, *self.messages[: self.end], *self.reasoning]
        pieces = name_results([piece for one in sent for piece in one.pieces()], names)
        return Window(
            number=self.number, time_ns=parse_time(self.ts), model=self.model, provider=self.provider,
            is_whole=self.is_whole, has_prompt=self.is_whole or bool(self.head), served=self.served, size=self.size,
            pieces=tuple(pieces), tools=measure_tools(self.tools, self.model or None),
        )  # fmt: skip


class _Fold:
    def __init__(self, wanted: int | None, *, own: bool) -> None:
        self.damage = Damage()
        self._wanted = wanted
        self._own = own
        self._conversation = ConversationFold(own=own, finds_new=False)
        self._system: list[SizedMessage] = []
        self._messages: list[SizedMessage] = []  # one per element of the conversation
        self._size = self._uncounted = 0  # bytes of all messages, and of those kept as text
        self._counted = 0  # all messages before this index were counted
        self._reasoning: list[SizedMessage] = []
        self._sent = SentPrompt[SizedMessage]()
        self._sent_head: list[SizedMessage] = []
        self._is_cut = False  # whether the summary of a compaction has not come yet
        self._names: dict[str, str] = {}
        self._start_model = ""  # of session.start, for requests that name none,
        self._last_model = ""  # and the model that answered last, where that has none either
        self._selected: _Selected | None = None
        self._sizes = array("q")
        self._usages = ResponseUsages()  # without that of a last request that has no answer yet
        self._compactions: list[int] = []

    def apply(self, event: Event) -> None:
        data = event.data if isinstance(event.data, Mapping) else {}
        splices = self._conversation.apply(event)
        if event.type == "session.start" and not self._usages.start:
            self._usages.begin(data)
            named = map(_short_text, (data.get("resolved_model"), data.get("model"), data.get("requested_model")))
            self._start_model = next(filter(None, named), "")
            if self._conversation.system:
                self._system = [self._message("system", self._conversation.system)]
        if "agent" in data:
            return  # of a sub-agent, or of the request for a summary: not part of the conversation
        for splice in splices:
            if splice.cause != "answer":  # it belongs to the next request
                self._apply_splice(splice, data)
        match event.type:
            case "llm.request":
                self._start_request(event, data)
            case "llm.response":
                if self._conversation.requests > len(self._sizes):  # a log without requests
                    self._start_request(event, {})
                if self._conversation.answers > len(self._usages):
                    self._finish_request(data)
                for splice in splices:
                    if splice.cause == "answer":
                        self._apply_splice(splice, data)
            case "tool.call":
                self._note_tool_name(data)
            case "compaction.end" if has_compacted(data):
                self._compact(data)

    def _message(self, role: str, content: Json) -> SizedMessage:
        return SizedMessage({"role": role, "content": content}, self._model({}), placeholders=not self._own)

    def _apply_splice(self, splice: Splice, data: Mapping[str, Json]) -> None:
        """Apply a change of the conversation."""
        if self._selected is not None and (splice.is_split or splice.start < self._selected.end):
            self._selected.messages = self._selected.messages[: self._selected.end]
        self._counted = 0 if splice.is_split else min(self._counted, splice.start)
        splice.split(self._messages, lambda one: [one] if one.count == 1 else [_EMPTY] * one.count)
        is_request = splice.cause == "request"
        if self._reasoning and is_request and any(one.fields.get("role") == "user" for one in splice.added):
            self._drop_reasoning()
        come = [self._element(one, splice, data) for one in splice.added]
        for one in come:
            self._size += one.size
            self._uncounted += one.uncounted
        for one in splice.put(self._messages, come):
            self._size -= one.size
            self._uncounted -= one.uncounted
        if self._uncounted > _MAX_TEXT_BYTES:
            self._count_texts()

    def _element(self, one: Added, splice: Splice, data: Mapping[str, Json]) -> SizedMessage:
        count = len(one.digests) if self._own else 1
        message = one.raw
        if splice.cause in ("answer", "result", "added", "partial") and self._conversation.holds_messages:
            return _EMPTY if count == 1 else Summed((), 0, count=count)  # the next request repeats it
        if splice.cause == "answer":
            message = {"role": "assistant", "content": data.get("content"), "tool_calls": data.get("tool_calls")}
        elif splice.cause == "result":
            call_id, name = _short_text(data.get("id")), _short_text(data.get("tool"))
            message = {"role": "tool", "content": data.get("output"), "tool_call_id": call_id, "name": name}
        elif splice.cause == "compaction" and one.is_summary:
            message = {"role": "summary", "content": message.get("content")}
        elif splice.cause == "request" and not self._own:
            if self._is_cut and one.fields.get("role") == "system":  # the first one after a compaction is its summary
                message = {**message, "role": "summary"}
            self._is_cut = False
        return SizedMessage(message, self._model(data), placeholders=not self._own, count=count)

    def _start_request(self, event: Event, data: Mapping[str, Json]) -> None:
        model = self._model(data)
        is_whole = self._own and self._conversation.holds_messages and not data.get("earlier_messages")
        has_own = is_whole and bool(self._messages) and self._messages[0].role in ("system", "developer")
        system = data.get("system") or data.get("instructions")
        if isinstance(system, str) and system:
            self._system, has_own = [self._message("system", system)], False
        head, tools = [] if has_own else self._system, data.get("tools")
        sent, size, reasoning = self._messages, self._size, self._reasoning
        if "sent" in data or self._sent.messages is not None:
            self._apply_sent(data.get("sent"), model)
        if self._sent_head:
            head, tools = self._sent_head, self._sent.tools
        if self._sent.messages is not None:
            is_whole, sent, reasoning = True, self._sent.messages, []
            size = sum(one.size for one in sent)
        for one in chain(head, reasoning):
            size += one.size
        number = self._conversation.requests
        del self._sizes[number - 1 :]  # a request without an answer
        self._sizes.append(size + (size_of(tools) if tools else 0))
        if self._wanted in (None, number):
            provider = _short_text(self._usages.start.get("provider"))
            self._selected = _Selected(
                number, event.ts, model or "", provider, is_whole, head, sent, len(sent), tuple(reasoning), tools
            )

    def _apply_sent(self, sent: Json, model: str | None) -> None:
        def read(message: Json) -> SizedMessage:
            return SizedMessage(message, model, placeholders=False)

        if self._sent.apply(sent, read):
            self._sent_head = [read({"role": "system", "content": part}) for part in self._sent.system]
        messages = self._sent.messages or ()
        if sum(one.uncounted for one in messages) > _MAX_TEXT_BYTES:
            for one in messages:
                one.pieces()

    def _count_texts(self) -> None:
        """Count and drop the texts; replace messages older than `_MAX_MESSAGES` by their sums."""
        for one in chain(self._messages[self._counted :], self._reasoning):
            one.pieces()
        self._counted, self._uncounted = len(self._messages), 0
        old = len(self._messages) - _MAX_MESSAGES
        if old > _MAX_MESSAGES:
            named = name_results([piece for one in self._messages[:old] for piece in one.pieces()], self._names)
            summed = Summed(sum_up(named), sum(one.size for one in self._messages[:old]))
            self._messages = [summed, *[_EMPTY] * (old - 1), *self._messages[old:]]

    def _finish_request(self, data: Mapping[str, Json]) -> None:
        self._usages.add(data)
        model, size = _short_text(data.get("model")), data.get("context_window")
        self._last_model = model or self._last_model
        asked = self._selected
        if asked is not None and asked.number == len(self._sizes):
            asked.model, asked.served = asked.model or model, model
            asked.provider = self._usages.provider_of(data) or asked.provider
            asked.size = size if type(size) is int and size > 0 else None
        text = data.get("reasoning")
        if not self._own and not data.get("error") and isinstance(text, str) and text:
            self._reasoning.append(self._message("assistant", [{"type": "thinking", "thinking": text}]))
            self._uncounted += self._reasoning[-1].size

    def _note_tool_name(self, data: Mapping[str, Json]) -> None:
        call_id, name = _short_text(data.get("id")), _short_text(data.get("tool"))
        if call_id and name:
            self._names[call_id] = name
            if len(self._names) > _MAX_NAMES:
                del self._names[next(iter(self._names))]

    def _compact(self, data: Mapping[str, Json]) -> None:
        number = len(self._sizes) + (not self._conversation.is_waiting)
        if not self._compactions or self._compactions[-1] != number:
            self._compactions.append(number)
        self._is_cut = data.get("dropped") is None and not data.get("summary")
        self._drop_reasoning()

    def _drop_reasoning(self) -> None:
        for one in self._reasoning:
            self._uncounted -= one.uncounted
        self._reasoning = []

    def _model(self, data: Mapping[str, Json]) -> str | None:
        return _short_text(data.get("model")) or self._start_model or self._last_model or None

    def history(self) -> History:
        """Return the requests and the selected window after the events so far."""
        window = None if self._selected is None else self._selected.counted(self._names)
        size = 0 if window is None else self._sizes[window.number - 1]
        fixed = (
            TOOL_INSTRUCTIONS.tokens if window is not None and window.tools else 0
        )  # not in the log, so not in the ratio
        tokens = 0 if window is None else total(window.pieces) + total(window.tools) - fixed
        estimates = (fixed + (one * tokens // size if size else 0) for one in self._sizes)
        return History(
            window=window, is_waiting=self._conversation.is_waiting,
            samples=Packed(Sample.of_numbers, 3, self._samples(estimates)),
            compactions=tuple(number for number in self._compactions if number <= len(self._sizes)),
            problem_count=self.damage.count, problems=self.damage.problems,
        )  # fmt: skip

    def _samples(self, estimates: Iterable[int]) -> Iterator[tuple[int, int, int]]:
        """Yield the size of each request, as the numbers of a sample."""
        for estimate, usage in zip_longest(estimates, self._usages.reported()):
            if usage is not None and usage.prompt:
                yield estimate, usage.prompt, usage.cache_read
            else:
                yield estimate, -1, -1


def _short_text(value: Json) -> str:
    return value[:200] if isinstance(value, str) else ""
