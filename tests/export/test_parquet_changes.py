"""Export to parquet: only what changed is read, and nothing is missed; a ledger that is lost deletes nothing."""

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

duckdb = pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog.export import parquet  # noqa: E402 - after the skip
from sessionlog.ledger.opening import open_ledger  # noqa: E402 - as above
from sessionlog.ledger.refreshing import refresh  # noqa: E402 - as above
from sessionlog.ledger.upkeep import find_forgettable, forget, rebuild  # noqa: E402 - as above
from tests.export.machines import rows_of, usage_of  # noqa: E402 - as above
from tests.export.test_parquet import add_log, agree, fill, lost_state, make_machine  # noqa: E402 - as above
from tests.ledger.entries import PRICES, record, session  # noqa: E402 - as above
from tests.ledger.test_copies import LOGS  # noqa: E402 - as above
from tests.ledger.test_wire import SESSIONS, made  # noqa: E402 - as above
from tests.profiles import examples  # noqa: E402 - as above


@pytest.fixture
def machine(tmp_path):
    """A machine with an empty home."""
    return make_machine(tmp_path, "a")


def in_steps(machine, sessions, sizes):
    """Fill a ledger in steps, with an export after each, and forget all that one agent has in one step."""
    rows = []
    for size in sizes:
        some, sessions = sessions[:size], sessions[size:]
        rows = fill(machine, some)
        machine.export(prices=PRICES)
    return rows, sessions


def add_old_log(machine, name, **options):
    """Write a log that is not read again because it is young."""
    os.utime(add_log(machine, name, **options), ns=(1_763_700_000 * 10**9,) * 2)


def nothing_is_missed(machine, **options):
    """Whether an export that compares everything finds nothing that the last one has not written."""
    done = lost_state(machine).export(**options)
    return (done.usage, done.tools, done.sessions, done.deleted) == (0, 0, 0, 0)


@examples(6)
@given(LOGS, st.lists(st.integers(0, 3), max_size=3))
def test_what_changed_is_all_that_changed(tmp_path_factory, entries, sizes):
    """Copies that come later change rows of other sessions; all of these are exported, too."""
    machine = make_machine(tmp_path_factory.mktemp("steps"), "a")
    sessions = [session(name, record(**fields), path=f"{path}.jsonl") for name, path, fields in entries]
    _, rest = in_steps(machine, sessions, sizes)
    rows = fill(machine, rest)
    assert agree(machine, rows)
    assert nothing_is_missed(machine, prices=PRICES)


@examples(6)
@given(st.data())
def test_requests_on_the_wire_change_what_was_exported(tmp_path_factory, data):
    """A session on the wire that comes later is paired with a log that was exported."""
    machine = make_machine(tmp_path_factory.mktemp("wire"), "a")
    sessions = [made(entry, number) for number, entry in enumerate(data.draw(SESSIONS))]
    _, rest = in_steps(machine, sessions, data.draw(st.lists(st.integers(0, 2), max_size=3)))
    rows = fill(machine, rest)
    assert agree(machine, rows)
    assert nothing_is_missed(machine, prices=PRICES)


@examples(6)
@given(st.lists(st.sampled_from(["new", "grown", "gone", "back", "forgotten"]), min_size=2, max_size=6))
def test_logs_that_come_and_go_are_followed(tmp_path_factory, steps):
    """Each change of a log is exported, whatever came before."""
    machine = make_machine(tmp_path_factory.mktemp("logs"), "a")
    kept = add_log(machine, "kept", ended=False)
    machine.export()
    for number, step in enumerate(steps):
        match step:
            case "new":
                add_log(machine, f"s{number}")
            case "grown":
                add_log(machine, "kept", output=30 + number, responses=1 + number, ended=False)
            case "gone":
                kept.unlink(missing_ok=True)
            case "back":
                add_log(machine, "kept", ended=False)
            case "forgotten":
                book = open_ledger(machine.ledger, PRICES)
                refresh(book, machine.env)
                forget(book, find_forgettable(book))
                book.close()
        machine.export()
    assert usage_of(machine.team) == machine.usage()
    assert nothing_is_missed(machine)


def test_nothing_new_is_not_even_encoded(machine, monkeypatch):
    """DuckDB is not loaded, no row is compared, and no file is read."""
    add_old_log(machine, "s")
    machine.export()
    monkeypatch.setattr(parquet.LedgerRows, "read", lambda *_: 1 / 0)
    monkeypatch.setattr("sessionlog.export.parquet_files.ParquetEncoder.__init__", lambda *_: 1 / 0)
    assert machine.export().unchanged == 3
    add_old_log(machine, "t")
    with pytest.raises(ZeroDivisionError):
        machine.export()


