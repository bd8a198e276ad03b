"""P9: memory is bounded, whatever the logs are.

Small traps are still more than what would grow with them leaves room for, and the quick tests take some of these; the
slow ones have the others, and those of the promise. Every command on every trap: `python -m tests.reliability.traps`.
"""

import os
import resource
import subprocess
import sys

import pytest

import sessionlog
from tests.reliability import traps
from tests.reliability.traps import BOUND_MB, TRAPS, run

MIB = 1 << 20
ADDRESS_SPACE = 600 * MIB
USAGE = ("usage", "--no-ledger")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")


@pytest.fixture(autouse=True)
def _may_cap():
    """Where the tests themselves have less, nothing can be measured."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    if limit != resource.RLIM_INFINITY and limit < ADDRESS_SPACE:
        pytest.skip("too little memory is allowed here")


@pytest.fixture(autouse=True, scope="module")
def _byte_code():
    """Compiling the package takes some 30 MB, which an installed one does not need."""
    command = [sys.executable, "-m", "compileall", "-q", os.path.dirname(sessionlog.__file__)]
    subprocess.run(command, check=True, timeout=120)


@pytest.mark.parametrize(
    ("make", "size", "command", "megabytes"),
    [
        pytest.param(traps.native_responses, 60_000, USAGE, 80, id="responses"),
        pytest.param(traps.claude_sessions, 10_000, USAGE, 85, id="sessions", marks=pytest.mark.slow),
        pytest.param(
            traps.deep_line, 8 * MIB - 1024, ("replay", "{log}"), 100, id="deep line, replay", marks=pytest.mark.slow
        ),
        pytest.param(traps.deep_line, 8 * MIB - 1024, ("context", "{log}"), 100, id="deep line, context"),
        pytest.param(traps.long_event, 31 * MIB, ("replay", "--json", "{log}"), BOUND_MB, id="long event, replay"),
        pytest.param(traps.long_event, 31 * MIB, ("context", "{log}"), BOUND_MB, id="long event, context"),
        pytest.param(traps.long_event, 31 * MIB, ("find", "words"), BOUND_MB, id="long event, find"),
        pytest.param(
            traps.long_event,
            31 * MIB,
            ("diff", "{log}", "{log}"),
            BOUND_MB,
            id="long event, diff",
            marks=pytest.mark.slow,
        ),
        pytest.param(traps.long_event, 31 * MIB, ("check",), BOUND_MB, id="long event, check", marks=pytest.mark.slow),
        pytest.param(traps.many_keys, 500_000, USAGE, 75, id="many keys"),
        pytest.param(traps.long_line, 128 * MIB, USAGE, BOUND_MB, id="long line", marks=pytest.mark.slow),
        pytest.param(traps.gz_bomb, 128 * MIB, USAGE, BOUND_MB, id="gz bomb"),
        pytest.param(traps.sparse_file, 256 * MIB, USAGE, BOUND_MB, id="sparse", marks=pytest.mark.slow),
        pytest.param(traps.special_files, 1, USAGE, 60, id="pipe and devices"),
    ],
)
def test_p09_memory_does_not_grow_with_the_log(tmp_path, make, size, command, megabytes):
    """The command comes to its end in this much memory, and under a limit of all that it may ask for."""
    logs = tmp_path / "logs"
    make(logs, size)
    taken = run(command, logs, tmp_path, address_space=ADDRESS_SPACE)
    print(f"{taken.megabytes:.0f} MB, {taken.seconds:.1f} s")
    assert taken.code in {0, 1}, taken.errors
    assert "Traceback" not in taken.errors
    assert taken.megabytes <= megabytes


@pytest.mark.parametrize(
    ("make", "size", "megabytes"),
    [
        pytest.param(traps.deep_line, 8 * MIB - 1024, 100, marks=pytest.mark.slow),
        (traps.gemini_document, 24 * MIB, 110),
    ],
)
def test_p09_what_is_refused_for_its_size_is_named(tmp_path, make, size, megabytes):
    """A report says that it was skipped, `check` says where, how large it is, and exits 1; neither takes the memory."""
    logs = tmp_path / "logs"
    make(logs, size)
    report = run((*USAGE, "--json"), logs, tmp_path, address_space=ADDRESS_SPACE)
    assert report.code == 0, report.errors
    assert "1 damaged piece skipped" in report.errors
    check = run(("check",), logs, tmp_path, address_space=ADDRESS_SPACE)
    assert check.code == 1, check.errors
    assert "too_large" in check.output
    for taken in (report, check):
        print(f"{taken.megabytes:.0f} MB, {taken.seconds:.1f} s")
        assert "Traceback" not in taken.errors
        assert taken.megabytes <= megabytes


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("trap", TRAPS[1:], ids=lambda trap: trap.name)  # the second is more of the first
def test_p09_the_bound_holds_for_the_whole_trap(tmp_path, trap):
    """200 MB, whatever it is; of what only takes longer the more there is of it a fifth, and half of what has many rows."""
    logs = tmp_path / "logs"
    is_long = trap.make in {traps.native_files, traps.gz_bomb, traps.sparse_file}
    has_rows = trap.size in {700_000, 150_000}
    trap.make(logs, trap.size // 5 if is_long else trap.size // 2 if has_rows else trap.size)
    taken = run(USAGE, logs, tmp_path, limit=300)
    print(f"{taken.megabytes:.0f} MB, {taken.seconds:.1f} s")
    assert taken.code in {0, 1}, taken.errors
    assert taken.megabytes <= BOUND_MB


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("make", [traps.native_conversation, traps.claude_conversation, traps.codex_conversation])
def test_p09_a_session_of_300_000_events_is_replayed_at_once(tmp_path, make):
    """The first line comes while the log is being read, and memory stays as it is."""
    logs = tmp_path / "logs"
    make(logs, 300_000)
    taken = run(("replay", "--json", "{log}"), logs, tmp_path, limit=600)
    print(f"{taken.megabytes:.0f} MB, {taken.seconds:.1f} s, the first line after {taken.first:.2f} s")
    assert taken.code == 0
    assert taken.megabytes <= BOUND_MB
    assert taken.first < taken.seconds / 5
