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
from dataclasses import replace
from itertools import chain
from typing import Any

from sessionlog.context.xray.measure import HOW_TO_CALL, SizedMessage, Summed, measure_tools
from sessionlog.context.xray.pieces import size_of, sum_up, total
from sessionlog.context.xray.requests import History, Sample, Window, name_results
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.transcript.fold import ConversationFold
from sessionlog.transcript.splice import Added, Splice
from sessionlog.transcript.usages import ResponseUsages, provider_of

Json = Any
_KEPT = 2 << 20
_LONGEST = 5_000  # messages
_NAMES = 5_000
_PROBLEMS = 20
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
    for item in items:
        if isinstance(item, Problem):
            fold.damage(item)
        else:
            fold.take(item)
    return fold.history()


class _SentPrompt:
    """What the latest request sent.

    Attributes:
        head: The system prompt, in its parts; empty where it is not known.
        tools: The tool definitions, as logged.
        messages: The messages, in order.
        size: Their length in bytes as JSON, about.
        is_whole: The messages are known.
    """

    def __init__(self) -> None:
        self.head: list[SizedMessage] = []
        self.tools: Json = None
        self.messages: list[SizedMessage] = []
        self.size = self._uncounted = 0
        self.is_whole = False

    def take(self, sent: Mapping[str, Json], model: str | None) -> None:
        """Take what the next request sent: `system` and `tools` if they changed, `messages` behind `keep` of them."""
        system, given, keep = sent.get("system"), sent.get("messages"), sent.get("keep")
        if "system" in sent:
            parts = system if isinstance(system, list | tuple) else [] if system is None else [system]
            self.head = [SizedMessage({"role": "system", "content": part}, model, placeholders=False) for part in parts]
        if "system" in sent or "tools" in sent:
            self.tools = sent.get("tools")
        self.is_whole = isinstance(given, list | tuple)
        if isinstance(given, list | tuple):
            start = keep if type(keep) is int and 0 <= keep <= len(self.messages) else 0
            added = [SizedMessage(message, model, placeholders=False) for message in given]
            self.messages = [*self.messages[:start], *added]  # the request before it may still be looked at
            self.size = sum(one.size for one in self.messages)
            self._uncounted += sum(one.size for one in added)
            if self._uncounted > _KEPT:
                self._uncounted = 0
                for one in self.messages:
                    one.pieces()


class _Look:
    """The request that is looked at: what was sent with it, still uncounted."""

    def __init__(
        self,
        window: Window,
        head: Sequence[SizedMessage],
        said: list[SizedMessage],
        thoughts: list[SizedMessage],
        tools: Json,
    ) -> None:
        self.window = window
        self.end = len(said)  # what is said later stands behind the end
        self._head, self._said, self._thoughts, self._tools = head, said, list(thoughts), tools

    def keep(self) -> None:
        """Copy what was sent, before it changes."""
        self._said = self._said[: self.end]

    def answered(self, model: str, provider: str, size: Json) -> None:
        window = self.window
        self.window = replace(
            window, model=window.model or model, served=model, provider=provider or window.provider,
            size=size if type(size) is int and size > 0 else None,
        )  # fmt: skip

    def counted(self, names: Mapping[str, str]) -> Window:
        said = [*self._head, *self._said[: self.end], *self._thoughts]
        pieces = name_results([piece for one in said for piece in one.pieces()], names)
        tools = measure_tools(self._tools, self.window.model or None)
        return replace(self.window, pieces=tuple(pieces), tools=tools)


