"""The status document: its parts, each queried from the ledger, and a reason for every unknown value.

The session's usage, the fill of its context, and what is left of budgets are separate parts. The module imports little
(see `status.answer`).
"""

from __future__ import annotations

from time import localtime, mktime

from sessionlog.analytics.limits import stamp
from sessionlog.analytics.status import budgets as windows
from sessionlog.analytics.status import sums, typical
from sessionlog.events.names import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo
    from typing import Any

    from sessionlog.analytics.conditions import Query
    from sessionlog.analytics.status.own import LedgerLocation, OwnBudget
    from sessionlog.analytics.status.statusline_input import StatuslineInput
    from sessionlog.analytics.status.sums import SessionRow

SCHEMA = "sessionlog.status/1"
NOTHING_YET = "no session has been recorded yet"

_UNPRICED = "no cost is logged, and the price list has none for it; `sessionlog pricing MODEL` shows why"
_NO_USAGE = "no request has tokens or a cost in the log"
_NO_TURNS = "the logs of {} do not show where a turn begins"
_ALONE = "the log was read alone, without the other sessions"
_NOT_OF_A_PATH = "they are about this machine, and not about a log that was read alone"
_NO_FIT = (
    "no budget in US dollars, tokens or requests limits it, or what is left or its cost is not known; "
    "a provider's percentage is no amount"
)


def document_of(
    query: Query,
    found: SessionRow | None,
    *,
    now_ns: int,
    zone: tzinfo | None = None,
    rules: Sequence[Any] = (),
    config_error: str = "",
    everything: bool = False,
    alone: bool = False,
    missing: str = NOTHING_YET,
    statusline_input: StatuslineInput | None = None,
    location: LedgerLocation | None = None,
    with_typical: bool = True,
) -> dict[str, Any]:
    """Return the document `sessionlog.status/1` of a session.

    Args:
        query: Runs a statement on the ledger.
        found: The session; None without one, and for the sum over all.
        now_ns: The present.
        zone: The time zone of `today` and of budgets; None for the machine's.
        rules: The user's own budgets (see `budgets.rules`).
        config_error: Why the budgets cannot be used; empty if they can.
        everything: Sum over all sessions.
        alone: Whether the book holds one log or folder and no other sessions.
        missing: Why there is no session.
        statusline_input: The agent's input for a status line.
        location: Where the ledger is; None for a book in memory.
        with_typical: Whether to include `typical`; a status line does not show it, and it takes 1 ms.
    """
    why: dict[str, str] = {}
    if found is None:
        why["session"] = "this is the sum over all sessions" if everything else missing
    budgets = windows.provider_windows(query, None if found is None else found.source, now_ns, why)
    own: Sequence[OwnBudget] = ()
    if config_error or (rules and alone):
        why["usage.budgets"] = config_error or _NOT_OF_A_PATH
    elif rules:
        from sessionlog.analytics.status.own import PER_SESSION, add_own_budgets

        own = add_own_budgets(
            query, rules, budgets, why, now_ns=now_ns, zone=zone or "local", found=found,
            missing=PER_SESSION if everything else missing, statusline_input=statusline_input, location=location,
        )  # fmt: skip
    count, named = sums.problems_of(query, None if found is None else found.id)
    return {
        "schema": SCHEMA,
        "session": None if found is None else _session(query, found, why),
        "usage": {
            "session": _used(query, found, why, everything=everything),
            "lastTurn": _last_turn(query, found, why),
            "today": _today(query, now_ns, zone, why, alone=alone),
            "budgets": budgets,
        },
        "context": _context(query, found, why),
        "typical": _typical(query, found, own, why) if with_typical else None,
        "problems": {"count": count, "first": _first(named)},
        "unavailable": why,
    }


def empty_document(reason: str) -> dict[str, Any]:
    """Return a document in which every value is unknown, for this reason."""
    paths = ("session", "usage.session", "usage.lastTurn", "usage.today", "context", "typical")
    return {
        "schema": SCHEMA,
        "session": None,
        "usage": {"session": None, "lastTurn": None, "today": None, "budgets": {}},
        "context": None,
        "typical": None,
        "problems": {"count": 0, "first": []},
        "unavailable": dict.fromkeys(paths, reason),
    }


def _session(query: Query, found: SessionRow, why: dict[str, str]) -> dict[str, Any]:
    model = sums.last_model(query, found.id)
    values = {
        "id": found.session,
        "source": found.source,
        "path": found.path,
        "status": found.status,
        "project": None if found.project == UNKNOWN else found.project,
        "model": None if model == UNKNOWN else model,
        "task": typical.task_of(found.metadata),
        "start": stamp(found.start_ns),
        "last": stamp(found.last_ns),
        "archived": bool(found.archived),
    }
    reasons = {
        "project": "the log names no folder",
        "model": "there was no request yet" if model is None else "the log names no model",
        "task": "the session's metadata names no task",
        "start": "the log has no times",
        "last": "the log has no times",
    }
    why |= {f"session.{name}": reason for name, reason in reasons.items() if values[name] is None}
    return values


