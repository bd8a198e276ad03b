"""Pages of the sessions that a report lists: one each, in a folder, with their addresses for the report's links."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from urllib.parse import quote

from sessionlog import files
from sessionlog.archive.find import open_session
from sessionlog.cli.output import fail, note
from sessionlog.cli.pages import file_name, free_name, save_page
from sessionlog.cli.reporting import scan_progress
from sessionlog.errors import LogNotReadable, MissingExtra
from sessionlog.render.html.session import SessionPage, render_session
from sessionlog.render.numbers import size
from sessionlog.render.replay.blocks import Block
from sessionlog.render.replay.fold import fold_replay
from sessionlog.render.replay.lines import View
from sessionlog.render.replay.served import Price
from sessionlog.sources.protocol import Env, Log
from sessionlog.transcript.fold import OWN
from sessionlog.transcript.inherited import read_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessionlog.analytics.sessions import SessionSummary

_MOST_NAMED = 3


def write_session_pages(
    sessions: Sequence[SessionSummary],
    folder: str,
    *,
    totals: Mapping[tuple[str, str], SessionSummary],
    view: View,
    price: Price,
    env: Env,
    force: bool,
) -> dict[tuple[str, str], str]:
    """Write a page of each session; return their files by source and session.

    Sessions whose log is gone or cannot be read have none; a note has their number and the first reasons.

    Args:
        sessions: The sessions.
        folder: The folder of their pages; it is made if it does not exist.
        totals: Source and session → the whole session: a report may be about a part of its time.
        view: Settings of the pages.
        price: Returns the cost of a response that records none.
        env: The environment, which gives the folder of the archive.
        force: Whether files that are no pages are replaced.
    """
    try:
        files.make_directories(os.path.abspath(folder))
    except OSError as error:
        fail(f"{folder}: {files.reason_of(error)}")
    pages: dict[tuple[str, str], str] = {}
    written, missing = 0, []
    with scan_progress("writing pages, sessions") as progress:
        for number, one in enumerate(sessions):
            taken = map(os.path.basename, pages.values())
            path = os.path.join(folder, free_name(file_name(one.session), one.source, taken))
            try:
                with _open(one, env) as log:
                    blocks = fold_replay(
                        read_session(log, one.session), own=log.source.id in OWN, session_id=one.session, price=price,
                        totals=partial(totals.get, (one.source, one.session)),
                    )  # fmt: skip
                    shown = blocks if progress is None else _tick(blocks, progress, number, len(sessions))
                    about = SessionPage(session=one.session, agent=log.source.title)
                    written += save_page(path, render_session(shown, view, about), force=force)
            except (LogNotReadable, MissingExtra) as error:
                missing.append(str(error))
            else:
                pages[one.source, one.session] = path
    note(f"wrote {len(pages)} of {len(sessions)} sessions' pages to {folder}, {size(written)}")
    for reason in missing[:_MOST_NAMED]:
        note(f"no page: {reason}")
    if len(missing) > _MOST_NAMED:
        note(f"no page of {len(missing) - _MOST_NAMED:,} more sessions")
    return pages


def addresses_from(report: str, pages: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    """Return the addresses of files relative to the file of a report."""
    folder = os.path.dirname(os.path.abspath(report))
    relative = {key: os.path.relpath(path, folder).replace(os.sep, "/") for key, path in pages.items()}
    return {key: quote(os.fsencode(path)) for key, path in relative.items()}


@contextmanager
def _open(one: SessionSummary, env: Env) -> Iterator[Log]:
    """Yield the log of a session, from the archive if it is gone.

    Raises:
        LogNotReadable: There is none, or another session's log is in its place.
    """
    with open_session(one.path, None, env) as (log, _, _):
        if one.session not in log.source.name_sessions(log.path):
            raise LogNotReadable(f"{one.path} has no session {one.session}")
        yield log


def _tick(
    blocks: Iterable[Block], progress: Callable[[int, int | None], None], done: int, total: int
) -> Iterator[Block]:
    """Yield the blocks, and show how many sessions are done: the bar appears also while the first one is read."""
    for block in blocks:
        progress(done, total)
        yield block
