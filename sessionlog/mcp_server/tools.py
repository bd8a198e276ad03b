"""Tools: the five questions that an agent may ask, and who answers them.

None of them changes anything but the ledger, which is brought up to date. Each gives the document that the command of
the same meaning prints with `--json`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from sessionlog.analytics.budgets.gaps import error_words
from sessionlog.analytics.budgets.report import BudgetReport, report_budgets
from sessionlog.analytics.columns import counted
from sessionlog.analytics.report import Report
from sessionlog.analytics.session_requests import count_session_requests
from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.status.question import StatusQuestion
from sessionlog.analytics.status.reader import ask_status, budgets_of, rules_of
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.analytics.zones import resolve_zone
from sessionlog.archive.find import open_session
from sessionlog.context.xray.report import ContextReport, xray
from sessionlog.errors import InvalidQuery, LedgerUnusable, LogNotReadable, SessionLogError
from sessionlog.mcp_server import arguments as a
from sessionlog.mcp_server import documents as d
from sessionlog.mcp_server.surroundings import Surroundings, session_named
from sessionlog.pricing.book import PriceBook
from sessionlog.render.notes import damage_note

Found = tuple[dict[str, Any], Sequence[str]]
"""A document, and sentences beside it: what a limit left out, what could not be read."""


POINTS = 100
"""Points of the growth, and compactions."""
PARTS = 20
"""Parts of one kind; the smaller ones are one together."""
NAME = 200
"""Characters of a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One tool.

    Attributes:
        says: What a model reads of it.
        arguments: What it may be asked.
        document: The shape of its answer.
        answer: Who answers.
        command: The command that says the same to people.
    """

    says: str
    arguments: type[a.Arguments]
    document: Any
    answer: Callable[[Any, Surroundings], Found]
    command: str


def session_status(asked: a.StatusArguments, where: Surroundings) -> Found:
    """`sessionlog status --json`."""
    zone = None if where.zone == "local" else resolve_zone(where.zone)
    rules, mistake = budgets_of(where.settings)
    question = StatusQuestion(target=session_named(asked.session, where), zone=zone, rules=rules, mistake=mistake)
    status, notes = ask_status(
        question, env=where.env, ledger=where.settings.ledger_path, prices=where.own_prices(),
        now_ns=int(where.now.timestamp() * 1_000_000_000),
    )  # fmt: skip
    return status.to_dict(), notes


def usage(asked: a.UsageArguments, where: Surroundings) -> Found:
    """`sessionlog usage --json`."""
    report = aggregate_usage(
        window=asked.since, until=asked.until, by=asked.by, sort=asked.sort, limit=asked.limit,
        filters=_filters(asked, "provider", "model", "project", "status", "source"), **_present(where),
    )  # fmt: skip
    left_out = [f"{counted(report.hidden_rows, 'more row')}: ask with a larger `limit`"] if report.hidden_rows else ()
    empty = ["nothing was used in that time with these filters"] if not report.totals.sessions else ()
    return report.to_dict(), [*empty, *left_out, *_damage(report), *report.notes]


def budget(asked: a.BudgetArguments, where: Surroundings) -> Found:
    """`sessionlog budget --json`."""
    rules = rules_of(where.settings)
    if asked.name is not None:
        names = ", ".join(rule.name for rule in rules) or "none"
        rules = tuple(rule for rule in rules if rule.name == asked.name)
        if not rules:
            raise InvalidQuery(f"no budget {asked.name!r} in {where.settings.config_path}; there are: {names}")
    if not rules:
        none = f"no budgets are set; they are tables [budgets.NAME] in {where.settings.config_path}"
        return BudgetReport().to_dict(), [none]
    path, prices = where.settings.ledger_path, where.own_prices() or PriceBook.load()
    try:
        report = report_budgets(path, rules, prices, env=where.env, zone=where.zone, now=where.now)
    except SessionLogError:
        raise
    except (OSError, sqlite3.Error, ValueError, TypeError) as error:  # a damaged row may be anything
        raise LedgerUnusable(f"what is left is not known: {path}: {error_words(error)}") from error
    return report.to_dict(), ()


def recent_sessions(asked: a.SessionsArguments, where: Surroundings) -> Found:
    """`sessionlog sessions --json --limit N`."""
    found = list_sessions(
        window=asked.since, limit=asked.limit, filters=_filters(asked, "project", "source", "status"), **_present(where)
    )
    return found.to_dict(), [*_damage(found), *found.notes]


def context(asked: a.ContextArguments, where: Surroundings) -> Found:
    """`sessionlog context --json SESSION`."""
    target, session = session_named(asked.session, where), None
    if target is None:
        target, session = _newest(where)
    with open_session(target, where.settings.session_dir, where.env) as (log, named, entry):
        report = xray(log, session or named, request=asked.request)
    if entry is not None:
        report = replace(report, path=entry.path)
    whole = count_session_requests(
        report.session, report.path if entry is None else None, env=where.env, ledger=where.settings.ledger_path,
    )  # fmt: skip
    document, left_out = _bounded(replace(report, session_requests=whole).to_dict())
    return document, [*left_out, *_damage(report)]


def _newest(where: Surroundings) -> tuple[str, str]:
    """The log of the session with the newest event, and its id."""
    document, _ = session_status(a.StatusArguments(), where)
    found = document["session"]
    if found is None:
        raise LogNotReadable(f"{document['unavailable']['session']}; name the path of a log")
    return str(found["path"]), str(found["id"])


def _filters(asked: a.Arguments, *names: str) -> dict[str, list[str]]:
    return {name: globs for name in names if (globs := getattr(asked, name))}


def _present(where: Surroundings) -> dict[str, Any]:
    """What questions of the ledger depend on besides what is asked."""
    return {
        "tz": where.zone, "now": where.now, "env": where.env, "ledger": where.settings.ledger_path,
        "prices": where.own_prices(),
    }  # fmt: skip


def _damage(report: Report | ContextReport) -> list[str]:
    return [damage_note(report.problem_count, report.problems)] if report.problem_count else []


def _bounded(document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return a context document that does not fill the window that is asked about, and what was left out.

    What is left out is summed up or named, so that parts still sum to the total.
    """
    made, notes = dict(document), []
    growth, compactions = document["growth"], document["compactions"]
    made["growth"], made["compactions"] = _thinned(growth), compactions[-POINTS:]
    if len(growth) > POINTS:
        notes.append(f"growth: {POINTS} of {len(growth)} requests, evenly spread")
    if len(compactions) > POINTS:
        notes.append(f"compactions: the last {POINTS} of {len(compactions)}")
    made["parts"] = [
        part for kind, parts in groupby(document["parts"], key=lambda part: part["kind"]) for part in _few(kind, parts)
    ]
    if len(made["parts"]) < len(document["parts"]):
        notes.append(f"parts: the {PARTS} largest of each kind, and the sum of the others")
    for name in ("parts", "largest", "repeats"):
        made[name] = [{**one, "name": _short(one["name"])} for one in made[name]]
    return made, notes


