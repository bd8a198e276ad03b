"""The contents of Google's API, which Gemini CLI and Qwen Code both log as they were sent.

A content is a text, a part, or a list of them; a part is `{"text"}` (with `"thought": true` for reasoning),
`{"functionCall": {id, name, args}}`, `{"functionResponse": {id, name, response}}`, or data of another kind. `contents`
reads the texts; here are the calls, their results, and the token counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sessionlog.events.tokens import read_count
from sessionlog.sources.contents import parts_of
from sessionlog.sources.values import mapping, text


class Result(NamedTuple):
    """What a tool gave back.

    Attributes:
        id: The call's id; "" when the log has none.
        output: A text where the tool gave one, else JSON.
        failed: It was an error.
    """

    id: str
    output: Any
    failed: bool


def calls_of(content: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the tool calls in a content: `id`, `name`, `args`."""
    return filter(None, (mapping(part.get("functionCall")) for part in parts_of(content)))


def results_of(content: Any) -> Iterator[Result]:
    """Yield the tool results in a content."""
    for given in filter(None, (mapping(part.get("functionResponse")) for part in parts_of(content))):
        response = given.get("response")
        error = mapping(response).get("error")
        output = mapping(response).get("output", response) if error is None else error
        yield Result(text(given.get("id")), output, error is not None)


def read_counts(data: Mapping[str, Any], names: tuple[str, ...]) -> tuple[list[int], tuple[str, ...]]:
    """Return the numbers under these names, 0 for what is none, and what was wrong with them."""
    found = [(name, *read_count(data.get(name))) for name in names]
    return [count for _, count, _ in found], tuple(f"{name}: {issue}" for name, _, issue in found if issue)
