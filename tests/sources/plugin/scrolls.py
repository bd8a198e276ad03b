"""Scrolls of Scribe, and Scribe installed as a plug-in for the time of a test."""

import json
import os
from contextlib import contextmanager
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from unittest.mock import patch

from sessionlog.sources import registry

DAY = "2026-11-20"
LONG_AGO = 1_700_000_000
POINT = EntryPoint("scribe", "tests.sources.plugin.scribe:SOURCE", registry.GROUP)


def row(kind, clock, **fields):
    """One row."""
    return {"scribe": kind, "at": f"{DAY}T{clock}Z", **fields}


def story(*, answers=2, output=5, name="r", folder="/w/novel", bye="success"):
    """The rows of a session: each answer calls a tool, whose result comes before the next one."""
    rows = [row("hello", "10:00:00", folder=folder), row("ask", "10:00:01", text="Write a tale")]
    for n in range(answers):
        calls = [[f"{name}{n}-call", "quill"]]
        rows.append(
            row(
                "answer",
                f"10:{n:02}:02",
                id=f"{name}{n}",
                model="ink-2",
                out=output,
                text="Once",
                calls=calls,
                **{"in": 10},
            )
        )
        rows.append(row("did", f"10:{n:02}:03", id=f"{name}{n}-call", text="scratched"))
    return [*rows, row("bye", "11:00:00", how=bye)] if bye else rows


def write_scroll(path, *rows):
    """Write rows, and bytes as they are; returns the path as text."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [one if isinstance(one, bytes) else json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in rows]
    path.write_bytes(b"".join(lines))
    os.utime(path, (LONG_AGO, LONG_AGO))
    return str(path)


@contextmanager
def installed(*points):
    """Let these entry points be all that other packages add."""
    found = partial(_of_group, points)
    with patch.object(registry, "entry_points", found):
        registry.other_sources.cache_clear()
        yield
    registry.other_sources.cache_clear()


def _of_group(points, *, group):
    return [point for point in points if point.group == group]
