"""Turns of a native log: prompts are the user's messages with words, and a turn is what follows one until the next.

A request repeats the conversation, or the end of it, so a prompt is told many times; it is known again by a digest of
its words. Kept are the last requests that began a turn, and a request is compared with them from the newest back:
- its last prompt is theirs, behind no fewer prompts than now: the same turn (a tool's result, a retry, a compaction in
  mid-turn). What was asked between was made aside, as a title is, and its turns are taken back;
- one of its last prompts is theirs: those behind that are new, as many as the count grew by, if that is more. What
  was asked between is taken back, unless it went on from there too: then a prompt was put in another's place;
- none is: as many new ones as there never were so many, but at least one.
A request that holds only what is new has as many turns as prompts; one without a prompt changes nothing.

It is wrong where logs look alike: a request made aside counts until the conversation goes on; the same words twice in a
row from a history cut to one length are one turn, as are one-shot prompts of the same words; so may be conversations
that take turns in one log; a prompt told in other words each time (with the time of day) is a new one each time.

Requests are most of a log's bytes, so they are not decoded: inside a text the quotes of a role are escaped. What is
searched of a request is what it has beyond the one before, where the bytes ahead of that, and the last prompt in them,
stand again (a text that repeats itself may only seem to). Invariant: a log that is read on gives what a log that is
read whole gives.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from sessionlog.events.decode import decode_line
from sessionlog.events.envelope import Event
from sessionlog.reader.search import find
from sessionlog.sources.gather import first_words, latest

_DATA, _EARLIER = b'"data":', b'"earlier_messages":'
_ROLES = (b'"role":"user"', b'"role": "user"')
_SPACED = b'{"session_id": '
_LETTER = rb'(?:[!#-\[\]-~\xc3-\xdf\xe4-\xf4]|\\["\\]|\xe1[^\x9a]|\xe2[^\x80\x81]|\xe3[^\x80])'
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_FLAT = rb'(?:[^{}\[\]"]|' + _STRING + rb")*+"
_RESULT = (
    rb'\{"(?:type": ?"tool_result|tool_use_id)"'
    + _FLAT
    + rb"(?:\[(?:\{"
    + _FLAT
    + rb"\}(?:, ?)?)*+\]"
    + _FLAT
    + rb")?+\}"
)
_WORDS = re.compile(
    rb', ?"content": ?(?:(?:\[\{"type": ?"text", ?"text": ?)?" {0,99}+' + _LETTER
    + rb"|(\[)" + _RESULT + rb"(?:, ?" + _RESULT + rb")*+\])",
    re.DOTALL,
)  # fmt: skip
"""Behind a role: words of the user's, or results of tools and nothing else."""
_PART = rb"\{" + _FLAT + rb"(?:(?:\{" + _FLAT + rb"\}|\[(?:\{" + _FLAT + rb"\}(?:, ?)?)*+\])" + _FLAT + rb")*+\}"
_CONTENT = re.compile(
    rb', ?"content": ?(' + _STRING + rb"|\[" + _PART + rb"(?:, ?" + _PART + rb")*+\])", re.DOTALL
)  # fmt: skip
"""Behind a role: the whole of what is said."""
_PROOF = 64
"""Bytes that must stand again where they stood: a text that was changed before them has moved them."""
_HEAD = 200
"""Bytes that must stand again at the beginning, where it is not known where the last prompt stands."""
_LAST = 600
"""Bytes in which the short fields behind the messages fit, and mostly the end of the last message."""
_BACK = 4
"""A request's last prompts that are looked for among those before: so many may be new at once."""
_KEPT = 8
"""Requests that began a turn and are remembered: so many may be made aside, one after the other."""


class _Step(NamedTuple):
    """A request that began a turn: its last two prompts, how many it had, how many had the latest of the same turn."""

    last: int
    before: int | None
    prompts: int
    latest: int
    turns: int
    last_ns: int | None