def _few(kind: str, parts: Any) -> list[Any]:
    """The largest parts of a kind, which come first, and one for the others."""
    listed = list(parts)
    if len(listed) <= PARTS + 1:
        return listed
    rest = listed[PARTS:]
    sums = {key: sum(part[key] for part in rest) for key in ("tokens", "count", "share")}
    return [*listed[:PARTS], {"kind": kind, "name": f"{len(rest)} more", **sums}]


def _thinned(points: list[Any]) -> list[Any]:
    """At most `POINTS` of them, the first and the last among them."""
    if len(points) <= POINTS:
        return points
    last = len(points) - 1
    return [points[last * place // (POINTS - 1)] for place in range(POINTS)]


def _short(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME - 1]}\N{HORIZONTAL ELLIPSIS}"


QUESTIONS: Mapping[str, Question] = {
    "session_status": Question(
        says="What one agent session has used so far (turns, requests, tokens, cost), how full its context window "
        "is, what its last turn and today cost, and how much is left of each budget. Use it to decide whether "
        "there is room for more work. Unknown values are null, and `unavailable` gives the reason.",
        arguments=a.StatusArguments, document=d.StatusDocument, answer=session_status, command="status",
    ),
    "usage": Question(
        says="Tokens, cost, cache hits, success and speed of all agents on this machine, summed by the groups you "
        "name, for a time you name. cost_usd is known plus estimated cost; null is unknown, not free.",
        arguments=a.UsageArguments, document=d.UsageDocument, answer=usage, command="usage",
    ),
    "budget": Question(
        says="The user's own budgets: used, limit, percent, burn rate per hour, when each resets and when it runs "
        "out at this rate; `exceeded` and `warned` name those that ask you to stop or to save.",
        arguments=a.BudgetArguments, document=d.BudgetDocument, answer=budget, command="budget",
    ),
    "recent_sessions": Question(
        says="The newest sessions of all agents on this machine: id, log path, project, models, how they ended, "
        "tokens, cost, and the first words of the prompt. Use it to find a session's id.",
        arguments=a.SessionsArguments, document=d.SessionsDocument, answer=recent_sessions, command="sessions",
    ),
    "context": Question(
        says="What fills a session's context window at one request: system prompt, tool definitions, history, tool "
        "results and the current turn in tokens, the largest items, what is there several times, the share that "
        "was cached, and how the prompt grew. Use it to see what to drop before the window is full.",
        arguments=a.ContextArguments, document=d.ContextDocument, answer=context, command="context",
    ),
}  # fmt: skip
"""By name, in the order in which they are listed."""
