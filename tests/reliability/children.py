"""Child processes for the tests: forked, killed, watched, and never returning into the test runner."""

import json
import os
import traceback
import warnings
from collections.abc import Callable
from typing import Any


def fork(work: Callable[[], Any]) -> int:
    """Run `work` in a forked child, which ends without any clean-up; return its pid."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns where the test runner has threads
        pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        os._exit(1)


def wait(pid: int) -> int:
    """Wait for a child; return its exit code, minus the signal's number when it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def in_child(work: Callable[[], Any]) -> Any:
    """Run `work` in a forked child, where limits, user and umask may be changed; return its (JSON) result."""
    reading, writing = os.pipe()

    def answer() -> None:
        os.close(reading)
        with os.fdopen(writing, "wb") as out:
            out.write(json.dumps(work()).encode())

    pid = fork(answer)
    os.close(writing)
    with os.fdopen(reading, "rb") as source:
        result = source.read()
    code = wait(pid)
    assert code == 0, f"the child ended with {code}; its traceback is on stderr"
    return json.loads(result)
