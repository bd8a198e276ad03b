"""Whether all commands tell the same of each session: requests, turns, tokens and cost."""

import re
from datetime import UTC, datetime
from decimal import Decimal

from typer.testing import CliRunner

from sessionlog.analytics.diff.side import read_side
from sessionlog.analytics.session_requests import count_session_requests
from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.status.logs import ask_status
from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.cli.app import build_app
from sessionlog.events.envelope import Event
from sessionlog.events.tokens import TokenUsage
from sessionlog.events.usage import read_usage
from sessionlog.mcp_server.arguments import ContextArguments, StatusArguments
from sessionlog.mcp_server.call_context import CallContext
from sessionlog.mcp_server.tools import context, session_status
from sessionlog.settings import load_settings
from sessionlog.sources.find import resolve_log
from sessionlog.transcript.inherited import read_session


def check_agreement(env, ledger, *, directory=None, in_events=True):
    """Compare sessions, usage --by session, status, context, diff, MCP, replay's end, and sums over the events of replay.

    `in_events` is False where the events of one log cannot say what the ledger knows.
    """
    listed = list_sessions(env=env, ledger=ledger).rows
    assert listed
    rows = {
        (row.keys["source"], row.keys["session"]): row
        for row in aggregate_usage(env=env, ledger=ledger, by=["source", "session"]).rows
    }
    for one in listed:
        summary, where = one.to_dict(), f"{one.source} {one.session}"
        row = rows.get((one.source, one.session))  # none for a session without a request
        expected = (summary["requests"], summary["total_tokens"], summary["cost_usd"])
        assert (row.requests, row.total_tokens, row.cost_usd) == expected if row else expected == (0, 0, None), where
        status, _ = ask_status(StatusQuestion(target=one.session), env=env, ledger=ledger)
        used = status.to_dict()["usage"]["session"]
        assert (used["requests"], used["totalTokens"], used["cost"]) == expected, where
        assert count_session_requests(one.session, env=env, ledger=ledger) == expected[0], where
        assert replayed(one.session, env, ledger) == numbers_of(one), where
        log, name = resolve_log(one.session, directory, env)
        events = [item for item in read_session(log, name) if isinstance(item, Event)]
        side = read_side(log, name, kept=0, env=env, ledger=ledger).figures()
        assert (side["requests"], side["total_tokens"], side["cost_usd"], side["turns"]) == (
            *expected,
            used["turns"],
        ), where
        settings = load_settings({**env, "SESSIONLOG_LEDGER": ledger})
        ctx = CallContext(settings=settings, env=env, now=datetime.now(UTC))
        document, _ = session_status(StatusArguments(session=one.session), ctx)
        assert document["usage"]["session"] == used, where
        if row:
            document, _ = context(ContextArguments(session=one.session), ctx)
            assert document["session_requests"] == expected[0], where
        if in_events:
            assert _sums(events) == expected[:2], where


_NUMBERS = {
    "requests": r"(\d+) requests?",
    "failed_requests": r"requests? \((\d+) failed",
    "input_tokens": r"(\d+) in\b",
    "cache_read_tokens": r"(\d+) cached",
    "cache_write_tokens": r"(\d+) written",
    "output_tokens": r"(\d+) out\b",
    "reasoning_tokens": r"(\d+) reasoning",
}


def replayed(target, env, ledger, *options):
    """The numbers in the last line of `sessionlog replay`, and the cost in nano-dollars with its mark."""
    clean = dict.fromkeys(("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "SESSIONLOG_DIR"))
    environment = {**clean, **env, "SESSIONLOG_LEDGER": ledger}
    arguments = ["replay", target, "--plain", "--only", "session.end", *options]
    result = CliRunner().invoke(build_app(("replay",)), arguments, env=environment)
    assert result.exit_code == 0, (target, result.output, result.exception)
    text = " ".join(result.stdout.rstrip().removesuffix("━━").rpartition("━━ ")[2].split())
    return footer_numbers(f" · {text}")


def footer_numbers(text):
    """The numbers in the text of an end."""
    found = {name: re.search(rf" · [^·]*?\b{pattern}", text) for name, pattern in _NUMBERS.items()}
    cost = re.search(r" · (~?)\$([0-9.]+)( \+ unknown)?", text)
    nano = None if cost is None else (cost[1], int(Decimal(cost[2]) * 10**9), bool(cost[3]))
    return {name: int(match[1]) if match else 0 for name, match in found.items()} | {"cost": nano}


def numbers_of(summary):
    """The same of a session as `sessions` lists it."""
    known, estimated = summary.known_nano, summary.estimated_nano
    mark = "~" if estimated or known is None else ""
    nano = (known or 0) + (estimated or 0)
    cost = None if known is None and estimated is None else (mark if nano else "", nano, summary.cost_is_partial)
    return {name: getattr(summary, name) for name in _NUMBERS} | {"cost": cost}


def _sums(events):
    """Requests and tokens of a replay's events; what a fork has copied counts with its parent."""
    responses = [event.data for event in events if event.type == "llm.response" and not event.data.get("inherited")]
    used = sum((read_usage(data.get("usage"))[0] for data in responses), TokenUsage())
    return len(responses), used.total
