"""`sessionlog sessions`: one line each, newest first, and a session is found by the beginning of its id."""

import csv
import io
from pathlib import Path

import pytest

NOW = ("--now", "2026-11-21T12:00:00Z", "--tz", "UTC")


def test_the_list_goes_by_days_from_the_newest(cli, logs):
    """A heading a day, then a line a session with its mark and the first words."""
    lines = [line for line in cli("sessions", logs, *NOW).out.splitlines() if line]
    assert [line.split("  ")[0] for line in lines[:6]] == [
        "TODAY 21 Nov", "11:55", "YESTERDAY 20 Nov", "10:00", "THU 19 Nov", "23:30",
    ]  # fmt: skip
    assert [lines[index].split()[1] for index in (1, 3, 5)] == ["●", "✘", "✔"]
    assert all("“make the tests pass”" in lines[index] for index in (1, 3, 5))
    assert "the tests still fail" in lines[3]


def test_filters_and_limit_reach_the_list(cli, logs):
    """Each option changes the list as it says; what a limit leaves out is counted."""
    ask = ("sessions", logs, "--json", *NOW)

    def names(*options):
        return [session["session"] for session in cli(*ask, *options).json["rows"]]

    assert names() == ["s-free", "s-failed", "s-first"]
    assert names("--status", "error", "--status", "run*") == ["s-free", "s-failed"]
    assert names("--provider", "openai") == names("--model", "gpt*") == ["s-failed"]
    assert names("--since", "today") == ["s-free"]
    assert names("--until", "2026-11-19") == ["s-first"]
    assert names("--project", "/nowhere") == []
    assert names("--limit", "1") == ["s-free"]
    assert "2 more sessions (--limit)" in cli("sessions", logs, "--limit", "1").out


def test_all_forms_name_the_same_sessions(cli, logs):
    """JSON, CSV and Markdown, with the same costs."""
    listed = cli("sessions", logs, "--json").json["rows"]
    rows = list(csv.DictReader(io.StringIO(cli("sessions", logs, "--csv").out)))
    assert [row["session"] for row in rows] == [session["session"] for session in listed]
    assert [row["cost_usd"] for row in rows] == [
        "" if session["cost_usd"] is None else repr(session["cost_usd"]) for session in listed
    ]
    markdown = cli("sessions", logs, "--markdown").out.splitlines()
    assert [line.split(" | ")[-1].removesuffix(" |") for line in markdown[2:]] == [row["session"] for row in rows]


@pytest.mark.parametrize("form", [[], ["--json"], ["--csv"], ["--markdown"]], ids=" ".join)
def test_an_empty_list_is_no_error(cli, tmp_path, form):
    """Every form has an empty shape, and the note says where was looked."""
    ran = cli("sessions", tmp_path, *form)
    assert ran.code == 0
    assert ran.out
    assert str(tmp_path) in ran.err


def test_an_empty_csv_has_the_columns_of_a_full_one(cli, logs):
    """What reads it need not know whether there were sessions."""
    full = cli("sessions", logs, "--csv").out.splitlines()
    assert cli("sessions", logs, "--csv", "--model", "none").out.splitlines() == full[:1]


