"""Current prices: what each model costs now, kept by the ledger, so that reports on unchanged logs load no price list.

A price holds until the list names another one for a later date or hour; after that it is looked up again. So is it if
the clock was set back to a time before the look-up, when another price may have held.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import time_ns

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping

    from sessionlog.pricing.book import PriceBook

    CurrentPrices = Mapping[tuple[str, str], "CurrentPrice"]
    """(provider, model) → its price."""

_HOLDS = """(COALESCE(until_ns > :now_ns, TRUE)
    AND NOT EXISTS (SELECT 1 FROM meta WHERE name = 'prices_looked_up' AND CAST(value AS INTEGER) > :now_ns))"""


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


def current_price(prices: PriceBook, provider: str, model: str, now_ns: int | None = None) -> CurrentPrice:
    """Return what a model costs now at these prices."""
    info = prices.explain(provider, model, now_ns)
    if info is None:
        return CurrentPrice()
    pricing = info.pricing
    return CurrentPrice(input_usd=pricing.input_per_mtok, output_usd=pricing.output_per_mtok, source=info.source)


def write_current_prices(connection: sqlite3.Connection, prices: PriceBook) -> None:
    """Store the prices of models that have none stored; nothing if the ledger is priced by another list."""
    if connection.execute("SELECT value FROM meta WHERE name = 'prices'").fetchone() != (prices.fingerprint,):
        return
    now_ns = prices.now_ns()
    connection.execute(f"DELETE FROM current_prices WHERE NOT {_HOLDS}", {"now_ns": now_ns})  # noqa: S608 - names of the schema
    missing = connection.execute(
        "SELECT DISTINCT provider, model FROM labels EXCEPT SELECT provider, model FROM current_prices"
    ).fetchall()
    rows = []
    for provider, model in missing:
        price = current_price(prices, provider, model, now_ns)
        until_ns = prices.changes_ns(provider, model, now_ns)
        rows.append((provider, model, price.input_usd, price.output_usd, price.source, until_ns))
    if rows:
        connection.executemany("INSERT INTO current_prices VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT OR REPLACE INTO meta VALUES ('prices_looked_up', ?)", (str(now_ns),))


def read_current_prices(connection: sqlite3.Connection) -> CurrentPrices:
    """Return the stored prices that still hold."""
    rows = connection.execute(
        f"SELECT provider, model, input_usd, output_usd, source FROM current_prices WHERE {_HOLDS}",  # noqa: S608 - names of the schema
        {"now_ns": time_ns()},
    )
    return {
        (provider, model): CurrentPrice(input_usd=input_usd, output_usd=output_usd, source=source)
        for provider, model, input_usd, output_usd, source in rows
    }
