"""How a check looks: damage by file and line, notes in numbers, one sentence at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sessionlog.errors import Problem
from sessionlog.reader.check import FileCheck
from sessionlog.reader.repair import Repair
from sessionlog.render.escape import terminal

SCHEMA = "sessionlog.check/1"
_SHOWN = 20


def render_check(results: Sequence[FileCheck], *, notes: bool) -> str:
    """Return the text of a check; notes are spelled out only on request."""
    lines: list[str] = []
    for result in results:
        findings = [*result.damage, *(result.notes if notes else ())]
        lines += [f"{_mark(problem)} {_sentence(problem)}" for problem in findings[:_SHOWN]]
        if len(findings) > _SHOWN:
            lines.append(f"  … and {len(findings) - _SHOWN} more in {result.path}")
    return "".join(terminal(line) + "\n" for line in [*lines, *_summary(results, notes=notes)])


def _mark(problem: Problem) -> str:
    return "✘" if problem.severity == "damage" else "·"


def _sentence(problem: Problem) -> str:
    place = f"{problem.path}:{problem.line} (offset {problem.offset})" if problem.line else problem.path
    return f"{place} {problem.kind}: {problem.detail}"


def _summary(results: Sequence[FileCheck], *, notes: bool) -> list[str]:
    events = sum(result.events for result in results)
    damage = sum(result.damaged for result in results)
    noted = Counter[str]()
    for result in results:
        noted.update({problem.kind for problem in result.notes})
    files = f"{_counted(len(results), 'log')}, {_counted(events, 'event')}"
    verdict = _counted(damage, "damaged piece") if damage else "no damage"
    lines = [f"{files}: {verdict}"]
    if noted:
        kinds = ", ".join(f"{kind} in {count}" for kind, count in sorted(noted.items()))
        lines.append(f"notes: {kinds}" if notes else f"notes: {kinds} (--notes shows them)")
    if damage:
        lines.append("`sessionlog check --repair` moves damaged bytes to NAME.quarantine and mends the log")
    return lines


def render_repair(repair: Repair | str) -> str:
    """Return one line about a repair, or about why there was none."""
    if isinstance(repair, str):
        return terminal(f"✘ not repaired: {repair}") + "\n"
    if repair.quarantine is None:
        return terminal(f"· {repair.path}: nothing to repair") + "\n"
    moved = f"{_counted(repair.pieces, 'piece')} ({_counted(repair.length, 'byte')})"
    return terminal(f"✔ {repair.path}: {moved} moved to {repair.quarantine}") + "\n"


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def check_document(results: Sequence[FileCheck]) -> dict[str, Any]:
    """Return the JSON document `sessionlog.check/1`."""
    return {
        "schema": SCHEMA,
        "files": [
            {
                "path": result.path,
                "events": result.events,
                "counts": result.counts,
                "problems": [_object(problem) for problem in (*result.damage, *result.notes)],
            }
            for result in results
        ],
        "damaged_files": sum(1 for result in results if result.damaged),
    }


def _object(problem: Problem) -> dict[str, Any]:
    return {
        "line": problem.line,
        "offset": problem.offset,
        "length": problem.length,
        "kind": problem.kind,
        "severity": problem.severity,
        "detail": problem.detail,
    }
