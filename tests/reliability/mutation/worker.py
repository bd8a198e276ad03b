"""A process that holds the collected tests and tries mutants, each in a fork of itself.

Nothing is imported or collected again for a mutant in a function's body: in the fork, the function's code is replaced.
The file in the worker's own copy of the project is changed as well, for the processes that tests start. Where a mutant
changes what a module does when it is imported, a fresh pytest runs instead.
"""

import gc
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from tests.reliability.mutation.covering import Covered, LineTracer, choose_tests, load, save
from tests.reliability.mutation.mutants import Mutant

TESTS = (
    "tests/logger", "tests/reader", "tests/reliability", "tests/ledger", "tests/engine", "tests/archive",
    "tests/cli/test_check.py", "tests/cli/test_unreadable.py", "tests/cli/test_replay.py", "tests/test_testing.py",
    "tests/sources/test_find.py", "tests/sources/test_together.py", "tests/sources/test_torture.py",
)  # fmt: skip
LEFT_OUT = (
    "tests/ledger/test_ledger_machine.py", "tests/reliability/test_kill.py", "tests/reliability/test_background.py",
    "tests/reliability/test_soak.py", "tests/reliability/mutation/", "tests/reliability/test_conversation_kill.py",
    "tests/reliability/test_repair_living.py::test_writers_and_repairs_as_processes",
    "tests/reliability/test_budget_processes.py", "tests/reliability/test_fuzz.py",
    "tests/reliability/test_reentrancy.py::test_a_process_ends_while_a_daemon_thread_emits",
    "tests/reliability/test_reentrancy.py::test_real_interrupts_at_random_points",
)  # fmt: skip
"""Tests that take too long to be run for each mutant, or that a busy machine may fail: a mutant that only they would
notice counts as survived."""

LIMIT_SECONDS = 60.0
"""How long the tests of one mutant take together without it."""

_PATIENCE_SECONDS = 40.0
_MEMORY = 4 << 30
_FILE_SIZE = 2 << 30
_SET_CHILD_SUBREAPER = 36


class Worker:
    """A pytest plugin: it takes the place of pytest's loop over the tests.

    Args:
        root: The copy of the project that this process may change.
        modules: The modules that mutants may be of.
        baseline: Where is kept what tests run.
        mutants: What to try; none to bring the baseline up to date.
        results: The file to which a line is added per mutant.
        limit_seconds: How long the tests of one mutant take together without it.
    """

    def __init__(
        self,
        root: Path,
        modules: Sequence[str],
        baseline: Path,
        mutants: Sequence[Mutant],
        results: Path,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> None:
        self._root = root
        self._modules = modules
        self._baseline = baseline
        self._mutants = mutants
        self._results = results
        self._limit_seconds = limit_seconds
        self._failed = ""
        self._killers: dict[str, int] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if not item.nodeid.startswith(LEFT_OUT)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed = str(report.longreprtext).strip().rpartition("\n")[2][:200] or "failed"

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        _adopt_orphans()
        if not self._mutants:
            _in_fork(lambda: self._run_baseline(session))
            return True
        covered = load(self._baseline)
        items = {item.nodeid: item for item in session.items}
        for mutant in self._mutants:
            began = time.monotonic()
            try:
                outcome, by = self._try(mutant, covered, items)
            finally:
                _end_orphans()
            if outcome == "killed":
                self._killers[by.partition(" ")[0]] = self._killers.get(by.partition(" ")[0], 0) + 1
            seconds = round(time.monotonic() - began, 1)
            line = {"key": mutant.key, "mutant": str(mutant), "outcome": outcome, "by": by, "seconds": seconds}
            with self._results.open("a") as file:
                file.write(json.dumps(line) + "\n")
        return True

    def _run_baseline(self, session: pytest.Session) -> None:
        """Run each test that the baseline does not have yet."""
        tracer = LineTracer(self._root, self._modules)
        covered = load(self._baseline) if self._baseline.exists() else []
        known = {test.test for test in covered}
        for item in [item for item in session.items if item.nodeid not in known]:
            self._failed = ""
            began = time.monotonic()
            with tracer.tracing() as lines:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            seconds = time.monotonic() - began
            if self._failed:  # tracing itself takes frames of the stack, which a few tests count
                self._failed = ""
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            found = {name: frozenset(numbers) for name, numbers in lines.items()}
            covered.append(Covered(item.nodeid, round(seconds, 4), not self._failed, found))
        save(self._baseline, covered)

    def _try(self, mutant: Mutant, covered: list[Covered], items: dict[str, pytest.Item]) -> tuple[str, str]:
        """Return (killed, survived or not reached; the test and how it failed)."""
        path = self._root / mutant.path
        source, times = path.read_bytes(), path.stat()
        lines = _lines_that_feel(mutant, source)
        tests = choose_tests(covered, mutant.path, lines, limit_seconds=self._limit_seconds)
        tests.sort(key=lambda test: -self._killers.get(test.test, 0))  # stable: what has killed before goes first
        if not tests:
            return "survived", "no test reaches it"
        changed = mutant.apply(source)
        path.write_bytes(changed)
        try:
            if mutant.in_body and (replaced := _codes(changed, str(path))) is not None:
                outcome, by = self._in_forked_session(replaced, str(path), tests, items)
                if outcome != "refused":
                    return outcome, by
            return self._in_fresh_session(tests)
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled files stay valid

    def _in_forked_session(
        self, codes: dict[tuple[str, int], CodeType], path: str, tests: list[Covered], items: dict[str, pytest.Item]
    ) -> tuple[str, str]:
        chosen = [test for test in tests if test.test in items]
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            _be_the_fork()
            try:
                replace_functions(path, codes)
            except ValueError as error:
                os.write(writing, f"refused {error}\n".encode())
                os._exit(0)
            self._run_items([items[test.test] for test in chosen], writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            return _watch(pipe, child, chosen)

    def _run_items(self, items: list[pytest.Item], writing: int) -> None:
        folder = Path(tempfile.mkdtemp(prefix="mutant-"))
        items[0].config._tmp_path_factory._basetemp = folder
        try:
            for number, item in enumerate(items):
                os.write(writing, f"run {number}\n".encode())
                following = items[number + 1] if number + 1 < len(items) else None
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failed:
                    os.write(writing, f"failed {number} {self._failed}\n".encode(errors="replace"))
                    break
            else:
                os.write(writing, b"passed\n")
        except BaseException as error:
            os.write(writing, f"stop {type(error).__name__}\n".encode())
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(0)

    def _in_fresh_session(self, tests: list[Covered]) -> tuple[str, str]:
        """Run the tests in a new process; a file names them, since there may be thousands."""
        with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
            names = Path(folder, "tests")
            names.write_text("\n".join(test.test for test in tests))
            files = sorted({test.test.partition("::")[0] for test in tests})
            limit = _PATIENCE_SECONDS * 4 + 5 * sum(test.seconds for test in tests)
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "",
                 "--no-header", "--tb=line", f"--basetemp={folder}/tests-of-it", "-p", __name__ + "_choice", *files],
                cwd=self._root, env=os.environ | {"CHOSEN_TESTS": str(names)}, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, start_new_session=True,
            )  # fmt: skip
            try:
                output, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return "killed", "time limit of a whole run"
            if process.returncode == 0:
                return "survived", ""
            failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
            return "killed", (failed[0].partition(" ")[2] if failed else output.strip()[-200:]).replace("\n", " ")


