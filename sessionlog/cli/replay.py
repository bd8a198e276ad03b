"""`sessionlog replay`: a session as a conversation, in a pager, as text, as JSON, live, or at its original pace."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from typing import IO, TYPE_CHECKING, Any, TypedDict, TypeVar, cast

from sessionlog import files
from sessionlog.analytics.session_totals import session_totals
from sessionlog.analytics.zones import resolve_zone
from sessionlog.archive.find import open_session
from sessionlog.cli.newest import newest_sessions
from sessionlog.cli.options import split_list
from sessionlog.cli.output import PIECE, fail, note
from sessionlog.cli.reporting import note_archived, own_prices, parse_moment, read_settings, scan_progress
from sessionlog.cli.share import share_of, share_session
from sessionlog.errors import Problem
from sessionlog.events.envelope import Event
from sessionlog.pricing.book import PriceBook
from sessionlog.reader.follow import follow as follow_log
from sessionlog.render.escape import one_line
from sessionlog.render.html.session import SessionPage
from sessionlog.render.replay import pace, selector, since
from sessionlog.render.replay.blocks import Block
from sessionlog.render.replay.exact import event_json
from sessionlog.render.replay.fold import Subagents, Totals, fold_replay
from sessionlog.render.replay.layout import lay_out
from sessionlog.render.replay.lines import SHOWN, Limits, View, limits_to
from sessionlog.render.replay.paint import Paint
from sessionlog.render.replay.served import Price
from sessionlog.render.stream import plain_width
from sessionlog.sources.find import name_of_session
from sessionlog.sources.protocol import Log
from sessionlog.sources.registry import load_source
from sessionlog.transcript.fold import OWN
from sessionlog.transcript.inherited import read_session
from sessionlog.transcript.scrub import scrub_events

if TYPE_CHECKING:
    import subprocess

    from sessionlog.analytics.sessions import SessionSummary

_MAX_TYPES = 20  # event types in a note
_MOMENT = 0.05  # seconds
_FOLLOWED = ("native", "fizeau")
_T = TypeVar("_T")


def replay(
    target: str | None,
    *,
    follow: bool,
    speed: str | None,
    only: list[str] | None,
    at: str | None,
    all_messages: bool,
    full: bool,
    subagents: str,
    as_json: bool,
    plain: bool,
    html: str | None,
    markdown: bool,
    scrub: bool,
    force: bool,
    tz: str | None,
    no_pager: bool,
    prices: str | None,
    directory: str | None,
) -> None:
    """Show a session as a conversation: prompts, answers, tool calls with results, failures, routing, and the sums.

    Messages that a request repeats are not shown again. Piped, the text is plain and stable. A log that has been
    deleted is read from the archive, if it is there. --html writes one page that needs no network.

    Example: sessionlog replay s-9f2 --only tool.call,llm.response
    """
    factor = _factor(speed, follow=follow)
    others = {"--follow": follow, "--speed": factor, "--json": as_json, "--plain": plain}
    share = share_of(others, html=html, markdown=markdown, scrub=scrub, force=force, full=full, tz=tz)
    start_ns, chosen = parse_moment("--at", at), selector(split_list(only))
    view, colours = _view(tz, plain=plain or as_json, full=full)
    if target is None:
        [target] = newest_sessions(1, read_settings(), directory)
    paged = share is None and not (view.exact or follow or factor or no_pager)
    with _log(target, directory, follow=follow) as (log, session, original):
        types: set[str] = set()
        items = _collect_types(_items(log, session, follow=follow, factor=factor), types)
        if as_json:
            texts = _or_note_types(_json_lines(since(items, start_ns), chosen), types)
        else:
            name, money = name_of_session(log, session), _money(log, session, original, prices, has_bar=not paged)
            blocks = fold_replay(
                scrub_events(items) if scrub else items, own=log.source.id in OWN, session_id=name, chosen=chosen,
                all_messages=all_messages, subagents=_subagents(subagents), **money,
            )  # fmt: skip
            found = _or_note_types(since(blocks, start_ns), types)
            if share is not None:
                share_session(found, share, SessionPage(session=name, agent=log.source.title, scrubbed=scrub))
                return
            texts = _painted(found, view, colours)
        _show(texts, paged=paged, at_once=bool(follow or factor))


class _Money(TypedDict):
    price: Price
    totals: Totals


def _money(log: Log, session: str | None, path: str, prices: str | None, *, has_bar: bool) -> _Money:
    """Return what estimates costs that are not recorded, and what asks the ledger for the session's totals.

    Args:
        log: The log.
        session: The session's id in it; None for its only one.
        path: Where the log is, or was before it was archived.
        prices: A file of the user's own prices.
        has_bar: Whether a bar may show how many logs the ledger has still to read.
    """
    settings = read_settings()
    own = own_prices(settings, prices)
    book = cache(lambda: own or PriceBook.load())
    env = {**os.environ, "SESSIONLOG_DIR": settings.session_dir}

    def price(*args: Any, **billed: Any) -> int | None:
        return book().price(*args, **billed)  # loading takes 40 ms: the head of the session is shown before

    def totals() -> SessionSummary | None:
        with scan_progress() if has_bar else nullcontext() as progress:
            return session_totals(
                log, session, env=env, ledger=settings.ledger_path, prices=own, path=path, progress=progress
            )

    return {"price": price, "totals": totals}


def _subagents(word: str) -> Subagents:
    if word not in ("inline", "none", "only"):
        fail(f"--subagents {word!r} is none of inline, none and only")
    return cast("Subagents", word)


def _factor(speed: str | None, *, follow: bool) -> float | None:
    if speed is None:
        return None
    if follow:
        fail("choose only one of --follow and --speed")
    try:
        factor = float(speed.strip().lower().removesuffix("x"))
    except ValueError:
        factor = 0.0
    if not 0.001 <= factor <= 1_000_000:
        fail(f"--speed {speed!r} is not a factor such as 1x, 10x or 0.5x")
    return factor


@contextmanager
def _log(target: str, directory: str | None, *, follow: bool) -> Iterator[tuple[Log, str | None, str]]:
    """Yield the log, the session's id in it, None for its only one, and the path that the log has or had.

    With `follow` the log need not exist yet.
    """
    if follow and files.is_url(target):
        fail("--follow works on logs of this machine; a remote log is read as it is now")
    if follow and target.endswith(".jsonl") and files.stat_path(target) is None:
        yield Log(source=load_source("native"), path=target), None, target
        return
    with open_session(target, directory or read_settings().session_dir, os.environ) as (log, session, entry):
        if follow and log.source.id not in _FOLLOWED:
            fail(f"--follow works on sessionlog's own logs; {log.path} is one of {log.source.title}")
        if entry is not None:
            if follow:
                fail(f"{entry.path} is gone, and its copy in the archive does not grow; leave out --follow")
            note_archived(entry)
        yield log, session, log.path if entry is None else entry.path


def _view(tz: str | None, *, plain: bool, full: bool) -> tuple[View, str | None]:
    """Return the view and the terminal's colour system, None for no colours."""
    limits = Limits() if full else limits_to(SHOWN)
    if not plain and plain_width(sys.stdout) is None:
        from sessionlog.render.console import make_console

        console = make_console()
        if console.is_terminal and not console.is_dumb_terminal:
            colours = None if console.no_color else console.color_system
            zone, home = resolve_zone(tz or read_settings().timezone or "local"), os.path.expanduser("~")
            view = View(
                width=console.width, exact=False, zone=zone, limits=limits, now=datetime.now(UTC), home=home,
                markdown=colours is not None,
            )  # fmt: skip
            return view, colours
    return View(zone=resolve_zone(tz or "UTC"), limits=limits), None