def test_a_session_is_named_by_the_beginning_of_its_id(cli, logs, monkeypatch):
    """A whole id wins over longer ones; a beginning that fits several is refused with the candidates."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    assert cli("replay", "s-fi").out == cli("replay", logs / "s-first.jsonl").out
    ran = cli("replay", "s-f")
    assert ran == (
        2,
        "",
        "sessionlog: 's-f' names 3 sessions: s-failed, s-first, s-free; `sessionlog sessions` lists them\n",
    )
    (logs / "s-f.jsonl").write_bytes((logs / "s-free.jsonl").read_bytes())
    assert cli("replay", "s-f").out == cli("replay", logs / "s-f.jsonl").out


def test_an_unknown_session_exits_3_and_says_where(cli, logs, monkeypatch):
    """Neither a file nor a session."""
    monkeypatch.setenv("SESSIONLOG_DIR", str(logs))
    ran = cli("replay", "s-x")
    assert (ran.code, ran.out) == (3, "")
    assert str(logs) in ran.err


def many(folder, record, count=52):
    """More sessions than a table shows by itself."""
    path = record(folder, "s-0")
    for number in range(1, count):
        (folder / f"s-{number}.jsonl").write_bytes(path.read_bytes())
    return folder


def test_only_the_table_stops_at_fifty(cli, tmp_path, record):
    """Programs get every session unless they ask for fewer."""
    folder = many(tmp_path / "logs", record)
    table = cli("sessions", folder, *NOW).out
    assert "2 more sessions (--limit)" in table
    assert "52 sessions, 50 shown · " in table
    assert len(cli("sessions", folder, "--json").json["rows"]) == 52
    assert len(cli("sessions", folder, "--csv").out.splitlines()) == 1 + 52
    assert len(cli("sessions", folder, "--markdown").out.splitlines()) == 2 + 52
    assert "more session" not in cli("sessions", folder, "--limit", "52").out


@pytest.mark.parametrize("form", ["--json", "--csv", "--markdown"])
@pytest.mark.parametrize(("command", "noun"), [("sessions", "session"), ("usage", "row")])
def test_what_a_limit_leaves_out_is_noted_beside_data(cli, logs, command, noun, form):
    """How many, on stderr."""
    assert cli(command, logs, form, "--limit", "2").err == f"1 more {noun} (--limit)\n"
    assert cli(command, logs, form, "--limit", "1").err == f"2 more {noun}s (--limit)\n"
    assert cli(command, logs, form, "--limit", "3").err == ""


def test_sessions_of_one_source(cli, logs):
    """As for usage."""
    assert len(cli("sessions", logs, "--json", "--source", "nat*").json["rows"]) == 3
    assert cli("sessions", logs, "--json", "--source", "fizeau").json["rows"] == []


def test_a_log_without_data_ended_nobody_knows_how(cli, tmp_path):
    """It is no failure."""
    path = tmp_path / "bench.jsonl"
    events = ("session.start", "session.end")
    path.write_text(
        "".join(
            f'{{"session_id":"b","seq":{n},"type":"{kind}","ts":"2026-11-20T10:00:0{n}Z"}}\n'
            for n, kind in enumerate(events)
        )
    )
    [line] = [line for line in cli("sessions", path, *NOW).out.splitlines() if "bench" in line]
    assert line.split()[1] == "·"
    assert "✘" not in line


FORKS = Path(__file__).parents[2] / "testdata" / "sources" / "codex" / "fork-of-a-fork"


def test_forks_stand_below_their_parents_in_a_tree(cli):
    """In the table; a parent that a filter or the time leaves out is named."""
    lines = cli("sessions", FORKS, "--tree", *NOW).out.splitlines()
    assert [line.split("  ✔")[0].rstrip() for line in lines[1:4]] == ["10:00", "└ 11:00", "  └ 12:00"]
    lines = cli("sessions", FORKS, "--tree", "--limit", "1", *NOW).out.splitlines()
    assert lines[1].startswith("019a0010-0005-7000-8000-000000000005 · 10 Nov 11:00")
    assert lines[2].startswith("└ 12:00")
    lines = cli("sessions", FORKS, "--tree", "--since", "2026-11-10T11:30:00Z", *NOW).out.splitlines()
    assert lines[1] == "019a0010-0005-7000-8000-000000000005 · not in this list"


def test_programs_always_get_the_parent(cli):
    """JSON and CSV have it, as a tree or not."""
    listed = cli("sessions", FORKS, "--json").json["rows"]
    assert [one["parent"] for one in listed] == [*(one["session"] for one in listed[1:]), ""]
    assert cli("sessions", FORKS, "--json", "--tree").json["rows"] == listed
    rows = csv.DictReader(io.StringIO(cli("sessions", FORKS, "--csv").out))
    assert [row["parent"] for row in rows] == [one["parent"] for one in listed]
