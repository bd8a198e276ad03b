"""Scanner: the processes of an executor scan logs and return rows.

If a worker dies or returns something else, or the executor cannot be used, this process scans the logs without a
result: that takes longer and gives the same numbers.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sessionlog import files
from sessionlog.ledger.scanning import Job, Scanned, scan_job
from sessionlog.ledger.sync import Scanner, scan_here
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import Source
from sessionlog.sources.registry import all_sources

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor, Future

PAYS = 64 << 20
"""Bytes from which two processes are faster than one: measured, starting them costs what scanning 10 MB does."""

_SHARE = 4 << 20
"""Bytes of logs per task: with larger tasks workers finish unevenly, smaller ones cost more messages."""

_FILE = 64 << 10
"""Bytes that are scanned in the time that it takes to open a log and to insert its session."""

_MAP_PAYS = 8 << 20
"""The same for reading whole events, which takes several times as long."""

_AHEAD = 3
"""Shares that are queued for each worker."""


def scanner(executor: Executor | None = None, jobs: int | None = None) -> Scanner:
    """Return a function that scans jobs in parallel where that is faster.

    Args:
        executor: Any executor of `concurrent.futures`; its workers must have this package.
        jobs: Processes of this machine; by default as many as it has cores if that pays, 1 is this process alone. For
            remote logs, threads; by default eight.
    """
    return lambda work, sources, prices: _by_place(work, sources, prices, executor, jobs)


def _by_place(
    work: Sequence[Job],
    sources: Mapping[str, Source],
    prices: PriceBook,
    executor: Executor | None,
    jobs: int | None,
) -> Iterator[Scanned]:
    """Scan logs of this machine with processes, and remote ones with threads, which wait for the store."""
    remote = [job for job in work if files.is_url(job.path)]
    local = [job for job in work if not files.is_url(job.path)] if remote else work
    if executor is not None:
        yield from _spread(executor, local, sources, prices, workers=4)
    elif jobs == 1:
        yield from scan_here(local, sources, prices)
    else:
        yield from _with_processes(local, sources, prices, jobs)
    if remote:
        from sessionlog.files.remote import THREADS, in_threads

        yield from in_threads(lambda job: scan_job(job, prices, sources.get(job.source)), remote, jobs or THREADS)


def map_logs(
    function: Callable[[_Task], _Result],
    tasks: Sequence[_Task],
    size: Callable[[_Task], int],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
) -> Iterator[_Result]:
    """Yield the result of a function for each task, in any order, from several processes where that is faster.

    Args:
        function: A function of a module, which workers can import.
        tasks: What it is called with; the largest begin first.
        size: The bytes of logs that a task reads.
        executor: As in `scanner`.
        jobs: As in `scanner`.
    """
    ordered = sorted(tasks, key=size, reverse=True)
    count = min(jobs or usable_cores(), len(ordered))
    if executor is not None:
        yield from _map(executor, function, ordered)
    elif count < 2 or (jobs is None and sum(map(size, ordered)) < _MAP_PAYS) or not may_fork():
        yield from map(function, ordered)
    else:
        with worker_processes(count) as own:
            yield from _map(own, function, ordered)


def _map(executor: Executor, function: Callable[[_Task], _Result], tasks: Sequence[_Task]) -> Iterator[_Result]:
    from concurrent.futures import BrokenExecutor, as_completed

    waiting: dict[Future[_Result], _Task] = {}
    left: list[_Task] = []
    for task in tasks:
        try:
            waiting[executor.submit(function, task)] = task
        except (BrokenExecutor, RuntimeError):
            left.append(task)
    for future in as_completed(waiting):
        task = waiting.pop(future)
        if future.exception() is None:
            yield future.result()
        else:  # whatever ended the worker, its logs can be read here
            left.append(task)
    yield from map(function, left)


def _with_processes(
    work: Sequence[Job], sources: Mapping[str, Source], prices: PriceBook, jobs: int | None
) -> Iterator[Scanned]:
    count = min(jobs or usable_cores(), len(work))
    pays = sum(map(_weight, work)) >= PAYS or jobs is not None
    if count < 2 or not pays or not may_fork():
        yield from scan_here(work, sources, prices)
        return
    with worker_processes(count) as executor, _folder() as folder:
        yield from _spread(executor, work, sources, prices, workers=count, folder=folder)


def run_jobs(
    work: Sequence[_Task], run: Callable[[_Task, str | None], _Result], size: Callable[[_Task], int]
) -> Iterator[_Result]:
    """Yield `run(job, folder)` for each job in any order, from several processes where that is faster.

    Args:
        work: The jobs.
        run: A function of a module; `folder` is for large results, which the caller reads before it asks for the next
            one; None if there is no such folder.
        size: Returns the bytes that a job reads.
    """
    count = min(usable_cores(), len(work))
    if count < 2 or sum(map(size, work)) < PAYS or not may_fork():
        yield from (run(job, None) for job in work)
        return
    from concurrent.futures import FIRST_COMPLETED, wait

    waiting: dict[Future[_Result], _Task] = {}
    left = sorted(work, key=size)
    with worker_processes(count) as executor, _folder() as folder:
        try:
            while left or waiting:
                while left and len(waiting) < count * _AHEAD:
                    waiting[executor.submit(run, left[-1], folder)] = left[-1]
                    left.pop()
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    del waiting[future]
                    yield result
        except RuntimeError:  # a worker has died
            left += waiting.values()
    yield from (run(job, None) for job in left)


def _weight(job: Job) -> int:
    return job.size + _FILE


def usable_cores() -> int:
    """Return the cores that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def may_fork() -> bool:
    """Forking is safe while no other thread may hold a lock."""
    return sys.platform == "linux" and threading.active_count() == 1


