"""A day's work made by hand: tool calls of every kind, blocks with pauses between them, and words on rate limits.

Everything is at noon of 20 November 2026 UTC unless it says otherwise; prices are those of `entries`.
"""

from datetime import UTC, datetime

from sessionlog.analytics.blocks import fold_blocks
from sessionlog.analytics.selection import Selection
from sessionlog.analytics.tools import CallSelection, fold_tools
from sessionlog.analytics.window import UsageWindow
from sessionlog.sources.protocol import LogScan
from sessionlog.sources.record import Limit, ToolUse
from tests.ledger.entries import NOON, SECOND, book_of, record, session

MINUTE = 60 * SECOND
HOUR = 3600 * SECOND
PRESENT = datetime(2026, 11, 20, 13, 30, tzinfo=UTC)
PRESENT_NS = NOON + HOUR + 30 * MINUTE


def call(key, tool="bash", **fields):
    """A call at noon that took a second and gave back 100 bytes."""
    known = {"time_ns": NOON, "finished": True, "duration_ms": 1000.0, "output_bytes": 100}
    return ToolUse(key=str(key), tool=tool, **(known | fields))


def open_call(key, tool="bash", **fields):
    """A call whose result is not in the log."""
    return call(key, tool, **({"finished": False, "duration_ms": None, "output_bytes": 0} | fields))


def _window(start_ns, end_ns):
    return None if start_ns is None and end_ns is None else UsageWindow(start_ns=start_ns, end_ns=end_ns)


def fold_calls(*sessions, by=("server", "tool"), start_ns=None, end_ns=None, **fields):
    """The report on the tool calls of sessions made by hand."""
    known = {"window": _window(start_ns, end_ns), "by": by, "filters": {}, "zone": UTC, "now_ns": PRESENT_NS}
    return fold_tools(book_of(*sessions), CallSelection(**(known | fields)))


def fold_hours(*sessions, hours=5, only_active=False, limits=(), start_ns=None, end_ns=None, **fields):
    """The blocks of sessions made by hand, seen from their last record if it is later; limits are (source, Limit)."""
    book = book_of(*sessions)
    for source, limit in limits:
        book.add_scan(LogScan(sessions=(session("l", source=source),) if source else (), limits=(limit,)))
    now_ns = max([PRESENT_NS, *(r.time_ns for one in sessions for r in one.records if r.time_ns is not None)])
    known = {"window": _window(start_ns, end_ns), "by": (), "filters": {}, "zone": UTC, "now_ns": now_ns}
    return fold_blocks(book, Selection(**(known | fields)), hours=hours, only_active=only_active)


def day_of_calls():
    """Own tools and those of two servers, of two sessions; quick, slow, failed and open ones."""
    quick = [call(f"read-{n}", "read", duration_ms=2.0 + n, output_bytes=4000) for n in range(12)]
    shell = [call(f"bash-{n}", duration_ms=300.0 * (n + 1), failed=n % 3 == 0, output_bytes=900 * n) for n in range(7)]
    search = [call(f"find-{n}", "search_issues", server="github", output_bytes=60_000) for n in range(2)]
    late = call("late", "create_pull_request", server="github", failed=True, time_ns=NOON + HOUR, output_bytes=80)
    silent = call("silent", "sleep", duration_ms=None, output_bytes=0)
    agent = call("agent", "fetch", server="a-server-with-a-rather-long-name", agent="explorer", duration_ms=95_000.0)
    waiting = [open_call("ask", "ask_user"), open_call("hung", time_ns=NOON + HOUR)]
    return (
        session("one", record(), tools=(*quick, *shell, silent), project="/home/ada/shop"),
        session("two", record(), tools=(*search, late, agent, *waiting), status=None, project="/home/ada/site"),
    )


def day_of_blocks():
    """Five blocks: three of the days before, one of the morning, and the present one."""
    hours = {"old": -50, "night": -27, "morning": -5}
    costs = {"old": 250_000_000, "night": None, "morning": None}
    past = [
        session(name, record(time_ns=NOON + at * HOUR + MINUTE, input=40_000, cost_nano=costs[name]))
        for name, at in hours.items()
    ]
    odd = session("odd", record(time_ns=NOON - 20 * HOUR, provider="stranger", model="nova"))
    now = session(
        "now",
        record(time_ns=NOON + 5 * MINUTE, input=9000, output=1500, cache_read=400_000, latency_ms=900.0),
        record(time_ns=NOON + HOUR, input=2000, output=700, cache_read=410_000, cache_write=12_000, model="large"),
        record(time_ns=NOON + HOUR + MINUTE, output=0, input=0, failed=True, priced=False),
        status=None,
    )
    return (*past, odd, now)


def day_of_limits():
    """One in use, one nearly used up, one that has started anew, one of which little is said."""
    said = NOON + HOUR
    return (
        ("codex", Limit(time_ns=said, name="primary", used_percent=41.5, window_minutes=300, resets_ns=NOON + 4 * HOUR, plan="plus")),
        ("codex", Limit(time_ns=said, name="secondary", used_percent=93, window_minutes=10_080, resets_ns=NOON + 50 * HOUR, plan="plus")),
        ("codex", Limit(time_ns=NOON - 9 * HOUR, name="old/primary", used_percent=77, window_minutes=300, resets_ns=NOON - 6 * HOUR)),
        ("", Limit(time_ns=NOON, name="requests", used_percent=0)),
    )  # fmt: skip
