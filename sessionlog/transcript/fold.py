"""The fold: a session's events → splices of its conversation, with counts of requests and turns.

A request holds its whole prompt or, with `earlier_messages` and in events made from other agents' logs, only the new
messages. Changes between two requests (answers, tool results, messages added or undone, a truncation) have their own
events, and the next request repeats them. Requests of the oldest logs hold no messages; there the conversation consists
of answers and results.

A request that is followed by another one before its answer does not count. A turn is a user's prompt and everything
until the next prompt; a fork does not count the prompts of its parent. Events of sub-agents, and of tools that no
answer has called, do not change the conversation. Bad data never raises: `Splice.problem` describes a change that does
not fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from sessionlog.events.envelope import OBJECTS, Event
from sessionlog.events.payloads import UNREPEATED
from sessionlog.messages.content_text import text_of
from sessionlog.messages.entry import Entry
from sessionlog.messages.json_value import json_text
from sessionlog.messages.message import Message
from sessionlog.transcript.digests import Digests, digest_message, has_content, keys_of, raw_digest
from sessionlog.transcript.seen import Conversation, SeenMessages, common_length
from sessionlog.transcript.splice import Added, Cause, Splice, answer_entry, plain_answer, result_entry

Json = Any
OWN = frozenset({"native", "fizeau"})
"""Sources whose requests hold whole prompts, except with `earlier_messages`; other requests continue the one before."""
_MAX_STREAMED = 32 << 20  # bytes in memory of an incomplete answer
_MAX_SHOWN = 40  # characters of a bad value in a problem
_MAX_PIECES = 4_096  # a list of one-letter pieces weighs more than its letters
_MAX_DIGESTS = 100_000  # elements whose digests are kept
_MAX_RAW_DIGESTS = 20_000
_UNKNOWN: Digests = (b"",)


class ConversationFold:
    """Applies a session's events to its conversation, and returns the splices.

    Attributes:
        system: The text of the system prompt that is sent beside the messages; empty where the log has none.
        prompt: The prompt of session.start, until a request holds messages.
        requests: Requests so far, without those that were followed by another one before their answer. In a log
            without requests each answer counts as one.
        is_waiting: The last request has no answer yet.
        holds_messages: The last request holds messages; in the oldest logs it has only their number.
        turns: Prompts so far, without those that a fork has copied from its parent's log.
        turn: The number of the current turn, copied ones included.
        answered: Id and tool of the call whose result was the last event; None where that was the result of no call. A
            call without an id gets `call-N`, by its index in the answer.
    """

    def __init__(self, *, own: bool = True, finds_new: bool = True) -> None:
        """Start with an empty conversation.

        Args:
            own: Whether requests hold whole prompts, except with `earlier_messages`; else each continues the last.
            finds_new: Whether to find the new messages and count turns by them; this takes half of the time.
        """
        self._finds_new = finds_new
        self.system = self.prompt = ""
        self.requests = self.turns = self.turn = 0
        self.is_waiting = False
        self._own = own
        self._digests: list[Digests] = []
        self._raw_digests: list[bytes] = []  # empty for elements that no request has sent
        self._sent = 0  # elements of the last request
        self._forgotten = 0  # elements whose digests were dropped
        self._seen = SeenMessages()
        self._by_raw_digest: dict[bytes, Digests] = {}
        self._unrepeated: Counter[Digests] = Counter()  # of a truncated history, elements not repeated yet
        self._cleared: Counter[Digests] = Counter()  # of a cleared history, elements that may be added again
        self._prompts: list[tuple[bytes, ...]] = []  # keys of prompts added since the last request
        self._is_cut = self._lacks_summary = False
        self._asked: list[tuple[Digests, bool]] = []  # prompts since the last request, and whether they are copied
        self._since_request = self._swallowed = (
            0  # answers and results: since the last request; of these, replaced by a compaction
        )
        self._pieces: list[str] = []
        self._stream_room = _MAX_STREAMED
        self.answered: tuple[str, str] | None = None
        self._calls: (
            dict[str | int, tuple[str, str]] | None
        ) = {}  # (id, tool) of open calls; None: unknown, the answer has only their number
        self._has_started = self._has_requests = False
        self.holds_messages = False
        self._handlers: Mapping[str, Callable[[Mapping[str, Json]], Iterable[Splice]]] = {
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

    def apply(self, event: Event) -> tuple[Splice, ...]:
        """Apply the next event; return the changes of the conversation."""
        data, handler = event.data, self._handlers.get(event.type)
        data = data if isinstance(data, OBJECTS) else {}
        return () if handler is None or "agent" in data else tuple(handler(data))

    def finish(self) -> tuple[Splice, ...]:
        """Return the last splices of a log: for a prompt without an answer, or an interrupted answer."""
        splices = (*self._add_session_prompt(), *self._close_partial("interrupted"))
        self._begin_turn()
        return splices

    @property
    def streamed(self) -> str:
        """The text of the incomplete answer so far."""
        return "".join(self._pieces)

    @property
    def answers(self) -> int:
        """How many requests have an answer: all, or all but the last."""
        return self.requests - self.is_waiting

    @property
    def sent(self) -> int:
        """How many elements the last request had, so that a request that continues it need not repeat them."""
        return self._sent

    def __len__(self) -> int:
        return len(self._digests)

    def _start(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        if not self._has_started:  # the first one counts
            self._has_started = True
            self.system, self.prompt = text_of(data.get("system_prompt")), text_of(data.get("prompt"))
            if self.system:
                system = Message.system(self.system)
                self._seen.expect(digest_message(system))
        yield from ()

    def _request(self, data: Mapping[str, Json]) -> list[Splice]:
        splices = list(self._close_partial("interrupted")) if self._pieces else []
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
            splices.append(self._apply_request(given, data.get("earlier_messages")))
        else:
            splices += self._add_session_prompt()
        if self._unrepeated or self._cleared or self._prompts:
            self._unrepeated, self._cleared, self._prompts = Counter(), Counter(), []
        self._sent, self._since_request, self._swallowed = len(self._digests), 0, 0
        self._begin_turn()
        self._is_cut = self._lacks_summary = False
        return splices

    def _begin_turn(self) -> None:
        if self._asked:
            self.turn += len(self._asked)
            self.turns += sum(not is_copied for _, is_copied in self._asked)
            self._asked = []

    def _apply_request(self, given: Sequence[Json], earlier: Json) -> Splice:
        count = earlier if type(earlier) is int and earlier > 0 else 0
        if self._own and not count:
            return self._apply_whole_prompt(given)
        added = [Added(value) for value in (given if self._own or not self._swallowed else self._fresh(given))]
        start = min(count, len(self._digests) if self._is_cut else self._sent) if self._own else self._sent
        if self._own or not self._finds_new:
            self._recognise(added)
        if self._finds_new:
            self._seen.mark_new(added, self._unrepeated)
        missing = max(0, count - self._sent) if self._own else 0
        return self._change("request", start, added, missing=missing)

    def _apply_whole_prompt(self, given: Sequence[Json]) -> Splice:
        """Apply a prompt that repeats the conversation: replace everything after the common beginning."""
        start = common_length(self._raw_digests, [raw_digest(value) for value in given])
        added = [Added(value) for value in given[start:]]
        self._recognise(added)
        if not self._finds_new:
            return self._change("request", start, added)
        elements = list(self._digests) if self._is_cut else self._digests[: self._sent]
        current = Conversation(elements, (self.turns, self.turn))
        former, common = self._seen.closest(current, [*self._digests[:start], *(one.digests for one in added)])
        rest = Counter(former.digests[common:])
        self._seen.mark_new(added[common - start :], rest)
        if elements and (former is not current or common < len(elements)):
            self._seen.keep_aside(current)
        if former is not current:  # requests in between belong to another conversation, e.g. for a title
            self.turns, self.turn = former.turns
        left_out = 0 if self._is_cut else rest.total()
        return self._change("request", start, added, left_out=left_out, kept=len(former.digests) - left_out)

    def _fresh(self, given: Sequence[Json]) -> Iterator[Json]:
        """Yield the messages that another agent's request adds, except those that a compaction has replaced."""
        for value in given:
            if self._swallowed and isinstance(value, Mapping) and value.get("role") in ("assistant", "tool"):
                self._swallowed -= 1
            else:
                yield value

    def _recognise(self, added: Iterable[Added]) -> None:
        """Set the digests of a request's elements; where requests hold whole prompts, the raw digests, too."""
        for one in added:
            if self._own:
                one.raw_digest = raw_digest(one.raw)
                if one.raw_digest in self._by_raw_digest:
                    one.digests = self._by_raw_digest[one.raw_digest]
                    continue
                self._by_raw_digest[one.raw_digest] = one.digests
                if len(self._by_raw_digest) > _MAX_RAW_DIGESTS:
                    del self._by_raw_digest[next(iter(self._by_raw_digest))]
            elif not self._finds_new:
                one.digests = _UNKNOWN

    def _change(self, cause: Cause, start: int, added: Sequence[Added], **more: Any) -> Splice:
        """Replace all elements from an index on."""
        removed = len(self._digests) - start
        self._forgotten = min(self._forgotten, start)
        self._digests[start:] = [one.digests for one in added]
        self._raw_digests[start:] = [one.raw_digest for one in added]
        if len(self._digests) - self._forgotten > 2 * _MAX_DIGESTS:
            end = len(self._digests) - _MAX_DIGESTS
            self._digests[self._forgotten : end] = [_UNKNOWN] * (end - self._forgotten)
            self._forgotten = end
        if cause != "inherited":
            self._note_prompts(added)
        for one in added if self._own or self._finds_new else ():
            self._track_calls(one)
        return Splice(cause=cause, start=start, removed=removed, added=tuple(added), **more)

    def _append(self, cause: Cause, one: Added) -> Splice:
        """Append an element that the next request will repeat."""
        self._mark_all_new(one)
        return self._change(cause, len(self._digests), [one])

    def _mark_all_new(self, one: Added) -> None:
        """Mark all messages of an element as new; expect a request to repeat them."""
        if not self._finds_new and not self._own:
            one.digests = _UNKNOWN
            return
        if one.role:
            if one.text.strip():
                one.mark_new()
                self._seen.expect(*one.digests)
            return
        one.mark_new()
        for message, digest in zip(one.entry.messages, one.digests, strict=True):
            if has_content(message):
                self._seen.expect(*keys_of(message, digest))

    def _note_prompts(self, added: Sequence[Added]) -> None:
        prompts = [one for one in added if one.is_new_prompt and not one.is_summary]
        if not prompts:
            return
        prompts = prompts[1:] if self._lacks_summary else prompts
        self._asked += [(one.digests, bool(one.fields.get("inherited"))) for one in prompts]

    def _forget_prompts(self, digests: Collection[bytes]) -> None:
        """Do not count prompts that were undone before a request."""
        gone = Counter(digests)
        for prompt in reversed(self._asked.copy()):
            if all(gone[digest] > 0 for digest in prompt[0]):
                gone.subtract(prompt[0])
                self._asked.remove(prompt)

    def _track_calls(self, one: Added) -> None:
        """Update the calls that have no result yet."""
        if one.role:
            self._calls = {}
            return
        for message in one.entry.messages:
            if message.role != "tool":
                self._calls = {}
                for n, call in enumerate(message.tool_calls):
                    self._calls[call.id if call.id and call.id not in self._calls else n] = call.id, call.name
            else:
                self._answer_call(message.tool_call_id, message.name)

    def _answer_call(self, call_id: Json, name: Json) -> tuple[str, str, str] | None:
        """Close the call of a result, found by its id, else by the name of its tool.

        Returns its id as logged, its id or `call-N`, and its tool; None where there is no such call.
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

    def _add_session_prompt(self) -> Iterator[Splice]:
        """Add the prompt of session.start, in a log whose requests hold no messages."""
        if self.prompt and not self._digests:
            prompt = Added({"role": "user", "content": self.prompt})
            self.prompt = ""
            yield self._append("prompt", prompt)

    def _delta(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        piece = data.get("content")
        if isinstance(piece, str) and self._stream_room > 0:
            self._pieces.append(piece)
            self._stream_room -= len(piece) if piece.isascii() else 4 * len(piece)
            if len(self._pieces) > _MAX_PIECES:
                self._pieces = ["".join(self._pieces)]
        yield from ()

    def _close_partial(self, word: str) -> Iterator[Splice]:
        """Add the received part of an answer that was not completed."""
        text, self._pieces, self._stream_room = self.streamed, [], _MAX_STREAMED
        if text:
            entry = Entry(messages=(Message.assistant(text, partial=word),), is_response=True)
            yield self._append("partial", Added({"content": text}, lambda _: entry))

    def _response(self, data: Mapping[str, Json]) -> list[Splice]:
        splices: list[Splice] = []
        if not self._has_requests:
            self.requests += 1
            splices += self._add_session_prompt()
            self._begin_turn()
        self.is_waiting = False
        streamed = ""
        if self._pieces:
            streamed, self._pieces, self._stream_room = self.streamed, [], _MAX_STREAMED
        if data.get("error") and not self._own:
            return splices  # an error's text: the next request does not repeat it
        calls = data.get("tool_calls")
        has_calls = isinstance(calls, list | tuple)
        is_empty = data.get("content") is None and not (has_calls and calls) and not streamed
        if is_empty and not isinstance(data.get("message"), Mapping):
            return splices
        self._since_request += 1
        answer = plain_answer(data, streamed)
        one = Added(data, lambda payload: answer_entry(payload, streamed), answer=answer)
        splices.append(self._append("answer", one))
        if calls is not None and not has_calls:
            self._calls = None  # the oldest logs have only their number
        return splices

    def _tool(self, data: Mapping[str, Json]) -> Iterable[Splice]:
        self._since_request += 1
        call = self._answer_call(data.get("id"), data.get("tool"))
        if call is None and self._own and self.holds_messages and self._calls is not None:
            return ()
        call_id, self.answered = (None, None) if call is None else (call[0], call[1:])
        prompt = self._add_session_prompt() if not self._has_requests else ()
        return (*prompt, self._append("result", Added(data, lambda payload: result_entry(payload, call_id))))

    def _compact(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        if not has_compacted(data):
            return
        yield from self._close_partial("interrupted")
        if "dropped" in data:
            yield from self._cut(data["dropped"], data.get("added") or ())
            return
        summary = text_of(data.get("summary"))
        self._lacks_summary = self._own and not summary
        made = [Added({"role": "user", "content": summary, "summary": True})] if summary else []
        for one in made:
            self._mark_all_new(one)
        if self._own:
            self._seen.keep_aside(Conversation(list(self._digests), (self.turns, self.turn)))
        yield self._change("compaction", 0, made)
        self._sent, self._swallowed, self._calls = len(self._digests), self._since_request, {}

    def _cut(self, dropped: Json, added: Json) -> Iterator[Splice]:
        """Remove messages by spans of indexes, then insert others."""
        self._prepare_change()
        spans, puts = _spans(dropped, len(self._digests)), _puts(added)
        if spans is None or puts is None:
            yield Splice(cause="compaction", problem="this truncation does not fit the history before it")
            return
        is_split = True
        for start, stop in reversed([span for span in spans if span[0] < span[1]]):
            del self._digests[start:stop], self._raw_digests[start:stop]
            yield Splice(cause="compaction", start=start, removed=stop - start, is_split=is_split)
            is_split = False
        for at, one in puts:
            if not 0 <= at <= len(self._digests):
                yield Splice(cause="compaction", problem=f"no message can be put at {at} of {len(self._digests)}")
                return
            one.new = tuple(message for message in one.entry.messages if has_content(message))
            self._digests.insert(at, one.digests)
            self._raw_digests.insert(at, b"")
            yield Splice(cause="compaction", start=at, added=(one,), is_split=is_split)
            is_split = len(one.entry.messages) != 1

    def _prepare_change(self) -> None:
        """Prepare a change that counts single messages; afterwards a request repeats the history from its beginning."""
        for keys in self._prompts:
            self._seen.forget(*keys)  # the same prompt may be sent again
        self._prompts, self._unrepeated, self._cleared = [], Counter(), Counter()
        self._sent, self._is_cut = 0, True
        if any(len(digests) != 1 for digests in self._digests):
            self._digests = [(digest,) for digests in self._digests for digest in digests]
            self._raw_digests = [b""] * len(self._digests)

    def _add(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        yield from self._close_partial("interrupted")
        given, reason = data.get("messages"), data.get("reason")
        if not isinstance(given, list | tuple):
            yield Splice(cause="added", problem="history.add without messages")
        elif reason in UNREPEATED:
            yield self._inherit([Added(value) for value in given], "request" if reason == "long" else "inherited")
        else:
            for value in given:
                one = Added(value)
                yield self._append("added", one)
                prompts = (message for message in one.new if message.role == "user")
                self._prompts += [keys_of(message, digest_message(message)) for message in prompts]

    def _inherit(self, added: list[Added], cause: Cause) -> Splice:
        """Add messages that the next request builds on; after a truncation they repeat the remaining ones."""
        self.prompt = ""
        self._recognise(added)
        rest = self._digests[self._sent :] if self._is_cut else []
        common = common_length(rest, [one.digests for one in added])
        known = Counter(rest[common:]) + self._unrepeated + self._cleared
        if self._finds_new:
            self._seen.mark_new(added[common:], known)
        self._unrepeated, self._is_cut = known - self._cleared, False
        change = self._change(cause, self._sent, added)
        self._sent = len(self._digests)
        return change

    def _pop(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        yield from self._close_partial("interrupted")
        self._prepare_change()
        count, length = data.get("count"), len(self._digests)
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= length:
            yield Splice(
                cause="undone", problem=f"history.pop takes {json_text(count)[:_MAX_SHOWN]} of {length} messages"
            )
        else:
            yield self._remove_end("undone", length - count)

    def _clear(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        del data
        self._pieces, self._stream_room = [], _MAX_STREAMED
        self._prepare_change()
        cleared = Counter(self._digests)
        yield self._remove_end("cleared", 0)
        self._cleared = cleared

    def _remove_end(self, cause: Cause, start: int) -> Splice:
        gone = self._digests[start:]
        del self._digests[start:], self._raw_digests[start:]
        digests = tuple(chain.from_iterable(gone))
        self._seen.forget(*digests)
        self._calls, self._forgotten = {}, min(self._forgotten, start)
        self._forget_prompts(digests)
        return Splice(cause=cause, start=start, removed=len(gone), is_split=True, removed_digests=digests)

    def _end(self, data: Mapping[str, Json]) -> Iterator[Splice]:
        status = data.get("status")
        if status != "closed":
            yield from self._close_partial(
                {"cancelled": "cancelled", "error": "failed"}.get(str(status), "interrupted")
            )


def has_compacted(data: Mapping[str, Json]) -> bool:
    """Whether a `compaction.end` changed the history: it succeeded, and there was something to compact."""
    return data.get("success") is not False and not data.get("no_compaction")


def _spans(dropped: Json, length: int) -> list[tuple[int, int]] | None:
    """Return the spans of a truncation, in order; None if they do not fit."""
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
