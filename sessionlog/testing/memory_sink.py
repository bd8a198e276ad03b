"""Tools to test code that uses sessionlog: a logger that writes to memory, a stepping clock, generated events.

`MemorySink` is a full `SessionLogger`, with its numbering, encoding, redaction and totals; only the file is missing.
So code that works with it works with a log, and its events can be inspected.

    def test_my_agent_records_its_tools():
        with MemorySink() as log:
            run_my_agent(on_event=log.callback())
        assert [event.data["tool"] for event in log.of_type("tool.call")] == ["search", "bash"]

A source of your own is checked on logs of its agent:

    def test_my_source_keeps_its_promises():
        check_source(SOURCE, "tests/logs-of-my-agent")

A session store of your own passes the tests that ours pass:

    class TestMyStore(SessionStoreContract):
        def make_store(self, tmp_path):
            return MyStore(tmp_path / "sessions")
"""

from __future__ import annotations

import os
import string
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sessionlog.errors import MissingExtra
from sessionlog.events.decode import decode_line
from sessionlog.events.envelope import KNOWN_TYPES, Event
from sessionlog.events.times import format_time, parse_time
from sessionlog.logger.log_file import LogFile
from sessionlog.logger.session_logger import SessionLogger

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from sessionlog.conversation.stores.contract import SessionStoreContract
    from sessionlog.sources.protocol import Source

__all__ = ["FixedClock", "MemorySink", "SessionStoreContract", "check_source", "event_strategy"]

_NOWHERE = os.path.join(os.sep, "memory")  # the directory that paths and messages show; it is never accessed


class FixedClock:
    """A clock for `SessionLogger(clock=…)`: each call returns the current instant and advances by one step.

    Args:
        start: The first instant, RFC 3339.
        step_ns: Nanoseconds between two calls; with 0 the clock stands still.

    Attributes:
        now_ns: What the next call returns, in nanoseconds since 1970.

    Raises:
        ValueError: `start` is not a time.
    """

    def __init__(self, start: str = "2026-11-21T10:00:00Z", *, step_ns: int = 1_000_000_000) -> None:
        instant = parse_time(start)
        if instant is None:
            raise ValueError(f"{start!r} is not an RFC 3339 time")
        self.now_ns = instant
        self._step_ns = step_ns

    def __call__(self) -> int:
        """Return the current instant in nanoseconds, and step."""
        now = self.now_ns
        self.now_ns += self._step_ns
        return now

    def advance(self, seconds: float) -> None:
        """Move the clock, backwards with a negative number."""
        self.now_ns += round(seconds * 1_000_000_000)


class MemorySink(SessionLogger):
    """A `SessionLogger` that keeps its log in memory; no file is opened and no folder made.

    Args:
        session_id: As for `SessionLogger`.
        clock: Stamps the events; a `FixedClock` by default, so that tests can compare them.
        options: Every other option of `SessionLogger`.

    Attributes:
        notices: The lines that a logger would have written to stderr.
    """

    def __init__(
        self, session_id: str = "test-session", *, clock: Callable[[], int] | None = None, **options: Any
    ) -> None:
        self.notices: list[str] = []
        options.setdefault("notify", self.notices.append)
        super().__init__(_NOWHERE, session_id, clock=clock or FixedClock(), **options)
        self._file = self._memory = _MemoryFile(_NOWHERE, f"{self.session_id}.jsonl", "os")

    def sibling(self, session_id: str | None = None) -> MemorySink:
        """Make another sink with the same options."""
        return MemorySink(session_id or f"{self.session_id}-sibling", **self._options)

    @property
    def failure(self) -> OSError | None:
        """While set, appending raises it, as on a full disk: test that your code continues."""
        return self._memory.failure

    @failure.setter
    def failure(self, error: OSError | None) -> None:
        self._memory.failure = error

    @property
    def content(self) -> bytes:
        """The log's bytes, as they would be in the file."""
        return bytes(self._memory.content)

    @property
    def events(self) -> tuple[Event, ...]:
        """The events of the log in order, read back from its lines; `session.start` comes first."""
        return tuple(event for line in self.content.split(b"\n") for event in decode_line(line)[0])

    def of_type(self, type: str) -> tuple[Event, ...]:  # noqa: A002 - the envelope's own word
        """Return the events of one type, in order."""
        return tuple(event for event in self.events if event.type == type)


