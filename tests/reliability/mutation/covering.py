"""What each test runs: its seconds, whether it passes, and which lines of the mutated modules it reaches.

A mutant is tried with the tests that reach its line, the quickest first; all others cannot notice it. Lines that a
test reaches in a process of its own are not seen: `ALSO` names the tests that do so.
"""

import json
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

ALSO = {
    "sessionlog/files": ("tests/reliability/", "tests/ledger/test_ledger_kill.py"),
    "sessionlog/logger/": ("tests/reliability/", "tests/logger/"),
    "sessionlog/reader/": ("tests/reader/", "tests/reliability/test_repair_living.py"),
    "sessionlog/ledger/": ("tests/ledger/",),
}
"""Modules → the tests that reach them in other processes as well; they are tried last."""


@dataclass(frozen=True, slots=True)
class Covered:
    """One test.

    Attributes:
        test: Its node id.
        seconds: How long it takes.
        passed: It passes without a mutant, so that its failure says something.
        lines: Module → the lines that it reaches.
    """

    test: str
    seconds: float
    passed: bool
    lines: dict[str, frozenset[int]]


class LineTracer:
    """Notes which lines of some files are run, by any thread."""

    def __init__(self, root: Path, modules: Sequence[str]) -> None:
        self._files = {str(root / module): module for module in modules}
        self._lines: dict[str, set[int]] = {}

    @contextmanager
    def tracing(self) -> Iterator[dict[str, set[int]]]:
        """Trace what runs inside; yield module → lines, which grows."""
        self._lines = {}
        threading.settrace(self._on_call)
        sys.settrace(self._on_call)
        try:
            yield self._lines
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]

    def _on_call(self, frame: FrameType, event: str, arg: Any) -> Any:
        module = self._files.get(frame.f_code.co_filename)
        if module is None:
            return None
        lines = self._lines.setdefault(module, set())
        lines.add(frame.f_lineno)

        def on_line(frame: FrameType, event: str, arg: Any) -> Any:
            lines.add(frame.f_lineno)
            return on_line

        return on_line


def choose_tests(covered: Iterable[Covered], path: str, lines: range, *, limit_seconds: float) -> list[Covered]:
    """Return the tests that reach one of a module's lines, then those named in `ALSO`; the quickest first.

    The module's own, `test_MODULE.py`, go before all others, whatever they reach. Together they take `limit_seconds` without a mutant, or
    less.
    """
    also = next((tests for prefix, tests in ALSO.items() if path.startswith(prefix)), ())
    passing = [test for test in covered if test.passed]
    own = f"/test_{Path(path).stem}.py::"
    reaching = [test for test in passing if own in test.test or not test.lines.get(path, frozenset()).isdisjoint(lines)]
    known = {test.test for test in reaching}
    others = [test for test in passing if test.test not in known and test.test.startswith(also)] if also else []
    ordered = sorted(reaching, key=lambda test: (own not in test.test, test.seconds))
    chosen, seconds = [], 0.0
    for test in [*ordered, *sorted(others, key=lambda test: test.seconds)]:
        if seconds + test.seconds > limit_seconds:
            break
        chosen.append(test)
        seconds += test.seconds
    return chosen


def save(path: Path, covered: Iterable[Covered]) -> None:
    """Keep what tests run for the next process."""
    rows = [[t.test, t.seconds, t.passed, {name: sorted(lines) for name, lines in t.lines.items()}] for t in covered]
    path.write_text(json.dumps(rows))


def load(path: Path) -> list[Covered]:
    """Read what `save` has written."""
    rows = json.loads(path.read_text())
    return [Covered(test, seconds, passed, {name: frozenset(lines) for name, lines in found.items()})
            for test, seconds, passed, found in rows]  # fmt: skip
