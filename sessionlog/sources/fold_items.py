"""fold_items: steps → items, the texts of a session that people search for: prompts, answers, tool calls, results.

What an agent adds by itself is none: system prompts, instructions, reminders, summaries of what was compacted.
An item is one message, call or result. Its text is what a person would read: of a call the tool's name and the values
of its arguments, of other JSON its values, without keys and without encoded bytes. The paths in a call's arguments are
an item of their own. The fold of the same rows gives the same items, so that a text can be read from the log again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

from msgspec import Raw, Struct

from sessionlog.hashes import hash_name
from sessionlog.sources.contents import read_json, reasoning_of, text_of
from sessionlog.sources.record import CopyRank
from sessionlog.sources.steps import (
    At,
    Content,
    MoreInput,
    Prompt,
    Response,
    Session,
    Step,
    Text,
    ToolCall,
    ToolResult,
)

_ENCODED = 512
"""Characters of a text without a blank from which it is taken for encoded bytes, such as a picture."""

_SEEDS = tuple(bytes([number]) for number in range(16))
_BLANK = re.compile(r"\s")
_PATH_KEYS = frozenset({
    "path", "file_path", "filepath", "filename", "file", "notebook_path", "absolute_path", "relative_path",
    "target_file", "target_path", "source_path", "old_path", "new_path", "paths", "files", "abs_path", "relpath",
})  # fmt: skip
_PATCHED = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |\+\+\+ (?:b/)?)([^\n\t]+)", re.MULTILINE
)


class Kind(IntEnum):
    """What an item is. Indexes store these numbers."""

    PROMPT = 0
    ANSWER = 2
    THINKING = 3
    CALL = 4
    RESULT = 5
    ERROR = 6
    PATHS = 7


_ROLES = {"user": Kind.PROMPT, "assistant": Kind.ANSWER, "tool": Kind.RESULT}


class Item(Struct, gc=False):
    """A text of a session.

    Attributes:
        kind: What it is.
        time: When, in nanoseconds since 1970 UTC; None where that is not logged.
        text: The text.
        place: The offset of its first row in the log; 0 where rows have none.
        session: The session that it belongs to.
        is_copy: It was copied from another session, or from another row.
        step: The tool call or result.
    """

    kind: Kind
    time: int | None
    text: str
    place: int
    session: str
    is_copy: bool = False
    step: ToolCall | ToolResult | None = None

    @property
    def digest(self) -> int:
        """A hash of kind and text as a signed number of 64 bits, the same in every copy."""
        return hash_name(self.text, _SEEDS[self.kind])


class ItemState(Struct):
    """The state of the fold between rows.

    Attributes:
        session: The session of the next step.
        is_inherited: It was copied from the session that this one was forked from.
    """

    session: str
    is_inherited: bool = False


class ItemFold:
    """Makes the items of a log.

    Attributes:
        state: The state from which a later reading of the log continues.
    """

    def __init__(self, state: ItemState) -> None:
        self.state = state
        self._open: list[Item] = []  # a text or a call that the next step may continue

    def take(self, place: int, step: Step) -> Iterator[Item]:
        """Add a step of the row at a place; yield the items that are complete."""
        kind = type(step)
        if kind is At:
            return
        if isinstance(step, Text) and step.is_piece:
            yield from self._add_piece(place, step)
            return
        if isinstance(step, MoreInput):
            if self._open and isinstance(call := self._open[-1].step, ToolCall) and isinstance(call.input, str):
                call.input += step.text
            return
        if self._open and isinstance(step, Response) and text_of(step.text):
            self._open = [one for one in self._open if one.step is not None]  # it has the text of its pieces, too
        yield from self.end()
        if isinstance(step, ToolCall):
            self._open = [self._item(Kind.CALL, step.time, "", place, is_copy=step.is_copy, step=step)]
        else:
            yield from self._items(place, step)

    def end(self) -> Iterator[Item]:
        """Yield the item that the last steps have begun."""
        begun, self._open = self._open, []
        for item in begun:
            if isinstance(item.step, ToolCall):
                item.text = call_text(item.step)
                yield item
                if paths := paths_of(item.step.input):
                    yield Item(
                        Kind.PATHS, item.time, "\n".join(paths), item.place, item.session, item.is_copy, item.step
                    )
            else:
                yield item

    def _items(self, place: int, step: Step) -> Iterator[Item]:
        if isinstance(step, Session):
            self.state.session = step.id or self.state.session
            if step.inherited is not None:
                self.state.is_inherited = step.inherited
        elif isinstance(step, Prompt):
            if (kind := _ROLES.get(step.role)) is not None:
                yield from self._some(kind, step.time, text_of(step.text), place, is_copy=step.inherited)
        elif isinstance(step, Text | Response):
            is_copy = isinstance(step, Response) and (step.is_copy or step.rank < CopyRank.ORIGINAL)
            text = text_of(step.text) or (step.error if isinstance(step, Response) else "")
            yield from self._some(Kind.ANSWER, step.time, text, place, is_copy=is_copy)
            yield from self._some(Kind.THINKING, step.time, reasoning_of(step.reasoning), place, is_copy=is_copy)
        elif isinstance(step, ToolResult) and not step.pending:
            kind = Kind.ERROR if step.failed else Kind.RESULT
            yield from self._some(kind, step.time, content_text(step.output), place, step=step)

    def _add_piece(self, place: int, step: Text) -> Iterator[Item]:
        if any(one.step is not None for one in self._open):
            yield from self.end()
        for kind, text in ((Kind.ANSWER, text_of(step.text)), (Kind.THINKING, reasoning_of(step.reasoning))):
            begun = next((one for one in self._open if one.kind == kind), None)
            if text and begun is not None:
                begun.text += text
            elif text:
                self._open.append(self._item(kind, step.time, text, place))

    def _some(
        self, kind: Kind, time: int | None, text: str, place: int, *, is_copy: bool = False,
        step: ToolResult | None = None,
    ) -> Iterator[Item]:  # fmt: skip
        if text:
            yield self._item(kind, time, text, place, is_copy=is_copy, step=step)

    def _item(
        self, kind: Kind, time: int | None, text: str, place: int, *, is_copy: bool = False,
        step: ToolCall | ToolResult | None = None,
    ) -> Item:  # fmt: skip
        return Item(kind, time, text, place, self.state.session, is_copy or self.state.is_inherited, step)


def call_text(call: ToolCall) -> str:
    """Return the text of a tool call: the tool's name, and the values of its arguments on lines of their own."""
    return "\n".join([f"{call.server} {call.tool}" if call.server else call.tool, *_texts(arguments_of(call.input))])


