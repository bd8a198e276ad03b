"""`sessionlog find`: texts with some words, calls that changed a file, and what followed an error."""

from __future__ import annotations

import os
from functools import partial

from sessionlog.cli import reporting as r
from sessionlog.cli.options import ERRORS_SHOWN, HITS_SHOWN, split_list
from sessionlog.cli.output import FOUND, UNREADABLE, Exit, fail, note, print_json
from sessionlog.errors import LedgerUnusable
from sessionlog.render.find import found_document, render_found, render_mended
from sessionlog.search.file_calls import KINDS, names_file, path_query
from sessionlog.search.find import Found, Place, Question
from sessionlog.search.find import find as search
from sessionlog.search.query import parse_query
from sessionlog.sources.fold_items import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from sessionlog.ledger.handover import HandOver
    from sessionlog.ledger.scanning import Job as LogJob
    from sessionlog.pricing.book import PriceBook
    from sessionlog.search.extract import Extracted, Job
    from sessionlog.search.mended import Mended
    from sessionlog.sources.protocol import Source

NOTHING = FOUND
"""The exit code where nothing is found, as grep has it."""


def find(
    *,
    words: list[str] | None,
    part: str | None,
    regex: str | None,
    file: str | None,
    error: str | None,
    since: str | None,
    until: str | None,
    project: list[str] | None,
    source: list[str] | None,
    session: str | None,
    limit: int | None,
    as_json: bool,
    tz: str | None,
    now: str | None,
    ledger: str | None,
) -> None:
    """Find words in the sessions of every agent: in one prompt, answer, tool call or result.

    A phrase is quoted, 'word -other' in one argument leaves out texts with the other word, wor* begins a word. Exits
    with 1 if nothing is found.

    Example: sessionlog find "retry budget" --in prompts --since 1mo
    """
    if regex and not (words or file or error):
        fail("--regex narrows what words find: give a word that the hits have, too")
    if sum(map(bool, (words, file, error))) != 1:
        fail("give the words to find, or --file PATH, or --error TEXT")
    if (file or error) and part:
        fail(f"--in is about words; {'--file' if file else '--error'} searches calls and results alone")
    if file and regex:
        fail("--regex is about words; --file takes a path or the end of one")
    context = r.report_context(None, tz=tz, now=now, ledger=ledger)
    if limit is None:
        limit = ERRORS_SHOWN if error else HITS_SHOWN
    query = path_query(file) if file else parse_query(words or [error or ""], regex=regex)
    question = Question(
        query=query, part=part or "", kinds=KINDS if file else (), since=since, until=until, session=session,
        filters={"project": project or [], "source": split_list(source)}, limit=limit or None,
    )  # fmt: skip
    has_hits = _show(question, context, as_json=as_json, file=file or "", is_error=error is not None)
    if words and len(words) > 1 and _is_place(words[-1], is_found=has_hits):
        note(f"{words[-1]} was searched as a word: --project FOLDER, --source AGENT or --session ID limits the search")
    if not has_hits:
        raise Exit(NOTHING)


def _is_place(word: str, *, is_found: bool) -> bool:
    """Whether a last word was meant as a path, which other commands take: it exists, and no hit has it as a word."""
    has_folder = os.sep in word or word in (os.curdir, os.pardir)
    return (has_folder or not is_found) and os.path.lexists(os.path.expanduser(word))


def _show(question: Question, context: r.ReportContext, *, as_json: bool, file: str, is_error: bool) -> bool:
    """Search, and print what is found; return whether anything is."""
    wanted = (lambda hit: names_file(hit, file)) if file else None
    found = _search(_of_errors(question, Kind.ERROR) if is_error else question, context, wanted)
    if is_error and not found.hits:
        found = _search(_of_errors(question, Kind.RESULT), context, None)
        if found.hits:
            note("no failed call has these words: these are results that are not marked as failed")
    errors: list[Mended] = []
    if is_error:
        from sessionlog.search.mended import mended

        errors = [one for hit in found.hits if (one := mended(hit, context.env)) is not None]
    for sentence in found.notes:
        note(sentence)
    if as_json:
        print_json(found_document(found, file=file, errors=errors))
    elif found.hits:
        from sessionlog.render.report import View

        view = partial(View, tz=context.zone, now=context.now, home=context.home)
        r.print_lines(
            lambda width: (
                render_mended(found, errors, view(width=width))
                if is_error
                else render_found(found, view(width=width), file=file)
            )
        )
    if not found.hits and not as_json:
        if found.has_logs:
            note(_next_step(question, file=file, is_error=is_error))
        else:
            note(r.nothing_found(context, narrowed=False))
    return bool(found.hits)


def _next_step(question: Question, *, file: str, is_error: bool) -> str:
    """Return the sentence for a search without hits: what may find more."""
    if is_error:
        return "no failed call and no result has these words; `sessionlog find WORDS` searches prompts and answers, too"
    if file:
        return "no call names this file; `sessionlog find NAME` searches all texts, commands of a shell among them"
    if question.query.is_unclosed:
        return 'nothing found; a " is not closed, so that what follows it was searched as one phrase'
    return "nothing found; fewer words, `wor*` for the beginning of one, or no filters find more"


def _of_errors(question: Question, kind: Kind) -> Question:
    from msgspec.structs import replace

    return replace(question, kinds=(kind,))


def _search(question: Question, context: r.ReportContext, wanted: Any) -> Found:
    """Search, with progress bars while logs are read."""
    try:
        with r.scan_progress("reading logs") as progress:
            place = Place(
                ledger=str(context.ledger), env=context.env, prices=r.own_prices(context.settings, None),
                tz=context.zone, now=context.now, runner=read_logs, scanner=_scan, progress=progress,
            )  # fmt: skip
            return search(question, place, wanted=wanted)
    except LedgerUnusable as error:
        fail(str(error), UNREADABLE)


def _scan(jobs: Sequence[LogJob], sources: Mapping[str, Source], prices: PriceBook) -> Iterator[HandOver]:
    """Scan logs for the ledger, in parallel where that is faster."""
    from sessionlog.engine.scanner import scanner

    return scanner()(jobs, sources, prices)


def read_logs(jobs: Sequence[Job]) -> Iterator[Extracted]:
    """Yield what is searched in each log, in any order."""
    from sessionlog.engine.scanner import PAYS
    from sessionlog.engine.workers import map_tasks, result_folder
    from sessionlog.search.extract import extract

    with result_folder() as folder:
        for _, extracted in map_tasks(partial(extract, folder=folder), jobs, lambda job: job.size, pays=PAYS):
            yield extracted
