"""Tasks run in processes where that is faster, and in this one where it is not, or where a worker has died."""

import os
import signal
import sys

import pytest

from sessionlog.engine import workers
from tests.reliability.children import fork, wait

HERE = os.getpid()


def double(job):
    """The job's double, and whether a worker made it."""
    return job * 2, os.getpid() != HERE


def die_in_a_worker(job):
    """Kill the worker; in this process return the job's double."""
    if os.getpid() != HERE:
        os.kill(os.getpid(), signal.SIGKILL)
    return job * 2, False


@pytest.mark.parametrize(("size", "in_workers"), [(1, False), (workers.READING_PAYS, True)])
def test_processes_are_used_where_they_pay(monkeypatch, size, in_workers):
    """Each job has one result either way."""
    monkeypatch.setattr(workers, "may_fork", lambda: True)
    monkeypatch.setattr(workers, "usable_cores", lambda: 2)
    found = sorted(result for _, result in workers.map_tasks(double, range(20), lambda _: size))
    assert found == [(job * 2, in_workers) for job in range(20)]


def test_a_dead_worker_s_jobs_run_here(monkeypatch):
    """None is lost, and none has two results."""
    monkeypatch.setattr(workers, "may_fork", lambda: True)
    monkeypatch.setattr(workers, "usable_cores", lambda: 2)
    found = sorted(result for _, result in workers.map_tasks(die_in_a_worker, range(8), lambda _: workers.READING_PAYS))
    assert found == [(job * 2, False) for job in range(8)]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
def test_workers_end_with_a_parent_that_was_killed(tmp_path):
    """And remove the folder in which they write: the parent cannot."""
    folder = tmp_path / "rows"
    folder.mkdir()
    there, begun = os.pipe()

    def run():
        with workers.worker_processes(1, str(folder)) as executor:
            executor.submit(os.write, begun, b"x").result()
            os.kill(os.getpid(), signal.SIGKILL)

    child = fork(run)
    os.close(begun)
    assert wait(child) == -signal.SIGKILL
    assert os.read(there, 9) + os.read(there, 9) == b"x"  # the end: no process has the pipe open
    os.close(there)
    assert not folder.exists()
