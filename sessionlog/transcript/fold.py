"""The fold: a session's events → splices of its conversation, with requests and turns.

A request holds its whole prompt or, behind `earlier_messages` and in what is made from other agents' logs, only what is
new. What comes between two requests (answers, tool results, messages put in or taken back, a truncation) has events of
its own, and the next request repeats it. The very oldest logs hold no messages: there answers and results stand alone.

A request that another one follows without an answer was none. A turn is a user's prompt and everything until the next
one; prompts of a parent are not a fork's own. Sub-agents work beside the conversation, and so does a tool that no
answer has called. Bad data never raises: a change that does not fit says so (`Splice.flaw`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from sessionlog.events.envelope import Event
from sessionlog.events.payloads import UNREPEATED
from sessionlog.messages.content_text import text_of
from sessionlog.messages.entry import Entry
from sessionlog.messages.json_value import json_text
from sessionlog.messages.message import Message
from sessionlog.transcript.meaning import Meaning, digest_message, keys_of, says_something, spelling_of
from sessionlog.transcript.seen import Conversation, SeenMessages, shared
from sessionlog.transcript.splice import Added, Cause, Splice, answer_entry, result_entry

Json = Any
OWN = frozenset({"native", "fizeau"})
"""Sources whose requests hold whole prompts unless they say otherwise; those of others continue the one before."""
_STREAMED = 32 << 20  # bytes in memory of an answer under way
_SHOWN = 40
_PIECES = 4_096  # a list of one-letter pieces weighs more than its letters
_LONG = 100_000  # elements of which the meaning is kept
_SPELLINGS = 20_000
_UNKNOWN: Meaning = (b"",)


class ConversationFold:
    """Applies a session's events to its conversation, and returns the splices.

    Attributes:
        system: The text of the system prompt that is sent beside the messages; empty where the log has none.
        prompt: The prompt of session.start, until a request holds messages.
        requests: Requests so far, without those that another one follows unanswered; an answer that no request came
            before counts as one, too, where the log has no requests at all.
        is_waiting: The last request has no answer yet.
        holds_messages: The last request holds messages; those of the very oldest logs only count them.
        turns: Prompts that were asked; those that a fork has copied from its parent's log are not its own.
        turn: The number of the turn, copied ones included.
        streamed: What has arrived of the answer under way.
        answered: The call whose result the last event was: its id (`call-N`, by its place in the answer, where it has
            none) and its tool; None where the event was the result of no call.
    """

    def __init__(self, *, own: bool = True, finds_new: bool = True) -> None:
        """Begin.

        Args:
            own: Whether requests hold whole prompts unless they say otherwise; else each continues the one before.
            finds_new: Whether to find which messages are new, and to count turns by them; it takes half of the time.
        """
        self._finds_new = finds_new
        self.system = self.prompt = ""
        self.requests = self.turns = self.turn = 0
        self.is_waiting = False
        self._own = own
        self._meanings: list[Meaning] = []
        self._spellings: list[bytes] = []  # empty for what no request has sent
        self._sent = 0  # elements that the last request had
        self._forgotten = 0  # elements whose meaning was dropped
        self._seen = SeenMessages()
        self._known: dict[bytes, Meaning] = {}
        self._left: Counter[Meaning] = Counter()  # of a history that was cut, what was not repeated yet
        self._cleared: Counter[Meaning] = Counter()  # of one that was cleared, what may be put in again
        self._prompts: list[tuple[bytes, ...]] = []  # keys of prompts that were put in since the last request
        self._is_cut = self._lacks_summary = False
        self._asked: list[tuple[Meaning, bool]] = []  # prompts since the last request, and whether they are copied
        self._since = self._stale = 0  # answers and results since the last request; those that a compaction swallowed
        self._pieces: list[str] = []
        self._room = _STREAMED
        self.answered: tuple[str, str] | None = None
        self._calls: dict[str | int, tuple[str, str]] | None = {}  # (id, tool) of open calls; None: it names none
        self._has_started = self._has_requests = False
        self.holds_messages = False
        self._handlers: Mapping[str, Callable[[Mapping[str, Json]], Iterator[Splice]]] = {
            "session.start": self._start,
            "llm.request": self._request,
            "llm.delta": self._delta,
            "llm.response": self._response,
            "tool.call": self._tool,
            "compaction.end": self._compact,
            "history.add": self._add,
            "history.pop": self._pop,
            "history.clear": self._clear,
            "session.end": self._end,
        }

    def take(self, event: Event) -> tuple[Splice, ...]:
        """Return what the next event changes."""
        data, handler = event.data, self._handlers.get(event.type)
        data = data if isinstance(data, Mapping) else {}
        return () if handler is None or "agent" in data else tuple(handler(data))

    def finish(self) -> tuple[Splice, ...]:
        """Return the last splices of a log: a prompt that nothing followed, an answer that broke off."""
        splices = (*self._open_prompt(), *self._break_off("interrupted"))
        self._begin_turn()
        return splices

    @property
    def streamed(self) -> str:
        """What has arrived of the answer under way."""
        return "".join(self._pieces)

    @property
    def answers(self) -> int:
        """How many requests have an answer: all but the last, which may wait for its own."""
        return self.requests - self.is_waiting

    @property
    def sent(self) -> int:
        """How many elements the next request need not repeat."""
        return self._sent

    def __len__(self) -> int:
        return len(self._meanings)

    def _start(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        if not self._has_started:  # the first one counts
            self._has_started = True
            self.system, self.prompt = text_of(data.get("system_prompt")), text_of(data.get("prompt"))
            if self.system:
                system = Message.system(self.system)
                self._seen.expect(system, digest_message(system))
        yield from ()

    def _request(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        yield from self._break_off("interrupted")
        self._has_requests = True
        self.requests += not self.is_waiting
        self.is_waiting = True
        for key in ("instructions", "system"):
            if isinstance(data.get(key), str):
                self.system = data[key]
        given = data.get("messages")
        self.holds_messages = isinstance(given, list | tuple)
        if isinstance(given, list | tuple):
            self.prompt = ""
            yield self._apply_request(given, data.get("earlier_messages"))
        else:
            yield from self._open_prompt()
        self._left, self._cleared, self._prompts = Counter(), Counter(), []
        self._sent, self._since, self._stale = len(self._meanings), 0, 0
        self._begin_turn()
        self._is_cut = self._lacks_summary = False

    def _begin_turn(self) -> None:
        self.turn += len(self._asked)
        self.turns += sum(not is_copied for _, is_copied in self._asked)
        self._asked = []

    def _apply_request(self, given: Sequence[Json], earlier: Json) -> Splice:
        count = earlier if type(earlier) is int and earlier > 0 else 0
        if self._own and not count:
            return self._apply_whole_prompt(given)
        added = [Added(value) for value in (given if self._own else self._fresh(given))]
        start = min(count, len(self._meanings) if self._is_cut else self._sent) if self._own else self._sent
        self._recognise(added)
        if self._finds_new:
            self._seen.mark_new(added, self._left)
        missing = max(0, count - self._sent) if self._own else 0
        return self._change("request", start, added, missing=missing)

    def _apply_whole_prompt(self, given: Sequence[Json]) -> Splice:
        """A prompt that repeats the conversation: only what differs changes."""
        start = shared(self._spellings, [spelling_of(value) for value in given])
        added = [Added(value) for value in given[start:]]
        self._recognise(added)
        if not self._finds_new:
            return self._change("request", start, added)
        elements = list(self._meanings) if self._is_cut else self._meanings[: self._sent]
        current = Conversation(elements, (self.turns, self.turn))
        former, common = self._seen.closest(current, [*self._meanings[:start], *(one.meaning for one in added)])
        rest = Counter(former.meanings[common:])
        self._seen.mark_new(added[common - start :], rest)
        if elements and (former is not current or common < len(elements)):
            self._seen.keep_aside(current)
        if former is not current:  # what was asked between was beside this conversation, as a title is
            self.turns, self.turn = former.turns
        left_out = 0 if self._is_cut else rest.total()
        return self._change("request", start, added, left_out=left_out, kept=len(former.meanings) - left_out)

    def _fresh(self, given: Sequence[Json]) -> Iterator[Json]:
        """What another agent's request adds, less the answers and results that a compaction has swallowed."""
        for value in given:
            if self._stale and isinstance(value, Mapping) and value.get("role") in ("assistant", "tool"):
                self._stale -= 1
            else:
                yield value

    def _recognise(self, added: Iterable[Added]) -> None:
        """Set the meaning of each element of a request and, where requests hold whole prompts, its spelling."""
        for one in added:
            if self._own:
                one.spelling = spelling_of(one.raw)
                if one.spelling in self._known:
                    one.meaning = self._known[one.spelling]
                    continue
                self._known[one.spelling] = one.meaning
                if len(self._known) > _SPELLINGS:
                    del self._known[next(iter(self._known))]
            elif not self._finds_new:
                one.meaning = _UNKNOWN

    def _change(self, cause: Cause, start: int, added: Sequence[Added], **more: Any) -> Splice:
        """Put elements from a place on, in place of all that is there."""
        removed = len(self._meanings) - start
        self._forgotten = min(self._forgotten, start)
        self._meanings[start:] = [one.meaning for one in added]
        self._spellings[start:] = [one.spelling for one in added]
        if len(self._meanings) - self._forgotten > 2 * _LONG:
            end = len(self._meanings) - _LONG
            self._meanings[self._forgotten : end] = [_UNKNOWN] * (end - self._forgotten)
            self._forgotten = end
        if cause != "inherited":
            self._note_prompts(added)
        for one in added if self._own or self._finds_new else ():
            self._note_calls(one)
        return Splice(cause=cause, start=start, removed=removed, added=tuple(added), **more)

    def _append(self, cause: Cause, one: Added) -> Splice:
        """Put an element behind the conversation, which the next request will repeat."""
        self._mark_all_new(one)
        return self._change(cause, len(self._meanings), [one])

    def _mark_all_new(self, one: Added) -> None:
        """Mark all messages of an element as new, and expect a request to repeat them."""
        if not self._finds_new and not self._own:
            one.meaning = _UNKNOWN
            return
        for message, digest in zip(one.entry.messages, one.meaning, strict=True):
            if says_something(message):
                one.new += (message,)
                self._seen.expect(message, digest)

    def _note_prompts(self, added: Sequence[Added]) -> None:
        users = (one for one in added if any(message.role == "user" for message in one.new))
        prompts = [one for one in users if one.entry.is_prompt and not one.is_summary]
        prompts = prompts[1:] if self._lacks_summary else prompts
        self._asked += [(one.meaning, bool(one.fields.get("inherited"))) for one in prompts]

    def _forget_prompts(self, digests: Collection[bytes]) -> None:
        """Do not count prompts that were taken back before a request."""
        gone = Counter(digests)
        for prompt in reversed(self._asked.copy()):
            if all(gone[digest] > 0 for digest in prompt[0]):
                gone.subtract(prompt[0])
                self._asked.remove(prompt)

    def _note_calls(self, one: Added) -> None:
        """Follow which calls wait for a result."""
        for message in one.entry.messages:
            if message.role != "tool":
                self._calls = {}
                for n, call in enumerate(message.tool_calls):
                    self._calls[call.id if call.id and call.id not in self._calls else n] = call.id, call.name
            else:
                self._answer_call(message.tool_call_id, message.name)

    def _answer_call(self, call_id: Json, name: Json) -> tuple[str, str, str] | None:
        """Close the call that a result answers, by its id, else by the name of its tool.

        Returns its id as logged, its id, and its tool; None where there is no such call.
        """
        calls = self._calls or {}
        if isinstance(call_id, str) and call_id in calls:
            found: str | int | None = call_id
        else:
            same = (key for key, call in calls.items() if (call[0] == call_id if call_id else call[1] == name))
            found = next(same, None)
        if found is None:
            return None
        logged, tool = calls.pop(found)
        return logged, logged or f"call-{found}", tool

    def _open_prompt(self) -> Iterator[Splice]:
        """The prompt of a log whose requests hold no messages."""
        if self.prompt and not self._meanings:
            prompt = Added({"role": "user", "content": self.prompt})
            self.prompt = ""
            yield self._append("prompt", prompt)

    def _delta(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        piece = data.get("content")
        if isinstance(piece, str) and self._room > 0:
            self._pieces.append(piece)
            self._room -= len(piece) if piece.isascii() else 4 * len(piece)
            if len(self._pieces) > _PIECES:
                self._pieces = ["".join(self._pieces)]
        yield from ()

    def _break_off(self, word: str) -> Iterator[Splice]:
        """What had come of an answer that nothing ended is part of the conversation."""
        text, self._pieces, self._room = self.streamed, [], _STREAMED
        if text:
            entry = Entry(messages=(Message.assistant(text, partial=word),), is_response=True)
            yield self._append("partial", Added({"content": text}, lambda _: entry))

    def _response(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        if not self._has_requests:
            self.requests += 1
            yield from self._open_prompt()
            self._begin_turn()
        self.is_waiting = False
        streamed, self._pieces, self._room = self.streamed, [], _STREAMED
        if data.get("error") and not self._own:
            return  # the text of an error, which the next request does not repeat
        calls, has_calls = data.get("tool_calls"), isinstance(data.get("tool_calls"), list | tuple)
        is_empty = data.get("content") is None and not (has_calls and calls) and not streamed
        if is_empty and not isinstance(data.get("message"), Mapping):
            return
        self._since += 1
        yield self._append("answer", Added(data, lambda payload: answer_entry(payload, streamed)))
        if calls is not None and not has_calls:
            self._calls = None  # the oldest logs count them

    def _tool(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        self._since += 1
        call = self._answer_call(data.get("id"), data.get("tool"))
        if call is None and self._own and self.holds_messages and self._calls is not None:
            return
        call_id, self.answered = (None, None) if call is None else (call[0], call[1:])
        yield from self._open_prompt() if not self._has_requests else ()
        yield self._append("result", Added(data, lambda payload: result_entry(payload, call_id)))

    def _compact(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        if not has_compacted(data):
            return
        yield from self._break_off("interrupted")
        if "dropped" in data:
            yield from self._cut(data["dropped"], data.get("added") or ())
            return
        summary = text_of(data.get("summary"))
        self._lacks_summary = self._own and not summary
        made = [Added({"role": "user", "content": summary, "summary": True})] if summary else []
        for one in made:
            self._mark_all_new(one)
        if self._own:
            self._seen.keep_aside(Conversation(list(self._meanings), (self.turns, self.turn)))
        yield self._change("compaction", 0, made)
        self._sent, self._stale, self._calls = len(self._meanings), self._since, {}

    def _cut(self, dropped: Json, added: Json) -> Iterator[Splice]:
        """Remove messages by spans of indexes, then insert others."""
        self._prepare_change()
        spans, puts = _spans(dropped, len(self._meanings)), _puts(added)
        if spans is None or puts is None:
            yield Splice(cause="compaction", flaw="this truncation does not fit the history before it")
            return
        is_split = True
        for start, stop in reversed([span for span in spans if span[0] < span[1]]):
            del self._meanings[start:stop], self._spellings[start:stop]
            yield Splice(cause="compaction", start=start, removed=stop - start, is_split=is_split)
            is_split = False
        for at, one in puts:
            if not 0 <= at <= len(self._meanings):
                yield Splice(cause="compaction", flaw=f"no message can be put at {at} of {len(self._meanings)}")
                return
            one.new = tuple(message for message in one.entry.messages if says_something(message))
            self._meanings.insert(at, one.meaning)
            self._spellings.insert(at, b"")
            yield Splice(cause="compaction", start=at, added=(one,), is_split=is_split)
            is_split = len(one.entry.messages) != 1

    def _prepare_change(self) -> None:
        """Prepare a change that counts single messages; the next request repeats the history from its beginning."""
        for keys in self._prompts:
            self._seen.forget(*keys)  # the same may be asked again
        self._prompts, self._left, self._cleared = [], Counter(), Counter()
        self._sent, self._is_cut = 0, True
        if any(len(meaning) != 1 for meaning in self._meanings):
            self._meanings = [(digest,) for meaning in self._meanings for digest in meaning]
            self._spellings = [b""] * len(self._meanings)

    def _add(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        yield from self._break_off("interrupted")
        given, reason = data.get("messages"), data.get("reason")
        if not isinstance(given, list | tuple):
            yield Splice(cause="added", flaw="history.add without messages")
        elif reason in UNREPEATED:
            yield self._inherit([Added(value) for value in given], "request" if reason == "long" else "inherited")
        else:
            for value in given:
                one = Added(value)
                yield self._append("added", one)
                prompts = (message for message in one.new if message.role == "user")
                self._prompts += [keys_of(message, digest_message(message)) for message in prompts]

    def _inherit(self, added: list[Added], cause: Cause) -> Splice:
        """Messages that the next request goes on from; after a cut those that are left are repeated so."""
        self.prompt = ""
        self._recognise(added)
        rest = self._meanings[self._sent :] if self._is_cut else []
        common = shared(rest, [one.meaning for one in added])
        known = Counter(rest[common:]) + self._left + self._cleared
        if self._finds_new:
            self._seen.mark_new(added[common:], known)
        self._left, self._is_cut = known - self._cleared, False
        change = self._change(cause, self._sent, added)
        self._sent = len(self._meanings)
        return change

    def _pop(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        yield from self._break_off("interrupted")
        self._prepare_change()
        count, length = data.get("count"), len(self._meanings)
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= length:
            yield Splice(cause="undone", flaw=f"history.pop takes {json_text(count)[:_SHOWN]} of {length} messages")
        else:
            yield self._remove_end("undone", length - count)

    def _clear(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        del data
        self._pieces, self._room = [], _STREAMED
        self._prepare_change()
        cleared = Counter(self._meanings)
        yield self._remove_end("cleared", 0)
        self._cleared = cleared

    def _remove_end(self, cause: Cause, start: int) -> Splice:
        gone = self._meanings[start:]
        del self._meanings[start:], self._spellings[start:]
        digests = tuple(chain.from_iterable(gone))
        self._seen.forget(*digests)
        self._calls, self._forgotten = {}, min(self._forgotten, start)
        self._forget_prompts(digests)
        return Splice(cause=cause, start=start, removed=len(gone), is_split=True, gone=digests)

    def _end(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        status = data.get("status")
        if status != "closed":
            yield from self._break_off({"cancelled": "cancelled", "error": "failed"}.get(str(status), "interrupted"))


def has_compacted(data: Mapping[str, Json]) -> bool:
    """Whether a `compaction.end` changed the history: it did not fail, and found something to do."""
    return data.get("success") is not False and not data.get("no_compaction")


def _spans(dropped: Json, length: int) -> list[tuple[int, int]] | None:
    """The spans of a truncation, in order; None for what does not fit."""
    spans, end = [], 0
    for span in dropped if isinstance(dropped, list | tuple) else [None]:
        match span:
            case [int(start), int(stop)] if end <= start <= stop <= length:
                spans.append((start, stop))
                end = stop
            case _:
                return None
    return spans


def _puts(added: Json) -> list[tuple[int, Added]] | None:
    puts = []
    for item in added if isinstance(added, list | tuple) else [None]:
        match item:
            case {"at": int(at), "message": message}:
                puts.append((at, Added(message)))
            case _:
                return None
    return puts