@contextmanager
def worker_processes(count: int) -> Iterator[Executor]:
    """Fork `count` processes, which end with the context."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    executor = ProcessPoolExecutor(count, mp_context=get_context("fork"), initializer=_begin_worker)
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _folder() -> Iterator[str | None]:
    """A folder in which workers write the rows of large logs; None if it cannot be made."""
    try:
        folder = files.temporary_directory("sessionlog-")
    except OSError:
        yield None
        return
    try:
        yield folder
    finally:
        files.remove_directory(folder)


def _spread(
    executor: Executor,
    work: Sequence[Job],
    sources: Mapping[str, Source],
    prices: PriceBook,
    *,
    workers: int,
    folder: str | None = None,
) -> Iterator[Scanned]:
    """Submit shares, a few at a time, and yield their results."""
    from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait

    known = [source for source in all_sources() if sources.get(source.id) is source]  # workers find them by their ids
    ids = {source.id for source in known}
    shares = divide([job for job in work if job.source in ids])
    waiting: dict[Future[list[Scanned]], list[Job]] = {}
    left = [job for job in work if job.source not in ids]
    broken = False
    while shares or waiting:
        while shares and not broken and len(waiting) < workers * _AHEAD:
            share = shares.pop()
            try:
                waiting[executor.submit(scan_share, share, prices, folder)] = share
            except (BrokenExecutor, RuntimeError):
                broken = True
                left += share
        if broken:
            left += [job for share in shares for job in share]
            shares.clear()
        for future in wait(waiting, return_when=FIRST_COMPLETED).done if waiting else ():
            share = waiting.pop(future)
            try:
                yield from _checked(future.result(), share)
            except Exception:  # noqa: BLE001 - whatever ended the worker, its logs can be scanned here
                broken = broken or isinstance(future.exception(), BrokenExecutor)
                left += share
    yield from scan_here(left, sources, prices)


def _checked(given: object, share: Sequence[Job]) -> list[Scanned]:
    """Return what a worker returned, if it is one result for each job of its share; else raise ValueError.

    The executor may be the caller's own: a missing result would be a log that silently does not count.
    """
    if isinstance(given, list) and all(isinstance(one, Scanned) for one in given):
        results: list[Scanned] = given
        if [one.number for one in results] == [job.number for job in share]:
            return results
    raise ValueError("a worker did not return one result for each of its logs")


def scan_share(share: Sequence[Job], prices: PriceBook, folder: str | None = None) -> list[Scanned]:
    """Scan some logs and price their responses; this runs in a worker."""
    return [scan_job(job, prices, folder=folder) for job in share]


def _begin_worker() -> None:
    """Let Ctrl-C, which reaches the whole process group, end a worker at once; the parent cleans up.

    The parent's objects are never garbage here: freezing them keeps the collector from touching, and so copying, them.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.freeze()


def divide(work: Sequence[Job], most: int | None = None) -> list[list[Job]]:
    """Divide jobs into even shares, to be submitted from the last one on: large logs first, each alone.

    Args:
        work: The jobs.
        most: Bytes per share; what suits the processes of one machine if None.
    """
    most = most or _SHARE
    shares: list[list[Job]] = [[]]
    size = 0
    for job in sorted(work, key=lambda one: -one.size if one.size > most else 0):
        if size + _weight(job) > most and shares[-1]:
            shares.append([])
            size = 0
        shares[-1].append(job)
        size += _weight(job)
    return [share for share in reversed(shares) if share]
