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
from contextlib import suppress
from time import gmtime, strftime, time_ns
from typing import TYPE_CHECKING, Any, Literal

from sessionlog import files
from sessionlog.events.encode import encode_object, shorten
from sessionlog.events.redact import FAILED, Hook, apply_hook, may_hold_secret, redact_line
from sessionlog.logger.ids import check_session_id, new_session_id
from sessionlog.logger.log_file import Append, LogFile
from sessionlog.logger.notices import Notices, Notify

if TYPE_CHECKING:
    from sessionlog.events.envelope import Event
    from sessionlog.logger.health import Health
    from sessionlog.logger.totals import Totals

Durability = Literal["os", "interval", "fsync"]
OnError = Literal["count", "raise"]

MAX_EVENT = 32 << 20
_MAX_DEFERRED = 1000
_MAX_HEADS = 1000
_SPECIAL = frozenset({"session.start", "session.end", "llm.response"})  # the types that do more than being written
_loggers: weakref.WeakSet[EventWriter] = weakref.WeakSet()


class EventWriter:
    """Appends events to one session's log; see `SessionLogger` for the parameters."""

    __slots__ = (
        "__weakref__", "_append", "_busy", "_clock", "_closed", "_closing", "_deferred", "_dropped", "_dropped_by",
        "_emitted", "_ended", "_file", "_floor", "_gap", "_heads", "_hook", "_last_error", "_lock", "_max_event",
        "_needs_start", "_notices", "_raises", "_redacts", "_second", "_second_text", "_seq", "_start", "_syncs",
        "_totals", "_written", "session_id",
    )  # fmt: skip

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
        self._file = LogFile(os.path.abspath(os.fspath(directory)), f"{self.session_id}.jsonl", durability)
        self._append: Append | None = None  # set while the file is open, begun, and no gap waits
        self._syncs = durability != "os"
        self._hook: Hook | None = None if isinstance(redact, bool) else redact
        self._redacts = redact is not False
        self._raises = on_error == "raise"
        self._start = dict(start or {})
        if self._hook is not None:
            self._start = _hooked(self._hook, self._start)
        self._max_event = max_event
        self._clock = clock
        self._notices = Notices(notify)
        self._heads: dict[str, int] = {}
        self._lock = threading.RLock()
        self._busy = False
        self._closed = self._closing = False
        self._deferred: list[tuple[str, Any, Event | None]] = []
        self._seq = self._floor = 0  # the next number, and the one the open file began with
        self._needs_start = False
        self._second = -1_000_000  # microseconds since 1970 of the second that `_second_text` spells
        self._second_text = ""
        self._emitted = self._written = self._dropped = 0
        self._dropped_by: dict[str, int] = {}
        self._last_error: str | None = None
        self._gap: tuple[int, int, int, str] | None = None  # events, first seq, last seq, cause
        self._totals: Totals | None = None
        self._ended = False
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

    def is_new(self) -> bool:
        """The session has no event yet, from us or anybody else."""
        return self._file.is_empty()

    def emit(self, type: str, data: Any = None) -> bool:  # noqa: A002 - the envelope's own word
        """Append one event, stamped now; return True when it is in the file (and durable, if that was asked for)."""
        return self._record(type, data, None)

    def write(self, event: Event) -> bool:
        """Append an event made elsewhere: its type, ts, unknown keys and foreign session id stay, `seq` is ours."""
        return self._record(event.type, event.data, event)

    def health(self) -> Health:
        """Return what was written and what was not."""
        from sessionlog.logger.health import Health  # noqa: PLC0415 - 1 ms, only where somebody asks

        with self._lock:
            left = self._emitted - self._written - self._dropped
            undecided = min(left, self._busy + len(self._deferred))
            dropped_by = dict(self._dropped_by)
            if left > undecided:  # KeyboardInterrupt and the like left an emit: nobody was told that it is written
                dropped_by["interrupted"] = left - undecided
            return Health(
                path=self.path,
                emitted=self._emitted,
                written=self._written,
                dropped=self._dropped + left - undecided,
                deferred=undecided,
                dropped_by=dropped_by,
                last_error=self._last_error,
                unlocked=self._file.unlocked,
            )

    def close(self) -> None:
        """Write what waits, a `log.gap` too, sync if durability asks for it, and let go of the file. Idempotent."""
        with self._lock:
            if self._busy:  # called from a signal handler inside an emit: that emit closes when it is done
                self._closing = True
                return
            if self._closed:
                return
            self._closed = True
            try:
                self._write_deferred()
                if self._gap is not None:
                    self._attempt(lambda: self._write_special("", None, None))
                if self._syncs:
                    self._attempt(self._file.sync)
            finally:
                self._release()

    def _record(self, type_: str, data: Any, event: Event | None) -> bool:
        if type(data) is not dict or type(type_) is not str or not type_ or self._hook is not None:
            type_, data = self._prepared(type_, data)
        with self._lock:
            self._emitted += 1
            if self._busy or self._closed:
                return self._set_aside(type_, data, event)
            self._busy = True
            try:
                append = self._append
                if append is None or type_ in _SPECIAL:
                    recorded = self._write_with_care(type_, data, event)
                else:  # nearly every event
                    seq = self._seq
                    try:
                        append(self._encode(type_, data, event))
                        self._written += 1
                        recorded = True
                    except Exception as error:  # noqa: BLE001 - no payload and no state may break the agent
                        recorded = self._recover(error, seq, type_, data, event)
                if self._deferred:
                    self._write_deferred()
            except Exception:  # noqa: BLE001 - no stack or memory left even for the accounts: health() works it out
                recorded = False
            finally:
                self._busy = False
            if self._closing:
                self.close()
        if not recorded and self._raises:
            from sessionlog.errors import NotRecorded  # noqa: PLC0415 - 1 ms, only where an event was lost

            raise NotRecorded(f"{self.path}: event not recorded: {self._last_error}")
        return recorded

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

    def _set_aside(self, type_: str, data: Any, event: Event | None) -> bool:
        """Keep an event that a signal handler or destructor emits while we write: the outer call writes it."""
        if self._closed:
            return self._drop("closed", None, self._seq)
        if len(self._deferred) >= _MAX_DEFERRED:
            return self._drop("re-entered", None, self._seq)
        self._deferred.append((type_, data, event))
        return False

    def _write_deferred(self) -> None:
        while self._deferred:
            self._write_with_care(*self._deferred.pop(0))

    def _write_with_care(self, type_: str, data: Any, event: Event | None) -> bool:
        seq = self._seq
        try:
            self._write_special(type_, data, event)
        except Exception as error:  # noqa: BLE001 - see _record
            return self._recover(error, seq, type_, data, event)
        self._written += 1
        return True

    def _write_special(self, type_: str, data: Any, event: Event | None) -> None:
        """Write an event where more is to be done: open the file, begin it, tell of a gap, keep the totals."""
        if type_ == "session.end":
            self._ended = True
        if not self._file.is_open:
            new, seq = self._file.open()
            self._needs_start = self._needs_start or new
            self._seq = self._floor = max(self._seq, seq)
        gap = self._gap
        self._file.append(self._lines(type_, data, event))
        self._needs_start = False
        if self._gap is gap:
            self._gap = None
            self._append = self._file.shortest_append()
        elif gap is not None and self._gap is not None:  # a signal handler's event was dropped meanwhile
            self._gap = (self._gap[0] - gap[0], gap[2] + 1, *self._gap[2:])
        if type_ == "llm.response":
            with suppress(Exception):  # the payload is the caller's, and may be anything
                self.totals.add(data)

    def _lines(self, type_: str, data: Any, event: Event | None) -> bytes:
        """Return the event's line (none without a type), behind a session.start and a log.gap where they are due."""
        if type_ == "session.start":
            fields = data if isinstance(data, Mapping) else {} if data is None else {"value": data}
            return self._encode(type_, {"v": 1, **self._start, **fields}, event) + self._gap_line()
        lines = self._encode("session.start", {"v": 1, **self._start}, None) if self._needs_start else b""
        lines += self._gap_line()
        return lines + self._encode(type_, data, event) if type_ else lines

    def _gap_line(self) -> bytes:
        if self._gap is None:
            return b""
        events, first, last, cause = self._gap
        return self._encode("log.gap", {"events": events, "from_seq": first, "to_seq": last, "reason": cause}, None)

    def _encode(self, type_: str, data: Any, event: Event | None) -> bytes:
        seq = self._seq
        self._seq = seq + 1
        micros = self._clock() // 1000 - self._second
        if not 0 <= micros < 1_000_000:  # the text down to the second costs more than all the rest of the stamp
            seconds, micros = divmod(micros + self._second, 1_000_000)
            self._second_text = strftime("%Y-%m-%dT%H:%M:%S.", gmtime(seconds))
            self._second = seconds * 1_000_000
        ts = f"{self._second_text}{micros}Z" if micros > 99_999 else f"{self._second_text}{micros:06d}Z"
        if event is None:
            value = {"session_id": self.session_id, "seq": seq, "type": type_, "ts": ts, "data": data}
        else:
            value = event.to_dict() | {"seq": seq, "type": type_, "data": data}
            value["session_id"] = event.session_id or self.session_id
            value["ts"] = event.ts or ts
        line = encode_object(value)
        if len(line) > self._max_event:
            line = shorten(value, self._max_event)
        if self._redacts:
            head = self._heads.get(type_) or self._head_of(type_) if event is None else 0
            if may_hold_secret(line, head) is not None:
                return redact_line(line)
        return line

    def _head_of(self, type_: str) -> int:
        """Where the payload begins at the earliest: nothing before it holds a secret, so redaction starts there."""
        head = len(f'{{"session_id":"{self.session_id}","seq":1,"type":')
        if may_hold_secret(type_.encode("utf-8", "replace")) is None:
            head += len(type_) + len('"","ts":"2026-11-21T10:00:00.000000Z"')
        if len(self._heads) < _MAX_HEADS:
            self._heads[type_] = head
        return head

    def _recover(self, error: Exception, seq: int, type_: str, data: Any, event: Event | None) -> bool:
        """After a failed write: once more if the file is gone, else account for the event."""
        self._release()
        seq = max(seq, self._floor)
        if not self._syncs or isinstance(error, files.FileGoneError):  # nothing of it is in the file
            self._seq = seq
        if isinstance(error, files.FileGoneError):
            try:
                self._write_special(type_, data, event)
            except Exception as second:  # noqa: BLE001 - see _record
                self._release()
                error = second
            else:
                self._written += 1
                return True
        return self._drop(_cause(error), error, seq)

    def _drop(self, cause: str, error: Exception | None, seq: int) -> bool:
        """Account for an event that is not in the file; its number is used up, so that the hole shows."""
        self._dropped += 1
        self._dropped_by[cause] = self._dropped_by.get(cause, 0) + 1
        if cause != "closed":
            self._append = None
            self._seq = max(self._seq, seq + 1)
            events, first = self._gap[:2] if self._gap else (0, seq)
            self._gap = (events + 1, first, self._seq - 1, cause)
        self._note(cause, error)
        return False

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # noqa: BLE001 - closing must not break the agent
            self._note("close", error)

    def _note(self, cause: str, error: Exception | None) -> None:
        self._last_error = f"{cause}: {error}" if error else cause
        self._notices.say(
            cause, f"sessionlog: {self.path}: event not recorded ({self._last_error}); health() has the counts"
        )

    def _release(self) -> None:
        self._append = None
        self._file.release()

    def _after_fork(self) -> None:
        self._lock = threading.RLock()  # another thread of the parent may have held it
        self._busy = False
        self._append = None
        self._deferred.clear()
        self._gap = None
        self._emitted = self._written = self._dropped = 0
        self._dropped_by.clear()
        self._file.after_fork()


def _hooked(hook: Hook, data: Any) -> Any:
    """A copy of a payload whose strings have been through the user's hook."""
    from sessionlog.events.sanitise import sanitise  # noqa: PLC0415 - 2 ms, only with a hook

    return apply_hook(hook, sanitise(data))


def _plain(data: Any) -> Any:
    """A payload dataclass as its JSON object; anything else as it is."""
    if type(data).__module__ != "sessionlog.events.payloads":
        return data
    from sessionlog.events.payload_json import to_data  # noqa: PLC0415 - 10 ms that dict payloads never need

    return to_data(data)


def _cause(error: Exception) -> str:
    if isinstance(error, OSError):
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return type(error).__name__ if isinstance(error, MemoryError) else "encode"


def _reset_after_fork() -> None:
    for logger in _loggers:
        logger._after_fork()  # noqa: SLF001 - the same module


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
