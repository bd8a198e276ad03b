"""The contents of Google's API, which Gemini CLI and Qwen Code both log as they were sent.

A content is a text, a part, or a list of them; a part is `{"text"}` (with `"thought": true` for reasoning),
`{"functionCall": {id, name, args}}`, `{"functionResponse": {id, name, response}}`, or data of another kind. `contents`
reads the texts; here are the calls and their results.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sessionlog.sources.contents import parts_of
from sessionlog.sources.values import Json, mapping, text


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


def calls_of(content: Any) -> Iterator[Json]:
    """Yield the tool calls in a content: `id`, `name`, `args`."""
    return filter(None, (mapping(part, "functionCall") for part in parts_of(content)))


def results_of(content: Any) -> Iterator[Result]:
    """Yield the tool results in a content."""
    for given in filter(None, (mapping(part, "functionResponse") for part in parts_of(content))):
        response = given.get("response")
        error = mapping(response).get("error")
        output = mapping(response).get("output", response) if error is None else error
        yield Result(text(given, "id"), output, error is not None)
