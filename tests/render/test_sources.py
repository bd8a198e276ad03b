"""The face of sources: who has logs, where was looked, what goes soon and what cannot be read; golden at two widths."""

import csv
import io
import os
import re
from pathlib import Path

import pytest

from sessionlog.analytics.columns import names_of
from sessionlog.analytics.survey import COLUMNS, FoundSource, SourceReport
from sessionlog.errors import Problem
from sessionlog.render.line import wrap_lines
from sessionlog.render.report import render_csv
from tests.ledger.entries import NOON, SECOND
from tests.render.shown import markdown, show

DATA = Path(__file__).parents[2] / "testdata" / "survey"
EVIL = "\x1b[31mred\x1b[0m\r\n=cmd()|[x](y)\u202e"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def problem(path, **fields):
    known = {"line": 3, "offset": 40, "kind": "not_json", "detail": "7 bytes are not JSON"}
    return Problem(path=path, **(known | fields))


def found(source="scribe", **fields):
    known = {"title": source.title(), "places": ((f"/home/ann/.{source}", True),)}
    return FoundSource(source=source, **(known | fields))


FULL = found(
    "claude-code", places=(("/home/ann/.config/claude/projects", False), ("/home/ann/.claude/projects", True)),
    files=1234, bytes=987_654_321, sessions=56, requests=98_765, oldest_ns=NOON - 30 * 86_400 * SECOND, newest_ns=NOON,
    kept_days=30, kept_by="cleanupPeriodDays in /home/ann/.claude/settings.json", due=12, problem_count=5,
    problems=tuple(problem(f"/home/ann/.claude/projects/-a/{n}.jsonl") for n in range(5)),
)  # fmt: skip
REPORT = SourceReport(
    rows=(
        FULL,
        found("native", files=1, bytes=800, sessions=1, requests=1, oldest_ns=NOON, newest_ns=NOON),
        found("empty"),
        found("locked", problem_count=1, problems=(problem("/home/ann/.locked", line=0, kind="unreadable", detail="permission denied"),)),
        found("missing", places=(("/home/ann/.missing", False), ("/opt/missing", False))),
        found("anywhere", places=()),
    ),
    problems=(problem("plug-in quill (quill:SOURCE)", line=0, kind="unreadable", detail="ImportError: no ink"),),
)  # fmt: skip


def shown(report, width, **options):
    """What a terminal of this width gets to see."""
    found = show(report, width=width, **({"home": "/home/ann"} | options))
    return "".join(f"{line.plain}\n" for line in wrap_lines(found, width))


def lines(report, **options):
    return shown(report, 200, **options).splitlines()


def check_golden(name, text):
    """Compare a text with the file it is meant to be."""
    if os.environ.get("SESSIONLOG_UPDATE_GOLDEN"):
        DATA.mkdir(exist_ok=True)
        (DATA / name).write_text(text, "utf-8")
    assert text == (DATA / name).read_text("utf-8")


@pytest.mark.parametrize("width", [80, 160])
def test_the_list_at_a_width(width):
    """Agents with logs as a table, then where each was looked for, then what is wrong."""
    text = shown(REPORT, width)
    check_golden(f"sources-{width}.txt", text)
    table = text.split("\n\n")[1].splitlines()
    assert max(map(len, table)) <= width


def test_csv_and_markdown_have_every_agent():
    """Exact, and with those that have nothing."""
    check_golden("sources.csv", render_csv(REPORT))
    check_golden("sources.md", markdown(REPORT, tz="UTC"))


def test_csv_is_the_json():
    """Column by column; what is unknown is empty."""
    rows = list(csv.DictReader(io.StringIO(render_csv(REPORT))))
    assert list(rows[0]) == list(names_of(COLUMNS))
    for row, one in zip(rows, REPORT.to_dict()["rows"], strict=True):
        texts = {name: " ".join(value) if isinstance(value, list) else value for name, value in one.items()}
        texts["problems"] = "; ".join(one["problems"])
        assert row == {name: "" if value is None else str(value) for name, value in texts.items()}


def test_no_logs_and_no_place_and_unreadable_look_different():
    """A place with nothing in it, none at all, and one that cannot be looked at."""
    text = lines(REPORT)
    assert text[0] == "Sources · 2 of 6 agents have logs here"
    assert "  ✔ empty        ~/.empty" in text
    assert "  – missing      ~/.missing · /opt/missing" in text
    assert "  – anywhere     no default folder: give a PATH" in text
    assert "✘ locked: ~/.locked unreadable permission denied" in text
    assert [line.split()[:2] for line in text if re.match(r"(empty|locked|missing) ", line)] == [["locked", "0"]]


def test_only_places_that_are_there_are_shown_where_one_is():
    """The others would only be noise."""
    [line] = [line for line in lines(REPORT) if "claude-code  ~" in line]
    assert line == "  ✔ claude-code  ~/.claude/projects"


def test_logs_that_go_soon_are_warned_of_with_the_setting():
    """The number, the days, and where that can be changed."""
    assert (
        "! claude-code deletes 12 logs within 7 days: it keeps them for 30 days (cleanupPeriodDays in ~/.claude/settings.json)"
        in lines(REPORT)
    )
    assert not any(line.startswith("!") for line in lines(SourceReport(rows=(found(files=1, kept_days=30),))))


def test_what_an_agent_does_not_log_is_said_once_its_logs_are_there():
    """A caveat below the table; none for an agent that has nothing here."""
    report = SourceReport(rows=(found(files=1, caveat="tokens are not kept"), found("quill", caveat="no costs")))
    assert [line for line in lines(report) if line.startswith("!")] == ["! scribe: tokens are not kept"]


def test_the_first_findings_are_named_and_the_rest_counted():
    """Three of an agent are enough."""
    text = lines(REPORT)
    assert sum(line.startswith("✘ claude-code: ") for line in text) == 3
    assert "  … and 2 findings more in claude-code" in text
    assert not any("more in locked" in line for line in text)


def test_broken_plug_ins_are_named():
    """Also where nobody has logs."""
    text = lines(SourceReport(rows=(found(),), problems=REPORT.problems))
    assert text[0] == "Sources · 0 of 1 agents have logs here"
    assert text[-1] == "✘ plug-in quill (quill:SOURCE) unreadable ImportError: no ink"


def test_days_are_those_of_the_zone():
    """The last request of an evening is tomorrow's elsewhere."""
    one = SourceReport(rows=(found(files=1, oldest_ns=NOON, newest_ns=NOON + 11 * 3600 * SECOND),))
    assert "2026-11-20  2026-11-20" in "\n".join(lines(one))
    assert "2026-11-20  2026-11-21" in "\n".join(lines(one, tz="Europe/Berlin"))


def test_nothing_hostile_reaches_the_terminal():
    """Names, settings and paths come from other people's files and folders."""
    evil = found(
        EVIL, places=((EVIL, True),), files=1, due=1, kept_days=3, kept_by=EVIL, problem_count=1,
        problems=(problem(EVIL, detail=EVIL),),
    )  # fmt: skip
    report = SourceReport(rows=(evil,), problems=(problem(EVIL, detail=EVIL),))
    assert not CONTROLS.search(shown(report, 200).replace("\n", ""))
    assert not CONTROLS.search(markdown(report, tz="UTC").replace("\n", ""))
    cells = next(csv.reader(render_csv(report).splitlines()[1:]))
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
