"""The face of a check: damage by file, line and byte, notes in numbers, and what to do next."""

import json
import re

import pytest

from sessionlog.errors import Problem
from sessionlog.reader.check import FileCheck, check_log
from sessionlog.reader.repair import Repair
from sessionlog.render.check import check_document, render_check, render_repair
from tests.sources.logs import answered, start, write_log

CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


def problem(line=3, kind="not_json", severity="damage", **fields):
    known = {"path": "s.jsonl", "offset": 40, "detail": "7 bytes are not JSON", "length": 7}
    return Problem(line=line, kind=kind, severity=severity, **(known | fields))


def note(kind="seq_gap"):
    return problem(line=0, kind=kind, severity="info", detail="seq 9 after 3", length=0)


def checked(damage=(), notes=(), **fields):
    known = {"path": "s.jsonl", "events": 12, "damaged": len(damage)}
    return FileCheck(**(known | fields), damage=tuple(damage), notes=tuple(notes))


def test_a_sound_log_is_one_line():
    """How much was looked at, and that it is fine."""
    assert render_check([checked()], notes=False) == "1 log, 12 events: no damage\n"
    two = [checked(events=1_000_000), checked()]
    assert render_check(two, notes=True) == "2 logs, 1,000,012 events: no damage\n"


def test_damage_has_its_place_and_the_next_step():
    """File, line and byte offset; a finding about the whole file has only the file."""
    two = checked([problem(), problem(line=0, kind="unreadable", detail="no permission")], repairable=1)
    text = render_check([two], notes=False)
    assert text.splitlines() == [
        "✘ s.jsonl:3 (offset 40) not_json: 7 bytes are not JSON",
        "✘ s.jsonl unreadable: no permission",
        "1 log, 12 events: 2 damaged pieces",
        "`sessionlog check --repair` moves damaged bytes to NAME.quarantine and mends the log",
    ]


def test_a_repair_is_offered_where_it_can_mend():
    """Not for what stays as it is, and not by a repair itself."""
    assert "--repair" not in render_check([checked([problem(kind="bad_number")])], notes=False)
    log = checked([problem()], repairable=1)
    assert "--repair" in render_check([log], notes=False)
    assert "--repair" not in render_check([log], notes=False, repairing=True)


def test_one_piece_is_one_piece():
    """Numbers and words agree."""
    assert "1 log, 12 events: 1 damaged piece\n" in render_check([checked([problem()])], notes=False)


def test_notes_are_numbers_until_they_are_asked_for():
    """Each kind counts once a file; spelled out, nothing tells how to see them."""
    logs = [checked(notes=[note(), note(), note("secret")]), checked(notes=[note()])]
    assert render_check(logs, notes=False).splitlines() == [
        "2 logs, 24 events: no damage",
        "notes: secret in 1, seq_gap in 2 (--notes shows them)",
    ]
    spelled = render_check(logs, notes=True).splitlines()
    assert spelled[0] == "· s.jsonl seq_gap: seq 9 after 3"
    assert spelled[-2:] == ["2 logs, 24 events: no damage", "notes: secret in 1, seq_gap in 2"]


@pytest.mark.parametrize(("count", "more"), [(20, None), (21, 1), (500, 480)])
def test_twenty_findings_a_file_are_shown(count, more):
    """The rest is a number."""
    text = render_check([checked([problem()] * count)], notes=False).splitlines()
    assert len([line for line in text if line.startswith("✘")]) == 20
    told = [line for line in text if line.startswith("  …")]
    assert told == ([f"  … and {more} more in s.jsonl"] if more else [])


def test_logged_text_cannot_act():
    """A finding may quote the log, and a file may have any name."""
    evil = "\x1b[2J\r\n\u202e"
    log = checked([problem(path=evil, detail=evil)] * 30, [note(evil)], path=evil)
    assert not CONTROLS.search(render_check([log], notes=True))
    assert not CONTROLS.search(render_repair(evil, evil))
    assert not CONTROLS.search(render_repair(evil, Repair(path=evil, quarantine=evil, pieces=1, length=1)))


@pytest.mark.parametrize(
    ("repair", "text"),
    [
        ("the disk is full", "✘ s: not repaired: the disk is full\n"),
        (Repair(path="s", quarantine=None, pieces=0, length=0), "· s: nothing to repair\n"),
        (
            Repair(path="s", quarantine="q", pieces=1, length=2, recovered=1),
            "✔ s: a stopped repair was finished, 1 line taken over; 1 piece (2 bytes) moved to q\n",
        ),
        (Repair(path="s", quarantine="s.q", pieces=2, length=90), "✔ s: 2 pieces (90 bytes) moved to s.q\n"),
        (Repair(path="s", quarantine="s.q", pieces=1, length=1), "✔ s: 1 piece (1 byte) moved to s.q\n"),
    ],
)
def test_a_repair_is_one_line(repair, text):
    """What was done, to what, and where the bytes are."""
    assert render_repair("s", repair) == text


def test_the_document_has_everything():
    """`sessionlog.check/1`: per file its counts and every finding with its bytes."""
    log = checked([problem()], [note()], counts={"not_json": 1, "seq_gap": 1})
    document = check_document([log, checked()])
    assert document == {
        "schema": "sessionlog.check/1",
        "files": [
            {
                "path": "s.jsonl",
                "events": 12,
                "counts": {"not_json": 1, "seq_gap": 1},
                "problems": [
                    {
                        "line": 3,
                        "offset": 40,
                        "length": 7,
                        "kind": "not_json",
                        "severity": "damage",
                        "detail": "7 bytes are not JSON",
                    },
                    {
                        "line": 0,
                        "offset": 40,
                        "length": 0,
                        "kind": "seq_gap",
                        "severity": "info",
                        "detail": "seq 9 after 3",
                    },
                ],
            },
            {"path": "s.jsonl", "events": 12, "counts": {}, "problems": []},
        ],
        "damaged_files": 1,
    }
    assert list(document["files"][0]) == ["path", "events", "counts", "problems"]
    assert json.loads(json.dumps(document)) == document


def test_the_document_of_a_repair_says_what_was_done_and_what_is_left():
    """Each damaged log with where its bytes are, or with why it was left alone."""
    logs = [checked([problem()], path=name) for name in ("a", "b", "c")]
    done = {
        "a": Repair(path="a", quarantine="a.quarantine", pieces=1, length=7),
        "b": "no permission",
        "c": Repair(path="c", quarantine=None, pieces=0, length=0),
    }
    document = check_document([*logs, checked()], done)
    assert document["repairs"] == [
        {"path": "a", "quarantine": "a.quarantine", "pieces": 1, "bytes": 7},
        {"path": "b", "error": "no permission"},
        {"path": "c", "quarantine": None, "pieces": 0, "bytes": 0},
    ]
    assert document["damaged_files"] == 2


def test_text_and_document_speak_of_the_same_findings(tmp_path):
    """A real log, checked: as many findings in one as in the other."""
    path = write_log(tmp_path / "s.jsonl", start(), b"garbage\n", b"[1]\n", answered())
    log = check_log(path)
    text, document = render_check([log], notes=True), check_document([log])
    [file] = document["files"]
    damage = [p for p in file["problems"] if p["severity"] == "damage"]
    assert [p["line"] for p in damage] == [2, 3]
    for p in damage:
        assert f"✘ {path}:{p['line']} (offset {p['offset']}) {p['kind']}: {p['detail']}\n" in text
    assert text.count("\n· ") + text.startswith("· ") == len(file["problems"]) - len(damage)
