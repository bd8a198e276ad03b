"""EventWriter: stamps, encodes, redacts, appends and counts events. `SessionLogger` adds the convenience methods.

It never breaks its host: `emit` returns whether the event is in the file, counts the lost ones, and raises only with
`on_error="raise"`. An acknowledged event survives kill -9; `seq` and file order are the same under threads; an
unfinished line never hides another one; a gap is written to the log (`log.gap`) as soon as writing works again.
"""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from time import time_ns

from sessionlog import files
from sessionlog.events.limits import MAX_LINE
from sessionlog.events.redact import FAILED, Hook, apply_hook
from sessionlog.locks import RLock
from sessionlog.logger.counters import Counters, cause_of
from sessionlog.logger.ids import check_session_id, new_session_id
from sessionlog.logger.line_encoder import LineEncoder
from sessionlog.logger.log_file import Append, LogFile, NotSyncedError
from sessionlog.logger.notices import Notices, Notify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from sessionlog.events.envelope import Event
    from sessionlog.logger.health import Health
    from sessionlog.logger.totals import Totals

    Durability = Literal["os", "interval", "fsync"]
    OnError = Literal["count", "raise"]

_MAX_DEFERRED = 1000
_SPECIAL = frozenset({"session.start", "session.end", "llm.response"})  # the types that also change the writer's state
_loggers: weakref.WeakSet[EventWriter] = weakref.WeakSet()