class _MemoryFile(LogFile):
    """A log file without a file."""

    def __init__(self, directory: str, name: str, durability: str) -> None:
        super().__init__(directory, name, durability)
        self.content = bytearray()
        self.failure: OSError | None = None
        self._opened = False

    @property
    def is_open(self) -> bool:
        return self._opened

    def is_empty(self) -> bool:
        return not self.content

    def open(self) -> tuple[bool, int]:
        self._opened = True
        return not self.content, 0

    def release(self) -> None:
        self._opened = False

    def append(self, lines: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        self.content += lines


def event_strategy(*, types: Sequence[str] | None = None) -> SearchStrategy[Event]:
    """Return a hypothesis strategy for events: known and unknown types, any JSON payload, sometimes unknown keys.

    Every generated event survives writing and reading unchanged.

    Args:
        types: The types to choose from; any by default.

    Raises:
        MissingExtra: hypothesis is not installed.
    """
    try:
        from hypothesis import strategies as st
    except ImportError as error:
        raise MissingExtra("generating events needs: pip install hypothesis") from error
    text = st.text(st.characters(codec="utf-8"), max_size=40)
    scalars = (
        st.none()
        | st.booleans()
        | st.integers(-(2**63), 2**64 - 1)
        | st.floats(allow_nan=False, allow_infinity=False)
        | text
    )
    values = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4), max_leaves=12
    )
    known = st.sampled_from(sorted(KNOWN_TYPES))
    letters = string.ascii_letters + string.digits
    envelope = {"session_id", "seq", "type", "ts", "data"}
    return st.builds(
        Event,
        session_id=st.text(letters + "-_.", min_size=1, max_size=24),
        seq=st.integers(0, 2**53),
        type=st.sampled_from(types) if types else known | st.from_regex(r"[a-z]{1,8}(\.[a-z]{1,8})?", fullmatch=True),
        ts=st.integers(0, 4_102_444_800_000_000).map(lambda microseconds: format_time(microseconds * 1000)),
        data=st.dictionaries(text, values, max_size=5) | values,
        extra=st.just({}) | st.dictionaries(text.filter(lambda key: key not in envelope), values, max_size=2),
    )


def check_source(source: Source, folder: str | os.PathLike[str], *, cuts: int = 200, damages: int = 100) -> int:
    """Check a source on the logs in `folder`; return how many logs there are.

    Checked on a copy: its logs are listed and recognised; a scan and the events agree on every token; a scan of a log's
    beginning and then of the rest gives the same as one pass, wherever the log is cut; neither damage nor a value of a
    wrong type raises; in logs without damage, times lie after 2014 and tool calls have keys; logs of other agents are
    not claimed.

    Args:
        source: The source.
        folder: Logs as the agent leaves them, sub-folders included.
        cuts: How many cuts of a log are tried at most, besides those around the ends of its lines.
        damages: How many damaged copies of each log are read, and four times as many with one value of a wrong type.

    Raises:
        AssertionError: A check failed; the message names the log and the check, and for an exception of the source also
            the row and the line of the source's code.
        LogNotReadable: A log that is listed cannot be opened.
        MissingExtra: A packed log without a decoder.
    """
    from sessionlog.source_check import SourceCheck

    return SourceCheck(source, os.fspath(folder), cuts=cuts, damages=damages).run()


def __getattr__(name: str) -> Any:
    if name != "SessionStoreContract":
        raise AttributeError(f"module 'sessionlog.testing' has no attribute {name!r}")
    from sessionlog.conversation.stores.contract import SessionStoreContract

    return SessionStoreContract
