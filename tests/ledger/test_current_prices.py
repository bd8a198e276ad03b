"""Current prices: what the ledger keeps of them holds from their look-up to their next change."""

import pytest
from sessionlog.ledger.current_prices import read_current_prices

from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.pricing.own_prices import parse_own_prices
from sessionlog.pricing.price_list import load_price_list
from tests.ledger.entries import record, scan_of, session

HOUR = 3600 * 10**9
DAY = 20_000 * 24 * HOUR
NIGHTLY = ("deepseek", "deepseek-chat")  # one price from 16:30 to 00:30, another one from 00:30 to 16:30


@pytest.fixture
def sync():
    """Insert a log at an hour of a day, and return the ledger."""

    def run(hour, name, before=None):
        prices = PriceBook(load_price_list(), parse_own_prices(None), clock=lambda: DAY + hour * HOUR)
        book = Book(prices, before)
        book.reprice(prices)
        book.add_scan(scan_of(session(name, record(provider=NIGHTLY[0], model=NIGHTLY[1], version=name))))
        book.reconcile()
        return book

    return run


@pytest.fixture
def kept(monkeypatch):
    """Return what a ledger has as the price of the model at an hour of the day; None if it has to be looked up."""

    def read(book, hour):
        monkeypatch.setattr("sessionlog.ledger.current_prices.time_ns", lambda: DAY + hour * HOUR)
        price = read_current_prices(book.connection).get(NIGHTLY)
        return price and price.input_usd

    return read


def listed(hour):
    info = PriceBook.load().explain(*NIGHTLY, DAY + hour * HOUR)
    return info.pricing.input_per_mtok


def test_a_price_holds_until_its_next_change(sync, kept):
    """At night another one holds than by day."""
    assert listed(10) != listed(17)
    book = sync(17, "evening")
    assert [kept(book, 17), kept(book, 24), kept(book, 25)] == [listed(17), listed(17), None]


def test_no_price_holds_before_it_was_looked_up(sync, kept):
    """The clock was set back: the ledger's price is that of a later hour."""
    book = sync(17, "evening")
    assert kept(book, 10) is None
    book = sync(10, "morning", book.detach())
    assert kept(book, 10) == listed(10)
