"""What all tests share: interrupts, which a shell turns off for what it starts in the background, and the tiers."""

import atexit
import gc
import os
import random
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

from tests.profiles import LAWS_OF_BOTH_TIERS

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # children would inherit that, and wait for their interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)

if os.environ.pop("PYTHONDONTWRITEBYTECODE", "") and "PYTHONPYCACHEPREFIX" not in os.environ:
    # Each worker would compile 500 files of tests, and each of a thousand commands the package: beside the sources no
    # byte code is wanted, so it is kept where pytest keeps what it remembers.
    os.environ["PYTHONPYCACHEPREFIX"] = str(Path(__file__).parents[1] / ".pytest_cache" / "compiled")

_MEMORY, _ROOM = "/dev/shm", 2 << 30
os.environ.setdefault("SESSIONLOG_TESTS_DISK", tempfile.gettempdir())  # inherited by workers, as the next ones are
if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
    # A disk would be waited for longer than all tests take; the folders of tests/reliability are on it.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)
    os.environ["TMPDIR"], tempfile.tempdir = _MEMORY, None

_MINUTES = 15 * 60
RANDOM = {"slow", "release"}
FORKING = ("tests/reliability/", "tests/security/test_p13", "tests/security/test_p14")


@pytest.hookimpl(tryfirst=True)  # before the plugin of hypothesis, which reads these options
def pytest_configure(config):
    """The slow tier tries many random examples, unless another profile is asked for, from a seed that is known."""
    if config.option.markexpr == "slow" and not config.option.hypothesis_profile:
        config.option.hypothesis_profile = "slow"
    if config.option.hypothesis_profile in RANDOM and not config.option.hypothesis_seed:
        config.option.hypothesis_seed = str(random.SystemRandom().getrandbits(32))
    if (
        getattr(config.option, "dist", "no") == "load"
    ):  # of `-n`: in the order of the tests, so that what a file sets up
        config.option.dist = "worksteal"  # and imports is set up and imported by one worker


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is collected stays: looking for garbage meanwhile takes a quarter of the time, and finds none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """What thousands of tests are made of is not looked at again by each collection of garbage, here and in forks."""
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)  # what is frozen would never be freed, and DuckDB names such objects at the very end


@pytest.fixture(scope="session", autouse=True)
def _unlimited_sqlite():
    """`sql` limits SQLite's memory of its process for good, and commands of tests run in the process of all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sessionlog.cli.sql.limit_memory", lambda: None)
        yield


def pytest_terminal_summary(terminalreporter, config):
    """Hypothesis itself does not always print how a failure can be repeated."""
    if config.option.hypothesis_seed and terminalreporter.stats.get("failed"):
        terminalreporter.write_line(f"the same examples again: --hypothesis-seed={config.option.hypothesis_seed}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Some laws are of both tiers; thousands of examples take longer than a quick test may.

    What forks comes first: later a worker has read so much, tokenizers among it, that a fork takes ten times as long.
    """
    items.sort(key=lambda item: not item.nodeid.startswith(FORKING))
    if config.option.hypothesis_profile not in RANDOM:
        return
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.timeout(_MINUTES))
            if item.nodeid.startswith(LAWS_OF_BOTH_TIERS):
                item.add_marker(pytest.mark.slow)
