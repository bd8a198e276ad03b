"""Every kind of report at once, of one book: what a ledger says, and what a full scan says instead."""

import zlib

from sessionlog.analytics.limits import rate_limits
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.sessions import fold_sessions
from sessionlog.analytics.tools import CallSelection, fold_tools
from sessionlog.analytics.usage import fold_usage
from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.analytics.zones import resolve_zone
from sessionlog.ledger.ask import Where, ask
from tests.ledger.little_logs import NOW

GROUPINGS = (("provider", "model"), ("session",), ("day",), ("source", "project"), ("agent", "branch", "route"))
CALLS = (("server", "tool"), ("session", "agent"))
_OF_MEMORY = ("archived", "archived_sessions", "problems")


WINDOW = parse_usage_window("2026-11-10T10:00:30.5Z..2026-11-10T10:16:00Z", now=NOW)


def _selected(kind, by, window=None):
    now_ns = int(NOW.timestamp()) * 10**9
    return kind(window=window, by=by, filters={}, zone=resolve_zone("UTC"), now_ns=now_ns)


def everything(book):
    """All reports as they are shown, and the limits."""
    reports = [fold_usage(book, _selected(Selection, by)) for by in GROUPINGS]
    reports.append(fold_usage(book, _selected(Selection, ("source", "model"), WINDOW)))
    reports += [fold_tools(book, _selected(CallSelection, by)) for by in CALLS]
    reports.append(fold_sessions(book, _selected(Selection, ())))
    limits = [one.to_dict() for one in rate_limits(book.query, 2**62)]
    return {"reports": [report.to_dict() for report in reports], "notes": list(book.notes), "limits": limits}


def of_ledger(home, prices, *, env=None, live=False, **how):
    """What the ledger says."""
    return ask(Where(ledger=home.ledger, env=env or home.env, live=live, **how, prices=prices), everything)


def of_scan(home, prices, *, env=None):
    """What a full scan says."""
    return ask(Where(env=env or home.env, prices=prices), everything)


def counted(answer):
    """What an answer counts, without what only a memory can know: who is archived, what was wrong with the logs."""

    def kept(value):
        if isinstance(value, dict):
            return {name: kept(one) for name, one in value.items() if name not in _OF_MEMORY}
        return [kept(one) for one in value] if isinstance(value, list) else value

    return kept(answer["reports"])


def unpacked(path, content):
    """What a log says, as far as it can be unpacked."""
    if not path.endswith(".gz"):
        return content
    told = b""
    while content:
        member = zlib.decompressobj(31)
        try:
            told += member.decompress(content)
        except zlib.error:
            break
        content = member.unused_data
    return told
