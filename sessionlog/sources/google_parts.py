"""Parts: the content of Google's API, which Gemini CLI and Qwen Code both log as it was sent.

A content is a text, a part, or a list of them; a part is `{"text"}` (with `"thought": true` for reasoning),
`{"functionCall": {id, name, args}}`, `{"functionResponse": {id, name, response}}`, or data of another kind. Whatever
has another shape says nothing; nothing here raises. Times, durations and paths are here because both
spell them alike, too.
"""

from __future__ import annotations

import ntpath
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from sessionlog.events.times import epoch_ns, parse_time
from sessionlog.events.tokens import read_count

Json = Any


class Call(NamedTuple):
    """A tool call of the model.

    Attributes:
        id: Its id; empty when the log has none.
        name: The tool.
        arguments: What it was called with.
    """

    id: str
    name: str
    arguments: Json


class Result(NamedTuple):
    """What a tool gave back.

    Attributes:
        id: The call's id; empty when the log has none.
        name: The tool.
        output: A text where the tool gave one, else JSON.
        failed: It was an error.
    """

    id: str
    name: str
    output: Json
    failed: bool


def iterate_parts(content: Json) -> Iterator[dict[str, Json]]:
    """Yield the parts of a content."""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield {"text": part}
        elif isinstance(part, dict):
            yield part


def text_of(content: Json, *, thoughts: bool = False) -> str:
    """The words of a content, or those of its reasoning."""
    return "".join(
        part["text"]
        for part in iterate_parts(content)
        if isinstance(part.get("text"), str) and bool(part.get("thought")) is thoughts
    )


def calls_of(content: Json) -> list[Call]:
    """The tool calls in a content."""
    found = [part["functionCall"] for part in iterate_parts(content) if isinstance(part.get("functionCall"), dict)]
    return [Call(_text(call.get("id")), _text(call.get("name")), call.get("args")) for call in found]


def results_of(content: Json) -> list[Result]:
    """The tool results in a content."""
    found = (part.get("functionResponse") for part in iterate_parts(content))
    return [_result(given) for given in found if isinstance(given, dict)]


def _result(given: dict[str, Json]) -> Result:
    response = given.get("response")
    output, failed = response, False
    if isinstance(response, dict):
        failed = response.get("error") is not None
        output = response["error"] if failed else response.get("output", response)
    return Result(_text(given.get("id")), _text(given.get("name")), output, failed)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def is_absolute(path: object) -> bool:
    """Whether this is an absolute path of any system."""
    return isinstance(path, str) and (path.startswith("/") or bool(ntpath.splitdrive(path)[0]))


def read_duration(value: Json) -> float | None:
    """Return milliseconds, None for what is no time a call can take."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e12 else None


def read_moment(value: Json) -> int | None:
    """Return nanoseconds for RFC 3339 text, or for a number since 1970 in a unit that its magnitude tells."""
    return parse_time(value) if isinstance(value, str) else epoch_ns(value)


def read_counts(data: Mapping[str, Any], names: tuple[str, ...]) -> tuple[list[int], tuple[str, ...]]:
    """Return the numbers under these names, 0 for what is none, and what was wrong with them."""
    found = [(name, *read_count(data.get(name))) for name in names]
    return [count for _, count, _ in found], tuple(f"{name}: {issue}" for name, _, issue in found if issue)