class _Fold:
    def __init__(self, wanted: int | None, *, own: bool) -> None:
        self._wanted = wanted
        self._own = own
        self._conversation = ConversationFold(own=own, finds_new=False)
        self._start: Mapping[str, Json] = {}
        self._system: list[SizedMessage] = []
        self._said: list[SizedMessage] = []  # one for each element of the conversation
        self._size = self._uncounted = 0  # bytes of all that, and of what is kept as text
        self._thoughts: list[SizedMessage] = []
        self._prompt = _SentPrompt()
        self._holds_messages = False
        self._is_cut = False  # whether a compaction has told no summary yet
        self._names: dict[str, str] = {}
        self._latest = ""  # who answered last: a request that is not answered may name nobody
        self._look: _Look | None = None
        self._sizes: list[int] = []
        self._usages = ResponseUsages()
        self._answers: list[int | None] = []  # the number of each request's response
        self._compactions: list[int] = []
        self._problems: list[Problem] = []
        self._problem_count = 0

    def damage(self, problem: Problem) -> None:
        if problem.severity == "damage":
            self._problem_count += 1
            self._problems = [*self._problems, problem][:_PROBLEMS]

    def take(self, event: Event) -> None:
        data = event.data if isinstance(event.data, Mapping) else {}
        was_waiting = self._conversation.is_waiting
        splices = self._conversation.take(event)
        if event.type == "session.start" and not self._start:
            self._start = data
            self._usages.begin(data)
            if self._conversation.system:
                self._system = [self._message("system", self._conversation.system)]
        if event.type == "llm.request" and "agent" not in data:
            self._holds_messages = isinstance(data.get("messages"), list | tuple)
        before = tuple(splice for splice in splices if splice.cause != "answer")
        for splice in before:
            self._apply(splice, data)
        if "agent" in data:
            return  # a sub-agent's, or what wrote a summary: beside the conversation
        match event.type:
            case "llm.request":
                self._ask(event, data, was_waiting=was_waiting)
            case "llm.response":
                if self._conversation.requests > len(self._sizes):  # a log that tells answers only
                    self._ask(event, {}, was_waiting=False)
                    was_waiting = True
                if was_waiting:
                    self._answer(data)
                for splice in splices[len(before) :]:
                    self._apply(splice, data)
            case "tool.call":
                self._name(data)
            case "compaction.end" if data.get("success") is not False and not data.get("no_compaction"):
                self._compact(data)

    def _message(self, role: str, content: Json, **more: Json) -> SizedMessage:
        return SizedMessage({"role": role, "content": content, **more}, self._model({}), placeholders=not self._own)

    def _apply(self, splice: Splice, data: Mapping[str, Json]) -> None:
        """Change the elements as the conversation has changed."""
        if self._look is not None and (splice.is_split or splice.start < self._look.end):
            self._look.keep()
        splice.split(self._said, lambda one: [one] if one.count == 1 else [_NOTHING] * one.count)
        if splice.cause == "request" and any(_role(one) == "user" for one in splice.added):
            self._forget_thoughts()
        come = [self._element(one, splice, data) for one in splice.added]
        gone = splice.put(self._said, come)
        for one in gone:
            self._size -= one.size
            self._uncounted -= 0 if one.is_measured else one.size
        for one in come:
            self._size += one.size
            self._uncounted += one.size
        if self._uncounted > _KEPT:
            self._count()

    def _element(self, one: Added, splice: Splice, data: Mapping[str, Json]) -> SizedMessage:
        count = len(one.entry.messages) if self._own else 1
        message = one.raw
        if splice.cause in ("answer", "result", "added", "partial") and self._holds_messages:
            return _NOTHING if count == 1 else Summed((), 0, count=count)  # the next request repeats it
        if splice.cause == "answer":
            message = {"role": "assistant", "content": data.get("content"), "tool_calls": data.get("tool_calls")}
        elif splice.cause == "result":
            call_id, name = _word(data.get("id")), _word(data.get("tool"))
            message = {"role": "tool", "content": data.get("output"), "tool_call_id": call_id, "name": name}
        elif splice.cause == "compaction" and isinstance(message, Mapping) and message.get("summary") is True:
            message = {"role": "summary", "content": message.get("content")}
        elif splice.cause == "request" and not self._own:
            if self._is_cut and _role(one) == "system":  # what an agent is sent first after a cut is what is left
                message = {**message, "role": "summary"}
            self._is_cut = False
        return SizedMessage(message, self._model(data), placeholders=not self._own, count=count)

    def _ask(self, event: Event, data: Mapping[str, Json], *, was_waiting: bool) -> None:
        if was_waiting:  # the one before was never answered, so it is none
            self._sizes.pop()
            self._answers.pop()
        messages = data.get("messages")
        is_whole = self._own and isinstance(messages, list | tuple) and not data.get("earlier_messages")
        has_own = is_whole and bool(self._said) and self._said[0].role in ("system", "developer")
        beside = data.get("system") or data.get("instructions")
        if isinstance(beside, str) and beside:
            self._system, has_own = [self._message("system", beside)], False
        head, tools = [] if has_own else self._system, data.get("tools")
        said, size, thoughts = self._said, self._size, self._thoughts
        if isinstance(data.get("sent"), Mapping):
            self._prompt.take(data["sent"], self._model(data))
        else:
            self._prompt.is_whole = False  # its messages stay: a later request may keep them
        if self._prompt.head:
            head, tools = self._prompt.head, self._prompt.tools
        if self._prompt.is_whole:
            is_whole, said, size, thoughts = True, self._prompt.messages, self._prompt.size, []
        aside = sum(one.size for one in chain(head, thoughts))
        self._sizes.append(size + aside + (size_of(tools) if tools else 0))
        self._answers.append(None)
        number = len(self._sizes)
        if self._wanted in (None, number):
            window = Window(
                number=number, time_ns=event.time_ns, model=self._model(data) or "",
                provider=_word(self._start.get("provider")), is_whole=is_whole, has_prompt=is_whole or bool(head),
            )  # fmt: skip
            self._look = _Look(window, head, said, thoughts, tools)

    def _count(self) -> None:
        """Let texts go; and of what is older than a window holds all but sums."""
        pieces = [one.pieces() for one in self._said]
        for thought in self._thoughts:
            thought.pieces()
        self._uncounted = 0
        old = len(self._said) - _LONGEST
        if old > _LONGEST:
            named = name_results(list(chain.from_iterable(pieces[:old])), self._names)
            summed = Summed(sum_up(named), sum(one.size for one in self._said[:old]))
            self._said = [summed, *[_NOTHING] * (old - 1), *self._said[old:]]

    def _answer(self, data: Mapping[str, Json]) -> None:
        provider = provider_of(data, self._start)
        self._answers[-1] = len(self._usages)
        self._usages.add(data)
        self._latest = _word(data.get("model")) or self._latest
        if self._look is not None and self._look.window.number == len(self._sizes):
            self._look.answered(_word(data.get("model")), provider, data.get("context_window"))
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
        self._uncounted -= sum(one.size for one in self._thoughts if not one.is_measured)
        self._thoughts = []

    def _model(self, data: Mapping[str, Json]) -> str | None:
        start = self._start
        named = (data.get("model"), start.get("resolved_model"), start.get("model"), start.get("requested_model"))
        return next((_word(name) for name in named if _word(name)), self._latest or None)

    def history(self) -> History:
        """What was folded so far."""
        window = None if self._look is None else self._look.counted(self._names)
        size = 0 if window is None else self._sizes[window.number - 1]
        words = HOW_TO_CALL.tokens if window is not None and window.tools else 0  # of no bytes, so beside the rate
        tokens = 0 if window is None else total(window.pieces) + total(window.tools) - words
        estimates = (words + (one * tokens // size if size else 0) for one in self._sizes)
        return History(
            requests=len(self._sizes), window=window, is_waiting=self._conversation.is_waiting,
            samples=tuple(self._samples(estimates)),
            compactions=tuple(number for number in self._compactions if number <= len(self._sizes)),
            problem_count=self._problem_count, problems=tuple(self._problems),
        )  # fmt: skip

    def _samples(self, estimates: Iterable[int]) -> Iterator[Sample]:
        """The size of each request; what an agent estimated itself was not counted by a provider."""
        used = self._usages.read()
        for estimate, n in zip(estimates, self._answers, strict=True):
            is_counted = n is not None and used[n].prompt and not self._usages.is_estimated(n)
            usage = used[n] if n is not None and is_counted else None
            yield Sample(
                estimate=estimate,
                reported=None if usage is None else usage.prompt,
                cached=None if usage is None else usage.cache_read,
            )


def _role(one: Added) -> Json:
    return one.raw.get("role") if isinstance(one.raw, Mapping) else None


def _word(value: Json) -> str:
    return value[:200] if isinstance(value, str) else ""
