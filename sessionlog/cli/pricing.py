"""`sessionlog pricing`: which price applies to a model, and its source."""

from __future__ import annotations

from sessionlog.analytics.columns import counted
from sessionlog.analytics.price_report import PriceReport
from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, Exit, fail, note, print_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sessionlog.pricing.book import PriceBook
    from sessionlog.pricing.price_info import PriceInfo


def pricing(
    *,
    model: str | None,
    listing: bool,
    provider: str | None,
    at: str | None,
    **settings: Any,
) -> None:
    """Show what a model costs per million tokens, and the price's source.

    Exit code 1: it has no price.

    Example: sessionlog pricing claude-opus-4-5
    """
    arguments = r.ReportArguments(settings)
    form, context = arguments.form, r.report_context(None, no_ledger=True)
    at_ns = r.parse_moment("--at", at)
    if model is None and not listing:
        fail("name a MODEL, or list all with --list")
    book = r.price_book(context.settings, arguments.prices)
    found = _listed(book, model, provider, at_ns) if listing else _price_of(book, model or "", provider, at_ns)
    if form != "table" or (listing and found):
        r.print_report(PriceReport(rows=tuple(found), priced_from=book.named), form, context)
    elif not listing:
        from sessionlog.render.pricing import render_no_price, render_price

        names = provider or "", model or ""
        is_alias = not found and book.why_unpriced(*names) == "alias"
        path = context.settings.config_path
        print_text(render_price(found[0]) if found else render_no_price(*names, path, is_alias=is_alias))
    if listing and not (found and form == "table"):
        note(f"{counted(len(found), 'model')} · {book.named}")
    elif not found:
        _note_matches(len(_listed(book, model, provider, at_ns)))
    if not found:
        raise Exit(FOUND)


def _price_of(book: PriceBook, model: str, provider: str | None, at_ns: int | None) -> Sequence[PriceInfo]:
    info = book.explain(provider, model, at_ns)
    return [] if info is None else [info]


def _listed(book: PriceBook, model: str | None, provider: str | None, at_ns: int | None) -> Sequence[PriceInfo]:
    return [info for info in book.models(at_ns) if _matches(info, model, provider)]


def _note_matches(count: int) -> None:
    if count:
        note(f"{count} listed {'name contains' if count == 1 else 'names contain'} it: try --list")


def _matches(info: PriceInfo, model: str | None, provider: str | None) -> bool:
    from fnmatch import fnmatchcase

    filters = [(info.model, model), (info.provider, provider)]
    return all(
        fnmatchcase(name.lower(), pattern.lower() if any(c in pattern for c in "*?[") else f"*{pattern.lower()}*")
        for name, pattern in filters
        if pattern
    )
