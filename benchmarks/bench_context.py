"""How far the estimate of a prompt is from what its provider counted: `python -m benchmarks.bench_context FOLDER...`.

One line per request whose response reports prompt tokens: the log, the request, reported, estimated, the error. Where
the log does not hold the whole prompt the error is what is missing; there the line says so. Without a folder it is the
one that `$SESSIONLOG_CONFORMANCE` names.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sessionlog.context.xray.report import ContextReport, xray
from sessionlog.errors import LogNotReadable
from sessionlog.sources.discover import find_logs
from sessionlog.sources.protocol import Log


class Miss(NamedTuple):
    """One request."""

    log: str
    model: str
    request: int
    reported: int
    estimated: int
    is_whole: bool

    @property
    def error(self) -> float:
        """Relative to what was reported."""
        return self.estimated / self.reported - 1


def reports(places: Sequence[str]) -> Iterator[ContextReport]:
    """Look at every request of every session under some places."""
    for log in find_logs(places, {}):
        if not isinstance(log, Log):
            continue
        for session in log.source.name_sessions(log.path):
            try:
                last = xray(log, session)
            except LogNotReadable:  # there is no request in it
                continue
            yield from (xray(log, session, request=number) for number in range(1, last.requests))
            yield last


def misses(places: Sequence[str]) -> Iterator[Miss]:
    """The requests whose provider counted."""
    for report in reports(places):
        if report.reported_tokens is not None:
            yield Miss(
                Path(report.path).name, report.model, report.request, report.reported_tokens, report.estimated_tokens,
                report.is_whole,
            )  # fmt: skip


def main(places: Sequence[str]) -> None:
    """Print the table."""
    print(f"{'LOG':40} {'MODEL':28} {'REQUEST':>7} {'REPORTED':>9} {'ESTIMATED':>9} {'ERROR':>8}")
    listed = list(misses(places))
    for miss in listed:
        what = "" if miss.is_whole else "  the log holds a part of the prompt"
        print(
            f"{miss.log[-40:]:40} {miss.model[-28:]:28} {miss.request:7} {miss.reported:9} {miss.estimated:9} "
            f"{miss.error:+8.1%}{what}"
        )
    whole = [abs(miss.error) for miss in listed if miss.is_whole]
    if whole:
        print(f"whole prompts: {len(whole)}, mean error {sum(whole) / len(whole):.1%}, worst {max(whole):.1%}")


if __name__ == "__main__":
    main(sys.argv[1:] or [str(Path(os.environ["SESSIONLOG_CONFORMANCE"], "logs"))])
