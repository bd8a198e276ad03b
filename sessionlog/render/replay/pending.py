"""Tool calls that a model has asked for and that the log has not answered yet.

A call is shown once, with its result. The result comes as a tool.call event, which may lack the call's id, or only as a
message of the next request; what neither answers is shown as unanswered.
"""

from __future__ import annotations

from collections.abc import Iterable

from sessionlog.render.replay.blocks import Call
from sessionlog.render.replay.exact import compact_json


class Pending:
    """The open calls of the last answer, in its order."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[Call] = []

    def ask(self, calls: Iterable[Call]) -> None:
        """Add the calls of an answer."""
        self._calls.extend(calls)

    def take(self, call: Call) -> Call | None:
        """Take out the open call that an executed one belongs to: by id, else by name and arguments, else by name."""
        by_id = self.take_id(call.id)
        if by_id is not None:
            return by_id
        same_name = [left for left in self._calls if left.name == call.name]
        arguments = compact_json(call.arguments)
        same = [left for left in same_name if compact_json(left.arguments) == arguments]
        found = next(iter(same or same_name), None)
        if found is not None:
            self._calls.remove(found)
        return found

    def take_id(self, call_id: str) -> Call | None:
        """Take out the open call of that id."""
        found = next((call for call in self._calls if call_id and call.id == call_id), None)
        if found is not None:
            self._calls.remove(found)
        return found

    def drain(self) -> list[Call]:
        """Take out all that are left."""
        left, self._calls = self._calls, []
        return left