def _used(query: Query, found: SessionRow | None, why: dict[str, str], *, everything: bool) -> dict[str, Any] | None:
    path, partial = "usage.session", False
    if everything:
        (turns, partial), used = sums.turns_of_all(query), sums.sums_of_time(query, None, None)
        source = "these agents"
    elif found is None:
        why[path] = why["session"]
        return None
    else:
        turns, used, source = found.turns, sums.sums_of_session(query, found.id), found.source
    if turns is None:
        why[f"{path}.turns"] = _NO_TURNS.format(source)
    _explain(used, path, why)
    return {"turns": turns, **({"turnsArePartial": partial} if everything else {}), **used}


def _last_turn(query: Query, found: SessionRow | None, why: dict[str, str]) -> dict[str, Any] | None:
    path = "usage.lastTurn"
    if found is None or found.last_turn_ns is None:
        if found is None:
            why[path] = why["session"]
        else:
            why[path] = "there was no prompt yet" if found.turns == 0 else _NO_TURNS.format(found.source)
        return None
    used = sums.sums_since(query, found.id, found.last_turn_ns)
    _explain(used, path, why)
    return used


def _today(
    query: Query, now_ns: int, zone: tzinfo | None, why: dict[str, str], *, alone: bool
) -> dict[str, Any] | None:
    path = "usage.today"
    if alone:
        why[path] = _ALONE
        return None
    start_ns, end_ns = day_of(now_ns, zone)
    used = sums.sums_of_time(query, start_ns, end_ns)
    _explain(used, path, why)
    return {"since": stamp(start_ns), **used}


def _explain(used: dict[str, Any], path: str, why: dict[str, str]) -> None:
    if used["cost"] is None:
        reason = _UNPRICED if used["totalTokens"] else _NO_USAGE if used["requests"] else "there was no request"
        why |= {f"{path}.{name}": reason for name in ("cost", "costSource")}


def _context(query: Query, found: SessionRow | None, why: dict[str, str]) -> dict[str, Any] | None:
    last = None if found is None else sums.last_request(query, found.id)
    if last is None:
        why["context"] = why["session"] if found is None else "no request of the main agent has tokens in the log"
        return None
    used, time_ns, model, window = last
    if window is None:
        reason = f"no window of {model} is known that holds {used} tokens"
        why |= {"context.window": reason, "context.percent": reason}
    return {
        "used": used,
        "window": window,
        "percent": None if window is None else used / window * 100,
        "model": model,
        "time": stamp(time_ns),
    }


def _typical(
    query: Query, found: SessionRow | None, own: Sequence[OwnBudget], why: dict[str, str]
) -> dict[str, Any] | None:
    """The `typical` object: medians by task, the session's own task first."""
    tasks = typical.typical_sessions(query, own)
    if not tasks:
        why["typical"] = "no session has come to an end yet"
        return None
    if found is not None:
        mine = typical.task_of(found.metadata)
        tasks.sort(key=lambda task: task["task"] != mine)
        if tasks[0]["task"] != mine:
            what = "without a task" if mine is None else f"with task {mine}"
            why["typical.ofThisTask"] = f"no finished session {what} yet"
        tasks = [{**task, "ofThisTask": task["task"] == mine} for task in tasks]
    if any(task["task"] is None for task in tasks):
        why["typical.byTask.task"] = "the metadata of such sessions names none"
    for name in ("fits", "limitedBy"):
        if any(task[name] is None for task in tasks):
            why[f"typical.byTask.{name}"] = _NO_FIT
    for name in ("cost", "costSource"):
        if any(task[name] is None for task in tasks):
            why[f"typical.byTask.{name}"] = "no such session has a completely known cost"
    return {"sessions": sum(task["sessions"] for task in tasks), "byTask": tasks}


def _first(named: Sequence[str]) -> list[str]:
    if not named:
        return []
    from sessionlog.ledger.problems import problems_of

    return [str(problem) for text in named for problem in problems_of(text)][:10]


def day_of(now_ns: int, zone: tzinfo | None) -> tuple[int, int]:
    """Return the start and end of an instant's day in the zone; None is the C library's local time."""
    if zone is not None:
        from datetime import UTC, datetime, timedelta

        from sessionlog.analytics.window_grammar import parse_usage_window

        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=now_ns // 1000)
        today = parse_usage_window("today", now=moment, tz=zone)
        if today is not None and today.start_ns is not None and today.end_ns is not None:
            return today.start_ns, today.end_ns
    return _midnight(now_ns, 0), _midnight(now_ns, 1)


def _midnight(now_ns: int, days: int) -> int:
    at = localtime(now_ns // 1_000_000_000)
    return int(mktime((at.tm_year, at.tm_mon, at.tm_mday + days, 0, 0, 0, 0, 0, -1))) * 1_000_000_000
