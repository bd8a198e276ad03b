"""Logs: a status read from the ledger, or, for a path outside the agents' folders, from that alone."""

from __future__ import annotations

import os
import time
from functools import partial

from sessionlog import files
from sessionlog.analytics.unreadable import notes_of
from sessionlog.ledger.ask import Where, ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from sessionlog.analytics.status.answer import Status
    from sessionlog.analytics.status.question import StatusQuestion
    from sessionlog.ledger.book import Book
    from sessionlog.ledger.sync import Progress
    from sessionlog.pricing.book import PriceBook

    _T = TypeVar("_T")


def is_alone(target: str | None, env: Mapping[str, str]) -> bool:
    """Whether the target is a path outside the agents' folders, which the ledger does not cover."""
    return target is not None and files.stat_path(target) is not None and not _is_in_agent_folder(target, env)


def _is_in_agent_folder(path: str, env: Mapping[str, str]) -> bool:
    from sessionlog.sources.registry import all_places

    full = os.path.realpath(path)
    folders = set(map(os.path.realpath, all_places(env)))
    return any(full == folder or full.startswith(os.path.join(folder, "")) for folder in folders)


def ask_status(
    question: StatusQuestion,
    *,
    env: Mapping[str, str],
    ledger: str | None,
    prices: PriceBook | None = None,
    now_ns: int | None = None,
    progress: Progress | None = None,
) -> tuple[Status, list[str]]:
    """Return a status and notes, sentences on what could not be read.

    Args:
        question: The parameters of the status.
        env: The environment, by which the folders of agents' logs are found.
        ledger: The ledger's file; None scans all logs into memory.
        prices: Prices of responses without a recorded cost; the list prices when None.
        now_ns: The present; the clock's if None.
        progress: Called after every log.

    Raises:
        LogNotReadable: The named session does not exist.
        AmbiguousSession: Several sessions match.
    """
    moment = time.time_ns() if now_ns is None else now_ns
    asked = question._replace(ledger=ledger or "", env=env)
    notes: list[str] = []

    def answer(book: Book, *, alone: bool) -> Status | None:
        notes[:] = notes_of(book)
        found = asked.answer(book, moment, alone=alone)
        if alone and found is not None:
            notes.extend(_which_of_several(book, str(asked.target), found[0]))
        return None if found is None else found[0]

    status = ask_about(asked.target, answer, env=env, ledger=ledger, prices=prices, progress=progress)
    if status is None:
        raise asked.not_found()
    return status, notes


def ask_about(
    target: str | None,
    question: Callable[..., _T | None],
    *,
    env: Mapping[str, str],
    ledger: str | None,
    prices: PriceBook | None = None,
    progress: Progress | None = None,
) -> _T | None:
    """Return what `question` returns for the ledger, else for the logs at `target` alone; None if both return None.

    Args:
        target: A path or an id; None for no session in particular. A path outside the agents' folders is read alone at
            once.
        question: Called with a book, and with `alone`: whether the book holds the target and nothing else.
        env: The environment, by which the folders of agents' logs are found.
        ledger: The ledger's file; None scans all logs into memory.
        prices: Prices of responses without a recorded cost; the list prices when None.
        progress: Called after every log.
    """
    for alone in (True,) if is_alone(target, env) else (False, True):
        if alone and (target is None or files.stat_path(target) is None):
            break
        where = Where(paths=[str(target)] if alone else None, ledger=ledger, env=env, prices=prices, progress=progress)
        found = ask(where, partial(question, alone=alone))
        if found is not None:
            return found
    return None


def _which_of_several(book: Book, target: str, status: Status) -> list[str]:
    """A note that names the session shown, if the target has several."""
    [(sessions,)] = book.query("SELECT COUNT(*) FROM sessions WHERE counted", {})
    if status.session is None or sessions < 2:
        return []
    return [f"{target}: {status.session['id']} has the newest event of {sessions:,} sessions in it"]
