"""`sessionlog pricing`: which price applies to a model, and who says so."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

import typer

from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, fail, note, print_json, print_text
from sessionlog.events.times import parse_time
from sessionlog.pricing.book import PriceBook, PriceInfo
from sessionlog.render.pricing import (
    SCHEMA,
    price_document,
    price_object,
    render_no_price,
    render_price,
    render_price_list,
)
from sessionlog.settings import load_settings


def pricing(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="A model, or provider/model.")] = None,
    *,
    listing: Annotated[bool, typer.Option("--list", help="All listed models, or those that match MODEL.")] = False,
    provider: Annotated[str | None, typer.Option(help="Who bills.")] = None,
    at: Annotated[str | None, typer.Option(help="The prices of this RFC 3339 time.")] = None,
    prices: r.Prices = None,
    as_json: r.AsJson = False,
) -> None:
    """Show what a model costs per million tokens and where that comes from. Exit 1: it has no price.

    Example: sessionlog pricing claude-opus-4-5
    """
    settings = load_settings()
    book = r.price_book(settings, prices)
    at_ns = parse_time(at)
    if at is not None and at_ns is None:
        fail(f"--at {at!r} is not an RFC 3339 time such as 2026-11-21T10:00:00Z")
    if listing:
        _list(book, model, provider, at_ns, as_json=as_json)
        return
    if model is None:
        fail("name a MODEL, or ask for all with --list")
    info = book.explain(provider, model, at_ns)
    if as_json:
        print_json(price_document(info))
    else:
        print_text(render_no_price(provider or "", model, settings.config_path) if info is None else render_price(info))
    if info is None:
        raise typer.Exit(FOUND)


def _list(book: PriceBook, model: str | None, provider: str | None, at_ns: int | None, *, as_json: bool) -> None:
    found = [info for info in book.models(at_ns) if _matches(info, model, provider)]
    if as_json:
        print_json({"schema": SCHEMA, "source": book.version, "prices": [price_object(info) for info in found]})
        return
    print_text("".join(render_price_list(found)))
    note(f"{len(found)} models · {book.version}")


def _matches(info: PriceInfo, model: str | None, provider: str | None) -> bool:
    wanted = [(info.model, model), (info.provider, provider)]
    return all(
        fnmatchcase(name.lower(), pattern.lower() if any(c in pattern for c in "*?[") else f"*{pattern.lower()}*")
        for name, pattern in wanted
        if pattern
    )
