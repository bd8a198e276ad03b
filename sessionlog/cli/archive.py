"""`sessionlog archive`: copy closed logs to where their agents do not delete them; the originals are only read."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial

from sessionlog.analytics.window_grammar import parse_usage_window
from sessionlog.archive.keep import archive_logs
from sessionlog.archive.manifest import archive_folder
from sessionlog.cli import reporting as r
from sessionlog.cli.output import UNREADABLE, Exit, fail, print_json
from sessionlog.engine.shares import map_shares
from sessionlog.render.archive import render_archived
from sessionlog.sources.registry import choose_sources

_AGE = re.compile(r"[0-9]{1,5}(h|d|w|mo)")


def archive(*, source: list[str] | None, older_than: str, dry_run: bool, as_json: bool, now: str | None) -> None:
    """Copy closed logs, compressed and verified, to where no agent deletes them: `sessionlog replay` finds them there.

    Of logs that are archived already only the date is compared, so run it every night. Exit code 3: a log could not be
    archived.

    Example: sessionlog archive --source claude-code --older-than 20d
    """
    context = r.report_context(None, now=now)
    now_ns = int(context.now.timestamp() * 1_000_000_000)
    closed_ns = now_ns - _before(older_than.strip(), context.now)
    with r.scan_progress() as progress:
        done = archive_logs(
            archive_folder(context.env), context.env, sources=choose_sources(r.split_list(source)), closed_ns=closed_ns,
            now_ns=now_ns, dry_run=dry_run, progress=progress, spread=map_shares,
        )  # fmt: skip
    if as_json:
        print_json(done.to_dict())
    else:
        r.print_lines(partial(render_archived, done, home=context.home, closed=older_than.strip()))
    if done.problems:
        raise Exit(UNREADABLE)


def _before(age: str, now: datetime) -> int:
    """Return the time that lies `age` before `now`, in nanoseconds since 1970 UTC."""
    if not _AGE.fullmatch(age):
        fail(f"--older-than {age!r} is not an age such as 12h, 20d, 4w or 3mo")
    window = parse_usage_window(age.lstrip("0"), now=now) if age.strip("0hdwmo") else None
    return int(now.timestamp() * 1_000_000_000) if window is None else window.start_ns or 0
