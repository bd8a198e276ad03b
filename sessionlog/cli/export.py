"""`sessionlog export`: send what the ledger knows to another program."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, Exit, fail, note, print_json
from sessionlog.export.otlp import Exported, export_otlp
from sessionlog.render.export import render_exported
from sessionlog.render.notes import damage_note


def export(
    *,
    paths: list[str] | None,
    otlp: str | None,
    since: str | None,
    until: str | None,
    provider: list[str] | None,
    model: list[str] | None,
    project: list[str] | None,
    status: list[str] | None,
    source: list[str] | None,
    header: list[str] | None,
    signals: str,
    content: bool,
    again: bool,
    dry_run: bool,
    as_json: bool,
    tz: str | None,
    now: str | None,
    ledger: str | None,
    no_ledger: bool,
    live: bool,
    jobs: int | None,
) -> None:
    """Send requests, tool calls and sessions to a collector of OpenTelemetry, as spans and metrics.

    The next run sends only what is new; --again sends all of it again, with the same ids. Exit code 1: the collector
    rejected a part; 3: it cannot be reached.

    Example: sessionlog export --otlp http://localhost:4318 --since 7d
    """
    if otlp is None:
        fail("give a collector: sessionlog export --otlp http://localhost:4318")
    headers = _headers(header or ())
    arguments = r.ReportArguments({
        "paths": paths, "since": since, "until": until, "provider": provider, "model": model, "project": project,
        "status": status, "source": source, "tz": tz, "now": now, "ledger": ledger, "no_ledger": no_ledger,
        "live": live, "jobs": jobs,
    })  # fmt: skip
    context = arguments.context()
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # our own messages have what exporters log
    with r.scan_progress() as progress, r.scan_progress("sending") as sent:
        done = export_otlp(
            context.paths, endpoint=otlp, headers=headers, signals=r.split_list([signals]), content=content,
            again=again, dry_run=dry_run, sent=sent, **arguments.options(context, progress),
        )  # fmt: skip
    _show(done, as_json=as_json)
    if done.is_empty:
        note(r.nothing_found(context, narrowed=bool(since or until or arguments.filters)))
    if done.rejected:
        raise Exit(FOUND)


def _show(done: Exported, *, as_json: bool) -> None:
    if as_json:
        print_json(done.to_dict())
    else:
        r.print_lines(partial(render_exported, done))
    for sentence in (*done.notes, *([damage_note(done.problem_count, done.problems)] if done.problem_count else [])):
        note(sentence)


def _headers(given: Sequence[str]) -> dict[str, str]:
    """Return headers by name; a wrong one ends the command, without being shown: it may be a secret."""
    headers = {}
    for number, text in enumerate(given, start=1):
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip() and text.isascii() and text.isprintable()):
            fail(f"--header {number} is not NAME=VALUE, such as --header 'x-api-key=…'")
        headers[name.strip()] = value.strip()
    return headers
