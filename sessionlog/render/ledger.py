"""How the ledger's own state looks: what it keeps and what it alone remembers, and what was found or done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sessionlog.analytics.zones import resolve_zone
from sessionlog.ledger.compare import Difference
from sessionlog.ledger.summary import KeptSource, Summary
from sessionlog.ledger.sync import Synced
from sessionlog.ledger.upkeep import Forgettable, Rebuilt
from sessionlog.ledger.verify import Verified
from sessionlog.render.escape import one_line, terminal
from sessionlog.render.line import Line
from sessionlog.render.notes import counted
from sessionlog.render.numbers import human_count, size
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import home_path, stamp

_TABLE = (
    Column(title="AGENT", name="agent", right=False),
    Column(title="LOGS", name="logs"),
    Column(title="SESSIONS", name="sessions", rank=2),
    Column(title="RECORDS", name="records"),
    Column(title="GONE LOGS", name="gone logs", rank=1),
    Column(title="ARCHIVED SESSIONS", name="archived sessions", rank=4),
    Column(title="ARCHIVED RECORDS", name="archived records", rank=3),
    Column(title="ELSEWHERE", name="elsewhere", rank=5),
)


def render_summary(summary: Summary, *, width: int, tz: str, now: datetime, home: str = "") -> Iterator[Line]:
    """Yield the lines of the terminal view."""
    path = one_line(home_path(summary.path, home), 400)
    yield Line.of(("Ledger", "title"), f" · {path}")
    if not summary.exists:
        yield Line("there is none yet: the first report makes it, and so does `sessionlog ledger sync`", "note")
        return
    zone = resolve_zone(tz)
    facts = [size(summary.bytes), f"schema version {summary.version}", f"{counted(summary.tool_calls, 'tool call')}"]
    if summary.oldest_ns is not None:
        facts.append(f"oldest record {stamp(summary.oldest_ns, zone, now=now)}")
    facts.append("not synced yet" if summary.synced_ns is None else f"synced {stamp(summary.synced_ns, zone, now=now)}")
    yield Line(" · ".join(facts))
    yield Line()
    total = _row(summary.total, "TOTAL")
    table = fit_table(_TABLE, [_row(one, one.source) for one in summary.sources], width=width, total=total)
    yield from table.lines
    if table.hidden:
        yield Line(f"hidden columns: {', '.join(table.hidden)} (in --json)", "note")
    yield from _memory(summary.total)


def _row(kept: KeptSource, name: str) -> list[Cell]:
    numbers = (
        kept.files, kept.sessions, kept.records, kept.archived_files, kept.archived_sessions, kept.archived_records,
        kept.elsewhere_files,
    )  # fmt: skip
    return [Cell(text=one_line(name, 30)), *(Cell(text=human_count(number)) for number in numbers)]


def _memory(total: KeptSource) -> Iterator[Line]:
    if total.archived_records or total.archived_files:
        records, logs = counted(total.archived_records, "record"), counted(total.archived_files, "log")
        verb = "is" if total.archived_files == 1 else "are"
        yield Line(
            f"{records} of {logs} that {verb} gone: only the ledger remembers (`sessionlog ledger backup FILE`)", "note"
        )
    if total.elsewhere_files:
        yield Line(f"{counted(total.elsewhere_files, 'log')} not where logs are looked for now: left out", "note")


def render_synced(synced: Synced) -> str:
    """Return what a sync did, in a sentence."""
    words = [f"{counted(synced.files, 'log')}: {synced.read:,} read"]
    words += [f"{synced.missing:,} gone since the last time"] if synced.missing else []
    words += [f"{synced.failed:,} could not be read"] if synced.failed else []
    return f"{', '.join(words)}\n"


def render_rebuilt(path: str, rebuilt: Rebuilt) -> str:
    """Return what a rebuild did."""
    lines = []
    if rebuilt.rescued is not None:
        saved = rebuilt.rescued
        lines.append(f"{path} was damaged: it is kept as {rebuilt.damaged}")
        brought = f"{counted(saved.records, 'record')} and {counted(saved.calls, 'tool call')}"
        lines.append(f"brought from it: {brought} of {counted(saved.files, 'log')}")
        if saved.lost:
            lines.append(f"of {counted(saved.lost, 'log')} not everything could be read")
    text = "".join(f"{terminal(line)}\n" for line in lines)
    return text if rebuilt.synced is None else text + render_synced(rebuilt.synced)


def render_forgettable(found: Forgettable) -> str:
    """Return what would be forgotten, in a sentence."""
    what = f"{counted(found.records, 'record')}, {counted(found.sessions, 'session')}"
    return f"{counted(len(found.gone), 'log')} gone ({what})"


def there_note(found: Forgettable) -> str:
    """Say why logs that are there are not forgotten."""
    logs, them = ("1 log that fits is", "it") if found.there == 1 else (f"{found.there:,} logs that fit are", "them")
    return f"{logs} still there and will not be forgotten: the next sync would read {them} again"


def render_verified(verified: Verified) -> Iterator[Line]:
    """Yield what was found: damage first, then one sentence that says whether a number depends on it."""
    for sentence in verified.broken:
        yield Line(f"✘ {one_line(sentence, 300)}", "failed")
    for path in verified.changed:
        yield Line(f"✘ {one_line(path, 300)}: not what was kept of this log, which is gone", "failed")
    if verified.changed_count > len(verified.changed):
        yield Line(f"  … and {counted(verified.changed_count - len(verified.changed), 'log')} more", "note")
    yield from _differences(verified.derived, verified.derived_count, "computed anew it is")
    yield from _differences(verified.differences, verified.difference_count, "the logs say")
    if verified.writing:
        yield Line(f"· {counted(verified.writing, 'session')} left out: their logs were being written to", "note")
    yield _verdict(verified)


def _differences(first: Sequence[Difference], count: int, theirs: str) -> Iterator[Line]:
    for one in first:
        name = one_line(f"{one.source}:{one.session}", 80)
        yield Line(
            f"✘ {name} {one.column}: the ledger says {_value(one.ledger)}, {theirs} {_value(one.logs)}", "failed"
        )
    if count > len(first):
        yield Line(f"  … and {counted(count - len(first), 'difference')} more", "note")


def _value(value: Any) -> str:
    return "nothing" if value is None else one_line(str(value), 60)


def _verdict(verified: Verified) -> Line:
    sessions = counted(verified.compared, "session")
    if verified.is_whole:
        return Line(f"{sessions} as in the logs: no difference")
    return Line("the ledger is not right; `sessionlog ledger rebuild` reads all logs anew and keeps what it can")


def synced_document(path: str, synced: Synced | None) -> dict[str, Any]:
    """Return the JSON document `sessionlog.ledger.sync/1`; `synced` is null if another process was writing."""
    return {
        "schema": "sessionlog.ledger.sync/1",
        "path": path,
        "synced": None if synced is None else asdict(synced),
    }


def rebuilt_document(path: str, rebuilt: Rebuilt) -> dict[str, Any]:
    """Return the JSON document `sessionlog.ledger.rebuild/1`."""
    return {"schema": "sessionlog.ledger.rebuild/1", "path": path, **rebuilt.to_dict()}


def backup_document(path: str, copy: str, count: int) -> dict[str, Any]:
    """Return the JSON document `sessionlog.ledger.backup/1`; `count` is in bytes."""
    return {"schema": "sessionlog.ledger.backup/1", "path": path, "backup": copy, "bytes": count}


def forgotten_document(path: str, found: Forgettable, *, forgotten: bool) -> dict[str, Any]:
    """Return the JSON document `sessionlog.ledger.forget/1`."""
    return {
        "schema": "sessionlog.ledger.forget/1",
        "path": path,
        "forgotten": forgotten,
        "logs": len(found.gone),
        "records": found.records,
        "sessions": found.sessions,
        "still_there": found.there,
    }