def arguments_of(given: Any) -> Any:
    """Return a call's arguments; JSON, and a text that holds a JSON object, are decoded."""
    value = read_json(given) if isinstance(given, Raw) else given
    decoded = read_json(value) if isinstance(value, str) and value.startswith("{") else value
    return value if decoded is None else decoded


def content_text(content: Content) -> str:
    """Return the text of a result: that of its parts, or else the values of its JSON."""
    decoded = read_json(content) if isinstance(content, Raw) else content
    if isinstance(decoded, str):
        return decoded
    return text_of(decoded) or "\n".join(_texts(decoded))


def paths_of(given: Any) -> list[str]:
    """Return the paths in a call's arguments: values of arguments that are named as such, and files that it patches."""
    found: dict[str, None] = {}
    waiting: list[tuple[str, Any]] = [("", arguments_of(given))]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += reversed([(str(name).lower(), one) for name, one in value.items()])
        elif isinstance(value, list):
            waiting += reversed([(key, one) for one in value])
        elif isinstance(value, str):
            if key in _PATH_KEYS and "\n" not in value and value:
                found[value] = None
            elif "***" in value or "+++" in value:
                found |= dict.fromkeys(path.strip() for path in _PATCHED.findall(value))
    return list(found)


def _texts(value: Any) -> list[str]:
    """Return the values in JSON as texts, in their order; encoded bytes are left out."""
    found: list[str] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if len(one) < _ENCODED or _BLANK.search(one, 0, _ENCODED):
                found.append(one)
        elif isinstance(one, Mapping):
            waiting += reversed(list(one.values()))
        elif isinstance(one, list):
            waiting += reversed(one)
        elif one is not None and not isinstance(one, bool):
            found.append(str(one))
    return found
