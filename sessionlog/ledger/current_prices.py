"""Current prices: what each model costs now, kept by the ledger, so that reports on unchanged logs load no price list.

A price holds until the list names another one for a later date or hour; after that it is looked up again.
"""

from __future__ import annotations

from time import time_ns

from sessionlog.fast_dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from sessionlog.pricing.book import PriceBook

    CurrentPrices = Mapping[tuple[str, str], "CurrentPrice"]
    """(provider, model) → its price."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentPrice:
    """What a model costs now, below all tiers.

    Attributes:
        input_usd: US dollars per million input tokens that touch no cache; None if unknown.
        output_usd: US dollars per million output tokens; None if unknown.
        source: The source of the price; "" if it is unknown.
    """

    input_usd: float | None = None
    output_usd: float | None = None
    source: str = ""


def current_price(prices: PriceBook, provider: str, model: str) -> CurrentPrice:
    """Return what a model costs now at these prices."""
    info = prices.explain(provider, model)
    if info is None:
        return CurrentPrice()
    pricing = info.pricing
    return CurrentPrice(input_usd=pricing.input_per_mtok, output_usd=pricing.output_per_mtok, source=info.source)


def write_current_prices(connection: sqlite3.Connection, prices: PriceBook) -> None:
    """Store the prices of models that have none stored; nothing if the ledger is priced by another list."""
    if connection.execute("SELECT value FROM meta WHERE name = 'prices'").fetchone() != (prices.fingerprint,):
        return
    connection.execute("DELETE FROM current_prices WHERE until_ns <= ?", (prices.now_ns(),))
    missing = connection.execute(
        "SELECT DISTINCT provider, model FROM labels EXCEPT SELECT provider, model FROM current_prices"
    ).fetchall()
    rows = []
    for provider, model in missing:
        price, until_ns = current_price(prices, provider, model), prices.changes_ns(provider, model)
        rows.append((provider, model, price.input_usd, price.output_usd, price.source, until_ns))
    connection.executemany("INSERT INTO current_prices VALUES (?, ?, ?, ?, ?, ?)", rows)


def read_current_prices(connection: sqlite3.Connection) -> CurrentPrices:
    """Return the stored prices that still hold."""
    rows = connection.execute(
        "SELECT provider, model, input_usd, output_usd, source FROM current_prices WHERE COALESCE(until_ns > ?, TRUE)",
        (time_ns(),),
    )
    return {
        (provider, model): CurrentPrice(input_usd=input_usd, output_usd=output_usd, source=source)
        for provider, model, input_usd, output_usd, source in rows
    }
