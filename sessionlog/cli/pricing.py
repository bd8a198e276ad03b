"""`sessionlog pricing`: which price applies to a model, and who says so."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated

import typer

from sessionlog.cli import reporting as r
from sessionlog.cli.declared import AsJson, Prices
from sessionlog.cli.output import FOUND, Leave, fail, note, print_json, print_text
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
    model: Annotated[str | None, typer.Argument(metavar="MODEL", help="A model, or provider/model.")] = None,
    *,
    listing: Annotated[bool, typer.Option("--list", help="All listed models, or those that match MODEL.")] = False,
    provider: Annotated[str | None, typer.Option(metavar="NAME", help="Who bills.")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="The prices of this RFC 3339 time.")] = None,
    prices: Prices = None,
    as_json: AsJson = False,
) -> None:
    """Show what a model costs per million tokens, and who says so.

    Exit code 1: it has no price.

    Example: sessionlog pricing claude-opus-4-5
    """
    settings = load_settings()
    at_ns = parse_time(at)
    if at is not None and at_ns is None:
        fail(f"--at {at!r} is not an RFC 3339 time such as 2026-11-21T10:00:00Z")
    if model is None and not listing:
        fail("name a MODEL, or ask for all with --list")
    book = r.price_book(settings, prices)
    if listing:
        found = _list(book, model, provider, at_ns, as_json=as_json)
    else:
        found = _explain(book, model or "", provider, at_ns, settings.config_path, as_json=as_json)
    if not found:
        raise Leave(FOUND)


def _explain(
    book: PriceBook, model: str, provider: str | None, at_ns: int | None, config_path: str, *, as_json: bool
) -> bool:
    """Show one price, or say why there is none; return whether there is one."""
    info = book.explain(provider, model, at_ns)
    if as_json:
        print_json(price_document(info))
    else:
        print_text(render_no_price(provider or "", model, config_path) if info is None else render_price(info))
    near = 0 if info is not None else sum(_matches(listed, model, provider) for listed in book.models(at_ns))
    if near:
        note(f"{near} listed {'name contains' if near == 1 else 'names contain'} it: try --list")
    return info is not None


def _list(book: PriceBook, model: str | None, provider: str | None, at_ns: int | None, *, as_json: bool) -> int:
    """Show what is listed, and return how many that are."""
    found = [info for info in book.models(at_ns) if _matches(info, model, provider)]
    if as_json:
        print_json({"schema": SCHEMA, "source": book.version, "prices": [price_object(info) for info in found]})
    elif found:
        print_text("".join(render_price_list(found)))
    note(f"{len(found)} {'model' if len(found) == 1 else 'models'} · {book.version}")
    return len(found)


def _matches(info: PriceInfo, model: str | None, provider: str | None) -> bool:
    wanted = [(info.model, model), (info.provider, provider)]
    return all(
        fnmatchcase(name.lower(), pattern.lower() if any(c in pattern for c in "*?[") else f"*{pattern.lower()}*")
        for name, pattern in wanted
        if pattern
    )
