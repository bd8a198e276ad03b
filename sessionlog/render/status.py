"""Lay out a status: the session, its tokens and cost, its context window, its budgets, and typical sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sessionlog.analytics.columns import counted
from sessionlog.events.times import parse_time
from sessionlog.render.bar import bar
from sessionlog.render.budget_notes import gap_notes
from sessionlog.render.cells import cell_len, cut_to
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import ESTIMATED
from sessionlog.render.numbers import UNKNOWN, cost_text, duration, human_count, percent
from sessionlog.render.sessions import MARKS
from sessionlog.render.status_line import amount_of, at_least, budget_name, money, severity
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import home_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sessionlog.render.report import View

_NAME = 40
_ID, _PROJECT = 80, 200
_LEAST = 12
_BAR, _SHORT_BAR, _ROOMY = 16, 8, 110
"""Cells of a budget's bar, on a wide and on a narrow terminal, and the columns from which a terminal is wide."""

_CONTEXT_BAR = 30
_FEW = 5
_LONG = 400
_WORDS = {"unfinished": "warn", "failed": "exceeded"}
"""A style's meaning in words, since colours may not be visible."""

_USED = (
    Column("USED", "part", right=False),
    Column("TURNS", rank=8),
    Column("REQUESTS", rank=7),
    Column("INPUT", rank=4),
    Column("CACHED", rank=3),
    Column("WRITTEN", "cache writes", rank=6),
    Column("OUTPUT", rank=5),
    Column("TOKENS"),
    Column("COST"),
)
_BUDGETS = (
    Column("BUDGET", right=False, least=8),
    Column("", "bar", rank=3, right=False),
    Column("USED"),
    Column("OF", "limit"),
    Column("LEFT"),
    Column("%", "percent"),
    Column("", "level", rank=1, right=False),
    Column("RESETS", rank=2, right=False),
    Column("WINDOW", rank=4),
    Column("SOURCE", rank=5, right=False),
)
_TYPICAL = (
    Column("TYPICAL SESSION", "task", right=False, least=15),
    Column("FINISHED", "sessions", rank=2),
    Column("REQUESTS", rank=3),
    Column("TOKENS"),
    Column("COST"),
)
_FITS = (
    Column("STILL FIT", "fits"),
    Column("LIMITED BY", right=False, least=10),
)


def render_status(document: Mapping[str, Any], view: View) -> Iterator[Line]:
    """Yield the lines of the terminal view of a status (see `analytics.status`)."""
    yield from _title(document, view)
    yield Line()
    tables = [fit_table(_USED, _used(document["usage"]), width=view.width)]
    yield from tables[0].lines
    if document["context"] is not None:
        yield Line()
        yield _context(document["context"])
    budgets = {name: entry for name, entry in document["usage"]["budgets"].items() if entry is not None}
    if budgets:
        rows = [_budget(name, entry, view) for name, entry in budgets.items()]
        tables.append(fit_table(_BUDGETS, rows, width=view.width))
    if document["typical"] is not None:
        tasks = document["typical"]["byTask"]
        columns = _TYPICAL + (_FITS if any(task["fits"] is not None for task in tasks) else ())
        tables.append(fit_table(columns, [_task(task)[: len(columns)] for task in tasks[:_FEW]], width=view.width))
    for table in tables[1:]:
        yield Line()
        yield from table.lines
    yield Line()
    yield from _notes(document, budgets)
    hidden = [name for table in tables for name in table.hidden]
    if hidden:
        yield _note(f"hidden columns: {', '.join(hidden)} (in --json)")


def _title(document: Mapping[str, Any], view: View) -> Iterator[Line]:
    session = document["session"]
    if session is None:
        yield Line.of(("Status", "title"), f" · {one_line(document['unavailable'].get('session', ''), 120)}")
        return
    mark, style = MARKS.get(session["status"], ("✘", "failed"))
    names = [one_line(session["id"], _ID), one_line(session["source"], _NAME), one_line(session["model"] or "", _NAME)]
    state = f"{mark} {one_line(session['status'], _NAME)}"
    name, source, model = _fitted(names, view.width - cell_len(f"Session  ·  ·  · {state}"))
    yield Line.of(
        ("Session ", "title"), (name, "title"), f" · {source}", f" · {model}" if model else "", " · ", (state, style),
    )  # fmt: skip
    parts = [] if session["project"] is None else [one_line(home_path(session["project"], view.home), _PROJECT)]
    parts += [] if session["task"] is None else [f"task {one_line(session['task'], _NAME)}"]
    facts = []
    for word, place in (("began", "start"), ("last event", "last")):
        time_ns = parse_time(session[place])
        facts += [] if time_ns is None else [f"{word} {view.stamp(time_ns)}"]
    facts += ["archived: its log is gone"] if session["archived"] else []
    fact_text = " · ".join(facts)
    yield Line(" · ".join([*_fitted(parts, view.width - cell_len(fact_text) - 3 * len(parts)), *facts]), "secondary")


def _fitted(texts: Sequence[str], width: int) -> list[str]:
    """Shorten texts to `width` cells in total: the longest lose their middle, down to `_LEAST` cells each."""
    fitted = list(texts)
    while sum(map(cell_len, fitted)) > width:
        longest = max(range(len(fitted)), key=lambda index: cell_len(fitted[index]), default=None)
        if longest is None or cell_len(fitted[longest]) <= _LEAST:
            break
        fitted[longest] = _without_middle(texts[longest], cell_len(fitted[longest]) - 1)
    return fitted


