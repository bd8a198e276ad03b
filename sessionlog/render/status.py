"""How a status looks: the session, its tokens and cost, what fills its context, what is left, and what is usual."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sessionlog.analytics.zones import resolve_zone
from sessionlog.events.times import parse_time
from sessionlog.render.bar import bar
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.notes import counted
from sessionlog.render.numbers import UNKNOWN, duration, human_count, percent, usd
from sessionlog.render.sessions import MARKS
from sessionlog.render.status_line import budget_name, money, severity, short_model
from sessionlog.render.table import Cell, Column, fit_table
from sessionlog.render.times import home_path, stamp

_NAME = 40
_BAR = 16
_CONTEXT_BAR = 30
_FEW = 5

_USED = (
    Column(title="USED", name="part", right=False),
    Column(title="TURNS", name="turns", rank=3),
    Column(title="REQUESTS", name="requests", rank=2),
    Column(title="INPUT", name="input", rank=5),
    Column(title="CACHED", name="cached", rank=4),
    Column(title="WRITTEN", name="cache writes", rank=7),
    Column(title="OUTPUT", name="output", rank=6),
    Column(title="TOKENS", name="tokens"),
    Column(title="COST", name="cost"),
)
_LEFT = (
    Column(title="BUDGET", name="budget", right=False, least=10),
    Column(title="", name="bar", rank=2, right=False),
    Column(title="USED", name="used"),
    Column(title="OF", name="limit", rank=3, right=False),
    Column(title="RESETS", name="resets", right=False),
    Column(title="WINDOW", name="window", rank=4),
    Column(title="SOURCE", name="source", rank=1, right=False, least=12),
)
_USUAL = (
    Column(title="TYPICAL SESSION", name="task", right=False, least=15),
    Column(title="FINISHED", name="sessions", rank=2),
    Column(title="REQUESTS", name="requests", rank=3),
    Column(title="TOKENS", name="tokens"),
    Column(title="COST", name="cost"),
    Column(title="STILL FIT", name="fits", rank=1),
)


def render_status(document: Mapping[str, Any], *, width: int, tz: str, now: datetime, home: str = "") -> Iterator[Line]:
    """Yield the lines of the terminal view of a status (see `analytics.status`)."""
    yield from _title(document, tz, now, home)
    yield Line()
    yield from fit_table(_USED, _used(document["usage"]), width=width, wide=False).lines
    if document["context"] is not None:
        yield Line()
        yield _context(document["context"])
    budgets = {name: entry for name, entry in document["usage"]["budgets"].items() if entry is not None}
    if budgets:
        yield Line()
        rows = [_budget(name, entry, tz, now) for name, entry in budgets.items()]
        yield from fit_table(_LEFT, rows, width=width, wide=False).lines
    if document["typical"] is not None:
        yield Line()
        tasks = document["typical"]["byTask"]
        yield from fit_table(_USUAL, list(map(_task, tasks[:_FEW])), width=width, wide=False).lines
    yield Line()
    yield from _notes(document, budgets)


def _title(document: Mapping[str, Any], tz: str, now: datetime, home: str) -> Iterator[Line]:
    session = document["session"]
    if session is None:
        yield Line.of(("Status", "title"), f" · {one_line(document['unavailable'].get('session', ''), 120)}")
        return
    mark, style = MARKS.get(session["status"], ("✘", "failed"))
    model = one_line(short_model(session["model"] or ""), _NAME)
    yield Line.of(
        ("Session ", "title"), (one_line(session["id"], 60), "title"), f" · {one_line(session['source'], _NAME)}",
        f" · {model}" if model else "", " · ", (f"{mark} {one_line(session['status'], _NAME)}", style),
    )  # fmt: skip
    parts = [] if session["project"] is None else [one_line(home_path(session["project"], home), 80)]
    parts += [] if session["task"] is None else [f"task {one_line(session['task'], _NAME)}"]
    for word, name in (("began", "start"), ("last event", "last")):
        time_ns = parse_time(session[name])
        parts += [] if time_ns is None else [f"{word} {stamp(time_ns, resolve_zone(tz), now=now)}"]
    parts += ["archived: its log is gone"] if session["archived"] else []
    yield Line(" · ".join(parts), "secondary")


def _used(usage: Mapping[str, Any]) -> list[list[Cell]]:
    whole = "all sessions" if "turnsArePartial" in (usage["session"] or {}) else "session"
    parts = ((whole, "session"), ("last turn", "lastTurn"), ("today, all sessions", "today"))
    return [_row(title, usage[name]) for title, name in parts if usage[name] is not None]


def _row(title: str, used: Mapping[str, Any]) -> list[Cell]:
    turns = used.get("turns")
    names = ("requests", "input", "cacheRead", "cacheWrite", "output", "totalTokens")
    cost, style = (UNKNOWN, "secondary") if used["cost"] is None else money(used)
    return [
        Cell(text=title),
        Cell(text="" if "turns" not in used else UNKNOWN if turns is None else human_count(turns)),
        *(Cell(text=human_count(used[name])) for name in names),
        Cell(text=cost, style=style),
    ]


def _context(context: Mapping[str, Any]) -> Line:
    used = human_count(context["used"])
    if context["percent"] is None:
        return Line.of(("context  ", "secondary"), f"{used} tokens sent with the last request; its window is unknown")
    share = context["percent"]
    return Line.of(
        ("context  ", "secondary"), (bar(min(share, 100) / 100, _CONTEXT_BAR), severity(share)),
        f" {percent(share / 100)} · {used} of {human_count(context['window'])} tokens",
    )  # fmt: skip


def _budget(name: str, entry: Mapping[str, Any], tz: str, now: datetime) -> list[Cell]:
    share, seconds = entry["percent"], entry["windowSeconds"]
    style = "secondary" if share is None else severity(share, entry)
    resets_ns = parse_time(entry["resetsAt"])
    resets = UNKNOWN if resets_ns is None else stamp(resets_ns, resolve_zone(tz), now=now)
    of_percent = entry["unit"] == "percent"
    return [
        Cell(text=budget_name(name, entry)),
        Cell(text=bar(None if share is None else min(share, 100) / 100, _BAR).rstrip(), style=style),
        Cell(text=UNKNOWN if share is None else percent(share / 100), style=style),
        Cell(text="" if of_percent else f"{_amount(entry, 'used')} of {_amount(entry, 'limit')}"),
        Cell(text=resets, style="secondary"),
        Cell(text=duration(None if seconds is None else seconds * 1000), style="secondary"),
        Cell(text=one_line(str(entry["source"]), _NAME), style="secondary"),
    ]


def _amount(entry: Mapping[str, Any], name: str) -> str:
    value = entry[name]
    if value is None:
        return UNKNOWN
    return usd(value) if entry["unit"] == "usd" else f"{human_count(round(value))} {entry['unit']}"


def _task(task: Mapping[str, Any]) -> list[Cell]:
    fits = task["fits"]
    return [
        Cell(text="without a task" if task["task"] is None else one_line(task["task"], _NAME)),
        Cell(text=human_count(task["sessions"])),
        Cell(text=human_count(round(task["requests"]))),
        Cell(text=human_count(round(task["totalTokens"]))),
        Cell(text=usd(task["cost"])),
        Cell(text=UNKNOWN if fits is None else human_count(fits), style="unfinished" if fits == 0 else ""),
    ]


def _notes(document: Mapping[str, Any], budgets: Mapping[str, Any]) -> Iterator[Line]:
    usage = [part for part in (document["usage"][name] for name in ("session", "lastTurn", "today")) if part]
    if any(part["costSource"] in {"estimated", "mixed"} for part in usage):
        yield _note("~ estimated from the price list")
    if any(part["costIsPartial"] for part in usage):
        yield _note("+ a part of it has no price: `sessionlog pricing MODEL` says why")
    if not budgets:
        yield _note("no budget is known: `[budgets]` in config.toml sets your own")
    for name, entry in budgets.items():
        why = document["unavailable"].get(f"usage.budgets.{name}.used")
        if why and entry["percent"] is None:
            yield _note(f"{budget_name(name, entry)}: {one_line(why, 120)}")
    problems = document["problems"]
    if problems["count"]:
        yield _note(f"{counted(problems['count'], 'damaged piece')} skipped: `sessionlog check` shows what it is")
    more: Sequence[Any] = [] if document["typical"] is None else document["typical"]["byTask"][_FEW:]
    if more:
        yield _note(f"{counted(len(more), 'more task')} (--json)")


def _note(text: str) -> Line:
    return Line(text, "note")
