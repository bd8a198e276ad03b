"""Lay out routing quality: each figure with a bar and a sentence, then where people disagree with the router.

Readers may not know the router: each rate comes with its counts (`393 of 412 sessions …`), kinds of prompts are spelled
out, and empty sections are omitted. Names come from logs and are escaped here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, tzinfo

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sessionlog.analytics.columns import counted
from sessionlog.analytics.routing import OverrideClassBucket, RoutingQualityScan
from sessionlog.analytics.routing_buckets import OUTCOMES
from sessionlog.analytics.window import describe_window
from sessionlog.render.bar import BAR_CELLS, bar
from sessionlog.render.escape import one_line
from sessionlog.render.numbers import percent

LISTED = 10
"""The most lines of a section; further ones are only counted."""

_BESIDE = 120
"""The width from which sentences stand beside their figures; on a narrower terminal they stand below."""
_INDENT, _LABEL, _FIGURE, _GAP = 2, 18, 6, 2
_NAME = 48
_HEADING = 28
"""The least columns of a kind of prompt; where the numbers leave less, one column names the outcomes in words."""
_BUCKET = re.compile(r"tokens=(\w+),tools=(yes|no),reasoning=(.*)", re.DOTALL)
_SIZE_WORDS = {"xlarge": "very large", "unknown": "unsized"}
_USUAL = ("stalled", "failed")


def render_routing_quality(
    scan: RoutingQualityScan, *, width: int, tz: str | tzinfo = "UTC", now: datetime | None = None
) -> RenderableType:
    """Return the terminal view for a console of `width` columns; times of the title are in `tz`."""
    span = describe_window(scan.window, tz, now=now)
    if not scan.total_requests:
        when = f" {span}" if scan.window else ""
        return Text(f"No sessions were recorded{when}, so there is no routing to judge.")
    if not scan.routed_requests:
        return Text(
            f"{counted(scan.total_requests, 'session')}, and no decision of a router in their logs: "
            "there is no routing to judge."
        )
    title = Text.assemble(("Routing quality", "title"), f" · {span} · {counted(scan.total_requests, 'session')}")
    parts: list[RenderableType] = [title, Text(), *_figures(scan, beside=width >= _BESIDE)]
    for section in _sections(scan, width - _INDENT):
        parts += [Text(), _indented(section, _INDENT)]
    return Group(*parts)


def bucket_words(bucket: str) -> str:
    """Return a prompt feature bucket in words: `large prompts with tools, high reasoning`."""
    match = _BUCKET.fullmatch(bucket)
    if match is None:
        return one_line(bucket, _NAME)
    size, tools, reasoning = match.groups()
    words = f"{_SIZE_WORDS.get(size, size)} prompts" + (" with tools" if tools == "yes" else ", no tools")
    if reasoning == "none":
        return words
    return f"{words}, {'reasoning off' if reasoning == 'off' else one_line(reasoning, 24) + ' reasoning'}"


def _figures(scan: RoutingQualityScan, *, beside: bool) -> Iterator[RenderableType]:
    for label, drawn, figure, meaning in _figure_rows(scan):
        gap = " " * _GAP
        line = Text(f"{'':{_INDENT}}{label:<{_LABEL}}{gap}{drawn:<{BAR_CELLS}}{gap}{figure:>{_FIGURE}}")
        if beside:
            yield line.append(f"   {meaning}", "secondary")
        else:
            yield line
            yield _indented(Text(meaning, "secondary"), _INDENT + _LABEL + _GAP)


def _figure_rows(scan: RoutingQualityScan) -> Iterator[tuple[str, str, str, str]]:
    """Yield (label, bar, figure, sentence) of each figure."""
    rate, sessions = scan.auto_acceptance_rate, counted(scan.total_requests, "session")
    meaning = f"{scan.accepted_requests:,} of {sessions} ran as the router chose"
    yield "auto accepted", bar(rate), percent(rate), meaning
    rate, overrides = scan.override_disagreement_rate, counted(scan.total_overrides, "override")
    meaning = f"{scan.disagreeing_overrides:,} of {overrides} chose what the router would not have"
    if rate is None:
        meaning = "no override took effect, so there is nothing to compare"
    yield "override disagreed", bar(rate), percent(rate), meaning
    if scan.rejected_overrides:
        reasons = [f"{one_line(one['reason'], _NAME)} {one['count']:,}" for one in scan.rejected_breakdown]
        listed = [*reasons[:3], f"{len(reasons) - 3} other reasons"] if len(reasons) > 4 else reasons
        yield "rejected pins", "", f"{scan.rejected_overrides:,}", f"could not be honoured: {' · '.join(listed)}"
    if scan.undecodable_overrides:
        meaning = "not readable, so their sessions do not count as accepted"
        yield "broken overrides", "", f"{scan.undecodable_overrides:,}", meaning


def _sections(scan: RoutingQualityScan, width: int) -> Iterator[RenderableType]:
    if scan.total_overrides:
        yield _pins(scan, width)
    failovers = scan.failovers
    if failovers["sessions"]:
        moved = f"{counted(failovers['sessions'], 'session')} changed provider"
        if failovers["total"] != failovers["sessions"]:
            moved += f", {counted(failovers['total'], 'time')} in all"
        paths = [(one["providers"] or ["providers not logged"], one["count"]) for one in failovers["by_path"]]
        yield _listed("FAILOVERS", moved, paths)
    resolved = [((one["requested"], one["resolved"]), one["count"]) for one in scan.model_changes]
    if resolved:
        yield _listed("MODEL CHANGES", "the router took another model name than the one asked for", resolved)
    served = [((one["requested"], one["served"]), one["count"]) for one in scan.served_changes]
    if served:
        yield _listed("SERVED AS", "the provider answered under another model name", served)


def _pins(scan: RoutingQualityScan, width: int) -> RenderableType:
    """Return one table of two parts: where people disagree, and where they agree. The columns align."""
    buckets = scan.override_class_breakdown
    parts = {
        "WHERE PEOPLE DISAGREE": [bucket for bucket in buckets if not bucket.match],
        "WHERE PEOPLE AGREE": [bucket for bucket in buckets if bucket.match],
    }
    headings = [heading for heading, rows in parts.items() if rows]
    if not headings:
        return Text(f"No override pinned {'the ' + scan.axis if scan.axis else 'anything'}.", "note")
    outcomes = _outcome_columns(buckets, width)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="title")
    table.add_column(headings[0], overflow="fold")
    table.add_column("AXIS", overflow="fold")
    for head in ("COUNT", "OK", *map(str.upper, outcomes)):
        table.add_column(head, justify="right", no_wrap=True)
    if not outcomes:
        table.add_column("ENDED", overflow="fold")
    for heading in headings:
        if heading != headings[0]:
            table.add_row()
            table.add_row(Text(heading, "title"))
        for one in sorted(parts[heading], key=_frequent_first):
            words = Text(bucket_words(one.prompt_feature_bucket)), Text(one_line(one.axis, _NAME))
            ends = [f"{_ended(one, outcome):,}" for outcome in outcomes] or [_ended_words(one)]
            table.add_row(*words, f"{one.count:,}", percent(one.success_rate), *ends)
    return Group(table, Text(), Text("\n".join(_notes(scan)), "note"))


def _outcome_columns(buckets: Sequence[OverrideClassBucket], width: int) -> list[str]:
    """Return the outcomes with a column: the usual ones and those that occur; none where they do not fit."""
    columns = [outcome for outcome in OUTCOMES[1:] if outcome in _USUAL or any(_ended(one, outcome) for one in buckets)]
    needed = sum(len(head) + _GAP for head in ("provider", "COUNT", "100 %", *columns))
    return columns if _HEADING + needed <= width else []


def _ended(bucket: OverrideClassBucket, outcome: str) -> int:
    return int(getattr(bucket, f"{outcome}_outcomes"))


def _ended_words(bucket: OverrideClassBucket) -> str:
    return ", ".join(f"{_ended(bucket, outcome):,} {outcome}" for outcome in OUTCOMES if _ended(bucket, outcome))


def _notes(scan: RoutingQualityScan) -> Iterator[str]:
    if scan.axis:
        yield f"only {scan.axis} pins are listed; the figures above are of all"
    yield "OK: successes among the known outcomes · stalled: stopped by a limit or budget"
    unsized = [one.prompt_feature_bucket.startswith("tokens=unknown,") for one in scan.override_class_breakdown]
    if any(unsized):
        yield "unsized: the log does not give the prompt's length"
    if not all(unsized):
        yield "prompts by tokens: tiny < 1k, small < 4k, medium < 16k, large < 64k"


def _frequent_first(bucket: OverrideClassBucket) -> tuple[int, float, str, str]:
    return (-bucket.count, -(bucket.success_rate or 0), bucket.prompt_feature_bucket, bucket.axis)


def _listed(heading: str, meaning: str, rows: Sequence[tuple[Sequence[str], int]]) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True, min_width=5)
    table.add_column(overflow="fold")
    for names, count in rows[:LISTED]:
        table.add_row(f"{count:,}", Text(" → ".join(one_line(name, _NAME) for name in names)))
    rest = len(rows) - LISTED
    if rest > 0:
        table.add_row("", Text(f"and {rest:,} more (--json lists all)", "note"))
    return Group(Text.assemble((heading, "title"), (f" · {meaning}", "secondary")), table)


def _indented(part: RenderableType, columns: int) -> Padding:
    return Padding(part, (0, 0, 0, columns), expand=False)
