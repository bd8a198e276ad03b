"""Lay out a search for secrets: counts by kind, then places; never the secret itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sessionlog.analytics.columns import counted
from sessionlog.events.secrets.rules import NAMED, RULES, VERSION
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.numbers import human_count
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import home_path
from sessionlog.sources.scrub import FileScrub, Finding

SCHEMA = "sessionlog.scrub/1"
_SHOWN = 100
_TABLE = (
    Column("KIND", right=False),
    Column("WHAT", right=False, least=12),
    Column("FOUND"),
    Column("FILES"),
)


def what_rules_find() -> Mapping[str, str]:
    """Return rule id → the kind of secret it finds."""
    return {rule.id: rule.what for rule in (*RULES, *NAMED)}


def render_scrub(results: Sequence[FileScrub], *, width: int, home: str = "", folder: str = "") -> Iterator[Line]:
    """Yield the lines; `folder` is where copies were written, "" for none."""
    counts, in_files = Counter[str](), Counter[str]()
    for result in results:
        counts.update(result.counts)
        in_files.update(result.counts.keys())
    total = counts.total()
    summary = f"{counted(len(results), 'file')}: {counted(total, 'secret') if total else 'no secret'}"
    unread = sum(bool(result.problem) for result in results)
    failed = "not searched or copied" if folder else "not searched whole"
    yield Line.of((f"{summary}, {unread:,} {failed}" if unread else summary, "title"))
    if counts:
        yield Line()
        what = what_rules_find()
        rows = [
            [
                Cell(rule),
                Cell(what.get(rule, "")),
                Cell(human_count(count)),
                Cell(human_count(in_files[rule])),
            ]
            for rule, count in counts.most_common()
        ]
        yield from fit_table(_TABLE, rows, width=width).lines
        yield Line()
        shown = 0
        for result in results:
            for finding in result.findings[: max(0, _SHOWN - shown)]:
                yield Line(f"{_place(result, finding, home)} {finding.rule}")
                shown += 1
        if total > shown:
            yield Line(f"… and {total - shown:,} more; --json names the first 1,000 of each file", "note")
    for result in results:
        if result.problem:
            yield Line(f"✘ {one_line(home_path(result.path, home), 200)}: {one_line(result.problem, 200)}", "failed")
    if folder:
        copied = sum(bool(result.copy) for result in results)
        where = one_line(home_path(folder, home), 200)
        yield Line(f"{counted(copied, 'file')} copied to {where} without them; the originals are unchanged", "note")
    elif total:
        yield Line("--write DIR writes copies without them; revoke what was found", "note")


def _place(result: FileScrub, finding: Finding, home: str) -> str:
    path = one_line(home_path(result.path, home), 200)
    return f"{path}:{finding.line}" if finding.line else f"{path} ({one_line(finding.place, 80)})"


def scrub_document(results: Sequence[FileScrub]) -> dict[str, Any]:
    """Return the JSON document `sessionlog.scrub/1`."""
    return {
        "schema": SCHEMA,
        "rules_version": VERSION,
        "files": [
            {
                "path": result.path,
                "source": result.source or None,
                "counts": result.counts,
                "findings": [
                    {"rule": f.rule, "line": f.line or None, "offset": f.offset, "place": f.place or None}
                    for f in result.findings
                ],
                "problem": result.problem or None,
                "copy": result.copy or None,
            }
            for result in results
        ],
        "secrets": sum(sum(result.counts.values()) for result in results),
    }
