"""Workers: call a function for each of many tasks, in processes where that is faster than in this one.

If a worker dies, or the executor cannot be used, this process does the tasks that have no result: that takes longer and
gives the same results.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from sessionlog import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

READING_PAYS = 8 << 20
"""Bytes from which two processes are faster than one for reading whole events, at 30 s per gigabyte."""

UNKNOWN_WORKERS = 4
"""How many workers a caller's own executor is taken to have."""

_AHEAD = 3
"""Tasks that are queued for each worker."""


def map_tasks(
    function: Callable[[_Task], _Result],
    tasks: Sequence[_Task],
    size: Callable[[_Task], int],
    *,
    pays: int = READING_PAYS,
    executor: Executor | None = None,
    jobs: int | None = None,
) -> Iterator[tuple[_Task, _Result]]:
    """Yield each task and the result of a function for it, in any order, from several processes where that is faster.

    Args:
        function: A function of a module, which workers can import.
        tasks: What it is called with.
        size: Returns the bytes of logs that a task reads; in processes the largest begin first.
        pays: Bytes from which two processes are faster than one.
        executor: Any executor of `concurrent.futures`; its workers must have this package.
        jobs: Processes of this machine; by default as many as it has cores if that pays, 1 is this process alone.
    """
    count = processes_for(len(tasks), sum(map(size, tasks)), pays, jobs)
    if executor is not None:
        yield from submit_tasks(function, sorted(tasks, key=size), executor, UNKNOWN_WORKERS)
    elif count == 1:
        yield from ((task, function(task)) for task in tasks)
    else:
        with worker_processes(count) as own:
            yield from submit_tasks(function, sorted(tasks, key=size), own, count)


def submit_tasks(
    function: Callable[[_Task], _Result], tasks: Sequence[_Task], executor: Executor, workers: int
) -> Iterator[tuple[_Task, _Result]]:
    """Yield each task and the result of a function for it, from an executor; a few are queued, the last task first."""
    from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait

    queue, left = list(tasks), list[_Task]()
    waiting: dict[Future[_Result], _Task] = {}
    while queue or waiting:
        while queue and len(waiting) < workers * _AHEAD:
            task = queue.pop()
            try:
                waiting[executor.submit(function, task)] = task
            except RuntimeError:  # it is broken, or was shut down
                left += [task, *reversed(queue)]
                queue.clear()
        for future in wait(waiting, return_when=FIRST_COMPLETED).done if waiting else ():
            task = waiting.pop(future)
            try:
                result = future.result()
            except Exception as error:  # noqa: BLE001 - whatever ended the worker, its task can be done here
                left.append(task)
                if isinstance(error, BrokenExecutor):
                    left += reversed(queue)
                    queue.clear()
            else:
                yield task, result
    yield from ((task, function(task)) for task in left)


def processes_for(tasks: int, size: int, pays: int, jobs: int | None) -> int:
    """Return how many processes do some tasks, which read some bytes, fastest; `jobs` is what the user wants."""
    count = min(jobs or usable_cores(), tasks)
    return count if count > 1 and (jobs is not None or size >= pays) and may_fork() else 1


def usable_cores() -> int:
    """Return the cores that this process may use."""
    usable = getattr(os, "sched_getaffinity", None)
    return len(usable(0)) if usable else os.cpu_count() or 1


def may_fork() -> bool:
    """Forking is safe while no other thread may hold a lock."""
    return sys.platform == "linux" and threading.active_count() == 1


@contextmanager
def worker_processes(count: int, folder: str | None = None) -> Iterator[Executor]:
    """Fork `count` processes, which end with the context; `folder` is removed if this process is killed before."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    executor = ProcessPoolExecutor(count, mp_context=get_context("fork"), initializer=_begin_worker, initargs=(folder,))
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _begin_worker(folder: str | None) -> None:
    """Let Ctrl-C, which reaches the whole process group, end a worker at once; the parent cleans up.

    The parent's objects are never garbage here: freezing them keeps the collector from touching, and so copying, them.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.freeze()
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()


def _end_with_parent(folder: str | None) -> None:
    """End this worker, which would wait for tasks forever, when its parent is killed."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        if folder is not None:
            files.remove_directory(folder)
        os._exit(1)


@contextmanager
def result_folder() -> Iterator[str | None]:
    """A folder in which workers write large results; None if it cannot be made."""
    try:
        folder = files.temporary_directory("sessionlog-")
    except OSError:
        yield None
        return
    try:
        yield folder
    finally:
        files.remove_directory(folder)