def _codes(source: bytes, path: str) -> dict[tuple[str, int], CodeType] | None:
    """Return (qualified name, first line) → code of each function; None where two have the same name and line."""
    found: dict[tuple[str, int], CodeType] = {}

    def collect(code: CodeType) -> bool:
        for part in code.co_consts:
            if isinstance(part, CodeType):
                key = (part.co_qualname, part.co_firstlineno)
                if (key in found and "<" not in part.co_name) or not collect(part):
                    return False
                found[key] = part
        return True

    return found if collect(compile(source, path, "exec", dont_inherit=True)) else None


def replace_functions(path: str, codes: dict[tuple[str, int], CodeType]) -> None:
    """Give each loaded function of a file the code of the same name and line.

    Raises:
        ValueError: A function has other free variables than before.
    """
    gc.unfreeze()  # our conftest has frozen what was collected, and frozen objects are not listed
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__.co_filename == path:
            code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
            if code is not None and code != function.__code__:
                function.__code__ = code


def _lines_that_feel(mutant: Mutant, source: bytes) -> range:
    """The lines whose tests may notice a mutant: its statement; of a module's or class's own value, all of them."""
    if mutant.in_body or (mutant.function and mutant.lines[1] > mutant.line):
        return range(mutant.lines[0], mutant.lines[1] + 1)
    return range(1, source.count(b"\n") + 2)


def _watch(pipe: Any, child: int, tests: list[Covered]) -> tuple[str, str]:
    """Follow a fork; a test that takes far longer than without a mutant has noticed it."""
    current, buffered = 0, b""
    try:
        while True:
            patience = _PATIENCE_SECONDS + 6 * tests[current].seconds
            if not select.select([pipe], [], [], patience)[0]:
                return "killed", f"{tests[current].test} time limit"
            piece = os.read(pipe.fileno(), 65536)
            if not piece:
                return "killed", f"{tests[current].test} the process ended"
            buffered += piece
            *lines, buffered = buffered.split(b"\n")
            for line in lines:
                word, _, rest = line.decode(errors="replace").partition(" ")
                if word == "run":
                    current = int(rest)
                elif word == "passed":
                    return "survived", f"{len(tests)} tests"
                elif word == "failed":
                    number, _, reason = rest.partition(" ")
                    return "killed", f"{tests[int(number)].test} {reason}"
                elif word == "stop":
                    return "killed", f"{tests[current].test} {rest}"
                elif word == "refused":  # the function cannot be replaced while the module stays loaded
                    return "refused", rest
    finally:
        with suppress(OSError):
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _in_fork(work: Any) -> None:
    child = os.fork()
    if not child:
        _be_the_fork()
        try:
            work()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _be_the_fork() -> None:
    """A group of its own, no output, and no more memory and disk than a mutant may waste."""
    os.setpgid(0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_SIZE, resource.RLIM_INFINITY))


def _adopt_orphans() -> None:
    """Processes that a killed test leaves become children of this one, which ends them (Linux)."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_orphans() -> None:
    for pid in _children():
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _children() -> Iterator[int]:
    with suppress(OSError):
        yield from map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
