"""Statuses of books made by hand, in UTC an hour after noon, and logs that an agent goes on writing."""

import tomllib
from datetime import UTC

from sessionlog.analytics.budgets.rules import parse_budgets
from sessionlog.analytics.status.answer import choose_session
from sessionlog.analytics.status.document import document_of
from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Limit
from sessionlog.testing import FixedClock
from tests.ledger.entries import NOON, SECOND, book_of, record, session

MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
MODEL = "claude-opus-4-5"
NOW = NOON + HOUR


def status(book, target=None, *, now_ns=NOW, **options):
    """The status of the session that is meant, in UTC."""
    found = None if options.get("everything") else choose_session(book.query, target, now_ns)
    return document_of(book.query, found, now_ns=now_ns, zone=UTC, **options)


def limited(*words, source="codex"):
    """A book with a session of a source and what its provider said."""
    book = book_of()
    book.add_scan(LogScan(sessions=(session("s", record(), source=source),), limits=tuple(words)))
    return book


def word(name="primary", used=72.5, minutes=300, **fields):
    """A provider's word."""
    known = {"time_ns": NOON, "resets_ns": NOON + 2 * HOUR}
    return Limit(name=name, used_percent=used, window_minutes=minutes, **(known | fields))


def rules(text):
    """The user's budgets."""
    return parse_budgets(tomllib.loads(text))


def own(book, text, **options):
    """A status with budgets of one's own."""
    return StatusQuestion(zone=UTC, rules=rules(text), **options).answer(book, NOW)[0].to_dict()


def write(folder, name, *, requests=1, start="2026-11-20T10:00:00Z"):
    """A log of our own without an end."""
    log = SessionLogger(folder, name, clock=FixedClock(start), model=MODEL, provider="anthropic", work_dir="/src")
    for _ in range(requests):
        answer(log)
    log.close()
    return folder / f"{name}.jsonl"


def answer(log):
    """One more request."""
    log.llm_request([{"role": "user", "content": "go on"}], model=MODEL)
    log.llm_response("Done.", model=MODEL, usage={"input": 100, "output": 10}, latency_ms=5, cost_usd=0.5)


def alone(folder):
    """An environment in which nothing is but this folder."""
    return {"HOME": str(folder / "home"), "SESSIONLOG_DIR": str(folder / "sessions")}
