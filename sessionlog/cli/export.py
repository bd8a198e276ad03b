"""`sessionlog export`: send what the ledger knows to a collector, or write it as parquet files."""

from __future__ import annotations

from functools import partial
from typing import Any

from sessionlog.cli import reporting as r
from sessionlog.cli.output import FOUND, Exit, fail, note, print_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sessionlog.export.events import ExportedEvents
    from sessionlog.export.otlp import Exported
    from sessionlog.export.parquet import ExportedParquet
    from sessionlog.render.line import Line


def export(
    *,
    destination: str | None,
    otlp: str | None,
    parquet: bool,
    header: list[str] | None,
    signals: list[str] | None,
    content: bool,
    again: bool,
    redact_projects: bool,
    machine: str | None,
    compact: bool,
    events: bool,
    no_text: bool,
    dry_run: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Export requests, tool calls and sessions: to a collector of OpenTelemetry, or as parquet files.

    The next run exports only what is new; to a collector, --again sends all of it again, with the same ids. Exit code
    1: the collector rejected a part; 3: it cannot be reached, or DEST cannot be written.

    Example: sessionlog export --otlp http://localhost:4318 --since 7d

    Example: sessionlog export s3://bucket/team --parquet
    """
    if parquet == (otlp is not None):
        fail("give one of: sessionlog export --otlp http://localhost:4318, or sessionlog export DEST --parquet")
    arguments = r.ReportArguments(settings)
    of_parquet = {"--redact-projects": redact_projects, "--machine": machine, "--compact": compact, "--events": events}
    if otlp is None:
        given = {"--header": header, "--signals": signals, "--content": content, "--again": again}
        no_ledger = arguments.no_ledger and not arguments.paths
        _check_parquet({**given, "--live": arguments.live, "--no-ledger": no_ledger})
        _to_parquet(
            arguments, _destination(destination, hidden=redact_projects and events), machine=machine, compact=compact,
            redact_projects=redact_projects, dry_run=dry_run, as_json=as_json, texts=not no_text if events else None,
        )  # fmt: skip
        return
    _check_collector(destination, {**of_parquet, "--no-text": no_text})
    _to_collector(
        arguments, otlp, headers=_headers(header or ()), dry_run=dry_run, as_json=as_json, content=content, again=again,
        signals=None if signals is None else r.split_list(signals),
    )  # fmt: skip


def _destination(destination: str | None, *, hidden: bool) -> str:
    """Return where parquet files are written; fail without a place, and for events whose names would be hidden."""
    if not destination:
        fail("--parquet needs a folder or URL to write to: sessionlog export ~/team --parquet")
    if hidden:
        fail("--redact-projects cannot hide names in texts and payloads: export without --events")
    return destination


def _check_collector(destination: str | None, given: Mapping[str, object]) -> None:
    """Fail for what an export to a collector does not have."""
    if destination is not None:
        fail(f"{destination}: a destination is for --parquet; with --otlp, choose logs with --path")
    for name, value in given.items():
        if value:
            fail(f"{name} is for --parquet")


def _check_parquet(given: Mapping[str, object]) -> None:
    """Fail for an option that an export to parquet does not have."""
    for name, value in given.items():
        if value:
            fail(f"{name} is not for --parquet, which writes names and numbers of the ledger's file")


def _to_parquet(
    arguments: r.ReportArguments,
    destination: str,
    *,
    machine: str | None,
    compact: bool,
    redact_projects: bool,
    dry_run: bool,
    as_json: bool,
    texts: bool | None,
) -> None:
    """Export the ledger, and events with or without texts unless `texts` is None."""
    from sessionlog.export.parquet import export_parquet
    from sessionlog.render.export import render_parquet

    context = arguments.context()
    with r.scan_progress() as progress, r.scan_progress("writing") as sent:
        done = export_parquet(
            destination, paths=context.paths, machine_name=machine, redact_projects=redact_projects, compact=compact,
            dry_run=dry_run, sent=sent, **arguments.options(context, progress),
        )  # fmt: skip
    events = None
    if texts is not None:
        from sessionlog.export.events import export_events

        with r.scan_progress("reading events") as progress:
            selection = r.event_selection(context, arguments, progress=progress)
            events = export_events(
                destination, selection, done.machine_id, has_texts=texts, compact=compact, dry_run=dry_run
            )
    _show(done, partial(render_parquet, done), arguments, context, as_json=as_json, events=events)


def _to_collector(
    arguments: r.ReportArguments,
    endpoint: str,
    *,
    headers: Mapping[str, str],
    signals: Sequence[str] | None,
    content: bool,
    again: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    import logging

    from sessionlog.export.otlp import SIGNALS, export_otlp
    from sessionlog.render.export import render_exported

    context = arguments.context()
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # our own messages have what exporters log
    with r.scan_progress() as progress, r.scan_progress("sending") as sent:
        done = export_otlp(
            context.paths, endpoint=endpoint, headers=headers, signals=SIGNALS if signals is None else signals,
            content=content, again=again, dry_run=dry_run, sent=sent, **arguments.options(context, progress),
        )  # fmt: skip
    _show(done, partial(render_exported, done), arguments, context, as_json=as_json)
    if done.rejected:
        raise Exit(FOUND)


def _show(
    done: Exported | ExportedParquet,
    render: Callable[..., Iterable[Line]],
    arguments: r.ReportArguments,
    context: r.ReportContext,
    *,
    as_json: bool,
    events: ExportedEvents | None = None,
) -> None:
    """Print what was exported, and notes on damage and on nothing found."""
    if as_json:
        print_json(done.to_dict() | ({} if events is None else {"events": events.to_dict()}))
    else:
        r.print_lines(render)
        if events is not None:
            from sessionlog.render.export import render_events

            r.print_lines(partial(render_events, events, is_dry=getattr(done, "dry_run", False)))
    for sentence in (*done.notes, *(() if events is None else events.notes)):
        note(sentence)
    if done.problem_count:
        from sessionlog.render.notes import damage_note

        note(damage_note(done.problem_count, done.problems))
    if done.is_empty:
        narrowed = bool(arguments.since or arguments.until or arguments.filters)
        note(r.nothing_found(context, narrowed=narrowed))


def _headers(given: Sequence[str]) -> dict[str, str]:
    """Return headers by name; a wrong one ends the command, without being shown: it may be a secret."""
    headers = {}
    for number, text in enumerate(given, start=1):
        name, equals, value = text.partition("=")
        if not (equals and name.strip() and value.strip() and text.isascii() and text.isprintable()):
            fail(f"--header {number} is not NAME=VALUE, such as --header 'x-api-key=…'")
        headers[name.strip()] = value.strip()
    return headers