def _items(log: Log, session: str | None, *, follow: bool, factor: float | None) -> Iterator[Event | Problem]:
    if follow and not log.path.endswith((".gz", ".zst")):
        return _follow_to_end(log.path)
    items = read_session(log, session)
    return items if factor is None else pace(items, speed=factor)


def _follow_to_end(path: str) -> Iterator[Event | Problem]:
    """Follow a log until no more events come and the last session event was session.end."""
    state = {"ended": False}
    for item in follow_log(path, stop=lambda: state["ended"]):
        if isinstance(item, Event) and item.type in {"session.start", "llm.request", "session.end"}:
            state["ended"] = item.type == "session.end"
        yield item


def _json_lines(items: Iterable[Event | Problem], chosen: Callable[[str], bool] | None) -> Iterator[str]:
    for item in items:
        if isinstance(item, Problem):
            note(str(item))
        elif chosen is None or chosen(item.type):
            yield event_json(item)


def _collect_types(items: Iterable[Event | Problem], types: set[str]) -> Iterator[Event | Problem]:
    """Yield the items, and add their event types to `types`, up to one more than a note names."""
    for item in items:
        if isinstance(item, Event) and len(types) <= _MAX_TYPES:
            types.add(item.type)
        yield item


def _or_note_types(found: Iterable[_T], types: set[str]) -> Iterator[_T]:
    """Yield what was found; if that was nothing but damage, note which event types the log has."""
    rest = iter(found)
    nothing = True
    for item in rest:
        yield item
        if not (isinstance(item, Block) and item.type == "problem"):
            nothing = False
            break
    yield from rest
    if nothing and types:
        names = ", ".join(one_line(name, 60) for name in sorted(types)[:_MAX_TYPES])
        note(f"nothing to show: the log's event types are {names}{' and more' if len(types) > _MAX_TYPES else ''}")


