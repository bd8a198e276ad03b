"""Check the logs of every source: the problems found when a log is read as events.

Only native logs are checked further (numbering, clocks, permissions), and only these can be repaired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from sessionlog.errors import Problem, log_problem
from sessionlog.events.limits import MAX_LINE
from sessionlog.reader.check import FileCheck, check_log
from sessionlog.reader.walk import LOG_SUFFIXES
from sessionlog.sources.discover import discover, find_logs
from sessionlog.sources.names import NATIVE
from sessionlog.sources.protocol import Log
from sessionlog.sources.record import NO_PROBLEMS, Problems
from sessionlog.sources.registry import all_sources, source_of
from sessionlog.sources.spread import Spread, in_shares, spread_files

_MAX_KEPT = 1000


def check_sources(
    paths: Iterable[str] | None,
    env: Mapping[str, str],
    *,
    max_line: int = MAX_LINE,
    progress: Callable[[int, int], None] | None = None,
    spread: Spread = in_shares,
) -> Iterator[tuple[str, FileCheck]]:
    """Yield (source id, result) for each log under `paths`, or of every agent found.

    A `.jsonl` file of an unknown format is named in a note; other files are not. `progress` is called with (files done,
    files in all); `spread` may give the logs to several processes.
    """
    items: list[tuple[tuple[str, str] | Problem, str]] = [
        ((item.source.id, item.path) if isinstance(item, Log) else item, item.path)
        for item in (discover(env, all_sources()) if paths is None else find_logs(paths, env))
    ]
    for found in spread_files(items, partial(_check, max_line=max_line), spread, progress):
        if found is not None:
            yield found


def _check(item: tuple[str, str] | Problem, *, max_line: int) -> tuple[str, FileCheck] | None:
    if isinstance(item, Problem):
        if item.severity == "damage":
            return "", FileCheck(path=item.path, events=0, damaged=1, damage=(item,), counts={item.kind: 1})
        if item.path.endswith(LOG_SUFFIXES):
            return "", FileCheck(path=item.path, events=0, notes=(item,), counts={item.kind: 1})
        return None
    source, path = item
    is_ours = source in NATIVE
    found = check_log(path, max_line=max_line) if is_ours else check_foreign(Log(source=source_of(source), path=path))
    return source, found


def check_foreign(log: Log) -> FileCheck:
    """Read all sessions of another agent's log to their ends and return the problems found.

    Rows that only a report skips are damage, too.
    """
    events, scanned, problems = 0, NO_PROBLEMS, list[Problem]()
    try:
        for item in log.source.check(log.path):
            if type(item) is Problem:
                problems.append(item)
            elif type(item) is Problems:
                scanned = item
            else:
                events += 1
        problems = [*scanned.first, *problems]
    except Exception as error:  # noqa: BLE001 - a bug in a source must not break the check of all others
        problems = [log_problem(log.path, error, log.source.id)]
    found = dict.fromkeys(problems)  # scan and read report the same ones
    damage = [problem for problem in found if problem.severity == "damage"]
    notes = [problem for problem in found if problem.severity != "damage"]
    return FileCheck(
        path=log.path,
        events=events,
        damaged=max(scanned.count, len(damage)),  # a scan names only the first
        damage=tuple(damage[:_MAX_KEPT]),
        notes=tuple(notes[:_MAX_KEPT]),
        counts=dict(Counter(problem.kind for problem in found)),
    )
