"""`sessionlog status`: what a session used, what fills its context, and what is left of the budgets."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import partial
from time import time_ns

from sessionlog.analytics.status.answer import nothing_known
from sessionlog.analytics.status.fed import with_fed
from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.analytics.status.reader import ask_status, budgets_of
from sessionlog.analytics.unreadable import unreadable_path
from sessionlog.analytics.zones import resolve_zone
from sessionlog.cli import reporting as r
from sessionlog.cli.fed import fed_on_stdin
from sessionlog.cli.output import Leave, fail, note, print_json
from sessionlog.errors import InvalidPrices, InvalidSettings, InvalidWindow
from sessionlog.render.escape import one_line
from sessionlog.render.line import Line
from sessionlog.render.status_line import line_width, status_line
from sessionlog.render.times import home_path
from sessionlog.settings import Settings, load_settings

TYPE_CHECKING = False  # typing costs a start-up 3 ms
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, tzinfo

    from sessionlog.analytics.status.answer import Status
    from sessionlog.cli.reporting import Reporting
    from sessionlog.ledger.sync import Progress

_LONGEST_PATH = 60
MISTAKE = "config.toml?"
"""What the line says of settings that cannot be used: there is no room to say why."""


def status(
    session: str | None,
    *,
    latest: bool,
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

    Without a SESSION it is the one with the newest event. `--line` takes what Claude Code writes to a status line's
    stdin.

    Example: sessionlog status --json
    """
    form = r.choose_one(json=as_json, line=as_line)
    if (session is not None) + latest + everything > 1:
        fail("choose only one of SESSION, --latest and --all")
    wanted = StatusQuestion(target=session, everything=everything)
    surroundings = partial(r.reporting, None, tz=tz, now=now, ledger=ledger, no_ledger=no_ledger)
    if form == "line":
        fed = None if session or latest or everything else fed_on_stdin()
        _print_line(replace(wanted, fed=fed), surroundings, prices)
        return
    where = surroundings()
    wanted = _with_budgets(wanted, where)
    with r.scan_progress() as progress:
        found, notes = _ask(wanted, where, prices, progress)
    if form == "json":
        print_json(found.to_dict())
    else:
        from sessionlog.render.status import render_status  # noqa: PLC0415 - 40 ms, which a line saves

        r.print_lines(partial(render_status, found.to_dict(), tz=where.zone, now=where.now, home=where.home))
    for sentence in notes:
        note(sentence)


def _with_budgets(wanted: StatusQuestion, where: Reporting) -> StatusQuestion:
    rules, mistake = budgets_of(where.settings)
    return replace(wanted, rules=rules, mistake=mistake)


def _ask(
    wanted: StatusQuestion, where: Reporting, prices: str | None, progress: Progress | None = None
) -> tuple[Status, list[str]]:
    question = replace(wanted, zone=_zone(where))
    return ask_status(
        question, env=where.env, ledger=where.ledger, prices=r.own_prices(where.settings, prices),
        now_ns=_nanoseconds(where.now), progress=progress,
    )  # fmt: skip


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000_000)


def _zone(where: Reporting) -> tzinfo | None:
    """The zone that was asked for; None for the machine's, which needs no calendar."""
    return None if where.zone == "local" else resolve_zone(where.zone)


def _print_line(wanted: StatusQuestion, surroundings: Callable[..., Reporting], prices: str | None) -> None:
    """Print one line whatever happens: it stands where there is no room for more, and is asked for by a program.

    Only what a person typed wrong is said as ever; what is wrong with the settings is left out, and the line says so.
    """
    zone, now_ns, remark = None, time_ns(), ""
    try:
        try:
            where = surroundings()
            wanted = _with_budgets(wanted, where)
            found, notes = _ask(wanted, where, prices)
            remark = MISTAKE if wanted.mistake else _unreadable(notes)
        except (InvalidSettings, InvalidPrices):
            where, remark = surroundings(settings=_defaults()), MISTAKE
            found, _ = _ask(wanted, where, None)
        zone, now_ns = _zone(where), _nanoseconds(where.now)
    except Leave:
        raise
    except Exception as error:
        if wanted.target is not None or isinstance(error, InvalidWindow):
            raise
        found = nothing_known(str(error))
    told = with_fed(found.to_dict(), wanted.fed, now_ns)
    pieces = status_line(told, now_ns=now_ns, zone=zone, remark=remark, width=line_width(sys.stdout))
    line = Line.of(*pieces)
    line.no_wrap = True
    r.print_lines(lambda **_: [line])


def _unreadable(notes: Sequence[str]) -> str:
    path = next((path for sentence in notes if (path := unreadable_path(sentence))), "")
    return path and f"cannot read {one_line(home_path(path, os.path.expanduser('~')), _LONGEST_PATH)}"


def _defaults() -> Settings:
    """The settings of who has no config file."""
    return load_settings({**os.environ, "SESSIONLOG_CONFIG": os.path.join(os.devnull, "none")})