def _without_middle(text: str, width: int) -> str:
    end = (width - 1) // 2
    return cut_to(text, width - 1 - end).rstrip() + "…" + cut_to(text[::-1], end)[::-1].lstrip()


def _used(usage: Mapping[str, Any]) -> list[list[Cell]]:
    whole = "all" if "turnsArePartial" in (usage["session"] or {}) else "session"
    parts = ((whole, "session"), ("last turn", "lastTurn"), ("today, all", "today"))
    return [_row(title, usage[name]) for title, name in parts if usage[name] is not None]


def _row(title: str, used: Mapping[str, Any]) -> list[Cell]:
    turns = used.get("turns")
    names = ("requests", "input", "cacheRead", "cacheWrite", "output", "totalTokens")
    cost, style = (UNKNOWN, "secondary") if used["cost"] is None else money(used)
    return [
        Cell(title),
        Cell("" if "turns" not in used else UNKNOWN if turns is None else human_count(turns)),
        *(Cell(human_count(used[name])) for name in names),
        Cell(cost, style=style),
    ]


def _context(context: Mapping[str, Any]) -> Line:
    used = human_count(context["used"])
    if context["percent"] is None:
        return Line.of(("context  ", "secondary"), f"{used} tokens sent with the last request; its window is unknown")
    share = context["percent"]
    return Line.of(
        ("context  ", "secondary"), (bar(min(share, 100) / 100, _CONTEXT_BAR), severity(share)),
        f" {percent(share / 100)} · {used} of {human_count(context['window']).replace('.0', '')} tokens",
    )  # fmt: skip


def _budget(name: str, entry: Mapping[str, Any], view: View) -> list[Cell]:
    share, seconds = entry["percent"], entry["windowSeconds"]
    style = "secondary" if share is None else severity(share, entry)
    drawn = bar(None if share is None else min(share, 100) / 100, _BAR if view.width >= _ROOMY else _SHORT_BAR)
    is_percent = entry["unit"] == "percent"
    estimate = "~" if entry.get("estimated") else ""
    return [
        Cell(budget_name(name, entry)),
        Cell(drawn.rstrip(), style=style),
        Cell(
            "" if is_percent else f"{estimate}{amount_of(entry, 'used', with_unit=True)}{at_least(entry)}",
            style="unfinished" if entry.get("unknown") else "estimated" if estimate else "",
        ),
        Cell("" if is_percent else amount_of(entry, "limit")),
        Cell(amount_of(entry, "left"), style=style),
        Cell(UNKNOWN if share is None else percent(share / 100) + at_least(entry), style=style),
        Cell(_WORDS.get(style, ""), style=style),
        Cell(view.stamp(parse_time(entry["resetsAt"])), style="secondary"),
        Cell(duration(None if seconds is None else seconds * 1000), style="secondary"),
        Cell(one_line(str(entry["source"]), _NAME), style="secondary"),
    ]


def _task(task: Mapping[str, Any]) -> list[Cell]:
    fits = task["fits"]
    name = "without a task" if task["task"] is None else one_line(task["task"], _NAME)
    estimated = task["costSource"] in {"estimated", "mixed"}
    return [
        Cell(f"▸ {name} (this one's)" if task.get("ofThisTask") else name),
        Cell(human_count(task["sessions"])),
        Cell(human_count(round(task["requests"]))),
        Cell(human_count(round(task["totalTokens"]))),
        Cell(cost_text(task["cost"], estimated=estimated), style="estimated" if estimated else ""),
        Cell(UNKNOWN if fits is None else human_count(fits), style="unfinished" if fits == 0 else ""),
        Cell("" if task["limitedBy"] is None else one_line(task["limitedBy"], _NAME), style="secondary"),
    ]


def _notes(document: Mapping[str, Any], budgets: Mapping[str, Any]) -> Iterator[Line]:
    why, tasks = document["unavailable"], [] if document["typical"] is None else document["typical"]["byTask"]
    usage = [part for part in (document["usage"][name] for name in ("session", "lastTurn", "today")) if part]
    estimated = any(part["costSource"] in {"estimated", "mixed"} for part in [*usage, *tasks])
    if estimated or any(entry.get("estimated") for entry in budgets.values()):
        yield _note(ESTIMATED)
    unpriced = any(entry.get("unpricedRequests") for entry in budgets.values())
    if unpriced or any(part["costIsPartial"] for part in usage):
        yield _note("+ at least: a part of it has no price; `sessionlog pricing MODEL` shows why")
    if "usage.budgets" in why:
        yield Line(f"budgets: {one_line(why['usage.budgets'], _LONG)}", "unfinished")
    elif not budgets:
        yield _note("no budget is known: `[budgets]` in config.toml sets your own")
    gaps = [(one_line(name, _NAME), entry["unknown"]) for name, entry in budgets.items() if "unknown" in entry]
    yield from (Line(sentence, "unfinished") for sentence in gap_notes(gaps))
    for name, entry in budgets.items():
        reason = why.get(f"usage.budgets.{name}.used")
        if reason and entry["used"] is None:
            yield _note(f"{budget_name(name, entry)}: {one_line(reason, 120)}")
    if "typical.ofThisTask" in why:
        yield _note(one_line(why["typical.ofThisTask"], 120))
    problems = document["problems"]
    if problems["count"]:
        first = f" ({one_line(problems['first'][0], 400)})" if problems["first"] else ""
        yield _note(f"{counted(problems['count'], 'damaged piece')} skipped{first}: `sessionlog check` shows more")
    more = tasks[_FEW:]
    if more:
        yield _note(f"{counted(len(more), 'more task')} (--json)")


def _note(text: str) -> Line:
    return Line(text, "note")
