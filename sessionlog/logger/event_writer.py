"""EventWriter: stamp, encode, redact, append, account. `SessionLogger` puts the conveniences on top.

It never breaks its host: emit returns whether the event is in the file, counts what is not, and raises only if asked
to. What it promises: an acknowledged event survives kill -9; `seq` and file order are the same under threads; an
unfinished line never hides another one; a hole is written into the log (`log.gap`) as soon as writing works again.

Everything from stamping to write(2) happens under one lock: outside it was measured 2–3 times slower (the interpreter
hands over between encoding and writing), and `seq` would no longer be file order.
"""

from __future__ import annotations

import errno
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from time import gmtime, strftime, time_ns
from typing import Any, Literal

from sessionlog import files
from sessionlog.errors import NotRecorded
from sessionlog.events.encode import encode_object, shorten
from sessionlog.events.envelope import Event
from sessionlog.events.redact import FAILED, Hook, apply_hook, may_hold_secret, redact_line
from sessionlog.events.sanitise import sanitise
from sessionlog.logger.health import Health, Notices, Notify
from sessionlog.logger.ids import check_session_id, new_session_id
from sessionlog.logger.log_file import LogFile
from sessionlog.logger.totals import Totals
from sessionlog.settings import session_directory

Durability = Literal["os", "interval", "fsync"]
OnError = Literal["count", "raise"]

MAX_EVENT = 32 << 20
_MAX_DEFERRED = 1000
_loggers: weakref.WeakSet[EventWriter] = weakref.WeakSet()


