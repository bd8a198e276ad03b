"""Lay out the results of `ledger sync`, `rebuild`, `verify`, `backup` and `forget`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from sessionlog.analytics.columns import counted
from sessionlog.ledger.sync import Synced
from sessionlog.ledger.upkeep import Forgettable, Rebuilt
from sessionlog.ledger.verify import Difference, Verified
from sessionlog.render.escape import one_line, terminal
from sessionlog.render.line import Line


def render_synced(synced: Synced) -> str:
    """Return the sentence on a sync."""
    words = [f"{counted(synced.files, 'log')}: {synced.read:,} read"]
    words += [f"{synced.missing:,} gone since the last time"] if synced.missing else []
    words += [f"{synced.failed:,} could not be read"] if synced.failed else []
    return f"{', '.join(words)}\n"


def render_rebuilt(path: str, rebuilt: Rebuilt) -> str:
    """Return the lines on a rebuild."""
    lines = []
    if rebuilt.rescued is not None:
        saved = rebuilt.rescued
        lines.append(f"{path} was damaged: it is kept as {rebuilt.damaged}")
        brought = f"{counted(saved.records, 'record')} and {counted(saved.calls, 'tool call')}"
        lines.append(f"recovered from it: {brought} of {counted(saved.files, 'log')}")
        if saved.lost:
            lines.append(f"of {counted(saved.lost, 'log')} not everything could be read")
    text = "".join(f"{terminal(line)}\n" for line in lines)
    return text if rebuilt.synced is None else text + render_synced(rebuilt.synced)


def render_forgettable(found: Forgettable) -> str:
    """Return the sentence on what `forget` would delete."""
    what = f"{counted(found.records, 'record')}, {counted(found.sessions, 'session')}"
    return f"{counted(len(found.gone), 'log')} gone ({what})"


def kept_note(found: Forgettable) -> str:
    """Return the sentence why logs that were not deleted are not forgotten."""
    logs = "1 log that fits was" if found.there == 1 else f"{found.there:,} logs that fit were"
    return f"{logs} not deleted and will not be forgotten"


def render_verified(verified: Verified) -> Iterator[Line]:
    """Yield damage first, then differences, then the verdict."""
    for sentence in verified.broken:
        yield Line(f"✘ {one_line(sentence, 300)}", "failed")
    yield from _differences(verified.derived, verified.derived_count, "computed again it is")
    yield from _differences(verified.differences, verified.difference_count, "the logs have")
    if verified.left_out:
        logs = counted(verified.left_out, "log")
        yield Line(f"· {logs} left out: new or changed since the last `sessionlog ledger sync`", "note")
    yield _verdict(verified)


def _differences(first: Sequence[Difference], count: int, theirs: str) -> Iterator[Line]:
    for one in first:
        name = one_line(f"{one.source}:{one.session}", 80)
        yield Line(f"✘ {name} {one.column}: the ledger has {_value(one.ledger)}, {theirs} {_value(one.logs)}", "failed")
    if count > len(first):
        yield Line(f"  … and {counted(count - len(first), 'difference')} more", "note")


def _value(value: Any) -> str:
    return "nothing" if value is None else one_line(str(value), 60)


def _verdict(verified: Verified) -> Line:
    sessions = counted(verified.compared, "session")
    if verified.is_whole:
        return Line(f"{sessions} compared with the logs: no difference")
    return Line("the ledger is not right; `sessionlog ledger rebuild` reads all logs again and keeps what it can")


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
