"""Tools: the six tools that an agent may call, and the function behind each.

They change nothing except the ledger and the search index, which they bring up to date. Each returns the document that
its command prints with `--json`; `context` and `find` shorten it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import ne
from typing import Any

from sessionlog.analytics.budgets.ledger import LEDGER_ERRORS, ledger_error_text
from sessionlog.analytics.budgets.report import BudgetReport, report_budgets
from sessionlog.analytics.columns import counted
from sessionlog.analytics.report import Report
from sessionlog.analytics.session_requests import count_session_requests
from sessionlog.analytics.sessions import list_sessions
from sessionlog.analytics.status.logs import ask_status
from sessionlog.analytics.status.question import StatusQuestion, budget_rules, budget_rules_or_error
from sessionlog.analytics.usage import aggregate_usage
from sessionlog.analytics.zones import resolve_zone
from sessionlog.archive.find import open_session
from sessionlog.context.xray.report import ContextReport, xray
from sessionlog.errors import InvalidQuery, LedgerUnusable, LogNotReadable, SessionLogError
from sessionlog.mcp_server import arguments as a
from sessionlog.mcp_server import documents as d
from sessionlog.mcp_server.call_context import CallContext, session_target
from sessionlog.render.find import found_document
from sessionlog.render.notes import damage_note
from sessionlog.search.find import Place, Question
from sessionlog.search.find import find as find_texts
from sessionlog.search.query import parse_query

Result = tuple[dict[str, Any], Sequence[str]]
"""A document, and notes about it: what a limit left out, what could not be read."""

MAX_POINTS = 100
"""Points in `growth`, and entries in `compactions`."""
MAX_PARTS = 20
"""Parts of one kind; the smaller ones are merged into one more."""
MAX_NAME = 200
"""Characters of a name."""
MAX_TEXT = 600
"""Characters of a text that was found."""
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """One tool.

    Attributes:
        description: What a model reads about it.
        arguments: The type of its arguments.
        document: The type of its document.
        run: Arguments and context → the document and its notes.
        command: The command with the same document.
    """

    description: str
    arguments: type[a.Arguments]
    document: Any
    run: Callable[[Any, CallContext], Result]
    command: str


def session_status(args: a.StatusArguments, ctx: CallContext) -> Result:
    """`sessionlog status --json`."""
    zone = None if ctx.zone == "local" else resolve_zone(ctx.zone)
    rules, error = budget_rules_or_error(ctx.settings)
    question = StatusQuestion(target=session_target(args.session, ctx), zone=zone, rules=rules, config_error=error)
    status, notes = ask_status(
        question, env=ctx.env, ledger=ctx.settings.ledger_path, prices=ctx.own_prices(),
        now_ns=int(ctx.now.timestamp() * 1_000_000_000),
    )  # fmt: skip
    return status.to_dict(), notes


def usage(args: a.UsageArguments, ctx: CallContext) -> Result:
    """`sessionlog usage --json`."""
    report = aggregate_usage(
        window=args.since, until=args.until, by=args.by, sort=args.sort, limit=args.limit,
        filters=_filters(args, "provider", "model", "project", "status", "source"), **_ledger_options(ctx),
    )  # fmt: skip
    left_out = [f"{counted(report.hidden_rows, 'more row')}: ask with a larger `limit`"] if report.hidden_rows else ()
    empty = ["nothing was used in that time with these filters"] if not report.totals.sessions else ()
    return report.to_dict(), [*empty, *left_out, *_damage(report), *report.notes]


def budget(args: a.BudgetArguments, ctx: CallContext) -> Result:
    """`sessionlog budget --json`."""
    rules = budget_rules(ctx.settings)
    if args.name is not None:
        names = ", ".join(rule.name for rule in rules) or "none"
        rules = tuple(rule for rule in rules if rule.name == args.name)
        if not rules:
            raise InvalidQuery(f"no budget {args.name!r} in {ctx.settings.config_path}; there are: {names}")
    if not rules:
        none = f"no budgets are set; they are tables [budgets.NAME] in {ctx.settings.config_path}"
        return BudgetReport().to_dict(), [none]
    path = ctx.settings.ledger_path
    try:
        report = report_budgets(path, rules, ctx.own_prices(), env=ctx.env, zone=ctx.zone, now=ctx.now)
    except SessionLogError:
        raise
    except LEDGER_ERRORS as error:
        raise LedgerUnusable(f"what is left is not known: {path}: {ledger_error_text(error)}") from error
    return report.to_dict(), ()


def recent_sessions(args: a.SessionsArguments, ctx: CallContext) -> Result:
    """`sessionlog sessions --json --limit N`."""
    found = list_sessions(
        window=args.since,
        limit=args.limit,
        filters=_filters(args, "project", "source", "status"),
        **_ledger_options(ctx),
    )
    return found.to_dict(), [*_damage(found), *found.notes]


def find(args: a.FindArguments, ctx: CallContext) -> Result:
    """`sessionlog find --json`, with the part of each text around what was found."""
    query = parse_query([args.words] if args.words.strip() else [])
    question = Question(
        query=query, part=args.part or "", since=args.since, filters=_filters(args, "project", "source"),
        session=args.session, limit=args.limit,
    )  # fmt: skip
    place = Place(ledger=ctx.settings.ledger_path, env=ctx.env, prices=ctx.own_prices(), tz=ctx.zone, now=ctx.now)
    document = found_document(find_texts(question, place))
    hits = [_shorten_hit(hit) for hit in document["hits"]]
    is_cut = any(map(ne, hits, document["hits"]))
    notes = [f"texts are cut to {MAX_TEXT} characters around what was found; `replay` shows the rest"] if is_cut else []
    return document | {"hits": hits}, [*notes, *document["notes"]]


def _shorten_hit(hit: dict[str, Any]) -> dict[str, Any]:
    """Shorten the text of a hit to what is around the first mark, and its prompt."""
    text, marks = hit["text"], hit["marks"]
    start = max(0, (marks[0][0] if marks else 0) - MAX_TEXT // 4) if len(text) > MAX_TEXT else 0
    end = start + MAX_TEXT
    before, after = _ELLIPSIS if start else "", _ELLIPSIS if end < len(text) else ""
    shift = len(before) - start
    kept = [[first + shift, min(last, end) + shift] for first, last in marks if start <= first < end]
    return hit | {"text": f"{before}{text[start:end]}{after}", "marks": kept, "prompt": _shorten(hit["prompt"])}


def context(args: a.ContextArguments, ctx: CallContext) -> Result:
    """`sessionlog context --json SESSION`."""
    target, session = session_target(args.session, ctx), None
    if target is None:
        target, session = _newest_session(ctx)
    with open_session(target, ctx.settings.session_dir, ctx.env) as (log, named, entry):
        report = xray(log, session or named, request=args.request)
    if entry is not None:
        report = replace(report, path=entry.path)
    whole = count_session_requests(
        report.session, report.path if entry is None else None, env=ctx.env, ledger=ctx.settings.ledger_path,
    )  # fmt: skip
    document, left_out = _shorten_document(replace(report, session_requests=whole).to_dict())
    return document, [*left_out, *_damage(report)]


def _newest_session(ctx: CallContext) -> tuple[str, str]:
    """Return the log of the session with the newest event, and the session's id."""
    document, _ = session_status(a.StatusArguments(), ctx)
    found = document["session"]
    if found is None:
        raise LogNotReadable(f"{document['unavailable']['session']}; name the path of a log")
    return str(found["path"]), str(found["id"])