class EventWriter:
    """Appends events to one session's log; see `SessionLogger` for the parameters."""

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
        folder = os.path.abspath(os.fspath(directory) if directory is not None else session_directory(os.environ))
        self._file = LogFile(folder, f"{self.session_id}.jsonl", durability)
        self._syncs = durability != "os"
        self._hook: Hook | None = None if isinstance(redact, bool) else redact
        self._redacts = redact is not False
        self._raises = on_error == "raise"
        self._start = dict(start or {})
        if self._hook is not None:
            self._start = apply_hook(self._hook, sanitise(self._start))
        self._max_event = max_event
        self._clock = clock
        self._notices = Notices(notify)
        self._head = len(
            f'{{"session_id":"{self.session_id}","seq":1,"type":'
        )  # holds no secret: redaction starts here
        self._lock = threading.RLock()
        self._busy = False
        self._closed = self._closing = False
        self._deferred: list[tuple[str, Any, Event | None]] = []
        self._seq = 0
        self._needs_start = False
        self._second = -1
        self._second_text = ""
        self._emitted = self._written = self._dropped = 0
        self._dropped_by: dict[str, int] = {}
        self._last_error: str | None = None
        self._gap: tuple[int, int, int, str] | None = None  # events, first seq, last seq, cause
        self.totals = Totals()
        _loggers.add(self)

    @property
    def path(self) -> str:
        """The log file's absolute path."""
        return self._file.path

    def is_new(self) -> bool:
        """The session has no event yet, from us or anybody else."""
        status = files.stat_path(self.path)
        return status is None or status.size == 0

    def emit(self, type: str, data: Any = None) -> bool:  # noqa: A002 - the envelope's own word
        """Append one event, stamped now; return True when it is in the file (and durable, if that was asked for)."""
        return self._record(type, data, None)

    def write(self, event: Event) -> bool:
        """Append an event made elsewhere: its type, ts, unknown keys and foreign session id stay, `seq` is ours."""
        return self._record(event.type, event.data, event)

    def health(self) -> Health:
        """Return what was written and what was not."""
        with self._lock:
            return Health(
                path=self.path,
                emitted=self._emitted,
                written=self._written,
                dropped=self._dropped,
                deferred=len(self._deferred),
                dropped_by=dict(self._dropped_by),
                last_error=self._last_error,
                unlocked=self._file.unlocked,
            )

    def close(self) -> None:
        """Write a pending `log.gap`, sync if durability asks for it, and let go of the file. Idempotent."""
        with self._lock:
            if self._busy:  # called from a signal handler inside an emit: that emit closes when it is done
                self._closing = True
                return
            if self._closed:
                return
            self._closed = True
            try:
                if self._gap is not None and self._file.is_open:
                    self._append(b"")
                if self._syncs:
                    self._file.sync()
            except Exception as error:  # noqa: BLE001 - closing must not break the agent
                self._note("close", error)
            self._file.release()

    def _record(self, type_: str, data: Any, event: Event | None) -> bool:
        if type(data) is not dict:
            data = _plain(data)
        if self._hook is not None:
            data = self._hooked(data)
        with self._lock:
            self._emitted += 1
            if self._busy:  # a signal handler or destructor emits while we write: the outer call writes it
                if len(self._deferred) < _MAX_DEFERRED:
                    self._deferred.append((type_, data, event))
                    return False
                return self._drop("re-entered", None, self._seq)
            self._busy = True
            try:
                recorded = self._write_one(type_, data, event)
                while self._deferred:
                    self._write_one(*self._deferred.pop(0))
            finally:
                self._busy = False
            if self._closing:
                self.close()
        if not recorded and self._raises:
            raise NotRecorded(f"{self.path}: event not recorded: {self._last_error}")
        return recorded

    def _hooked(self, data: Any) -> Any:
        try:
            return apply_hook(self._hook, sanitise(data)) if self._hook is not None else data
        except Exception:  # noqa: BLE001 - fail closed: the text goes, the event stays
            return FAILED

    def _write_one(self, type_: str, data: Any, event: Event | None) -> bool:
        seq = self._seq
        if self._closed:
            return self._drop("closed", None, seq)
        try:
            try:
                self._append(self._lines(type_, data, event))
            except files.FileGoneError:
                self._seq = seq
                self._append(self._lines(type_, data, event))
        except OSError as error:
            return self._drop(_cause(error), error, seq)
        except Exception as error:  # noqa: BLE001 - no payload and no state may break the agent
            return self._drop("encode", error, seq)
        self._written += 1
        self._needs_start = False
        if type_ == "llm.response":
            self.totals.add(data)
        return True

    def _lines(self, type_: str, data: Any, event: Event | None) -> bytes:
        """Return the event's line, behind a session.start where the file has none yet."""
        if not self._file.is_open:
            new, seq = self._file.open()
            self._needs_start = new
            self._seq = max(self._seq, seq)
        if type_ == "session.start":
            fields = data if isinstance(data, Mapping) else {}
            return self._encode(type_, {"v": 1, **self._start, **fields}, event)
        if self._needs_start:
            start = self._encode("session.start", {"v": 1, **self._start}, None)
            return start + self._encode(type_, data, event)
        return self._encode(type_, data, event)

    def _append(self, lines: bytes) -> None:
        if self._gap is None:
            self._file.append(lines)
            return
        events, first, last, cause = self._gap
        data = {"events": events, "from_seq": first, "to_seq": last, "reason": cause}
        self._file.append(lines + self._encode("log.gap", data, None))
        self._gap = None

    def _encode(self, type_: str, data: Any, event: Event | None) -> bytes:
        seq = self._seq
        self._seq = seq + 1
        seconds, nanos = divmod(self._clock(), 1_000_000_000)
        if seconds != self._second:  # the text down to the second costs more than all the rest of the stamp
            self._second_text = strftime("%Y-%m-%dT%H:%M:%S.", gmtime(seconds))
            self._second = seconds
        ts = f"{self._second_text}{nanos // 1000:06d}Z"
        if event is None:
            value = {"session_id": self.session_id, "seq": seq, "type": type_, "ts": ts, "data": data}
        else:
            value = event.to_dict() | {"seq": seq, "data": data}
            value["session_id"] = event.session_id or self.session_id
            value["ts"] = event.ts or ts
        line = encode_object(value)
        if len(line) > self._max_event:
            line = shorten(value, self._max_event)
        if self._redacts and may_hold_secret(line, self._head if event is None else 0) is not None:
            return redact_line(line)
        return line

    def _drop(self, cause: str, error: Exception | None, seq: int) -> bool:
        """Account for an event that is not in the file; its number is used up, so that the hole shows."""
        self._dropped += 1
        self._dropped_by[cause] = self._dropped_by.get(cause, 0) + 1
        self._note(cause, error)
        if cause != "closed":
            self._seq = max(self._seq, seq + 1)
            events, first, _, _ = self._gap or (0, seq, seq, cause)
            self._gap = (events + 1, first, self._seq - 1, cause)
        return False

    def _note(self, cause: str, error: Exception | None) -> None:
        self._last_error = f"{cause}: {error}" if error else cause
        self._notices.say(
            cause, f"sessionlog: {self.path}: event not recorded ({self._last_error}); health() has the counts"
        )

    def _after_fork(self) -> None:
        self._lock = threading.RLock()  # another thread of the parent may have held it
        self._busy = False
        self._deferred.clear()
        self._gap = None
        self._emitted = self._written = self._dropped = 0
        self._dropped_by.clear()
        self._file.after_fork()


def _plain(data: Any) -> Any:
    """A payload dataclass as its JSON object; anything else as it is."""
    if type(data).__module__ != "sessionlog.events.payloads":
        return data
    from sessionlog.events.payload_json import to_data  # noqa: PLC0415 - 10 ms that dict payloads never need

    return to_data(data)


def _cause(error: OSError) -> str:
    return errno.errorcode.get(error.errno or 0, type(error).__name__)


def _reset_after_fork() -> None:
    for logger in _loggers:
        logger._after_fork()  # noqa: SLF001 - the same module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