class _Known(NamedTuple):
    """What the request before held in the first bytes of its payload.

    Attributes:
        until: How many bytes.
        proof: The last of them.
        prompts: How many prompts.
        said: The digests of the last of these.
        at: Where the last one's words begin.
        words: The bytes of these; of the beginning, where it is not known where they are.
    """

    until: int = 0
    proof: bytes = b""
    prompts: int = 0
    said: tuple[int, ...] = ()
    at: int = 0
    words: bytes = b""


_NOTHING = _Known()


class Turns:
    """The prompts of one log, as far as it has been read.

    Attributes:
        count: How many there were.
        last_ns: When the last of them was sent.
    """

    def __init__(self, state: Mapping[str, Any] | None = None) -> None:
        """Begin, or go on with what `state` gave."""
        known = state or {}
        self.count: int = known.get("count", 0)
        self.last_ns: int | None = known.get("last_ns")
        self._most: int = known.get("held", 0)  # prompts, by a request
        self._steps = [_Step(*step) for step in known.get("steps", ())]
        self._known = _NOTHING

    def state(self) -> dict[str, Any]:
        """What a later scan needs to go on, as JSON."""
        steps = [list(step) for step in self._steps]
        return {"count": self.count, "last_ns": self.last_ns, "held": self._most, "steps": steps}

    def look(self, data: bytes, start: int, end: int, time_ns: int | None) -> None:
        """Take the line data[start:end], a whole llm.request and nothing else."""
        origin = max(start, data.find(_DATA, start, end))
        role = _ROLES[data.startswith(_SPACED, start)]
        goes_on = data.find(_EARLIER, max(origin, end - _PROOF), end) >= 0
        known = self._known
        at = origin + known.until
        if (
            at >= end
            or goes_on
            or not (
                data.startswith(known.proof, at - len(known.proof)) and data.startswith(known.words, origin + known.at)
            )
        ):
            known, at = _NOTHING, origin
        until = max(at, end - _LAST)
        found: list[int] = []  # where the roles of prompts end
        while (at := find(data, role, at, end)) >= 0:
            if at > until - _PROOF:  # the proof would not show what is said behind it
                until = min(until, at)
            at += len(role)
            words = _WORDS.match(data, at, end)
            if words is not None:
                is_said = words.lastindex is None
            else:
                content = _content_of(_CONTENT.match(data, at, end))
                if content is None:
                    self._decode(data, start, end, origin)
                    return
                is_said = first_words(content) != ""
            if is_said:
                found.append(at)
        early = len(found) if not found or found[-1] <= until else sum(at <= until for at in found)
        texts: dict[int, re.Match[bytes]] = {}
        said: dict[int, int] = {}
        for at in {*found[-_BACK:], *found[max(0, early - _BACK) : early]} if found else ():
            text = _CONTENT.match(data, at, end)
            content = _content_of(text)
            if text is None or content is None:
                self._decode(data, start, end, origin)
                return
            texts[at], said[at] = text, _digest(content)
        told = known.said + tuple([said[at] for at in found[-_BACK:]]) if found else known.said
        self._take(known.prompts + len(found), told, time_ns, goes_on=goes_on)
        if goes_on:
            return
        said_at, words_there, told = known.at, known.words or data[origin : min(origin + _HEAD, until)], known.said
        if early:
            text = texts[found[early - 1]]
            said_at, words_there = text.start(1) - origin, text[1]
            told = (told + tuple([said[at] for at in found[max(0, early - _BACK) : early]]))[-_BACK:]
        proof = data[max(origin, until - _PROOF) : until]
        self._known = _Known(until - origin, proof, known.prompts + early, told, said_at, words_there)

    def _decode(self, data: bytes, start: int, end: int, origin: int) -> None:
        """Take a line with a message that is spelled in another way."""
        events = decode_line(data[start:end])[0]
        self.take(events)
        if len(events) != 1 or _goes_on(events[0]):
            return
        role, until = _ROLES[data.startswith(_SPACED, start)], max(origin, end - _LAST)
        at = find(data, role, max(origin, until - _PROOF), end)
        until = min(until, at) if at >= 0 else until
        last = data.rfind(role, origin, until) + len(role)
        text = _CONTENT.match(data, last, end) if last >= len(role) else None
        if text is None and last >= len(role) and not data.startswith(b"}", last):
            return  # where its words end is not known
        users = [one for one in _messages_in(events[0]) if isinstance(one, Mapping) and one.get("role") == "user"]
        early = [one for one in users[: max(0, len(users) - data.count(role, until, end))] if is_prompt(one)]
        self._known = _Known(
            until=until - origin,
            proof=data[max(origin, until - _PROOF) : until],
            prompts=len(early),
            said=tuple(_digest(one["content"]) for one in early[-_BACK:]),
            at=text.start(1) - origin if text else 0,
            words=text[1] if text else data[origin : min(origin + _HEAD, until)],
        )

    def take(self, events: Iterable[Event]) -> None:
        """Take requests that are decoded."""
        for event in events:
            if event.type == "llm.request":
                prompts = [one["content"] for one in _messages_in(event) if is_prompt(one)]
                told = tuple(map(_digest, prompts[-_BACK:]))
                self._take(len(prompts), told, event.time_ns, goes_on=_goes_on(event))
                self._known = _NOTHING

    def _take(self, prompts: int, said: tuple[int, ...], time_ns: int | None, *, goes_on: bool) -> None:
        """Take a request: how many prompts it has, the digests of the last of them."""
        steps = self._steps
        if not prompts or (steps and steps[-1].last == said[-1] and steps[-1].latest == prompts and not goes_on):
            return
        if goes_on:
            new = prompts
            if steps:
                prompts, said = prompts + steps[-1].latest, (steps[-1].last, *said)
        else:
            new = self._new_in(prompts, said[: -_BACK - 1 : -1])
        self._most = max(self._most, prompts)
        if new:
            before = said[-2] if len(said) > 1 else None
            self.count += new
            self.last_ns = latest(self.last_ns, time_ns)
            steps.append(_Step(said[-1], before, prompts, prompts, self.count, self.last_ns))
            del steps[:-_KEPT]
        else:
            steps[-1] = steps[-1]._replace(latest=prompts)

    def _new_in(self, prompts: int, backwards: tuple[int, ...]) -> int:
        """Go back to the step that a request goes on from; returns how many of its prompts are new behind that."""
        steps = self._steps
        for index in range(len(steps) - 1, -1, -1):
            step = steps[index]
            same = step.last == backwards[0] and (
                prompts <= step.latest or (prompts == step.prompts and step.before in backwards[1:2])
            )
            if same or step.last in backwards[1:]:
                aside = steps[index + 1 :]
                del steps[index + 1 :]
                if same or all(one.before != step.last for one in aside):
                    self.count, self.last_ns = step.turns, step.last_ns
                return 0 if same else max(backwards.index(step.last, 1), prompts - step.prompts)
        return max(1, prompts - self._most)


def is_prompt(message: Any) -> bool:
    """Whether a message has words of the user's: the result of a tool has none of its own."""
    return isinstance(message, Mapping) and message.get("role") == "user" and first_words(message.get("content")) != ""


def _messages_in(event: Event) -> list[Any]:
    messages = event.data.get("messages") if isinstance(event.data, Mapping) else None
    return messages if isinstance(messages, list) else []


def _goes_on(event: Event) -> bool:
    """Whether a request holds only what is new."""
    return isinstance(event.data, Mapping) and bool(event.data.get("earlier_messages"))


def _digest(content: Any) -> int:
    """A number for the words of a message, whatever the spelling of its line."""
    if isinstance(content, list):
        texts = (part.get("text") for part in content if isinstance(part, Mapping))
        content = " ".join(text for text in texts if isinstance(text, str))
    return zlib.crc32(content.encode("utf-8", "surrogatepass"))


def _content_of(text: re.Match[bytes] | None) -> Any:
    """What `_CONTENT` found, None if it has to be decoded with its line."""
    try:
        return None if text is None else json.loads(text[1])
    except (ValueError, RecursionError):
        return None
