"""Difference: which recording is nearest to a request, and where the two begin to differ, for people.

    messages[3].content: recorded 'Read a.py' · sent 'Read b.py'

Messages are counted from 0, as in code, without the system texts at the beginning, which are `system`. Long texts are
cut around the place where they begin to differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from sessionlog.messages.json_value import json_text
from sessionlog.testing.replay.recording import Recording
from sessionlog.testing.replay.request import Request
from sessionlog.transcript.seen import common_length

Json = Any
_SHOWN = 80  # characters of a value
_BEFORE = 30  # of these, before the first difference
_COMPARED = 500  # characters of two texts that are compared for likeness
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two requests.

    Attributes:
        path: Where, as `messages[3].content`.
        recorded: The recorded value, as text for people.
        sent: The other one.
    """

    path: str
    recorded: str
    sent: str

    def __str__(self) -> str:
        return f"{self.path}: recorded {self.recorded} · sent {self.sent}"


def first_difference(recorded: Request, sent: Request, parts: Iterable[str]) -> Difference | None:
    """Return the first difference in some parts of two requests; None if they ask the same."""
    for part in parts:
        found = _difference(part, recorded.part(part), sent.part(part))
        if found is not None:
            return found
    return None


def find_nearest(recordings: Sequence[Recording], sent: Request, parts: Sequence[str]) -> Recording | None:
    """Return the recording whose request is most like another one; None if no recording has a request.

    It has the longest equal beginning of the conversation, then the nearest length, the most equal parts, and the most
    alike text where they begin to differ.
    """

    def likeness(recording: Recording) -> tuple[float, ...]:
        asked = recording.request
        assert asked is not None
        common = common_length(asked.messages, sent.messages)
        equal = sum(asked.part(part) == sent.part(part) for part in parts)
        length = -abs(len(asked.messages) - len(sent.messages))
        return common, length, equal, _text_likeness(asked.messages[common:], sent.messages[common:]), -recording.number

    return max((one for one in recordings if one.request is not None), key=likeness, default=None)


def shorten(text: str, start: int = 0) -> str:
    """Return a text for people in quotes, cut to some 80 characters from `start` on."""
    end = start + _SHOWN
    return f"{'…' if start else ''}{text[start:end]!r}{'…' if end < len(text) else ''}"


def _text_likeness(one: Sequence[Json], other: Sequence[Json]) -> float:
    return SequenceMatcher(None, _beginning(one), _beginning(other), autojunk=False).ratio()


def _beginning(messages: Sequence[Json]) -> str:
    return str(messages[0]["content"])[:_COMPARED] if messages else ""


def _difference(path: str, recorded: Json, sent: Json) -> Difference | None:
    if recorded == sent:
        return None
    if isinstance(recorded, Mapping) and isinstance(sent, Mapping):
        pairs = [(f"{path}.{key}", recorded.get(key, _ABSENT), sent.get(key, _ABSENT))
                 for key in [*recorded, *(key for key in sent if key not in recorded)]]  # fmt: skip
    elif isinstance(recorded, list | tuple) and isinstance(sent, list | tuple):
        pairs = [(f"{path}[{index}]", _item(recorded, index), _item(sent, index))
                 for index in range(max(len(recorded), len(sent)))]  # fmt: skip
    else:
        return Difference(path, *_shown(recorded, sent))
    return next(found for where, one, other in pairs if (found := _difference(where, one, other)) is not None)


def _item(values: Sequence[Json], index: int) -> Json:
    return values[index] if index < len(values) else _ABSENT


def _shown(recorded: Json, sent: Json) -> tuple[str, str]:
    if not (isinstance(recorded, str) and isinstance(sent, str) and recorded and sent):
        return _value(recorded), _value(sent)
    common = common_length(recorded, sent)
    start = max(0, common - _BEFORE) if max(len(recorded), len(sent)) > _SHOWN else 0
    return shorten(recorded, start), shorten(sent, start)


def _value(value: Json) -> str:
    if value is _ABSENT or value is None or value == "":
        return "nothing"
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, Mapping) and "role" in value:
        calls = ", ".join(call["name"] for call in value.get("tool_calls", ()))
        return f"{value['role']} {shorten(value['content']) if value['content'] or not calls else f'calls {calls}'}"
    text = json_text(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
