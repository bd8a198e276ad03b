"""`sessionlog archive`: closed logs are copied where their agents do not delete them; the originals are only read."""

from __future__ import annotations

import re
from functools import partial

from sessionlog.archive.keep import DAY_NS, archive_logs
from sessionlog.archive.manifest import archive_folder
from sessionlog.cli import reporting as r
from sessionlog.cli.output import UNREADABLE, Leave, fail, print_json
from sessionlog.render.archive import render_archived
from sessionlog.sources.registry import choose_sources

_AGE = re.compile(r"(\d{1,5})([hdw])")
_UNITS = {"h": DAY_NS // 24, "d": DAY_NS, "w": 7 * DAY_NS}


def archive(*, source: list[str] | None, older_than: str, dry_run: bool, as_json: bool, now: str | None) -> None:
    """Copy closed logs, packed and verified, to where no agent deletes them: `sessionlog replay` finds them there.

    What is there already costs a look at its date; run it every night. Exit code 3: a log could not be archived.

    Example: sessionlog archive --source claude-code --older-than 20d
    """
    where = r.reporting(None, now=now)
    closed_ns = _age(older_than)
    with r.scan_progress() as progress:
        done = archive_logs(
            archive_folder(where.env), where.env, sources=choose_sources(r.split_list(source)), closed_ns=closed_ns,
            now_ns=int(where.now.timestamp() * 1_000_000_000), dry_run=dry_run, progress=progress,
        )  # fmt: skip
    if as_json:
        print_json(done.to_dict())
    else:
        r.print_lines(partial(render_archived, done, home=where.home, closed=older_than.strip()))
    if done.problems:
        raise Leave(UNREADABLE)


def _age(text: str) -> int:
    told = _AGE.fullmatch(text.strip())
    if told is None:
        fail(f"--older-than {text!r} is not an age such as 12h, 20d or 4w")
    return int(told[1]) * _UNITS[told[2]]
