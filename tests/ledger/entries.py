"""Records and sessions made by hand, a book of them, and prices that no new price list can change."""

from dataclasses import replace

from sessionlog.events.tokens import TokenUsage
from sessionlog.ledger.book import Book
from sessionlog.pricing.book import PriceBook
from sessionlog.pricing.own_prices import parse_own_prices
from sessionlog.pricing.price_list import load_price_list
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Record, ScannedSession

SECOND = 10**9
NOON = 1_795_176_000 * SECOND
"""2026-11-20T12:00:00Z."""

_OWN = {
    "acme/*": {"input": 1, "output": 4, "cache_read": 0.1, "cache_write": 1.25},
    "acme/gift": {"input": 0, "output": 0},
    "shop/served-name": {"input": 2, "output": 2},
}
PRICES = PriceBook(replace(load_price_list(), source="the house's list", date="2026-11-01"), parse_own_prices(_OWN))
"""Everything of acme costs $1 in and $4 out a million tokens, `acme/gift` nothing; use no names of real vendors."""


def record(**fields):
    """A record of 10 tokens in and 5 out, of acme's model `m`, at noon, without a recorded cost."""
    usage = {"input": 10, "output": 5} | {name: fields.pop(name) for name in TokenUsage.__slots__ if name in fields}
    known = {"time_ns": NOON, "provider": "acme", "model": "m", "response_model": None, "cost_nano": None}
    return Record(usage=TokenUsage(**usage), **(known | fields))


def session(name, *records, **fields):
    """A session that began at noon and succeeded, with its records."""
    known = {"source": "native", "path": f"{name}.jsonl", "start_ns": NOON, "last_ns": NOON, "status": "success"}
    return ScannedSession(session_id=name, records=records, **(known | fields))


def book_of(*sessions, prices=PRICES):
    """A book with these sessions."""
    book = Book(prices)
    for one in sessions:
        book.add_scan(scan_of(one))
    return book


def scan_of(*sessions):
    """What a scan of a log with these sessions gives."""
    return LogScan(sessions=sessions)