def _filters(args: a.Arguments, *names: str) -> dict[str, list[str]]:
    return {name: globs for name in names if (globs := getattr(args, name))}


def _ledger_options(ctx: CallContext) -> dict[str, Any]:
    """Return the arguments that all queries of the ledger share."""
    return {
        "tz": ctx.zone, "now": ctx.now, "env": ctx.env, "ledger": ctx.settings.ledger_path,
        "prices": ctx.own_prices(),
    }  # fmt: skip


def _damage(report: Report | ContextReport) -> list[str]:
    return [damage_note(report.problem_count, report.problems)] if report.problem_count else []


def _shorten_document(document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Shorten a context document, so that reading it does not fill the window it describes; return it with notes.

    Parts that are left out are merged into one, so that parts still sum to the total.
    """
    shortened, notes = dict(document), []
    growth, compactions = document["growth"], document["compactions"]
    shortened["growth"], shortened["compactions"] = _sample(growth), compactions[-MAX_POINTS:]
    if len(growth) > MAX_POINTS:
        notes.append(f"growth: {MAX_POINTS} of {len(growth)} requests, evenly spread")
    if len(compactions) > MAX_POINTS:
        notes.append(f"compactions: the last {MAX_POINTS} of {len(compactions)}")
    groups = groupby(document["parts"], key=lambda part: part["kind"])
    shortened["parts"] = [part for kind, parts in groups for part in _merge_small(kind, parts)]
    if len(shortened["parts"]) < len(document["parts"]):
        notes.append(f"parts: the {MAX_PARTS} largest of each kind, and the sum of the others")
    for name in ("parts", "largest", "repeats"):
        shortened[name] = [{**one, "name": _shorten(one["name"])} for one in shortened[name]]
    return shortened, notes


def _merge_small(kind: str, parts: Any) -> list[Any]:
    """Return the largest parts of a kind, and one for the sum of the others; they come sorted by size."""
    listed = list(parts)
    if len(listed) <= MAX_PARTS + 1:
        return listed
    rest = listed[MAX_PARTS:]
    sums = {key: sum(part[key] for part in rest) for key in ("tokens", "count", "share")}
    return [*listed[:MAX_PARTS], {"kind": kind, "name": f"{len(rest)} more", **sums}]


def _sample(points: list[Any]) -> list[Any]:
    """Return at most `MAX_POINTS` of them, evenly spread, with the first and the last."""
    if len(points) <= MAX_POINTS:
        return points
    last = len(points) - 1
    return [points[last * place // (MAX_POINTS - 1)] for place in range(MAX_POINTS)]


def _shorten(name: str) -> str:
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}{_ELLIPSIS}"


TOOL_SPECS: Mapping[str, ToolSpec] = {
    "session_status": ToolSpec(
        description="What one agent session has used so far (turns, requests, tokens, cost), how full its context "
        "window is, what its last turn and today cost, and how much is left of each budget. Use it to decide whether "
        "there is room for more work. Unknown values are null, and `unavailable` gives the reason.",
        arguments=a.StatusArguments, document=d.StatusDocument, run=session_status, command="status",
    ),
    "usage": ToolSpec(
        description="Tokens, cost, cache hits, success and speed of all agents on this machine, summed by the groups "
        "you name, for a time you name. cost_usd is known plus estimated cost; null is unknown, not free.",
        arguments=a.UsageArguments, document=d.UsageDocument, run=usage, command="usage",
    ),
    "budget": ToolSpec(
        description="The user's own budgets: used, limit, percent, burn rate per hour, when each resets and when it "
        "runs out at this rate; `exceeded` names the budgets that are used up, `warned` those that nearly are.",
        arguments=a.BudgetArguments, document=d.BudgetDocument, run=budget, command="budget",
    ),
    "recent_sessions": ToolSpec(
        description="The newest sessions of all agents on this machine: id, log path, project, models, how they ended, "
        "tokens, cost, and the first words of the prompt. Use it to find a session's id.",
        arguments=a.SessionsArguments, document=d.SessionsDocument, run=recent_sessions, command="sessions",
    ),
    "find": ToolSpec(
        description="Where something was discussed or done before, in the sessions of all agents on this machine: "
        "prompts, answers, reasoning, tool calls and results with these words, newest first, each with its session, "
        "the text around the words, and the command that replays it. Use it before you solve again what was solved.",
        arguments=a.FindArguments, document=d.FindDocument, run=find, command="find",
    ),
    "context": ToolSpec(
        description="What fills a session's context window at one request: system prompt, tool definitions, history, "
        "tool results and the current turn in tokens, the largest items, repeated content, the share that "
        "was cached, and how the prompt grew. Use it to see what to drop before the window is full.",
        arguments=a.ContextArguments, document=d.ContextDocument, run=context, command="context",
    ),
}  # fmt: skip
"""By name, in the order in which they are listed."""
