"""`sessionlog status`: what a session used, what fills its context, and what is left of the budgets."""

from __future__ import annotations

import os
import sys
from functools import partial
from time import time_ns

from sessionlog.analytics.status.answer import nothing_known
from sessionlog.analytics.status.logs import ask_status
from sessionlog.analytics.status.question import StatusQuestion, budget_rules_or_error
from sessionlog.analytics.status.statusline_input import with_statusline_input
from sessionlog.analytics.unreadable import UnreadableNote
from sessionlog.analytics.zones import resolve_zone
from sessionlog.cli import reporting as r
from sessionlog.cli.output import Exit, fail, note, print_json
from sessionlog.cli.statusline_input import read_statusline_input
from sessionlog.errors import InvalidPrices, InvalidSettings, InvalidWindow
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.status_line import line_width, status_line
from sessionlog.render.times import home_path
from sessionlog.settings import Settings, load_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, tzinfo

    from sessionlog.analytics.status.answer import Status
    from sessionlog.cli.reporting import ReportContext
    from sessionlog.ledger.sync import Progress

_MAX_PATH = 60
"""Characters of a path in the line."""

CONFIG_ERROR = "config.toml?"
"""What the line shows if config.toml cannot be used; there is no room for the reason."""


def status(
    session: str | None,
    *,
    everything: bool,
    as_json: bool,
    as_line: bool,
    tz: str | None,
    now: str | None,
    prices: str | None,
    ledger: str | None,
    no_ledger: bool,
) -> None:
    """Show what a session used, what fills its context window, and how much of the budgets is left.

    Without a SESSION it is the one with the newest event. `--line` reads the JSON that Claude Code writes to a status
    line's stdin.

    Example: sessionlog status --json
    """
    form = r.choose_one(json=as_json, line=as_line)
    if session is not None and everything:
        fail("choose only one of SESSION and --all")
    question = StatusQuestion(target=session, everything=everything)
    make_context = partial(r.report_context, None, tz=tz, now=now, ledger=ledger, no_ledger=no_ledger)
    if form == "line":
        statusline_input = None if session or everything else read_statusline_input()
        _print_line(question._replace(statusline_input=statusline_input, with_typical=False), make_context, prices)
        return
    context = make_context()
    question = _with_budgets(question, context)
    with r.scan_progress() as progress:
        found, notes = _load_status(question, context, prices, progress)
    if form == "json":
        print_json(found.to_dict())
    else:
        from sessionlog.render.status import render_status

        r.print_lines(lambda width: render_status(found.to_dict(), context.view(width)))
    for sentence in notes:
        note(sentence)


def _with_budgets(question: StatusQuestion, context: ReportContext) -> StatusQuestion:
    rules, config_error = budget_rules_or_error(context.settings)
    return question._replace(rules=rules, config_error=config_error)


def _load_status(
    question: StatusQuestion, context: ReportContext, prices: str | None, progress: Progress | None = None
) -> tuple[Status, list[str]]:
    return ask_status(
        question._replace(zone=_zone(context)), env=context.env, ledger=context.ledger,
        prices=r.own_prices(context.settings, prices), now_ns=_nanoseconds(context.now), progress=progress,
    )  # fmt: skip


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000_000)


def _zone(context: ReportContext) -> tzinfo | None:
    """Return the chosen time zone; None for the machine's, which needs no zone data."""
    return None if context.zone == "local" else resolve_zone(context.zone)


def _print_line(question: StatusQuestion, make_context: Callable[..., ReportContext], prices: str | None) -> None:
    """Print one line whatever happens: a program shows it at the bottom of a screen.

    Only wrong usage ends the command as usual. Unusable settings are ignored, and the line shows `CONFIG_ERROR`.
    """
    zone, now_ns, remark = None, time_ns(), ""
    try:
        try:
            context = make_context()
            question = _with_budgets(question, context)
            found, notes = _load_status(question, context, prices)
            remark = CONFIG_ERROR if question.config_error else _unreadable(notes)
        except (InvalidSettings, InvalidPrices):
            context, remark = make_context(settings=_default_settings()), CONFIG_ERROR
            found, _ = _load_status(question, context, None)
        zone, now_ns = _zone(context), _nanoseconds(context.now)
    except Exit:
        raise
    except Exception as error:
        if question.target is not None or isinstance(error, InvalidWindow):
            raise
        found = nothing_known(str(error))
    document = with_statusline_input(found.to_dict(), question.statusline_input, now_ns)
    pieces = status_line(document, now_ns=now_ns, zone=zone, remark=remark, width=line_width(sys.stdout))
    line = Line.of(*pieces)
    line.no_wrap = True
    r.print_lines(lambda **_: [line])


def _unreadable(notes: Sequence[str]) -> str:
    path = next((note.path for note in notes if isinstance(note, UnreadableNote)), "")
    return path and f"cannot read {one_line(home_path(path, os.path.expanduser('~')), _MAX_PATH)}"


def _default_settings() -> Settings:
    """Return the settings without a config file."""
    return load_settings({**os.environ, "SESSIONLOG_CONFIG": os.path.join(os.devnull, "none")})
