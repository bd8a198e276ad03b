"""Tasks run in processes where that is faster, and in this one where it is not, or where a worker has died."""

import os
import signal

import pytest

from sessionlog.engine import workers

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
