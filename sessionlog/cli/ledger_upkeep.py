"""`sessionlog ledger sync`, `verify`, `rebuild`, `backup` and `forget`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from sessionlog import files
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.cli import reporting as r
from sessionlog.cli.ledger import ledger_context, opened_ledger, usable
from sessionlog.cli.output import FOUND, UNREADABLE, Exit, fail, note, print_json, print_text
from sessionlog.engine.scanner import scanner
from sessionlog.ledger import upkeep
from sessionlog.ledger.refreshing import refresh
from sessionlog.ledger.verify import verify_ledger
from sessionlog.render.ledger_upkeep import (
    backup_document,
    forgotten_document,
    kept_note,
    rebuilt_document,
    render_forgettable,
    render_rebuilt,
    render_synced,
    render_verified,
    synced_document,
)
from sessionlog.render.numbers import size

_T = TypeVar("_T")


def sync(*, ledger: str | None, jobs: int | None, as_json: bool) -> None:
    """Bring the ledger up to date now: read what is new in all logs, and show what was read. Reports do it, too.

    Example: sessionlog ledger sync --jobs 4
    """
    context, path = ledger_context(ledger)
    with opened_ledger(context, path) as book, r.scan_progress() as progress:
        synced = refresh(book, context.env, scanner=scanner(jobs=jobs), progress=progress, list_all=True)
    if as_json:
        print_json(synced_document(path, synced))
    elif synced is not None:
        print_text(render_synced(synced))
    for sentence in book.notes:
        note(sentence)


def verify(*, ledger: str | None, jobs: int | None, as_json: bool) -> None:
    """Check the ledger: its file, its sums against its rows, and its rows against a full scan of the logs.

    Nothing is changed. Exit code 1: something is not as it should be, and is named.

    Example: sessionlog ledger verify
    """
    _, verified = _read_again(verify_ledger, ledger, jobs)
    if as_json:
        print_json(verified.to_dict())
    else:
        r.print_lines(lambda **_: render_verified(verified))
    if not verified.is_whole:
        raise Exit(FOUND)


def rebuild(*, ledger: str | None, jobs: int | None, as_json: bool) -> None:
    """Read every log again. The records of logs that are gone are kept.

    A damaged file is kept, too, as NAME.damaged-TIME; all that can be read of it goes into the new one.

    Example: sessionlog ledger rebuild
    """
    path, rebuilt = _read_again(upkeep.rebuild, ledger, jobs)
    if as_json:
        print_json(rebuilt_document(path, rebuilt))
    else:
        print_text(render_rebuilt(path, rebuilt))
    if rebuilt.synced is None:
        note("another sessionlog is writing to the ledger: it will read the logs again")


def backup(*, file: str, ledger: str | None, as_json: bool) -> None:
    """Copy the ledger as it is into a new file that only you can read, even while others write to it.

    To restore the copy, put it in the ledger's place.

    Example: sessionlog ledger backup ~/ledger-2026-11-21.sqlite
    """
    context, path = ledger_context(ledger)
    if files.stat_path(path) is None:
        fail(f"{path}: there is no ledger yet", UNREADABLE)
    with opened_ledger(context, path) as book:
        count = upkeep.back_up(book, file)
    if as_json:
        print_json(backup_document(path, file, count))
    else:
        note(f"{file}: {size(count)}")


def forget(
    *,
    source: list[str] | None,
    before: str | None,
    yes: bool,
    ledger: str | None,
    as_json: bool,
    tz: str | None,
    now: str | None,
) -> None:
    """Delete the records of deleted logs: of some agents, or whose last record is before a time, or both.

    Logs that still exist are kept: the next sync would read them again. Deleted records cannot be restored.

    Example: sessionlog ledger forget --source codex --before 2026-01-01
    """
    if source is None and before is None:
        fail("name what to forget: --source IDS, --before WHEN, or both")
    context, path = ledger_context(ledger, tz=tz, now=now)
    window = None if before is None else parse_usage_window(before, now=context.now, tz=context.zone)
    with opened_ledger(context, path) as book:
        found = upkeep.find_forgettable(
            book, sources=r.split_list(source), before_ns=None if window is None else window.start_ns
        )
        agreed = bool(found.gone) and (yes or _agreed(found))
        if agreed:
            upkeep.forget(book, found)
    if as_json:
        print_json(forgotten_document(path, found, forgotten=agreed))
    else:
        print_text(f"{'forgotten' if agreed else 'nothing is forgotten'}: {render_forgettable(found)}\n")
    if found.there:
        note(kept_note(found))


def _read_again(work: Callable[..., _T], ledger: str | None, jobs: int | None) -> tuple[str, _T]:
    """Call a function that reads all logs again; return the ledger's path and the result."""
    context, path = ledger_context(ledger)
    prices = r.price_book(context.settings)
    with usable(path), r.scan_progress() as progress:
        return path, work(path, prices, context.env, scanner=scanner(jobs=jobs), progress=progress)


def _agreed(found: upkeep.Forgettable) -> bool:
    """Ask at the terminal; without one, fail."""
    if not sys.stdin.isatty():
        fail(f"{render_forgettable(found)}; add --yes to forget it")
    import typer

    return typer.confirm(f"forget {render_forgettable(found)}?", err=True)
