"""A log, two writers, and all that may happen to them, in stories that hypothesis tells: P4, P6 and P16 as a machine.

The model is small: which numbers were acknowledged, and which of them somebody has taken away on purpose.
"""

import os
import resource
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from sessionlog.errors import LogNotReadable
from sessionlog.logger.session_logger import SessionLogger
from sessionlog.reader.repair import repair_log
from tests.profiles import STORIES
from tests.reliability.oracle import check_bytes, read_log
from tests.sources.homes import MEMORY

LONG_AGO = 1_700_000_000
writers = st.sampled_from((0, 1))


class Logs(RuleBasedStateMachine):
    """A session's log, and where it has been moved to."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.mkdtemp(dir=MEMORY)
        self.path = os.path.join(self.folder, "s.jsonl")
        self.now = 1_795_000_000_000_000_000
        self.writers = [None, None]
        self.count = self.moved = 0
        self.kept, self.torn = set(), []

    def teardown(self):
        for log in self.writers:
            if log is not None:
                log.close()
        self.everything_acknowledged_is_there()
        shutil.rmtree(self.folder)

    def logs(self):
        """The log and where it was moved to."""
        return sorted(os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.endswith(".jsonl"))

    def numbers_in(self, path):
        """The numbers of the events in one file."""
        if not os.path.exists(path) or not os.path.getsize(path):
            return []
        return [event.data["n"] for event in read_log(path).of_type("tool.call")]

    # What writers do.

    @rule(writer=writers, size=st.sampled_from((0, 50, 5_000)))
    def emit(self, writer, size):
        if self.writers[writer] is None:
            quiet = {"work_dir": "/w", "redact": False, "notify": lambda text: None}
            self.writers[writer] = SessionLogger(self.folder, "s", clock=lambda: self.now, **quiet)
        self.count += 1
        self.now += 1_000_000
        if self.writers[writer].emit("tool.call", {"n": self.count, "output": "x" * size}):
            self.kept.add(self.count)

    @rule(writer=writers, size=st.sampled_from((50, 5_000)), room=st.integers(0, 200))
    def emit_where_the_disk_is_full(self, writer, size, room):
        here = os.path.getsize(self.path) if os.path.exists(self.path) else 0
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (here + room, usual[1]))
        try:
            self.emit(writer, size)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)

    @rule(writer=writers)
    def close(self, writer):
        if self.writers[writer] is not None:
            self.writers[writer].close()
            health = self.writers[writer].health()
            assert health.written + health.dropped + health.deferred == health.emitted
            self.writers[writer] = None

    @rule(writer=writers, share=st.integers(1, 60))
    def kill_in_the_middle_of_a_line(self, writer, share):
        """What a kill leaves: the beginning of a line, and a writer that is no more."""
        self.writers[writer] = None
        if os.path.exists(self.path) and os.path.getsize(self.path):
            line = b'{"session_id":"s","seq":%d,"type":"tool.call","ts":"torn","data":{"n":-1}}' % self.count
            with open(self.path, "ab") as file:
                file.write(line[:share])
            self.torn.append(line[:share])

    # What happens to the file.

    @rule()
    def repair(self):
        for path in self.logs():
            os.utime(path, (LONG_AGO, LONG_AGO))
            try:
                repair_log(path)
            except LogNotReadable:  # it holds no event, or is empty
                continue

    @rule()
    def move(self):
        if os.path.exists(self.path):
            self.moved += 1
            os.rename(self.path, os.path.join(self.folder, f"moved-{self.moved}.jsonl"))

    @rule()
    def delete(self):
        if os.path.exists(self.path):
            self.kept -= set(self.numbers_in(self.path))
            self.torn.clear()
            os.unlink(self.path)

    @rule(share=st.integers(0, 9))
    def truncate(self, share):
        if os.path.exists(self.path):
            before = set(self.numbers_in(self.path))
            os.truncate(self.path, os.path.getsize(self.path) * share // 10)
            self.torn.clear()
            self.kept -= before - set(self.numbers_in(self.path))

    @rule()
    def restore(self):
        """A backup of the file takes its place, as editors and restores do it."""
        if os.path.exists(self.path):
            shutil.copy(self.path, f"{self.path}.copy")
            os.replace(f"{self.path}.copy", self.path)

    @rule(past=st.booleans())
    def touch(self, past):
        if os.path.exists(self.path):
            os.utime(self.path, (LONG_AGO, LONG_AGO) if past else None)

    @rule(days=st.integers(-400, 400))
    def turn_the_clock(self, days):
        self.now += days * 86_400_000_000_000

    # What must be true.

    @invariant()
    def everything_acknowledged_is_there(self):
        read = [number for path in self.logs() for number in self.numbers_in(path)]
        assert sorted(set(read)) == sorted(read)
        assert self.kept <= set(read)
        assert set(read) <= set(range(1, self.count + 1))
        for path in self.logs():
            if os.path.getsize(path):
                assert [one for one in check_bytes(read_log(path)) if "begins with" not in one] == []

    @invariant()
    def torn_bytes_are_kept(self):
        names = [name for name in os.listdir(self.folder) if name.endswith((".jsonl", ".quarantine"))]
        content = b"".join(Path(self.folder, name).read_bytes() for name in names)
        for piece in self.torn:
            assert piece in content


def run(stories, steps):
    """Run the machine; a failure prints its story."""
    chosen = settings(
        max_examples=stories, stateful_step_count=steps, phases=(Phase.generate, Phase.shrink), database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(Logs, settings=chosen)


def test_p04_nothing_acknowledged_is_lost_in_any_story():
    """Whatever is done to a log between two emits."""
    run(*STORIES["quick"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_p04_nothing_acknowledged_is_lost_in_a_thousand_stories():
    """The same for a thousand."""
    run(*STORIES["slow"])