def test_only_sessions_that_changed_are_read(machine, monkeypatch):
    """Of a ledger with many."""
    for name in "abcdef":
        add_old_log(machine, name)
    machine.export()
    read, seen = parquet.LedgerRows.read, []
    monkeypatch.setattr(
        parquet.LedgerRows, "read", lambda rows, *given: (seen.append(row) or row for row in read(rows, *given))
    )
    add_old_log(machine, "c", output=99)
    assert machine.export().usage == 1
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"since": "2026-11-20T12:00:00Z"}, {}),
        ({"filters": {"project": ["/w/web"]}}, {}),
        ({}, {"redact_projects": True}),
        ({"until": "2026-11-20"}, {"until": "2026-11-21"}),
    ],
)  # fmt: skip
def test_a_wider_choice_reads_everything(machine, first, then):
    """A watermark is of the rows that were chosen; these are written although no log has changed."""
    add_log(machine, "s", project="/w/api")
    add_log(machine, "t", project="/w/web")
    machine.export(**first)
    machine.export(**then)
    assert machine.export(**then).files == 0
    if "redact_projects" not in then:
        assert usage_of(machine.team) == machine.usage()
    assert len(set(rows_of(machine.team, columns="record"))) == 2


@pytest.mark.parametrize("loses_state", [False, True])
def test_a_ledger_that_was_lost_is_the_same_machine_and_deletes_nothing(machine, loses_state):
    """Its id is beside it; what it cannot read again, because the log is gone, stays in the destination."""
    gone = add_log(machine, "gone")
    add_log(machine, "s")
    before = machine.export()
    gone.unlink()
    assert machine.export().files == 0
    for path in Path(machine.folder).glob("ledger.sqlite*"):
        path.unlink()
    if loses_state:
        for path in Path(machine.env["XDG_STATE_HOME"]).glob("sessionlog/export/*.sqlite"):
            path.unlink()
    done = machine.export()
    assert (done.machine_id, done.usage, done.deleted) == (before.machine_id, 0, 0)
    assert usage_of(machine.team, ("session",)).keys() == {("gone",), ("s",)}
    add_log(machine, "s", output=30)
    done = machine.export()
    assert (done.usage, done.deleted) == (1, 0)
    done = machine.export(redact_projects=True)
    assert (done.usage, done.deleted) == (1, 0)
    assert usage_of(machine.team, ("session",)).keys() == {("gone",), ("s",)}


def test_a_backup_that_was_restored_deletes_nothing(machine, tmp_path):
    """It lacks what was exported after it was made, and what it has of that is compared again."""
    add_log(machine, "s")
    machine.export()
    shutil.copyfile(machine.ledger, tmp_path / "backup")
    later = add_log(machine, "later")
    machine.export()
    later.unlink()
    shutil.copyfile(tmp_path / "backup", machine.ledger)
    for ending in ("-wal", "-shm"):
        Path(f"{machine.ledger}{ending}").unlink(missing_ok=True)
    assert machine.export().deleted == 0
    assert usage_of(machine.team, ("session",)).keys() == {("later",), ("s",)}


def test_a_rebuilt_ledger_keeps_the_machine(machine):
    """What can be read of a damaged file includes the machine's secret; the copy beside it is not needed."""
    add_log(machine)
    before = machine.export()
    for path in Path(machine.env["XDG_STATE_HOME"]).glob("sessionlog/export/machine-*"):
        path.unlink()
    data = bytearray(Path(machine.ledger).read_bytes())
    book = open_ledger(machine.ledger, PRICES)
    [(page,)] = book.query("SELECT rootpage FROM sqlite_schema WHERE name = 'responses'", {})
    [(size,)] = book.query("PRAGMA page_size", {})
    book.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    book.close()
    data = bytearray(Path(machine.ledger).read_bytes())
    data[(page - 1) * size : page * size] = b"\xff" * size
    Path(machine.ledger).write_bytes(data)
    assert rebuild(machine.ledger, PRICES, machine.env).damaged
    done = machine.export()
    assert (done.machine_id, done.deleted) == (before.machine_id, 0)
    assert usage_of(machine.team, ("session",)).keys() == {("s",)}


def test_logs_without_a_ledger_have_the_same_rows(machine):
    """As a machine of their own; what they do not name stays, and both together count once."""
    add_log(machine, "s", responses=3)
    add_log(machine, "t")
    machine.export()
    ledger = Path(machine.team)
    machine.team = f"{machine.folder}/paths"
    folder = machine.env["SESSIONLOG_DIR"]
    assert machine.export(paths=[folder], ledger=None).usage == 4
    for table in ("usage", "sessions", "tools"):
        columns = "* EXCLUDE (machine_id, record, machine)"
        found, expected = (sorted(map(repr, rows_of(team, table, columns))) for team in (machine.team, ledger))
        assert found == expected
    done = machine.export(paths=[f"{folder}/t.jsonl"], ledger=None)
    assert (done.files, done.deleted) == (0, 0)
    machine.team = str(ledger)
    assert machine.export(paths=folder).usage == 4
    assert usage_of(ledger) == machine.usage()
    assert len(set(rows_of(ledger, columns="machine_id"))) == 2


def test_the_machine_has_a_name_for_people(machine):
    """The host's, or the given one; with hidden project names only a given one; a new name is a new manifest."""
    add_log(machine)
    names = []
    for options in (
        {},
        {"machine_name": "build ✓"},
        {"redact_projects": True},
        {"machine_name": "a", "redact_projects": True},
    ):
        done = machine.export(**options)
        names.append(json.loads(Path(machine.team, done.manifest).read_text("utf-8"))["machine_name"])
        assert done.machine_name == names[-1]
    assert names == [os.uname().nodename, "build ✓", None, "a"]
