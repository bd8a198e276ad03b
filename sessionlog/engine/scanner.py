"""Scanner: the processes of an executor scan logs and hand over their rows.

If a worker returns something else, this process scans its logs, as it does for one that has died.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeGuard

from msgspec.structs import replace

from sessionlog import files
from sessionlog.engine.shares import LOG, divide
from sessionlog.engine.workers import (
    UNKNOWN_WORKERS,
    processes_for,
    result_folder,
    submit_tasks,
    worker_processes,
)
from sessionlog.ledger.handover import HandOver, rows_in_file
from sessionlog.ledger.scanning import Job, Scanned, scan_job
from sessionlog.ledger.sync import Scanner, scan_here
from sessionlog.pricing.book import PriceBook
from sessionlog.sources.protocol import Source
from sessionlog.sources.registry import all_sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Executor

PAYS = 64 << 20
"""Bytes from which two processes are faster than one: measured, starting them costs what scanning 10 MB does."""

_SHARE = 8 << 20
"""Bytes of logs per task: with larger tasks workers finish unevenly, smaller ones cost more messages."""


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
) -> Iterator[HandOver]:
    """Scan logs of this machine with processes, and remote ones with threads, which wait for the store."""
    remote = [job for job in work if files.is_url(job.path)]
    local = [job for job in work if not files.is_url(job.path)] if remote else work
    if executor is not None:
        yield from _spread(executor, local, sources, prices, workers=UNKNOWN_WORKERS)
    elif jobs == 1:
        yield from scan_here(local, sources, prices)
    else:
        yield from _with_processes(local, sources, prices, jobs)
    if remote:
        from sessionlog.files.remote import THREADS, in_threads

        for scanned in in_threads(lambda job: scan_job(job, sources.get(job.source)), remote, jobs or THREADS):
            yield HandOver(logs=[scanned])


def _with_processes(
    work: Sequence[Job], sources: Mapping[str, Source], prices: PriceBook, jobs: int | None
) -> Iterator[HandOver]:
    count = processes_for(len(work), sum(job.size + LOG for job in work), PAYS, jobs)
    if count == 1:
        yield from scan_here(work, sources, prices)
        return
    with result_folder() as folder, worker_processes(count, folder) as executor:
        yield from _spread(executor, work, sources, prices, workers=count, folder=folder)


def _spread(
    executor: Executor,
    work: Sequence[Job],
    sources: Mapping[str, Source],
    prices: PriceBook,
    *,
    workers: int,
    folder: str | None = None,
) -> Iterator[HandOver]:
    """Submit shares of the jobs, and yield their results."""
    known = [source for source in all_sources() if sources.get(source.id) is source]  # workers find them by their ids
    ids = {source.id for source in known}
    left = [job for job in work if job.source not in ids]
    shares = divide([job for job in work if job.source in ids], _SHARE, _size)
    for share, result in submit_tasks(partial(scan_share, prices=prices, folder=folder), shares, executor, workers):
        if _is_complete(result, share):
            yield result
        else:
            left += share
    yield from scan_here(left, sources, prices)


def _is_complete(result: object, share: Sequence[Job]) -> TypeGuard[HandOver]:
    """Whether a worker returned the results of all jobs of its share.

    The executor may be the caller's own: a missing result would be a log that silently does not count.
    """
    return (
        isinstance(result, HandOver)
        and bool(result.file or result.data)
        and isinstance(result.logs, list)
        and all(isinstance(one, Scanned) for one in result.logs)
        and [one.number for one in result.logs] == [job.number for job in share]
    )


def scan_share(share: Sequence[Job], prices: PriceBook, folder: str | None = None) -> HandOver | None:
    """Scan some logs, and write their rows into a file in a folder, or into memory; None if there is no room for it.

    This runs in a worker.
    """
    path, logs, data = ":memory:", list[Scanned](), b""
    try:
        if folder is not None:
            file, path = files.open_temporary(folder)
            file.close()
        with rows_in_file(path, prices) as (connection, rows):
            for job in share:
                scanned = scan_job(job)
                rows.insert(scanned.scan.sessions, job.number)
                logs.append(replace(scanned, scan=replace(scanned.scan, sessions=())))
            connection.execute("COMMIT")
            if folder is None:
                data = connection.serialize()
    except (OSError, sqlite3.Error):
        return None
    return HandOver(logs=logs, file=path if folder is not None else "", data=data)


def _size(job: Job) -> int:
    return job.size
