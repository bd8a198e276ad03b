"""`sessionlog ledger`: the file that remembers. What is in it, whether it is right, and how it is kept."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from sessionlog import files
from sessionlog.analytics.ledger_report import LedgerReport
from sessionlog.analytics.window import parse_usage_window
from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, UNREADABLE, Leave, fail, note, print_json, print_text
from sessionlog.engine.scanner import scanner
from sessionlog.errors import LedgerUnusable
from sessionlog.ledger import upkeep
from sessionlog.ledger.ask import refresh
from sessionlog.ledger.book import Book
from sessionlog.ledger.store import open_ledger
from sessionlog.ledger.summary import summarise_ledger
from sessionlog.ledger.verify import verify_ledger
from sessionlog.render.ledger import (
    backup_document,
    forgotten_document,
    rebuilt_document,
    render_forgettable,
    render_rebuilt,
    render_summary,
    render_synced,
    render_verified,
    synced_document,
    there_note,
)
from sessionlog.render.numbers import size


def ledger(
    *, ledger: str | None, as_json: bool, as_csv: bool, as_markdown: bool, tz: str | None, now: str | None
) -> None:
    """Show where the ledger is, what is in it, and what it alone remembers. It reads no log.

    $SESSIONLOG_LEDGER, or `ledger` in config.toml, names another file.

    Example: sessionlog ledger
    """
    form = r.choose_one(json=as_json, csv=as_csv, markdown=as_markdown)
    where, path = _where(ledger, tz=tz, now=now)
    with _usable(path):
        report = LedgerReport.of(summarise_ledger(path))
    r.print_report(report, form, where, table=render_summary)


def sync(*, ledger: str | None, jobs: int | None, as_json: bool) -> None:
    """Bring the ledger up to date now: read what is new in all logs, and say what was read. Reports do it, too.

    Example: sessionlog ledger sync --jobs 4
    """
    where, path = _where(ledger)
    with _opened(where, path) as book, r.scan_progress() as progress:
        synced = refresh(book, where.env, scanner=scanner(jobs=jobs), progress=progress, trusting=False)
    if as_json:
        print_json(synced_document(path, synced))
    elif synced is not None:
        print_text(render_synced(synced))
    for sentence in book.notes:
        note(sentence)


def verify(*, ledger: str | None, jobs: int | None, as_json: bool) -> None:
    """Check the ledger: every session against a full scan of the logs, and of logs that are gone their checksums.

    Nothing is changed. Exit code 1: something is not as it should be, and is named.

    Example: sessionlog ledger verify
    """
    where, path = _where(ledger)
    prices = r.price_book(where.settings)
    with _usable(path), r.scan_progress() as progress:
        verified = verify_ledger(path, prices, where.env, scanner=scanner(jobs=jobs), progress=progress)
    if as_json:
        print_json(verified.to_dict())
    else:
        r.print_lines(lambda **_: render_verified(verified))
    if not verified.is_whole:
        raise Leave(FOUND)


def rebuild(*, ledger: str | None, jobs: int | None, as_json: bool) -> None:
    """Read every log anew that is there. What logs told that are gone is kept.

    A damaged file is kept, too, as NAME.damaged-TIME; all that can be read of it goes into the new one.

    Example: sessionlog ledger rebuild
    """
    where, path = _where(ledger)
    prices = r.price_book(where.settings)
    with _usable(path), r.scan_progress() as progress:
        rebuilt = upkeep.rebuild(path, prices, where.env, scanner=scanner(jobs=jobs), progress=progress)
    if as_json:
        print_json(rebuilt_document(path, rebuilt))
    else:
        print_text(render_rebuilt(path, rebuilt))
    if rebuilt.synced is None:
        note("another sessionlog is writing to the ledger: it reads the logs anew")


def backup(*, file: str, ledger: str | None, as_json: bool) -> None:
    """Copy the ledger as it is into a new file that only you can read, whoever writes to it meanwhile.

    To go back to it, put it in the ledger's place.

    Example: sessionlog ledger backup ~/ledger-2026-11-21.sqlite
    """
    where, path = _where(ledger)
    if files.stat_path(path) is None:
        fail(f"{path}: there is no ledger yet", UNREADABLE)
    with _opened(where, path) as book:
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
    """Forget logs that are gone: of some agents, or whose last record is before a time, or both.

    Logs that are still there stay: the next sync would read them again. What is forgotten cannot be brought back.

    Example: sessionlog ledger forget --source codex --before 2026-01-01
    """
    if source is None and before is None:
        fail("say what to forget: --source IDS, --before WHEN, or both")
    where, path = _where(ledger, tz=tz, now=now)
    window = None if before is None else parse_usage_window(before, now=where.now, tz=where.zone)
    with _opened(where, path) as book:
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
        note(there_note(found))


def _where(ledger: str | None, *, tz: str | None = None, now: str | None = None) -> tuple[r.Reporting, str]:
    where = r.reporting(None, tz=tz, now=now, ledger=ledger)
    return where, str(where.ledger)


@contextmanager
def _usable(path: str) -> Iterator[None]:
    """What is wrong with the ledger's file is a sentence and an exit code."""
    try:
        yield
    except LedgerUnusable as error:
        fail(str(error), UNREADABLE)
    except sqlite3.DatabaseError as error:
        fail(f"{path}: {error}; `sessionlog ledger verify` says more", UNREADABLE)


@contextmanager
def _opened(where: r.Reporting, path: str) -> Iterator[Book]:
    with _usable(path):
        book = open_ledger(path, r.price_book(where.settings))
        try:
            yield book
        finally:
            book.close()


def _agreed(found: upkeep.Forgettable) -> bool:
    """Ask a person; nobody else is taken to agree."""
    if not sys.stdin.isatty():
        fail(f"{render_forgettable(found)}; say --yes to forget it")
    return typer.confirm(f"forget {render_forgettable(found)}?", err=True)