class EventWriter:
    """Appends events to one session's log; see `SessionLogger` for the parameters."""

    __slots__ = (
        "__weakref__", "_append", "_busy", "_closed", "_closing", "_counters", "_deferred", "_encoder", "_ended",
        "_file", "_floor", "_hook", "_lock", "_needs_start", "_raises", "_start", "_syncs", "_totals",
        "session_id",
    )  # fmt: skip
    _is_finalizing = staticmethod(sys.is_finalizing)  # the module's own names are gone by then

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
        *,
        durability: Durability = "os",
        redact: bool | Hook = True,
        on_error: OnError = "count",
        start: Mapping[str, Any] | None = None,
        max_event: int = MAX_LINE,
        clock: Callable[[], int] = time_ns,
        notify: Notify | None = None,
    ) -> None:
        if durability not in ("os", "interval", "fsync"):
            raise ValueError(f"durability {durability!r}: use 'os', 'interval' or 'fsync'")
        if on_error not in ("count", "raise"):
            raise ValueError(f"on_error {on_error!r}: use 'count' or 'raise'")
        if max_event > MAX_LINE:
            raise ValueError(f"max_event {max_event}: at most {MAX_LINE}, the longest line that is read")
        self.session_id = new_session_id(clock(), os.urandom) if session_id is None else check_session_id(session_id)
        if directory is None:
            from sessionlog.settings import session_directory

            directory = session_directory(os.environ)
        self._file = LogFile(_absolute(os.fspath(directory)), f"{self.session_id}.jsonl", durability)
        self._counters = Counters(self._file.path, Notices(notify))
        self._encoder = LineEncoder(
            self.session_id,
            clock,
            limit=max_event,
            redacts=redact is not False,
            note_numbers=self._counters.note_numbers,
        )
        self._append: Append | None = None  # the fast path: set while the file is open, begun, and no gap is pending
        self._syncs = durability != "os"
        self._hook: Hook | None = None if isinstance(redact, bool) else redact
        self._raises = on_error == "raise"
        self._start = self._apply(dict(start or {}))
        self._lock = RLock()
        self._busy = self._closed = self._closing = False
        self._deferred: list[tuple[str, Any, Event | None]] = []
        self._floor = 0  # the next `seq` when the file was opened
        self._needs_start = self._ended = False
        self._totals: Totals | None = None
        _loggers.add(self)

    @property
    def path(self) -> str:
        """The log file's absolute path."""
        return self._file.path

    @property
    def totals(self) -> Totals:
        """The usage and cost of the responses recorded so far."""
        if self._totals is None:
            from sessionlog.logger.totals import Totals

            self._totals = Totals()
        return self._totals

    @property
    def last_seq(self) -> int | None:
        """The number of the last event that this logger wrote; None while it has written none."""
        return self._encoder.seq - 1 if self._counters.written else None

    def is_new(self) -> bool:
        """Whether the session has no event yet, from this or another writer."""
        return self._file.is_empty()

    def foreign_end(self) -> int:
        """Return the offset after the last bytes of another writer, as far as known; 0 if there are none. One stat.

        A log that was deleted or replaced has none: it is written from the beginning.
        """
        return self._file.foreign_end()

    def emit(self, type: str, data: Any = None) -> bool:  # noqa: A002 - the envelope's own word
        """Append one event, stamped now; return whether it is in the file (and synced, with `durability="fsync"`)."""
        try:
            recorded = self._record(type, data, None)
        except RecursionError:  # before it was counted; no stack is left for a call here
            self._counters.without_stack += 1
            recorded = False
        if recorded is False and self._raises:
            self._raise_not_recorded()
        return recorded is True

    def write(self, event: Event) -> bool:
        """Append an event made elsewhere: its type, ts, unknown keys and foreign session id stay, `seq` is ours."""
        try:
            if self._hook is not None and event.extra:
                event = replace(event, extra=_object(self._apply(event.extra)))
            recorded = self._record(event.type, event.data, event)
        except RecursionError:  # see emit
            self._counters.without_stack += 1
            recorded = False
        if recorded is False and self._raises:
            self._raise_not_recorded()
        return recorded is True

    def count_failure(self, error: Exception) -> None:
        """Count an event as dropped that an integration could not make, because of an error of its own.

        Raises:
            NotRecorded: With `on_error="raise"`.
        """
        with nullcontext() if self._is_stuck() else self._lock:
            self._counters.emitted += 1
            self._drop("integration", error)
        if self._raises:
            self._raise_not_recorded()

    def health(self) -> Health:
        """Return what was written and what was not."""
        with nullcontext() if self._is_stuck() else self._lock:
            return self._counters.health(waiting=self._busy + len(self._deferred), unlocked=self._file.unlocked)

    def close(self) -> None:
        """Write deferred events and a pending `log.gap`, sync if durability requires it, close the file. Idempotent."""
        if self._is_stuck():
            return
        with self._lock:
            if self._busy:  # called from a signal handler inside an emit: that emit closes when it is done
                self._closing = True
                return
            if self._closed:
                return
            self._closed = True
            try:
                self._write_deferred()
                if self._counters.gap is not None:
                    self._attempt(lambda: self._write_slowly("", None, None))
                if self._syncs:
                    self._attempt(self._file.sync)
            finally:
                self._release()

    def _record(self, type_: str, data: Any, event: Event | None) -> bool | None:
        """Return whether the event is in the file; None if it was deferred to the emit that this one interrupts."""
        if type(data) is not dict or type(type_) is not str or not type_ or self._hook is not None:
            type_, data = self._prepare(type_, data)
        if self._is_finalizing() and self._is_stuck():
            self._counters.emitted += 1
            try:  # noqa: SIM105 - module globals such as `suppress` may be gone: counted without a notice then
                self._counters.drop("shutdown")
            except Exception:  # noqa: BLE001, S110 - as above
                pass
            return False
        with self._lock:
            self._counters.emitted += 1
            if self._busy or self._closed:
                try:
                    return self._defer(type_, data, event)
                except RecursionError:
                    return False
            self._busy = True
            try:
                if self._deferred:  # deferred after the last emit had checked the list
                    self._write_deferred()
                append = self._append
                if append is None or type_ in _SPECIAL:
                    recorded = self._try_write(type_, data, event)
                else:  # nearly every event
                    seq = self._encoder.seq
                    try:
                        append(self._encoder.encode(type_, data, event))
                        self._counters.written += 1
                        recorded = True
                    except Exception as error:  # noqa: BLE001 - no payload and no state may break the agent
                        recorded = self._recover(error, seq, type_, data, event)
                if self._deferred:
                    self._write_deferred()
            except Exception:  # noqa: BLE001 - no stack or memory left even for counting: health() works it out
                recorded = False
            finally:
                self._busy = False
            if self._closing:
                with suppress(RecursionError):
                    self.close()
        return recorded

    def _is_stuck(self) -> bool:
        """Whether the lock is lost: the interpreter is exiting and has stopped the daemon thread that holds it."""
        if not self._is_finalizing():
            return False
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return False
        return True

    def _raise_not_recorded(self) -> None:
        from sessionlog.errors import NotRecorded

        raise NotRecorded(f"{self.path}: event not recorded: {self._counters.last_error}")

    def _prepare(self, type_: Any, data: Any) -> tuple[str, Any]:
        """Turn payload dataclasses into objects, apply the hook to strings, name an event without a type `unknown`."""
        name = "unknown"
        try:
            name = (str.__str__(type_) if isinstance(type_, str) else str(type_)) or name
            data = _payload_data(data)
            data = self._apply(data)
        except Exception:  # noqa: BLE001 - fail closed: the text goes, the event stays
            return name, FAILED
        return name, data

    def _apply(self, data: Any) -> Any:
        """Return a copy of a payload with every string passed through the user's hook; without one the payload."""
        if self._hook is None:
            return data
        from sessionlog.events.sanitise import sanitise

        return apply_hook(self._hook, sanitise(data, self._counters.note_numbers))

    def _defer(self, type_: str, data: Any, event: Event | None) -> bool | None:
        """Keep an event that a signal handler or destructor emits while we write: the outer call writes it."""
        if not self._closed and len(self._deferred) < _MAX_DEFERRED:
            self._deferred.append((type_, data, event))
            return None
        self._drop("closed" if self._closed else "re-entered")
        return False

    def _write_deferred(self) -> None:
        while self._deferred:
            self._try_write(*self._deferred.pop(0))

    def _try_write(self, type_: str, data: Any, event: Event | None) -> bool:
        seq = self._encoder.seq
        try:
            self._write_slowly(type_, data, event)
        except Exception as error:  # noqa: BLE001 - see _record
            return self._recover(error, seq, type_, data, event)
        self._counters.written += 1
        return True

    def _write_slowly(self, type_: str, data: Any, event: Event | None, again: bytes = b"") -> None:
        """Write an event off the fast path: open the file, begin it, write a gap, update the totals.

        `again` are its lines if they were written to a file that was replaced meanwhile: the new file may have them.
        """
        if type_ == "session.end":
            self._ended = True
        if not self._file.is_open:
            self._open()
        gap = self._counters.gap
        if again and not self._needs_start:
            self._encoder.seq += again.count(b"\n")
            self._file.append_once(again)
        else:
            self._file.append(self._lines(type_, data, event))
        self._needs_start = False
        self._counters.forget_gap(gap)
        self._file.make_durable()
        if self._counters.gap is None:
            self._append = self._file.shortest_append()
        if type_ == "llm.response":
            with suppress(Exception):  # the payload is the caller's, and may be anything
                self._counters.warn("usage", self.totals.add(data))

    def _open(self) -> None:
        try:
            new, seq = self._file.open()
            self._needs_start = self._needs_start or new
            self._encoder.seq = self._floor = max(self._encoder.seq, seq)
        except BaseException:
            self._file.forget()  # an interrupt must not leave it open without its session.start
            raise

    def _lines(self, type_: str, data: Any, event: Event | None) -> bytes:
        """Return the event's line (none without a type), after a session.start and a log.gap where they are due."""
        encode = self._encoder.encode
        gap = self._counters.gap_data()
        if type_ == "session.start":
            fields = data if isinstance(data, Mapping) else {} if data is None else {"value": data}
            line = encode(type_, {"v": 1, **self._start, **fields}, event)
            return line + encode("log.gap", gap) if gap else line
        lines = encode("session.start", {"v": 1, **self._start}) if self._needs_start else b""
        if gap:
            lines += encode("log.gap", gap)
        return lines + encode(type_, data, event) if type_ else lines

    def _recover(self, error: Exception, seq: int, type_: str, data: Any, event: Event | None) -> bool:
        """After a failed write: try once more if the file is gone, else count the event as dropped.

        A failed sync needs a new descriptor, too: the kernel may have dropped the pages, and reports that only once.
        """
        self._release()
        if isinstance(error, NotSyncedError):  # its line is in the file: no gap
            self._counters.drop(cause_of(error), error)
            return False
        self._encoder.seq = max(seq, self._floor)
        if isinstance(error, files.FileGoneError):
            try:
                self._write_slowly(type_, data, event, error.lines)
            except Exception as second:  # noqa: BLE001 - see _record
                return self._recover(_final(second), seq, type_, data, event)
            self._counters.written += 1
            return True
        self._drop(cause_of(error), error)
        return False

    def _drop(self, cause: str, error: Exception | None = None) -> None:
        """Count an event that is not in the file; its number is not used again, so that the gap shows."""
        if cause != "closed":
            self._append = None
            seq = self._encoder.seq
            self._encoder.seq = seq + 1
            self._counters.widen_gap(seq, cause)
        self._counters.drop(cause, error)

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - closing must not break the agent
            self._counters.note("close", error)

    def _release(self) -> None:
        self._append = None
        self._file.release()

    def _after_fork(self) -> None:
        self._lock = RLock()  # another thread of the parent may have held it
        self._busy = False
        self._append = None
        self._deferred.clear()
        self._counters.reset()
        self._file.forget()


def _final(error: Exception) -> Exception:
    """Return an error that is not retried: a file that is gone again at once is not opened a third time."""
    return OSError(*error.args) if isinstance(error, files.FileGoneError) else error


def _object(value: Any) -> dict[str, Any]:
    """Return an object as it is; a text, which stands for an object that could not be read, as its one field."""
    return value if isinstance(value, dict) else {"value": value}


def _absolute(directory: str) -> str:
    """Return the folder's absolute path; as it is if the working folder was deleted."""
    try:
        return os.path.abspath(directory)
    except OSError:
        return directory


def _payload_data(data: Any) -> Any:
    """Return a payload dataclass as its JSON object; anything else as it is."""
    if type(data).__module__ != "sessionlog.events.payloads":
        return data
    from sessionlog.events.payload_json import to_data

    return to_data(data)


def _reset_after_fork() -> None:
    for logger in _loggers:
        logger._after_fork()  # noqa: SLF001 - the same module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
