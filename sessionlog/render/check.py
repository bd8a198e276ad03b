"""Lay out a check: damage by file and line, counts of notes, a summary at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from sessionlog.analytics.columns import counted
from sessionlog.errors import Problem
from sessionlog.reader.check import FileCheck
from sessionlog.reader.repair import Repair
from sessionlog.render.escape import terminal

SCHEMA = "sessionlog.check/1"
OF_LOGS, OF_EXPORTS = ("log", "event"), ("file", "row")
"""What is checked, and what is in it."""

_SHOWN = 20


def render_check(
    results: Sequence[FileCheck], *, notes: bool, repairing: bool = False, nouns: tuple[str, str] = OF_LOGS
) -> str:
    """Return the text of a check; `notes` lists them instead of counting, `repairing` omits the advice to repair."""
    lines: list[str] = []
    for result in results:
        findings = [*result.damage, *(result.notes if notes else ())]
        lines += [f"{_mark(problem)} {_sentence(problem)}" for problem in findings[:_SHOWN]]
        if len(findings) > _SHOWN:
            lines.append(f"  … and {len(findings) - _SHOWN} more in {result.path}")
    lines += _summary(results, notes=notes, nouns=nouns)
    if not repairing and any(result.repairable for result in results):
        lines.append("`sessionlog check --repair` moves damaged bytes to NAME.quarantine and mends the log")
    return "".join(terminal(line) + "\n" for line in lines)


def _mark(problem: Problem) -> str:
    return "✘" if problem.severity == "damage" else "·"


def _sentence(problem: Problem) -> str:
    place = f"{problem.path}:{problem.line} (offset {problem.offset})" if problem.line else problem.path
    return f"{place} {problem.kind}: {problem.detail}"


def _summary(results: Sequence[FileCheck], *, notes: bool, nouns: tuple[str, str]) -> list[str]:
    events = sum(result.events for result in results)
    damage = sum(result.damaged for result in results)
    noted = Counter[str]()
    for result in results:
        noted.update({problem.kind for problem in result.notes})
    files = f"{counted(len(results), nouns[0])}, {counted(events, nouns[1])}"
    verdict = counted(damage, "damaged piece") if damage else "no damage"
    lines = [f"{files}: {verdict}"]
    if noted:
        kinds = ", ".join(f"{kind} in {count}" for kind, count in sorted(noted.items()))
        lines.append(f"notes: {kinds}" if notes else f"notes: {kinds} (--notes shows them)")
    return lines


def render_repair(path: str, repair: Repair | str) -> str:
    """Return one line about a repair, or the reason why there was none."""
    if isinstance(repair, str):
        return terminal(f"✘ {path}: not repaired: {repair}") + "\n"
    done = []
    if repair.recovered is not None:
        done.append(f"a stopped repair was finished, {counted(repair.recovered, 'line')} taken over")
    if repair.quarantine is not None:
        moved = f"{counted(repair.pieces, 'piece')} ({counted(repair.length, 'byte')})"
        done.append(f"{moved} moved to {repair.quarantine}")
    return terminal(f"✔ {path}: {'; '.join(done)}" if done else f"· {path}: nothing to repair") + "\n"


def is_left(result: FileCheck, repair: Repair | str | None) -> bool:
    """Whether a log is still damaged after its repair, if there was one."""
    mended = repair.pieces + (repair.recovered is not None) if isinstance(repair, Repair) else 0
    return result.damaged > mended


def check_document(
    results: Sequence[FileCheck],
    repairs: Mapping[str, Repair | str] | None = None,
    *,
    nouns: tuple[str, str] = OF_LOGS,
) -> dict[str, Any]:
    """Return the JSON document `sessionlog.check/1`; `repairs` has the repair of each path, or the reason of none."""
    done = repairs or {}
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "files": [
            {
                "path": result.path,
                f"{nouns[1]}s": result.events,
                "counts": result.counts,
                "problems": [_object(problem) for problem in (*result.damage, *result.notes)],
            }
            for result in results
        ],
        "damaged_files": sum(is_left(result, done.get(result.path)) for result in results),
    }
    if repairs is not None:
        document["repairs"] = [_repair_object(path, repair) for path, repair in repairs.items()]
    return document


def _repair_object(path: str, repair: Repair | str) -> dict[str, Any]:
    if isinstance(repair, str):
        return {"path": path, "error": repair}
    shown = {"path": path, "quarantine": repair.quarantine, "pieces": repair.pieces, "bytes": repair.length}
    return shown if repair.recovered is None else {**shown, "recovered": repair.recovered}


def _object(problem: Problem) -> dict[str, Any]:
    return {
        "line": problem.line,
        "offset": problem.offset,
        "length": problem.length,
        "kind": problem.kind,
        "severity": problem.severity,
        "detail": problem.detail,
    }
