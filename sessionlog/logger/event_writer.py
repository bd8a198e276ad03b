"""EventWriter: stamp, encode, redact, append, account. `SessionLogger` puts the conveniences on top.

It never breaks its host: emit returns whether the event is in the file, counts what is not, and raises only if asked
to. What it promises: an acknowledged event survives kill -9; `seq` and file order are the same under threads; an
unfinished line never hides another one; a hole is written into the log (`log.gap`) as soon as writing works again.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from time import time_ns

from sessionlog import files
from sessionlog.events.redact import FAILED, Hook, apply_hook
from sessionlog.logger.account import Account, cause_of
from sessionlog.logger.ids import check_session_id, new_session_id
from sessionlog.logger.line_encoder import LineEncoder
from sessionlog.logger.log_file import Append, LogFile, NotSyncedError
from sessionlog.logger.notices import Notices, Notify

TYPE_CHECKING = False  # typing itself costs an agent's start 3 ms
if TYPE_CHECKING:
    from typing import Any, Literal

    from sessionlog.events.envelope import Event
    from sessionlog.logger.health import Health
    from sessionlog.logger.totals import Totals

    Durability = Literal["os", "interval", "fsync"]
    OnError = Literal["count", "raise"]

MAX_EVENT = 32 << 20
_MAX_DEFERRED = 1000
_SPECIAL = frozenset({"session.start", "session.end", "llm.response"})  # the types that do more than being written
_loggers: weakref.WeakSet[EventWriter] = weakref.WeakSet()


class EventWriter:
    """Appends events to one session's log; see `SessionLogger` for the parameters."""

    __slots__ = (
        "__weakref__", "_account", "_append", "_busy", "_closed", "_closing", "_deferred", "_encoder", "_ended",
        "_file", "_floor", "_hook", "_lock", "_needs_start", "_raises", "_start", "_syncs", "_totals", "session_id",
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
        max_event: int = MAX_EVENT,
        clock: Callable[[], int] = time_ns,
        notify: Notify | None = None,
    ) -> None:
        if durability not in ("os", "interval", "fsync"):
            raise ValueError(f"durability {durability!r}: use 'os', 'interval' or 'fsync'")
        if on_error not in ("count", "raise"):
            raise ValueError(f"on_error {on_error!r}: use 'count' or 'raise'")
        self.session_id = new_session_id(clock(), os.urandom) if session_id is None else check_session_id(session_id)
        if directory is None:
            from sessionlog.settings import session_directory  # noqa: PLC0415 - 1 ms, unless the caller knows where

            directory = session_directory(os.environ)
        self._file = LogFile(_absolute(os.fspath(directory)), f"{self.session_id}.jsonl", durability)
        self._account = Account(self._file.path, Notices(notify))
        self._encoder = LineEncoder(self.session_id, clock, limit=max_event, redacts=redact is not False)
        self._append: Append | None = None  # set while the file is open, begun, and no gap waits
        self._syncs = durability != "os"
        self._hook: Hook | None = None if isinstance(redact, bool) else redact
        self._raises = on_error == "raise"
        self._start = _hooked(self._hook, dict(start or {})) if self._hook is not None else dict(start or {})
        self._lock = threading.RLock()
        self._busy = self._closed = self._closing = False
        self._deferred: list[tuple[str, Any, Event | None]] = []
        self._floor = 0  # the number that the open file began with
        self._needs_start = self._ended = False
        self._totals: Totals | None = None
        _loggers.add(self)

    @property
    def path(self) -> str:
        """The log file's absolute path."""
        return self._file.path

    @property
    def totals(self) -> Totals:
        """What the responses recorded so far have used."""
        if self._totals is None:
            from sessionlog.logger.totals import Totals  # noqa: PLC0415 - 3 ms that the first response pays

            self._totals = Totals()
        return self._totals

    @property
    def last_seq(self) -> int | None:
        """The number of the last event that this logger wrote; None while it has written none."""
        return self._encoder.seq - 1 if self._account.written else None

    def is_new(self) -> bool:
        """The session has no event yet, from us or anybody else."""
        return self._file.is_empty()

    def end_of_others(self) -> int:
        """Where in the log the last bytes end that others have appended, as far as is known; 0 if nobody has.

        It costs one stat. A log that was deleted or replaced has nobody else's: it is begun anew.
        """
        return self._file.end_of_others()

    def emit(self, type: str, data: Any = None) -> bool:  # noqa: A002 - the envelope's own word
        """Append one event, stamped now; return True when it is in the file (and durable, if that was asked for)."""
        try:
            recorded = self._record(type, data, None)
        except RecursionError:  # before it was counted; no call can be made here, and none is needed
            self._account.without_stack += 1
            recorded = False
        if recorded is False and self._raises:
            self._raise_not_recorded()
        return recorded is True

    def write(self, event: Event) -> bool:
        """Append an event made elsewhere: its type, ts, unknown keys and foreign session id stay, `seq` is ours."""
        try:
            if self._hook is not None and event.extra:
                event = replace(event, extra=_object(_hooked(self._hook, event.extra)))
            recorded = self._record(event.type, event.data, event)
        except RecursionError:  # see emit
            self._account.without_stack += 1
            recorded = False
        if recorded is False and self._raises:
            self._raise_not_recorded()
        return recorded is True

    def health(self) -> Health:
        """Return what was written and what was not."""
        with nullcontext() if self._is_stuck() else self._lock:
            return self._account.health(waiting=self._busy + len(self._deferred), unlocked=self._file.unlocked)

    def close(self) -> None:
        """Write what waits, a `log.gap` too, sync if durability asks for it, and let go of the file. Idempotent."""
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
                if self._account.gap is not None:
                    self._attempt(lambda: self._write_special("", None, None))
                if self._syncs:
                    self._attempt(self._file.sync)
            finally:
                self._release()

    def _record(self, type_: str, data: Any, event: Event | None) -> bool | None:
        """Return whether the event is in the file; None if that is decided by the emit that this one interrupts."""
        if type(data) is not dict or type(type_) is not str or not type_ or self._hook is not None:
            type_, data = self._prepared(type_, data)
        if self._is_finalizing() and self._is_stuck():
            self._account.emitted += 1
            try:  # noqa: SIM105 - names of modules may be gone, `suppress` among them: counted without a notice then
                self._account.drop("shutdown")
            except Exception:  # noqa: BLE001, S110 - as above
                pass
            return False
        with self._lock:
            self._account.emitted += 1
            if self._busy or self._closed:
                try:
                    return self._set_aside(type_, data, event)
                except RecursionError:
                    return False
            self._busy = True
            try:
                if self._deferred:  # an interruption came between the last look at the list and the end of that emit
                    self._write_deferred()
                append = self._append
                if append is None or type_ in _SPECIAL:
                    recorded = self._write_with_care(type_, data, event)
                else:  # nearly every event
                    seq = self._encoder.seq
                    try:
                        append(self._encoder.encode(type_, data, event))
                        self._account.written += 1
                        recorded = True
                    except Exception as error:  # noqa: BLE001 - no payload and no state may break the agent
                        recorded = self._recover(error, seq, type_, data, event)
                if self._deferred:
                    self._write_deferred()
            except Exception:  # noqa: BLE001 - no stack or memory left even for the account: health() works it out
                recorded = False
            finally:
                self._busy = False
            if self._closing:
                with suppress(RecursionError):
                    self.close()
        return recorded

    def _is_stuck(self) -> bool:
        """Whether the lock is lost: the interpreter is at its end and has stopped the daemon thread that holds it."""
        if not self._is_finalizing():
            return False
        if self._lock.acquire(blocking=False):
            self._lock.release()
            return False
        return True

    def _raise_not_recorded(self) -> None:
        from sessionlog.errors import NotRecorded  # noqa: PLC0415 - 1 ms, only where an event was lost

        raise NotRecorded(f"{self.path}: event not recorded: {self._account.last_error}")

    def _prepared(self, type_: Any, data: Any) -> tuple[str, Any]:
        """Turn payload dataclasses into objects, pass strings through the hook, give a nameless event a name."""
        name = "unknown"
        try:
            name = (str.__str__(type_) if isinstance(type_, str) else str(type_)) or name
            data = _plain(data)
            if self._hook is not None:
                data = _hooked(self._hook, data)
        except Exception:  # noqa: BLE001 - fail closed: the text goes, the event stays
            return name, FAILED
        return name, data

    def _set_aside(self, type_: str, data: Any, event: Event | None) -> bool | None:
        """Keep an event that a signal handler or destructor emits while we write: the outer call writes it."""
        if not self._closed and len(self._deferred) < _MAX_DEFERRED:
            self._deferred.append((type_, data, event))
            return None
        self._drop("closed" if self._closed else "re-entered")
        return False

    def _write_deferred(self) -> None:
        while self._deferred:
            self._write_with_care(*self._deferred.pop(0))

    def _write_with_care(self, type_: str, data: Any, event: Event | None) -> bool:
        seq = self._encoder.seq
        try:
            self._write_special(type_, data, event)
        except Exception as error:  # noqa: BLE001 - see _record
            return self._recover(error, seq, type_, data, event)
        self._account.written += 1
        return True

    def _write_special(self, type_: str, data: Any, event: Event | None, again: bytes = b"") -> None:
        """Write an event where more is to be done: open the file, begin it, note a gap, keep the totals.

        `again` are its lines if they went into a file that has been replaced since, and may have been taken over.
        """
        if type_ == "session.end":
            self._ended = True
        if not self._file.is_open:
            self._open()
        gap = self._account.gap
        if again and not self._needs_start:
            self._encoder.seq += again.count(b"\n")
            self._file.append_once(again)
        else:
            self._file.append(self._lines(type_, data, event))
        self._needs_start = False
        self._account.forget_gap(gap)
        self._file.make_durable()
        if self._account.gap is None:
            self._append = self._file.shortest_append()
        if type_ == "llm.response":
            with suppress(Exception):  # the payload is the caller's, and may be anything
                self._account.warn("usage", self.totals.add(data))

    def _open(self) -> None:
        try:
            new, seq = self._file.open()
            self._needs_start = self._needs_start or new
            self._encoder.seq = self._floor = max(self._encoder.seq, seq)
        except BaseException:
            self._file.forget()  # an interrupt must not leave it open with the start forgotten
            raise

    def _lines(self, type_: str, data: Any, event: Event | None) -> bytes:
        """Return the event's line (none without a type), behind a session.start and a log.gap where they are due."""
        encode = self._encoder.encode
        gap = self._account.gap_data()
        if type_ == "session.start":
            fields = data if isinstance(data, Mapping) else {} if data is None else {"value": data}
            line = encode(type_, {"v": 1, **self._start, **fields}, event)
            return line + encode("log.gap", gap) if gap else line
        lines = encode("session.start", {"v": 1, **self._start}) if self._needs_start else b""
        if gap:
            lines += encode("log.gap", gap)
        return lines + encode(type_, data, event) if type_ else lines

    def _recover(self, error: Exception, seq: int, type_: str, data: Any, event: Event | None) -> bool:
        """After a failed write: once more if the file is gone, else account for the event.

        A failed sync calls for a new descriptor, too: the kernel may have dropped the pages, and says so only once.
        """
        self._release()
        if isinstance(error, NotSyncedError):  # its line is in the file: no hole
            self._account.drop(cause_of(error), error)
            return False
        self._encoder.seq = max(seq, self._floor)
        if isinstance(error, files.FileGoneError):
            try:
                self._write_special(type_, data, event, error.lines)
            except Exception as second:  # noqa: BLE001 - see _record
                return self._recover(_final(second), seq, type_, data, event)
            self._account.written += 1
            return True
        self._drop(cause_of(error), error)
        return False

    def _drop(self, cause: str, error: Exception | None = None) -> None:
        """Account for an event that is not in the file; its number is used up, so that the hole shows."""
        if cause != "closed":
            self._append = None
            seq = self._encoder.seq
            self._encoder.seq = seq + 1
            self._account.widen_gap(seq, cause)
        self._account.drop(cause, error)

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - closing must not break the agent
            self._account.note("close", error)

    def _release(self) -> None:
        self._append = None
        self._file.release()

    def _after_fork(self) -> None:
        self._lock = threading.RLock()  # another thread of the parent may have held it
        self._busy = False
        self._append = None
        self._deferred.clear()
        self._account.reset()
        self._file.forget()


def _final(error: Exception) -> Exception:
    """A file that is gone again just after it was opened is not tried a third time."""
    return OSError(*error.args) if isinstance(error, files.FileGoneError) else error


def _hooked(hook: Hook, data: Any) -> Any:
    """A copy of a payload whose strings have been through the user's hook."""
    from sessionlog.events.sanitise import sanitise  # noqa: PLC0415 - 2 ms, only with a hook

    return apply_hook(hook, sanitise(data))


def _object(value: Any) -> dict[str, Any]:
    """A copy that is no object, because its original could not be read, as the one field of an object."""
    return value if isinstance(value, dict) else {"value": value}


def _absolute(directory: str) -> str:
    """The folder's path, whatever becomes of the working folder; as it is where that is gone already."""
    try:
        return os.path.abspath(directory)
    except OSError:
        return directory


def _plain(data: Any) -> Any:
    """A payload dataclass as its JSON object; anything else as it is."""
    if type(data).__module__ != "sessionlog.events.payloads":
        return data
    from sessionlog.events.payload_json import to_data  # noqa: PLC0415 - 10 ms that dict payloads never need

    return to_data(data)


def _reset_after_fork() -> None:
    for logger in _loggers:
        logger._after_fork()  # noqa: SLF001 - the same module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
