"""`sessionlog replay --html` and `--markdown`: a session as a page or a document, with or without its secrets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from sessionlog import files
from sessionlog.analytics.zones import resolve_zone
from sessionlog.cli.output import FOUND, fail, note
from sessionlog.cli.pages import file_name, page_view, show_progress, write_page
from sessionlog.cli.reporting import read_settings
from sessionlog.render.html.session import SessionPage, render_session
from sessionlog.render.packed import Packed
from sessionlog.render.replay.blocks import Block, SessionStartBlock
from sessionlog.render.replay.document import render_document
from sessionlog.render.replay.lines import View
from sessionlog.render.replay.suspicions import suspicions_in
from sessionlog.render.times import clock

_MOST_PLACES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How a session is shared.

    Attributes:
        page: The file or folder of its page, `-` for stdout; None for a document on stdout.
        scrub: Whether secrets are taken out.
        force: Whether a file that is no page is replaced.
        view: Settings of the layout.
    """

    page: str | None
    scrub: bool
    force: bool
    view: View


def share_of(
    others: Mapping[str, object],
    *,
    html: str | None,
    markdown: bool,
    scrub: bool,
    force: bool,
    full: bool,
    tz: str | None,
) -> Share | None:
    """Return how a session is shared, None if it is not; `others` are options that exclude it, with their values."""
    if html is None and not markdown:
        if scrub or force:
            fail(f"{'--scrub' if scrub else '--force'} belongs to --html" + (" and --markdown" if scrub else ""))
        return None
    form = "--markdown" if html is None else "--html"
    given = {**others, "--markdown": markdown and html is not None}
    excluded = [name for name, value in given.items() if value]
    if excluded:
        fail(f"{form} shows a session as it is now: leave out {' and '.join(excluded)}")
    zone = resolve_zone(tz or read_settings().timezone or "local")
    return Share(page=html, scrub=scrub, force=force, view=page_view(zone, datetime.now(UTC), full=full))


def share_session(blocks: Iterable[Block], share: Share, about: SessionPage) -> None:
    """Write the page of a session, or print it as Markdown."""
    checked = _checked(blocks, share.view) if share.scrub else blocks
    if share.page is not None:
        page = render_session(show_progress(checked), share.view, about)
        write_page(_place(share.page, about.session), page, force=share.force)
        return
    pieces: Iterable[str] = render_document(checked, share.view)
    if share.scrub:
        packed = Packed()  # nothing is printed before all of it is checked
        for piece in pieces:
            packed.add(piece)
        pieces = packed.texts()
    for piece in pieces:
        sys.stdout.write(piece)


def _place(path: str, session: str) -> str:
    """Return the file of a page: the one that is named, or in a folder one that is named for the session."""
    if path == "-" or not files.is_directory(path):
        return path
    return os.path.join(path, file_name(session))


def _checked(blocks: Iterable[Block], view: View) -> Iterator[Block]:
    """Yield the blocks, and at their end fail with the places where a secret may be left."""
    places: list[str] = []
    count = 0
    for block in blocks:
        for reason in suspicions_in(block):
            count += 1
            when = "" if block.time_ns is None else f" at {clock(block.time_ns, view.zone, with_seconds=True)}"
            what = "session.start" if isinstance(block, SessionStartBlock) else block.type
            if len(places) < _MOST_PLACES:
                places.append(f"{what}{when}: {reason}")
        yield block
    for place in places:
        note(place)
    if count:
        more = f" ({count - len(places):,} more)" if count > len(places) else ""
        fail(
            f"nothing was written: {count:,} place{'s' if count != 1 else ''} may still hold a secret{more}; "
            "look at them with sessionlog replay; leave out --scrub if they are harmless, or their types with --only",
            FOUND,
        )
