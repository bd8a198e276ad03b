"""Merging exported files: each row once for every reader, whatever ends an export and when."""

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

duckdb = pytest.importorskip("duckdb", reason="duckdb, of the extra `parquet`, is not installed")

from sessionlog.export import manifests, parquet_run  # noqa: E402 - after the skip
from sessionlog.export.destination import LocalFolder  # noqa: E402 - as above
from tests.export.machines import usage_of  # noqa: E402 - as above
from tests.export.test_parquet import add_log, lost_state, make_machine  # noqa: E402 - as above
from tests.export.test_parquet_copies import forget_log  # noqa: E402 - as above


class _KilledError(BaseException):
    """What ends an export in the place of a kill."""


@pytest.fixture
def machine(tmp_path):
    """A machine that has exported three revisions of an answer."""
    machine = make_machine(tmp_path, "a")
    for output in (20, 30, 40):
        add_log(machine, output=output, ended=False)
        machine.export()
    return machine


def listed(machine):
    """The files of the newest manifest."""
    newest = max(Path(machine.team).glob("manifest/v=1/*/*.json"))
    return [file["path"] for file in json.loads(newest.read_text())["files"]]


def test_merged_files_have_the_latest_revision(machine):
    """One file of each table; what readers have begun with stays; a second time there is nothing to merge."""
    before = usage_of(machine.team)
    begun = listed(machine)
    assert len(begun) == 5
    assert machine.export(compact=True).merged == 3
    assert len(listed(machine)) == 3
    assert usage_of(machine.team) == before == machine.usage()
    assert all(Path(machine.team, path).exists() for path in begun)
    assert (machine.export(compact=True).merged, machine.export(compact=True).manifest) == (0, "")
    done = lost_state(machine).export()
    assert (done.files, done.unchanged) == (0, 3)


def test_many_files_are_merged_by_themselves(machine, monkeypatch):
    """From a number of files of a month on."""
    monkeypatch.setattr(parquet_run, "_MOST_PARTS", 3)
    monkeypatch.setattr(parquet_run.ParquetRun.merge, "__kwdefaults__", {"most_parts": 3})
    add_log(machine, output=50, ended=False)
    assert machine.export().merged == 4
    assert len(listed(machine)) == 3
    assert usage_of(machine.team) == machine.usage()


def test_a_merge_of_some_files_keeps_what_was_deleted(tmp_path, monkeypatch):
    """The row is in a large file, which is not merged; its tombstone is in a small one, which is."""
    monkeypatch.setattr(parquet_run, "_MERGED_ROWS", 6)
    machine = make_machine(tmp_path, "a")
    path = add_log(machine, "gone")
    add_log(machine, "kept", responses=2)
    machine.export()
    add_log(machine, "later")
    machine.export()
    forget_log(machine, path)
    assert (machine.export().deleted, machine.export(compact=True).merged > 0) == (3, True)
    assert usage_of(machine.team, ("session",)) == machine.usage(("session",))
    assert usage_of(machine.team, ("session",)).keys() == {("kept",), ("later",)}


def test_a_merge_into_several_files_keeps_what_was_deleted(tmp_path, monkeypatch):
    """The row is in the first of them, and its tombstone in the second."""
    monkeypatch.setattr(parquet_run, "_MERGED_ROWS", 6)
    machine = make_machine(tmp_path, "a")
    path = add_log(machine, "gone", responses=2)
    for name in "ab":
        machine.export()
        add_log(machine, name, responses=2)
    machine.export()
    forget_log(machine, path)
    machine.export()
    add_log(machine, "c", responses=2)
    assert machine.export(compact=True).merged > 0
    assert usage_of(machine.team, ("session",)) == machine.usage(("session",))


def test_old_files_are_removed_a_day_later(machine, monkeypatch):
    """With the manifests before; what the newest one lists stays, and a second export has nothing to remove."""
    machine.export(compact=True)
    assert len(list(Path(machine.team).rglob("*.json"))) == 4
    monkeypatch.setattr(manifests, "KEPT", timedelta(seconds=-5))
    machine.export()
    kept = sorted(str(path.relative_to(machine.team)) for path in Path(machine.team).rglob("*.parquet"))
    assert kept == sorted(listed(machine))
    assert len(list(Path(machine.team).rglob("*.json"))) == 1
    assert usage_of(machine.team) == machine.usage()


def test_a_kill_at_any_moment_loses_nothing(machine, monkeypatch):
    """Before or after each file that is written or removed, readers count what they did; the next export completes it."""
    monkeypatch.setattr(manifests, "KEPT", timedelta(seconds=-5))
    before = usage_of(machine.team)
    add_log(machine, output=60, ended=False)
    write, remove = LocalFolder.write, LocalFolder.remove
    for moment in range(40):
        count = iter(range(1000))

        def counted_step(step, *given, moment=moment, count=count):
            if next(count) == moment:
                raise _KilledError
            step(*given)

        with monkeypatch.context() as patch:
            patch.setattr(LocalFolder, "write", lambda *given, at=counted_step: at(write, *given))
            patch.setattr(LocalFolder, "remove", lambda *given, at=counted_step: at(remove, *given))
            try:
                machine.export(compact=True)
                break
            except _KilledError:
                assert usage_of(machine.team) in (before, machine.usage())
    assert moment > 3
    assert usage_of(machine.team) == machine.usage() != before
    assert sorted(str(path.relative_to(machine.team)) for path in Path(machine.team).rglob("*.parquet"))


@pytest.mark.slow
def test_kill_9_at_any_moment_loses_nothing(machine):
    """Thirty exports with merges, each killed a little later than the one before."""
    script = (
        "import json, sys; from sessionlog.export.parquet import export_parquet; "
        "export_parquet(sys.argv[1], ledger=sys.argv[2], env=json.loads(sys.argv[3]), jobs=1, compact=True)"
    )
    for number in range(30):
        before = usage_of(machine.team)
        add_log(machine, output=100 + number, ended=False)
        command = [sys.executable, "-c", script, machine.team, machine.ledger, json.dumps(machine.env)]
        child = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
        try:
            child.wait(timeout=0.2 + number * 0.03)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert usage_of(machine.team) in (before, machine.usage())
        machine.export(compact=number % 3 == 0)
        assert usage_of(machine.team) == machine.usage()
