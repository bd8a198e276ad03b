"""Find: hits of a search by session with the lines that have the words, changes of a file, what followed an error."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from sessionlog.analytics.columns import counted
from sessionlog.events.times import format_time
from sessionlog.render.cells import cell_len, shorten
from sessionlog.render.escape import one_line, terminal
from sessionlog.render.line import Line
from sessionlog.render.times import clock, home_path
from sessionlog.search.file_calls import is_file
from sessionlog.search.find import Found, Hit, Session
from sessionlog.sources.fold_items import Kind, arguments_of, call_text
from sessionlog.sources.steps import ToolCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.render.replay.changes import ChangedLine
    from sessionlog.render.report import View
    from sessionlog.search.mended import Mended

SCHEMA = "sessionlog.find/1"

_LABELS = {
    Kind.PROMPT: "you", Kind.ANSWER: "answer", Kind.THINKING: "thinking", Kind.CALL: "call",
    Kind.RESULT: "result", Kind.ERROR: "error", Kind.PATHS: "call",
}  # fmt: skip
_WRITTEN = ("content", "file_text", "contents", "new_source")
_DIFF_LINES = 12
_CALLS = 8
_BEFORE = 30
_LABEL = 20
_WORD = 12
_STYLES = {"+": "cached", "-": "failed", "@": "note", " ": ""}
_GONE = {"archive": "log deleted: from the archive", "index": "log deleted: only the index remembers it"}


def replay_command(hit: Hit) -> str:
    """Return the command that opens the replay of a session where the hit is; the id is quoted for a shell."""
    at = "" if hit.time_ns is None else f" --at {format_time(hit.time_ns)}"
    return f"sessionlog replay {shlex.quote(hit.session.name)}{at}"


def render_found(found: Found, view: View, *, file: str = "") -> Iterator[Line]:
    """Yield the lines of hits by session; with `file` each with its change of that file."""
    yield _head(found)
    labels = _label_width(found.hits)
    for session, hits in _by_session(found.hits):
        yield Line()
        yield _session_line(session, hits[0], view)
        for hit in hits:
            yield from _hit_lines(hit, view, labels, file)
        if (kept := next((hit for hit in hits if hit.where != "index"), None)) is not None:
            yield Line(f"    {terminal(replay_command(kept))}", "note", no_wrap=True)


def render_mended(found: Found, errors: Sequence[Mended], view: View) -> Iterator[Line]:
    """Yield the lines of errors, each with what its session did then."""
    from sessionlog.render.replay.changes import changes_of

    yield _head(found, "error" if found.hits[0].kind == Kind.ERROR else "result")
    mends = {id(one.hit): one for one in errors}
    for hit in found.hits:
        yield Line()
        yield _session_line(hit.session, hit, view)
        yield from _hit_lines(hit, view, _label_width([hit]))
        if (one := mends.get(id(hit))) is None:  # only the index remembers it
            continue
        if one.call:
            yield Line(f"      call {shorten(_in_one_line(one.call), max(20, view.width - 12))}", no_wrap=True)
        for call in islice(one.after, _CALLS):
            yield Line(f"      then {shorten(_in_one_line(call_text(call)), max(20, view.width - 12))}", no_wrap=True)
            for sign, text in islice(changes_of(arguments_of(call.input))[0], _DIFF_LINES):
                yield _diff_line(sign, text, view)
        if one.count > _CALLS:
            yield Line(f"      … {counted(one.count - _CALLS, 'more call')}", "note")
        yield Line.of("      ", _outcome(one))
        if one.answer:
            yield Line.of("      last answer  ", (shorten(one_line(one.answer, 400), max(20, view.width - 20)), ""))
        yield Line(f"    {terminal(replay_command(hit))}", "note", no_wrap=True)


def _in_one_line(call: str) -> str:
    return one_line(call.replace("\n", "  ", 1), 400)


def _outcome(one: Mended) -> tuple[str, str]:
    tool = one_line(one.tool, 40) or "the tool"
    if one.outcome == "same call":
        return f"✔ the same call of {tool} succeeded after {counted(one.count, 'call')}", "cached"
    if one.outcome == "same tool":
        return (
            f"◌ another call of {tool} succeeded after {counted(one.count, 'call')}; this one was not repeated",
            "unfinished",
        )
    return f"✘ no call of {tool} succeeded after it in this session", "failed"


def _head(found: Found, thing: str = "hit") -> Line:
    sessions = counted(len({(hit.session.source, hit.session.id) for hit in found.hits}), "session")
    total = counted(found.total, thing) if found.is_exact else f"at most {counted(found.total, thing)}"
    if found.is_exact and found.total <= len(found.hits):
        shown = f"{total} in {sessions}"
    else:
        shown = f"{total} · shown: the newest {len(found.hits):,}, in {sessions} (-n shows more)"
    return Line.of((f"{shown} · {max(1, round(found.seconds * 1000)):,} ms", "title"))


def _by_session(hits: Sequence[Hit]) -> list[tuple[Session, list[Hit]]]:
    groups: dict[Session, list[Hit]] = {}
    for hit in hits:
        groups.setdefault(hit.session, []).append(hit)
    return list(groups.items())


def _session_line(session: Session, hit: Hit, view: View) -> Line:
    when = "no time     " if hit.time_ns is None else view.stamp(hit.time_ns)
    project = one_line(home_path(session.project, view.home), 40) or "–"
    line = Line.of((f"{when}  {one_line(session.source, 20)}  ", ""), (f"{project}  ", "secondary"))
    room = max(10, view.width - cell_len(line.plain) - 2)
    if session.prompt:
        line.append(f"“{shorten(one_line(session.prompt, 200), room)}”", "title")
    line.no_wrap = True
    return line


def _label(hit: Hit) -> str:
    """Return who wrote a text, or the tool."""
    if not hit.tool:
        return _LABELS[hit.kind]
    tool = one_line(hit.tool, 24)
    return {Kind.ERROR: f"✘ {tool}", Kind.RESULT: f"→ {tool}"}.get(hit.kind, tool)


def _label_width(hits: Sequence[Hit]) -> int:
    return min(_LABEL, max((cell_len(_label(hit)) for hit in hits), default=0))


def _hit_lines(hit: Hit, view: View, labels: int, file: str = "") -> Iterator[Line]:
    when = "" if hit.time_ns is None else clock(hit.time_ns, view.zone, with_seconds=True)
    label = shorten(_label(hit), labels)
    label += " " * (labels - cell_len(label))
    line = Line.of(f"    {when:8}  turn {hit.turn:<3}  ", (f"{label}  ", _style(hit.kind)))
    room = max(20, view.width - len(line.plain))
    if hit.where in _GONE:
        line.append(f"({_GONE[hit.where]}) ", "unfinished")
        room = max(20, view.width - len(line.plain))
    changes = _changes(hit, file) if file else []
    for text, style in _marked(_files(hit, file), (), room) if file else _marked(hit.text, hit.marks, room):
        line.append(text, style)
    line.no_wrap = True
    if file:
        added, removed = (sum(one.sign == sign for one in changes) for sign in "+-")
        line.append(f"  +{added:,} −{removed:,}" if changes else "  read", "note")
    yield line
    for sign, text in changes[:_DIFF_LINES]:
        yield _diff_line(sign, text, view)
    if len(changes) > _DIFF_LINES:
        yield Line(f"        … {counted(len(changes) - _DIFF_LINES, 'more line')}", "note")


def _diff_line(sign: str, text: str, view: View) -> Line:
    shown = shorten(terminal(text.expandtabs(4)), max(20, view.width - 12))
    return Line(f"        {' ' if sign == '@' else sign} {shown}", _STYLES[sign], no_wrap=True)


def _style(kind: Kind) -> str:
    if kind == Kind.ERROR:
        return "failed"
    return "you" if kind == Kind.PROMPT else "tool" if kind in (Kind.CALL, Kind.RESULT, Kind.PATHS) else "secondary"


def _files(hit: Hit, file: str) -> str:
    named = hit.text.split("\n")
    return next((one for one in named if is_file(one, file, hit.session.project)), named[0])


def _marked(text: str, marks: Sequence[tuple[int, int]], room: int) -> list[tuple[str, str]]:
    """Return the line that has the first mark in pieces with styles, cut around it."""
    found = marks[0][0] if marks else 0
    start = text.rfind("\n", 0, found) + 1
    end = text.find("\n", found)
    end = min(end if end >= 0 else len(text), found + 4 * room)
    before = text[max(start, found - 4 * room) : found].lstrip()
    pieces = [(_before(before, room, end - found), "")]
    at = found
    for first, last in marks:
        if first >= end:
            break
        pieces += [(text[at:first], ""), (text[first : min(last, end)], "found")]
        at = min(last, end)
    pieces.append((text[at:end] if marks else text[at:end].lstrip(), ""))
    return list(_cut(pieces, room))


def _before(text: str, room: int, after: int) -> str:
    """Return the end of what is before the first found words: more of it where they and what is after need less."""
    least = min(_BEFORE, room // 3)
    most = max(least, room - after - 1)
    if cell_len(terminal(text[-most:])) > most:
        most = least
    if len(text) <= most:
        return text
    kept = text[-most:]
    blank = kept.find(" ", 0, _WORD)
    return f"…{kept[blank + 1 :] if 0 <= blank < len(kept) - 1 else kept}"


def _cut(pieces: Sequence[tuple[str, str]], room: int) -> Iterator[tuple[str, str]]:
    for text, style in pieces:
        shown = terminal(text.replace("\t", " "))
        if cell_len(shown) > room:
            yield shorten(shown, room), style
            return
        if shown:
            yield shown, style
        room -= cell_len(shown)


def _changes(hit: Hit, file: str) -> list[ChangedLine]:
    """Return the lines of a file that a call changes."""
    from sessionlog.render.replay.changes import ChangedLine, changes_of

    step = hit.item.step if hit.item is not None else None
    if not isinstance(step, ToolCall):
        return []
    arguments = arguments_of(step.input)
    lines = changes_of(arguments)[0]
    if not lines and isinstance(arguments, Mapping):
        written = next((arguments[key] for key in _WRITTEN if isinstance(arguments.get(key), str)), "")
        lines = [ChangedLine("+", line) for line in written.splitlines()]
    return _of_file(lines, file, hit.session.project)


def _of_file(lines: Sequence[ChangedLine], file: str, project: str) -> list[ChangedLine]:
    """Return the lines of a patch that are about one file; an edit of one file has no file names."""
    if not any(line.sign == "@" and line.text.startswith("*** ") for line in lines):
        return list(lines)
    found, is_wanted = [], False
    for line in lines:
        if line.sign == "@" and line.text.startswith("*** "):
            is_wanted = is_file(line.text.partition(": ")[2], file, project)
        elif is_wanted:
            found.append(line)
    return found


def found_document(found: Found, *, file: str = "", errors: Sequence[Mended] = ()) -> dict[str, Any]:
    """Return the JSON document of a search."""
    mends = {id(one.hit): one for one in errors}
    return {
        "schema": SCHEMA,
        "total": found.total,
        "total_is_exact": found.is_exact,
        "hits": [_hit_document(hit, file, mends.get(id(hit))) for hit in found.hits],
        "notes": list(found.notes),
    }


def _hit_document(hit: Hit, file: str, mend: Mended | None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "session": hit.session.id,
        "source": hit.session.source,
        "project": hit.session.project or "unknown",
        "prompt": hit.session.prompt,
        "time": None if hit.time_ns is None else format_time(hit.time_ns),
        "turn": hit.turn,
        "kind": hit.kind.name.lower(),
        "tool": hit.tool,
        "path": os.fsencode(hit.path).decode("utf-8", "replace"),
        "where": hit.where,
        "text": hit.text,
        "marks": [list(mark) for mark in hit.marks],
        "replay": None if hit.where == "index" else replay_command(hit),
    }
    if file:
        document["change"] = [f"{line.sign}{line.text}" for line in _changes(hit, file)]
    if mend is not None:
        document["call"] = mend.call
        document["after"] = [call_text(call) for call in mend.after]
        document["outcome"], document["calls"], document["answer"] = mend.outcome, mend.count, mend.answer
    return document
