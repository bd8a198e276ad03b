"""Repair of a log that is being written: no acknowledged event is lost or doubled, and each writer's order stays."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sessionlog import SessionLogger, files, repair_log
from sessionlog.errors import Problem
from sessionlog.reader.stream import read_events

WRITER = """
import os, sys, time
from sessionlog import SessionLogger
folder, second = sys.argv[1], os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600)
log, acknowledged, until = SessionLogger(folder, "s"), 0, time.monotonic() + float(sys.argv[3])
while time.monotonic() < until:
    assert log.emit("n", {"n": acknowledged, "writer": sys.argv[2][-1]})
    acknowledged += 1
    os.pwrite(second, acknowledged.to_bytes(8, "little"), 0)
    time.sleep(0.0005)
"""


def damaged_log(folder, megabytes=0):
    """A log of our own with a torn line in its middle."""
    with SessionLogger(folder, "s") as log:
        log.emit("n", {"n": -1})
    path = Path(folder) / "s.jsonl"
    line = path.read_bytes().splitlines(keepends=True)[1]
    filling = line.replace(b'"n":-1', b'"n":-1,"x":"' + b"x" * 900 + b'"') * round(megabytes * 1024)
    path.write_bytes(path.read_bytes() + filling + line[:30] + b"\n" + filling + line)
    return path


def numbers(path, **wanted):
    """The numbers of the events of a writer, in the order of the file."""
    events = [item for item in read_events(str(path)) if not isinstance(item, Problem) and item.type == "n"]
    found = [event.data["n"] for event in events if wanted.items() <= event.data.items()]
    return [number for number in found if number >= 0]


def test_p02_what_is_written_before_the_rename_is_taken_over(tmp_path, monkeypatch):
    """The copy was made without it, and the writer does not know yet that the file will be replaced."""
    path, log, rename = damaged_log(tmp_path), SessionLogger(tmp_path, "s"), os.replace
    assert log.emit("n", {"n": 0})

    def replace(source, target):
        assert all(log.emit("n", {"n": number}) for number in range(1, 50))
        rename(source, target)
        assert all(log.emit("n", {"n": number}) for number in range(50, 60))

    monkeypatch.setattr(os, "replace", replace)
    assert repair_log(path).pieces == 1
    log.emit("n", {"n": 60})
    log.close()
    assert sorted(numbers(path)) == list(range(61))
    assert numbers(path)[:1] == [0]
    assert log.health().written == 61 + 1  # closing writes an end


@pytest.mark.parametrize("late", ["before the repair", "after the repair"])
def test_p02_a_write_that_comes_too_late_is_repeated_once(tmp_path, monkeypatch, late):
    """The writer looked at the file before it was replaced, and wrote to it after."""
    path, log, write = damaged_log(tmp_path), SessionLogger(tmp_path, "s"), os.write
    assert log.emit("n", {"n": 0})
    holder = files.open_log(str(path))
    assert files.lock(holder.fileno())  # so that the writer goes on without the lock

    def write_late(fd, line):
        monkeypatch.setattr(os, "write", write)
        written = write(fd, line) if late == "before the repair" else 0
        files.unlock(holder.fileno())
        assert repair_log(path).pieces == 1
        return written or write(fd, line)

    monkeypatch.setattr(os, "write", write_late)
    assert log.emit("n", {"n": 1})
    assert log.emit("n", {"n": 2})
    log.close()
    holder.close()
    assert numbers(path) == [0, 1, 2]


def test_a_line_in_the_middle_of_its_writing_stays_whole(tmp_path, monkeypatch):
    """The copy ends with the last whole line, and the rest of the next one is taken over behind its beginning."""
    path, rename = damaged_log(tmp_path), os.replace
    line = path.read_bytes().splitlines(keepends=True)[1].replace(b'"n":-1', b'"n":7')
    os.utime(path, (time.time() - 60, time.time() - 60))

    def replace(source, target):
        with path.open("ab") as file:
            file.write(line)
        rename(source, target)

    monkeypatch.setattr(os, "replace", replace)
    repair_log(path)
    assert numbers(path) == [7]
    assert path.read_bytes().endswith(line)


@pytest.mark.parametrize("writers", [1, 2])
def test_p02_writers_and_repairs_as_processes(tmp_path, writers):
    """Two repairs of a log of megabytes while processes write to it every half millisecond."""
    path = damaged_log(tmp_path, megabytes=8)
    seconds = [tmp_path / f"acknowledged-{number}" for number in range(writers)]
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    processes = [subprocess.Popen([*command, str(second), "2"]) for second in seconds]
    time.sleep(0.5)
    assert repair_log(path).pieces == 1
    with path.open("r+b") as file:
        file.write(b"x" * 9)
    assert repair_log(path).pieces == 1
    assert [process.wait(timeout=60) for process in processes] == [0] * writers
    for number, second in enumerate(seconds):
        acknowledged = int.from_bytes(second.read_bytes(), "little")
        assert acknowledged > 100
        assert numbers(path, writer=str(number)) == list(range(acknowledged))
