"""check: what is wrong with a log, and what is only worth knowing."""

import gzip
import os
from pathlib import Path

import pytest

from sessionlog.events.decode import decode_line
from sessionlog.events.encode import encode_object
from sessionlog.events.envelope import Event
from sessionlog.reader import check
from sessionlog.reader.check import check_log, check_logs
from tests.sources.logs import scan_log

SECRET = "ghp_" + "a1B2" * 9


def line(seq, type_="tool.call", ts="2026-11-21T10:00:00Z", data=None, session_id="s"):
    return encode_object(Event(session_id=session_id, seq=seq, type=type_, ts=ts, data=data).to_dict())


def log(folder, content, name="s.jsonl", mode=0o600):
    path = folder / name
    path.write_bytes(content)
    path.chmod(mode)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return str(path)


def test_a_good_log_has_nothing(tmp_path):
    """Nothing wrong, nothing worth knowing."""
    found = check_log(log(tmp_path, line(0) + line(1) + line(2)))
    assert (found.events, found.damage, found.notes, found.counts) == (3, (), (), {})


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (line(1) + line(3), "seq_gap"),
        (line(1) + line(1), "seq_repeat"),
        (line(4) + line(1), "seq_repeat"),
        (line(1, ts="2026-11-21T10:00:01Z") + line(2, ts="2026-11-21T10:00:00.5Z"), "clock_back"),
        (line(1, "vendor.thing"), "unknown_type"),
        (b'{"session_id":"s","seq":1,"type":"tool.call","ts":"soon","data":null}\n', "bad_envelope"),
        (b'{"session_id":"s","seq":1,"type":"tool.call","ts":"2026-11-21T10:00:00Z","data":"\xff"}\n', "bad_utf8"),
    ],
)
def test_p08_what_is_worth_knowing(content, kind, tmp_path):
    """Each of these is a note, never damage."""
    found = check_log(log(tmp_path, content))
    assert [note.kind for note in found.notes] == [kind]
    assert found.notes[0].severity == "info"
    assert found.damage == ()
    assert found.counts == {kind: 1}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (line(1) + b"x\n" + line(2), "not_json"),
        (line(1) + b"[1]\n" + line(2), "not_object"),
        (line(1) + b"{}\n" + line(2), "bad_envelope"),
        (line(1) + line(2) + line(3)[:20], "torn_tail"),
        (line(1) + line(2) + b"\0\0", "nul_bytes"),
        (line(1) + line(2) + b"x" * 300 + b"\n", "too_long"),
        (line(1) + line(2) + b"[" * 250 + b"\n", "not_json"),
    ],
)
def test_p08_what_is_damage(content, kind, tmp_path):
    """Each of these cost bytes, and no event."""
    found = check_log(log(tmp_path, content), max_line=260)
    assert found.events == 2
    assert [problem.kind for problem in found.damage] == [kind]
    assert found.counts == {kind: 1}


def test_each_writer_counts_for_itself(tmp_path):
    """Several ids in one file have their own numbers."""
    content = line(1) + line(7, session_id="loop") + line(2) + line(8, session_id="loop")
    assert check_log(log(tmp_path, content)).notes == ()


def test_a_type_is_unknown_once(tmp_path):
    """A log full of a vendor's type says so once."""
    content = line(1, "vendor.a") + line(2, "vendor.a") + line(3, "vendor.b")
    assert [note.detail for note in check_log(log(tmp_path, content)).notes] == [
        "type 'vendor.a' is passed through",
        "type 'vendor.b' is passed through",
    ]


def test_an_event_without_a_time_does_not_turn_the_clock(tmp_path):
    """Only times are compared."""
    content = line(1, ts="2026-11-21T10:00:01Z") + line(2, ts="") + line(3, ts="2026-11-21T10:00:00Z")
    kinds = [note.kind for note in check_log(log(tmp_path, content)).notes]
    assert kinds == ["bad_envelope", "clock_back"]


@pytest.mark.parametrize(
    ("mode", "others"),
    [
        (0o600, None),
        (0o400, None),
        (0o640, "read"),
        (0o604, "read"),
        (0o620, "write"),
        (0o602, "write"),
        (0o666, "write"),
        (0o610, "run"),
        (0o601, "run"),
    ],
)
def test_p14_permissions_wider_than_needed(mode, others, tmp_path):
    """A log that others can use is named with its mode, and with the worst that they can do."""
    notes = check_log(log(tmp_path, line(1), mode=mode)).notes
    assert [note.kind for note in notes] == ([] if others is None else ["wide_mode"])
    assert others is None or notes[0].detail == f"mode {mode:04o} lets others {others} it; ours are 0600"


