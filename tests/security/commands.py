"""The command line in-process: which runs there are, what each wrote byte for byte, and what every outcome must be."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import threading
import tty
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from sessionlog.cli import main
from tests.security.vt import findings

NOW = "2026-11-21T12:00:00Z"
KEYS = "source,session,project,status,route,harness,response_model,hour,day,week,month,meta.team,provider,model"
TOOL_KEYS = "source,session,project,status,agent,hour,day,week,month,server,tool"
STORY = str(Path(__file__).parents[2] / "testdata" / "replay" / "story.jsonl")
RUNS: dict[str, tuple[list[str], ...]] = {
    "usage": (["--wide", "--by", KEYS], ["--json"], ["--csv", "--by", KEYS], ["--markdown", "--by", KEYS]),
    "sessions": (["--wide"], ["--json"], ["--csv"], ["--markdown"]),
    "tools": (
        ["--wide", "--by", TOOL_KEYS],
        ["--json"],
        ["--csv", "--by", TOOL_KEYS],
        ["--markdown", "--by", TOOL_KEYS],
    ),
    "blocks": (["--wide", "--gaps"], ["--json"], ["--csv"], ["--markdown", "--hours", "1"]),
    "routing-quality": ([], ["--json"], ["--csv"]),
    "replay": (["--plain"], ["--json"], ["--full", "--all-messages"]),
    "status": ([], ["--json"]),
    "context": (["--full"], ["--csv"]),
    "diff": ([STORY, "--full"], [STORY, "--json"]),
    "scrub": ([], ["--json"]),
    "check": (["--notes"], ["--json", "--strict"]),
}
"""Command → its variants, the one for people first."""
TIMED = frozenset({"usage", "sessions", "tools", "blocks", "routing-quality", "status"})
OF_ONE_LOG = frozenset({"replay", "context", "diff"})

_FORMULA = re.compile(r"\s*[=+\-@\t\r＝＋－＠]")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?\Z")
_PIPE = re.compile(r"(?<!\\)(?:\\\\)*\|")


class Outcome(NamedTuple):
    """How one command ended."""

    code: int
    out: bytes
    err: bytes


def command_lines(
    path: str, *, first_only: bool = False, turn: int | None = None, commands: Sequence[str] = tuple(RUNS)
) -> Iterator[list[str]]:
    """Each command line of the product for one log or folder; some are of a log alone.

    With `turn` there is one variant of each command, and the next one in the next turn.
    """
    for command in commands:
        if command in OF_ONE_LOG and os.path.isdir(path):
            continue
        variants = RUNS[command] if turn is None else (RUNS[command][turn % len(RUNS[command])],)
        for options in variants[: 1 if first_only else None]:
            yield [command, path, *options, *(["--now", NOW, "--tz", "UTC"] if command in TIMED else [])]


def run(*arguments: str, encoding: str = "utf-8") -> Outcome:
    """Run a command whose stdout and stderr are pipes."""
    out, err = io.BytesIO(), io.BytesIO()
    data = io.TextIOWrapper(out, encoding, write_through=True)
    notes = io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)
    with redirect_stdout(data), redirect_stderr(notes):
        code = _call(arguments)
    return Outcome(code, out.getvalue(), err.getvalue())


def run_on_tty(*arguments: str) -> Outcome:
    """Run a command whose stdout is a terminal that changes nothing; stderr stays a pipe."""
    master, slave = os.openpty()
    tty.setraw(slave)
    chunks: list[bytes] = []
    reader = threading.Thread(target=_drain, args=(master, chunks))
    reader.start()
    err = io.BytesIO()
    notes = io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True)
    try:
        with open(slave, "w", encoding="utf-8") as terminal, redirect_stdout(terminal), redirect_stderr(notes):
            code = _call(arguments)
    finally:
        reader.join(10)
        os.close(master)
    return Outcome(code, b"".join(chunks), err.getvalue())


def _call(arguments: Sequence[str]) -> int:
    """The exit code; SystemExit carries it too. Any other exception is a crash and ends the test."""
    try:
        return main(list(arguments))
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)


def _drain(master: int, chunks: list[bytes]) -> None:
    """Read a terminal's other side until nobody holds it any more: a full one would block the writer."""
    while True:
        try:
            chunks.append(os.read(master, 65_536))
        except OSError:
            return


def judge(arguments: Sequence[str], outcome: Outcome, *, sgr: bool = False) -> None:
    """Demand what every outcome must be, whatever was in the log."""
    label = " ".join(arguments)
    as_csv = "--csv" in arguments
    lines_kept = as_csv or arguments[0] == "replay"
    assert outcome.code in {0, 1, 2, 3}, label
    assert b"Traceback" not in outcome.err, label
    assert findings(outcome.out, sgr=sgr, tab=lines_kept) == [], label
    assert findings(outcome.err) == [], label
    if outcome.code in {0, 1}:
        text = outcome.out.decode()
        if "--json" in arguments:
            for document in text.splitlines() if arguments[0] == "replay" else [text]:
                json.loads(document, parse_constant=_refuse)
        if as_csv:
            _judge_csv(text, label)
        if "--markdown" in arguments:
            _judge_markdown(text, label)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def _judge_csv(text: str, label: str) -> None:
    """A rectangle of cells of which none is a formula."""
    csv.field_size_limit(1 << 24)
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert len({len(row) for row in rows}) == 1, label
    for cell in (cell for row in rows for cell in row):
        assert not _FORMULA.match(cell) or _NUMBER.match(cell), f"{label}: {cell[:80]!r}"


def _judge_markdown(text: str, label: str) -> None:
    """A table whose cells no content can end, and no HTML."""
    table = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(_PIPE.findall(line)) for line in table}) <= 1, label
    assert "<" not in text, label
