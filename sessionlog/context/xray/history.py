"""History: a fold over a session's events to what was in the window at one of its requests.

A request either holds its whole prompt or, in what is made from other agents' logs, only what is new since the one
before (`earlier_messages`); the oldest logs hold only a count, and then what was asked, answered and returned stands
for the messages. A compaction takes away what came before it, except its summary; the answers and results that it
swallowed are not heard again. Reasoning that is logged beside an answer is in the window until the next prompt.

Counting tokens takes longer than reading, and nearly all that a log tells is gone at its last request. So texts are
kept uncounted while they may be needed, up to `_KEPT` bytes; beyond that they are counted and let go, and what remains
are sizes, short names and digests; of messages before the last `_LONGEST` only sums. Other requests than the one that
was asked for are sized by their length, at that one's rate of bytes to tokens. So memory is bounded by what one request
holds.

A request that another follows without an answer was none; the last one may still be waiting for its. The very oldest
logs tell answers only: then each stands for its request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from sessionlog.context.xray.measure import HOW_TO_CALL, Said, Summed, measure_tools
from sessionlog.context.xray.pieces import size_of, sum_up, total
from sessionlog.context.xray.requests import History, Usages, Window, name_results, provider_of
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.events.payloads import UNREPEATED

Json = Any
_KEPT = 2 << 20
_LONGEST = 5_000  # messages
_NAMES = 5_000
_PROBLEMS = 20


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


class _Look:
    """The request that is looked at: what was sent with it, still uncounted."""

    def __init__(self, window: Window, head: Sequence[Said], said: list[Said], tools: Json) -> None:
        self.window = window
        self._head, self._said, self._end = head, said, len(said)  # what is said later is added behind the end
        self._tools = tools

    def answered(self, model: str, provider: str, size: Json) -> None:
        window = self.window
        self.window = replace(
            window, model=window.model or model, served=model, provider=provider or window.provider,
            size=size if type(size) is int and size > 0 else None,
        )  # fmt: skip

    def counted(self, names: Mapping[str, str]) -> Window:
        said = [*self._head, *self._said[: self._end]]
        pieces = name_results([piece for one in said for piece in one.pieces()], names)
        tools = measure_tools(self._tools, self.window.model or None)
        return replace(self.window, pieces=tuple(pieces), tools=tools)


class _Fold:
    def __init__(self, wanted: int | None, *, own: bool) -> None:
        self._wanted = wanted
        self._own = own
        self._start: Mapping[str, Json] = {}
        self._system: list[Said] = []
        self._said: list[Said] = []
        self._size = self._uncounted = 0  # bytes of all that, and of what is kept as text
        self._heard: list[Said] = []  # since the last request, for requests that do not tell it
        self._thoughts: list[Said] = []
        self._first_thought: int | None = None
        self._stale = self._since = 0
        self._is_told = True  # whether requests hold messages
        self._is_cut = False  # whether a compaction has told no summary yet
        self._open = self._is_asked = False
        self._names: dict[str, str] = {}
        self._latest = ""  # who answered last: a request that is not answered may name nobody
        self._look: _Look | None = None
        self._sizes: list[int] = []
        self._usages = Usages()
        self._compactions: list[int] = []
        self._problems: list[Problem] = []
        self._problem_count = 0

    def damage(self, problem: Problem) -> None:
        if problem.severity == "damage":
            self._problem_count += 1
            self._problems = [*self._problems, problem][:_PROBLEMS]

    def take(self, event: Event) -> None:
        data = event.data if isinstance(event.data, Mapping) else {}
        match event.type:
            case "session.start":
                self._begin(data)
            case "llm.request":
                self._ask(event, data)
            case "llm.response":
                self._answer(event, data)
            case "tool.call":
                self._run(data)
            case "compaction.end":
                self._compact(data)
            case "history.add":
                self._inherit(data)
            case "history.pop" | "history.clear":  # what is left is said again
                self._replace([])

    def _begin(self, data: Mapping[str, Json]) -> None:
        if self._start:
            return  # the first one counts
        self._start = data
        system, prompt = data.get("system_prompt"), data.get("prompt")
        if isinstance(system, str) and system:
            self._system = [self._message("system", system)]
        if isinstance(prompt, str) and prompt:
            self._heard = [self._message("user", prompt)]

    def _message(self, role: str, content: Json, *, is_thought: bool = False, **more: Json) -> Said:
        message = {"role": role, "content": content, **more}
        return Said(message, self._model({}), placeholders=not self._own, is_thought=is_thought)

    def _ask(self, event: Event, data: Mapping[str, Json]) -> None:
        messages = data.get("messages")
        continues = not self._own or bool(data.get("earlier_messages"))
        self._is_told = isinstance(messages, list | tuple)
        if not isinstance(messages, list | tuple):
            self._extend(self._heard)
        elif continues:
            self._extend(self._fresh(messages, self._model(data)))
        else:
            self._replace([Said(one, self._model(data), placeholders=False) for one in messages])
        self._heard, self._thoughts, self._since, self._stale = [], [], 0, 0
        if self._open:  # the one before was never answered, so it is none
            self._sizes.pop()
            self._usages.dropped()
        is_whole = self._is_told and not continues
        tools = data.get("tools")
        has_own = is_whole and bool(self._said) and self._said[0].role in ("system", "developer")
        beside = data.get("system") or data.get("instructions")
        if isinstance(beside, str) and beside:
            self._system, has_own = [self._message("system", beside)], False
        head = [] if has_own else self._system
        self._sizes.append(self._size + sum(one.size for one in head) + (size_of(tools) if tools else 0))
        self._usages.asked()
        self._open = self._is_asked = True
        number = len(self._sizes)
        if self._wanted in (None, number):
            window = Window(
                number=number, time_ns=event.time_ns, model=self._model(data) or "",
                provider=_word(self._start.get("provider")), is_whole=is_whole, has_prompt=is_whole or bool(head),
            )  # fmt: skip
            self._look = _Look(window, head, self._said, tools)

    def _fresh(self, messages: Sequence[Json], model: str | None) -> list[Said]:
        """What is new, less what a compaction has swallowed; a prompt ends earlier reasoning."""
        made = list(self._thoughts)
        for message in messages:
            role = message.get("role") if isinstance(message, Mapping) else None
            if self._stale and role in ("assistant", "tool"):
                self._stale -= 1
                continue
            if role == "user":
                made = [one for one in made if not one.is_thought]
                self._forget_thoughts()
            if role == "system" and self._is_cut:  # what an agent hears first after a cut is what is left of before
                self._is_cut = False
                message = {**message, "role": "summary"}  # noqa: PLW2901 - the same message, named
            made.append(Said(message, model, placeholders=not self._own))
        self._is_cut = False
        return made

    def _forget_thoughts(self) -> None:
        """They are at the end: what was said before the first of them is not looked at."""
        first, self._first_thought = self._first_thought, None
        if first is None:
            return
        gone = [one for one in self._said[first:] if one.is_thought]
        self._said = [*self._said[:first], *(one for one in self._said[first:] if not one.is_thought)]
        self._size -= sum(one.size for one in gone)
        self._uncounted -= sum(one.size for one in gone if not one.is_measured)

    def _extend(self, said: Iterable[Said]) -> None:
        for one in said:
            if one.is_thought and self._first_thought is None:
                self._first_thought = len(self._said)
            self._said.append(one)
            self._size += one.size
            self._uncounted += one.size
        if self._uncounted > _KEPT:
            self._count()

    def _count(self) -> None:
        """Let texts go; and of what is older than a window holds all but sums."""
        pieces = [one.pieces() for one in self._said]
        self._uncounted = 0
        if len(pieces) > 2 * _LONGEST:
            old = name_results(list(chain.from_iterable(pieces[:-_LONGEST])), self._names)
            size = sum(one.size for one in self._said[:-_LONGEST])
            self._said = [Summed(sum_up(old), size), *self._said[-_LONGEST:]]
            self._first_thought = next((n for n, one in enumerate(self._said) if one.is_thought), None)

    def _replace(self, said: list[Said]) -> None:
        self._said, self._size, self._first_thought = said, sum(one.size for one in said), None
        self._uncounted = sum(one.size for one in said if not one.is_measured)

    def _answer(self, event: Event, data: Mapping[str, Json]) -> None:
        if "agent" in data:
            return  # a sub-agent's, or what wrote a summary: beside the conversation
        if not self._is_asked:  # a log that tells answers only
            self._ask(event, {})
            self._is_asked = False
        if not self._open:
            return
        self._open = False
        provider = provider_of(data, self._start)
        self._usages.heard(data, provider)
        self._latest = _word(data.get("model")) or self._latest
        if self._look is not None and self._look.window.number == len(self._sizes):
            self._look.answered(_word(data.get("model")), provider, data.get("context_window"))
        if not data.get("error"):
            self._since += 1
            self._remember(data)

    def _remember(self, data: Mapping[str, Json]) -> None:
        """Keep what later requests will hold without saying it."""
        thought = data.get("reasoning")
        if not self._own and isinstance(thought, str) and thought:
            part = {"type": "thinking", "thinking": thought}
            self._thoughts.append(self._message("assistant", [part], is_thought=True))
        if not self._is_told:
            self._heard.append(self._message("assistant", data.get("content"), tool_calls=data.get("tool_calls")))

    def _run(self, data: Mapping[str, Json]) -> None:
        if "agent" in data:
            return
        self._since += 1
        call_id, name = _word(data.get("id")), _word(data.get("tool"))
        if call_id and name:
            self._names[call_id] = name
            if len(self._names) > _NAMES:
                del self._names[next(iter(self._names))]
        if not self._is_told:
            self._heard.append(self._message("tool", data.get("output"), tool_call_id=call_id, name=name))

    def _compact(self, data: Mapping[str, Json]) -> None:
        if data.get("success") is False or data.get("no_compaction"):
            return
        number = len(self._sizes) + (0 if self._open else 1)
        if not self._compactions or self._compactions[-1] != number:
            self._compactions.append(number)
        if data.get("dropped") is not None:  # what is left is said again
            self._replace([])
            self._heard, self._thoughts = [], []
            return
        summary = data.get("summary")
        self._is_cut = not (isinstance(summary, str) and summary)
        self._replace([] if self._is_cut else [self._message("summary", summary)])
        self._heard, self._thoughts = [], []
        self._stale = self._since

    def _inherit(self, data: Mapping[str, Json]) -> None:
        """Take what the next request leans on without saying it; what it says again is heard there."""
        messages = data.get("messages")
        if isinstance(messages, list | tuple) and data.get("reason") in UNREPEATED:
            self._extend([Said(one, self._model(data), placeholders=not self._own) for one in messages])

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
            requests=len(self._sizes), window=window, is_waiting=self._open,
            samples=tuple(self._usages.samples(estimates, self._start)),
            compactions=tuple(number for number in self._compactions if number <= len(self._sizes)),
            problem_count=self._problem_count, problems=tuple(self._problems),
        )  # fmt: skip


def _word(value: Json) -> str:
    return value[:200] if isinstance(value, str) else ""