def test_a_file_that_cannot_be_read_is_damage(tmp_path):
    """It is named among the others; a check never raises for one file."""
    found = check_log(str(tmp_path / "gone.jsonl"))
    assert [problem.kind for problem in found.damage] == ["unreadable"]
    assert found.damage[0].detail == "no such file or directory"
    assert (found.damaged, found.events, found.counts) == (1, 0, {"unreadable": 1})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_folder_of_logs(tmp_path):
    """One result per file, in order, the unreadable ones among them."""
    log(tmp_path, line(1), "a.jsonl")
    os.mkfifo(tmp_path / "b.jsonl")
    log(tmp_path, line(1) + b"x\n", "c.jsonl")
    found = list(check_logs([str(tmp_path)]))
    assert [os.path.basename(item.path) for item in found] == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert [[problem.kind for problem in item.damage] for item in found] == [[], ["unreadable"], ["not_json"]]


def test_a_folder_that_cannot_be_listed_is_damage(tmp_path, monkeypatch):
    """It is a result like a file's."""

    def scandir(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", scandir)
    [found] = check_logs([str(tmp_path)])
    assert (found.path, found.counts) == (str(tmp_path), {"unreadable": 1})
    assert (found.damaged, found.repairable, found.events) == (1, 0, 0)


def test_findings_are_kept_up_to_a_bound_and_counted_beyond(tmp_path, monkeypatch):
    """A log of a million broken lines does not fill the memory."""
    monkeypatch.setattr(check, "_MAX_KEPT", 5)
    found = check_log(log(tmp_path, b"x\n" * 40 + line(1) + line(1) * 30))
    assert (len(found.damage), found.counts["not_json"]) == (5, 40)
    assert (len(found.notes), found.counts["seq_repeat"]) == (5, 30)


def test_all_damage_is_counted(tmp_path):
    """Beyond the thousand findings that are kept, damage is still counted."""
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"damaged\n" * 1500)
    found = check_log(str(path))
    assert (found.damaged, len(found.damage), found.counts) == (1500, 1000, {"not_json": 1500, "wide_mode": 1})


@pytest.mark.parametrize(
    ("type_", "data", "details"),
    [
        ("llm.response", {"usage": {"input": -1, "output": 2.5}}, ["input: a negative count", "output: 2.5 is not"]),
        ("llm.response", {"usage": 3, "cost_usd": True}, ["usage is a int", "cost is a bool"]),
        ("session.end", {"tokens": {"output": "many"}, "cost_usd": "dear"}, ["output: 'many'", "cost 'dear'"]),
    ],
)
def test_numbers_that_are_none_are_damage(type_, data, details, tmp_path):
    """What a report skips, a check shows, with the same words."""
    path = log(tmp_path, line(1) + line(2, type_, data=data))
    found = check_log(path)
    assert [problem.kind for problem in found.damage] == ["bad_number"] * len(details)
    for problem, detail in zip(found.damage, details, strict=True):
        assert problem.detail.startswith(f"{type_} seq 2: {detail}")
    skipped = scan_log(path).problems.first
    assert [problem.detail for problem in found.damage] == [problem.detail for problem in skipped]
    assert {(problem.kind, problem.line) for problem in skipped} == {("bad_number", 2)}
    assert (found.damaged, found.repairable) == (len(details), 0)


@pytest.mark.parametrize("type_", ["override", "rejected_override"])
def test_a_pin_that_cannot_be_read_is_damage(type_, tmp_path):
    """Its axes must be a list of names, as in the report on routing."""
    good, bad = ({"axes_overridden": axes} for axes in (["model"], [1]))
    found = check_log(log(tmp_path, line(1, type_, data=good) + line(2, type_, data=bad)))
    [problem] = found.damage
    assert (problem.kind, problem.severity) == ("bad_payload", "damage")
    assert problem.detail == f"{type_} (seq 2) cannot be read: axes_overridden is not a list of names"


@pytest.mark.parametrize(("name", "repairable"), [("s.jsonl", 1), ("s.jsonl.gz", 0)])
def test_what_a_repair_can_mend_is_counted(name, repairable, tmp_path):
    """Broken lines of plain logs; wrong numbers and compressed logs stay as they are."""
    content = line(1) + b"x\n" + line(2, "llm.response", data={"usage": 3})
    found = check_log(log(tmp_path, gzip.compress(content) if name.endswith(".gz") else content, name))
    assert (found.damaged, found.repairable) == (2, repairable)


def test_a_thousand_writers_are_remembered(tmp_path, monkeypatch):
    """A log that makes up ids does not fill the memory; those who write on are still followed."""
    monkeypatch.setattr(check, "_MAX_WRITERS", 2)
    content = b"".join(line(seq, session_id=name) for name, seq in [("a", 1), ("b", 1), ("a", 2), ("c", 1), ("a", 4)])
    audit = check._Audit("s.jsonl")
    kinds = [problem.kind for event in decode_line(content)[0] for problem in audit.check(event)]
    assert kinds == ["seq_gap"]
    assert sorted(audit._last_seq) == ["a", "c"]


def test_paths_may_be_path_objects(tmp_path):
    """One or several, a problem names them as text."""
    path = Path(log(tmp_path, line(1) + b"x\n"))
    for paths in (path, [path], str(path)):
        [found] = check_logs(paths)
        assert (found.path, found.damage[0].path) == (str(path), str(path))
