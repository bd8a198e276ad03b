"""Lay out a tool call: its name and main argument on the first line, other arguments and the result below.

A terminal shows arguments as `key=value` or as text; pipes and diffs get the logged JSON, compact, in its order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from sessionlog.render.replay.blocks import Call, ToolCallBlock
from sessionlog.render.replay.changes import ChangedLine, changes_of, command_of
from sessionlog.render.replay.exact import Digits, compact_json
from sessionlog.render.replay.figures import count, span_of_time
from sessionlog.render.replay.lines import PAGE, Line, Span, View, body, cells, clipped, failure, head, joined, words

Json = Any
_MAIN = ("command", "cmd", "path", "file_path", "file", "filename", "pattern", "query", "url", "prompt", "dir", "name")
"""Names of the main argument, by preference."""

_SIGN, _GAP = Span("  ⚙ ", "tool"), Span("  ")
_STYLES = {"+": "cached", "-": "failed", " ": "note", "@": "note"}
_INLINE = 60  # a longer text argument gets lines of its own


def tool_result(view: View, block: ToolCallBlock) -> list[Line]:
    """Return a call with its result."""
    lines = tool_call(view, block.call, outcome(view, block))
    lines += body(view, block.output, view.limits.output, indent=4, gutter="│ ", prose=False)
    if block.error and not _is_short(block.error):
        lines += failure(view, block.error, view.limits.output, indent=4)
    return lines


def tool_call(view: View, call: Call, figures: Sequence[Span]) -> list[Line]:
    """Return a call: its name and figures, its main argument if it fits beside them, and the other arguments below."""
    name = (_SIGN, words(call.name or "(unnamed tool)", "tool"))
    if view.exact:
        text = compact_json(call.arguments) if call.given else ""
        below = body(view, text, view.limits.arguments, indent=4, style="note", prose=False)
        return head(view, name, figures) + below
    changed, shown = changes_of(call.arguments)
    room = min(view.width or 80, PAGE) - cells(name) - sum(cells((part,)) + 3 for part in figures) - 4
    main, short, long = by_size(call, shown, room)
    listed = json_text(view, short)
    beside = len(main) + len(listed) + 2 <= room
    left = joined((words(main), words(listed if beside else "", "note")), by=Span("  ", "note"))
    lines = head(view, (*name, _GAP, *left) if left else name, figures)
    lines += body(view, "" if beside else listed, view.limits.arguments, indent=4, style="note", prose=False)
    for key, text in long.items():
        if len(short) + len(long) > 1:
            lines.append(clipped((Span("    "), words(f"{key}:", "note")), view.width))
        lines += body(view, text, view.limits.arguments, indent=4, gutter="› ", prose=False)
    lines += _changed(view, changed)
    return lines


def _changed(view: View, lines: Sequence[ChangedLine]) -> Iterator[Line]:
    """Yield the lines of a diff; only the first ones of a long diff."""
    most = view.limits.output.lines
    shown = lines if most is None or len(lines) <= most + 1 else lines[:most]
    for line in shown:
        sign = " " if line.sign == "@" else line.sign
        yield clipped((Span(f"    {sign} ", _STYLES[line.sign]), words(line.text, _STYLES[line.sign])), view.width)
    if len(shown) < len(lines):
        yield (Span(f"    … +{len(lines) - len(shown):,} lines (--full)", "note"),)


def json_text(view: View, value: Json) -> str:
    """Return a JSON value on one line: `key=value` on a terminal, else JSON."""
    if view.exact or not isinstance(value, Mapping):
        return compact_json(value)
    return " ".join(f"{key}={_bare(item)}" if key else _bare(item) for key, item in value.items())


def _bare(value: Json) -> str:
    plain = isinstance(value, str) and value and not any(char in value for char in " \n\"'=")
    return str(value) if plain else compact_json(value)


def outcome(view: View, block: ToolCallBlock) -> list[Span]:
    """Return how a call ended: its error, its time, the lines of its result."""
    if not block.answered:
        return [Span("◌ no result", "unfinished")]
    figures: list[Span] = []
    if block.error:
        figures.append(words(f"✘ {block.error}" if _is_short(block.error) else "✘ failed", "failed"))
    if block.duration_ms or view.exact:
        figures.append(span_of_time(view, block.duration_ms))
    lines = block.output.rstrip("\r\n").count("\n") + 1
    if lines > 1:
        figures.append(Span(f"{count(view, lines)} lines", "note"))
    return figures


def _is_short(error: str) -> bool:
    return len(error) <= 40 and "\n" not in error.strip()


def by_size(call: Call, shown: Collection[str], room: int) -> tuple[str, dict[str, Json], dict[str, str]]:
    """Return the main argument if it fits beside the name, the short arguments, and the texts that need more lines.

    Arguments in `shown`, which a diff has, are left out. Arguments that are not an object get the name "": half a JSON
    text of a broken stream, or the plain text of a tool.
    """
    given = call.arguments if isinstance(call.arguments, Mapping) else {"": call.arguments} if call.given else {}
    every = {str(key): _as_typed(key, value) for key, value in given.items() if key not in shown}
    texts = {key: value for key, value in every.items() if isinstance(value, str) and not isinstance(value, Digits)}
    main = next((key for key in (*_MAIN, *texts) if key in texts), "")
    fits = main and "\n" not in texts[main].strip() and len(texts[main]) <= room
    beside = texts.pop(main) if fits else ""
    long = {key: text for key, text in texts.items() if key == main or "\n" in text or len(text) > _INLINE}
    rest = {key: value for key, value in every.items() if key not in long and not (fits and key == main)}
    return beside, rest, long


def _as_typed(name: str, value: Json) -> Json:
    """Return a command given as a list of words as a command line, any other argument as it is."""
    is_command = name in ("command", "cmd") and isinstance(value, list | tuple)
    return command_of(value) or value if is_command else value
