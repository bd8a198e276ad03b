"""`sessionlog check`: damage by file and line, exit code 1 while it is there, and a repair that saves first."""

import os

import pytest

from sessionlog.cli import check
from sessionlog.errors import LogNotReadable


def test_whole_logs_exit_0(cli, logs):
    """One sentence with numbers."""
    assert cli("check", logs) == (0, "3 logs, 11 events: no damage\n", "")


def test_damage_is_named_by_file_and_line(cli, damaged):
    """Exit code 1, the place, the kind, and the next step."""
    ran = cli("check", damaged)
    assert (ran.code, ran.err) == (1, "")
    assert f"✘ {damaged}/s-failed.jsonl:2 (offset " in ran.out
    assert "not_json" in ran.out
    assert "3 logs, 11 events: 1 damaged piece\n" in ran.out
    assert "`sessionlog check --repair`" in ran.out


def test_a_repair_saves_the_bytes_and_leaves_nothing_to_find(cli, damaged):
    """Exit code 0, the damaged bytes beside the log, whole events byte for byte."""
    path = damaged / "s-failed.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    ran = cli("check", damaged, "--repair")
    assert ran.code == 0
    assert f"✔ {path}: " in ran.out
    assert path.read_bytes() == b"".join([lines[0], *lines[2:]])
    assert (damaged / "s-failed.jsonl.quarantine").read_bytes() == lines[1]
    assert cli("check", damaged).code == 0


def test_a_repair_leaves_a_report_beside_json(cli, damaged):
    """The document says what was found, what was done, and how many logs are still damaged."""
    path = f"{damaged}/s-failed.jsonl"
    ran = cli("check", damaged, "--repair", "--json")
    assert (ran.code, ran.err, ran.json["damaged_files"]) == (0, "", 0)
    assert ran.json["repairs"] == [{"path": path, "quarantine": f"{path}.quarantine", "pieces": 1, "bytes": 40}]
    assert "repairs" not in cli("check", damaged, "--json").json
    assert cli("check", damaged, "--repair", "--json").json["repairs"] == []


def test_a_stopped_repair_is_found_and_finished(cli, logs):
    """Its replaced file has a line that the log lacks: exit code 1 until the next repair has taken it over."""
    path = logs / "s-failed.jsonl"
    content = path.read_bytes()
    left = logs / ".s-failed.jsonl.repair"
    left.mkdir()
    (left / f"replaced-{len(content)}").write_bytes(content + content.replace(b"s-failed", b"late"))
    ran = cli("check", logs)
    assert ran.code == 1
    assert f"✘ {path} stopped_repair: a repair was stopped before it had copied the last lines from {left}/" in ran.out
    late = content.count(b"\n")
    assert cli("check", logs, "--repair", "--json").json["repairs"] == [
        {"path": str(path), "quarantine": None, "pieces": 0, "bytes": 0, "recovered": late}
    ]
    assert not left.exists()
    assert path.read_bytes().replace(b"\n\n", b"\n") == content + content.replace(b"s-failed", b"late")


def test_a_repair_that_fails_is_in_the_json(cli, damaged, monkeypatch):
    """With its reason, and the log counts as damaged."""

    def refuse(path, *, max_line):
        raise LogNotReadable(f"{path}: another process holds its lock")

    monkeypatch.setattr(check, "repair_log", refuse)
    ran = cli("check", damaged, "--repair", "--json")
    assert (ran.code, ran.json["damaged_files"]) == (1, 1)
    assert ran.json["repairs"] == [{"path": f"{damaged}/s-failed.jsonl", "error": "another process holds its lock"}]


def test_a_repair_does_not_advise_a_repair(cli, damaged):
    """It is being done."""
    assert "check --repair" not in cli("check", damaged, "--repair").out


def test_what_usage_skips_is_damage_that_no_repair_mends(cli, logs):
    """A wrong number is shown, stays, and no repair is offered for it."""
    path = logs / "s-first.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"output":200', b'"output":-20'))
    assert "damaged pieces skipped" in cli("usage", logs).out
    ran = cli("check", logs)
    assert ran.code == 1
    assert f"✘ {path} bad_number: llm.response seq " in ran.out
    assert "--repair" not in ran.out
    again = cli("check", logs, "--repair")
    assert again.code == 1
    assert "nothing to repair" in again.out


def test_damage_that_stays_exits_1(cli, damaged):
    """A line over the limit is left alone by a repair, and still is a finding."""
    path = damaged / "s-failed.jsonl"
    path.write_bytes(path.read_bytes() + b'{"type": "' + b"x" * 5000 + b'"}\n')
    assert cli("check", path, "--repair", "--max-line", "2048").code == 1
    assert cli("check", path, "--max-line", "2048").code == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_log_without_permission_exits_1(cli, logs):
    """It is a finding of its own."""
    (logs / "s-first.jsonl").chmod(0)
    ran = cli("check", logs, "--repair")
    assert ran.code == 1
    assert "not repaired" in ran.out


def test_a_note_is_no_damage_unless_strict(cli, logs):
    """A log that others may read is worth knowing; `--notes` spells it out."""
    (logs / "s-first.jsonl").chmod(0o644)
    relaxed, strict, spelled = cli("check", logs), cli("check", logs, "--strict"), cli("check", logs, "--notes")
    assert (relaxed.code, strict.code, spelled.code) == (0, 1, 0)
    assert "notes: wide_mode in 1 (--notes shows them)" in relaxed.out
    assert f"· {logs}/s-first.jsonl wide_mode: mode 0644" in spelled.out
    assert "wide_mode: mode 0644" in strict.out
    assert cli("check", logs / "s-free.jsonl", "--strict").code == 0


def test_own_logs_are_the_default(cli, logs, monkeypatch):
    """What a report's last line says can be typed as it stands."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    assert cli("check").out.startswith("3 logs, 11 events")


@pytest.mark.parametrize("form", [[], ["--json"]], ids=" ".join)
def test_nothing_there_is_no_damage(cli, home, form):
    """A first user gets the folder and what to try."""
    ran = cli("check", *form)
    assert ran.code == 0
    assert f"no sessions in {home}/.local/state" in ran.err
    assert ran.out


def test_p06_what_no_report_understands_is_found(cli, logs):
    """Numbers under unknown names are damage as far as reports skip them; a misspelt field is a note."""
    path = logs / "s-free.jsonl"
    more = b'{"session_id":"s-free","seq":90,"type":"llm.response","ts":"2026-11-21T12:00:00Z","data":{"useage":{},"usage":{"input":1,"inptu":12}}}\n'
    path.write_bytes(path.read_bytes() + more)
    ran = cli("check", path, "--notes")
    assert ran.code == 1
    assert "bad_number: llm.response seq 90: inptu: a number under an unknown name" in ran.out
    assert "unknown_field: llm.response seq 90: useage: unknown; is usage meant?" in ran.out