def _painted(blocks: Iterable[Block], view: View, colours: str | None) -> Iterator[str]:
    """Yield the text of each block, with symbols that stdout can encode."""
    paint = Paint(color_system=colours, encoding=getattr(sys.stdout, "encoding", None) or "utf-8")
    return ("\n".join(map(paint, lines)) for lines in lay_out(blocks, view))


def _show(texts: Iterator[str], *, paged: bool, at_once: bool) -> None:
    """Write the texts as they are made, each at once or those of a moment together.

    A reader that is woken for each text takes longer than the text. The first text is made before a pager starts, as an
    unreadable log needs no pager.
    """
    first = next(texts, None)
    if first is None:
        return
    with _pager() if paged else nullcontext(sys.stdout) as out:
        flushed = 0.0
        for text in chain((first,), texts):
            for start in range(0, len(text), PIECE):
                out.write(text[start : start + PIECE])
            out.write("\n")
            if at_once or time.monotonic() - flushed > _MOMENT:
                out.flush()
                flushed = time.monotonic()
        out.flush()


@contextmanager
def _pager() -> Iterator[IO[str]]:
    """Yield the input of $PAGER, or stdout if there is none; quitting the pager early is no error."""
    import shlex
    import shutil
    import subprocess

    command = shlex.split(os.environ.get("PAGER", "less -RFX"))
    program = shutil.which(command[0]) if command else None
    if program is None:
        yield sys.stdout
        return
    environment = {"LESS": "RFX", **os.environ}
    # The user chose the program; the text goes to its stdin and never to a shell.
    encoding = sys.stdout.encoding or "utf-8"
    pager = subprocess.Popen(  # noqa: S603
        [program, *command[1:]], stdin=subprocess.PIPE, env=environment, encoding=encoding, errors="replace"
    )
    assert pager.stdin is not None
    try:
        with suppress(BrokenPipeError), pager.stdin as pipe:
            yield pipe
    finally:
        _wait(pager)


def _wait(pager: subprocess.Popen[str]) -> None:
    """Wait until the pager ends; it handles Ctrl-C itself."""
    while pager.returncode is None:
        with suppress(KeyboardInterrupt):
            pager.wait()
