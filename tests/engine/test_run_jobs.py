"""Jobs run in processes where that is faster, and in this one where it is not, or where a worker has died."""

import os
import signal

import pytest

from sessionlog.engine import scanner as engine


def double(job, folder):
    """The job's double, and whether a worker made it."""
    return job * 2, folder is not None


def die_in_a_worker(job, folder):
    """Kill the worker; in this process return the job's double."""
    if folder is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    return job * 2, False


@pytest.mark.parametrize(("size", "in_workers"), [(1, False), (engine.PAYS, True)])
def test_processes_are_used_where_they_pay(monkeypatch, size, in_workers):
    """Each job has one result either way."""
    monkeypatch.setattr(engine, "may_fork", lambda: True)
    monkeypatch.setattr(engine, "usable_cores", lambda: 2)
    found = sorted(engine.run_jobs(range(20), double, lambda _: size))
    assert found == [(job * 2, in_workers) for job in range(20)]


def test_a_dead_worker_s_jobs_run_here(monkeypatch):
    """None is lost, and none has two results."""
    monkeypatch.setattr(engine, "may_fork", lambda: True)
    monkeypatch.setattr(engine, "usable_cores", lambda: 2)
    found = sorted(engine.run_jobs(range(8), die_in_a_worker, lambda _: engine.PAYS))
    assert found == [(job * 2, False) for job in range(8)]
