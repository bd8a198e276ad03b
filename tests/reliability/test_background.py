"""The suite in the background: a shell starts such programs with SIGINT ignored, and their children inherit that."""

import os
import signal
import subprocess
import sys

import pytest

CHILD = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
TESTS = (
    "tests/cli/test_main.py",
    "tests/conversation/turns/test_signals.py",
    "tests/conversation/test_signals_end_turns.py",
)


@pytest.mark.skipif(os.name != "posix", reason="a shell that ignores signals for others")
def test_tests_of_interrupts_pass_where_sigint_is_ignored():
    """Their interrupts arrive, in the test runner and in its children."""
    of_interrupts = "(interrupt or signal) and not 15"  # SIGTERM is ignored by nobody
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", of_interrupts, *TESTS]
    ended = subprocess.run(
        ["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *command], capture_output=True, text=True, timeout=100
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-1000:]
    assert " passed" in ended.stdout


def test_children_of_tests_can_be_interrupted():
    """Whoever has started the suite, and how."""
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    assert subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=30).stdout == "True\n"
