"""The one exception tree, and `Problem`, which is not an exception.

A bad *call* raises; bad *data* is a value. Every error is also the builtin it specialises:

    SessionLogError (Exception)
    ├── InvalidSessionId   (ValueError)   an id that could leave its folder or break a file system
    ├── InvalidWindow      (ValueError)   a time window outside the grammar
    ├── InvalidPrices      (ValueError)   a price that is negative, not a number, or missing
    ├── InvalidQuery       (ValueError)   a grouping, filter or sort key that does not exist
    ├── InvalidSettings    (ValueError)   config.toml or an environment variable
    ├── LogNotReadable     (OSError)      missing, a device, another user's link, no permission
    │   └── LogLocked                     a database whose lock another program holds
    ├── AmbiguousSession   (LookupError)  a prefix that names several sessions
    ├── LedgerUnusable     (OSError)      a ledger that is damaged, of another program, or newer than this version
    ├── GitFailed          (OSError)      git is missing, refuses a repository, or takes too long
    ├── NotRecorded        (OSError)      with on_error="raise": an event that did not reach the file
    ├── NotExported        (OSError)      a collector or store that could not be reached, or refused what was sent
    ├── EngineFailed       (RuntimeError) Spark, which could not be started, or whose job failed
    ├── InvalidHistory     (ValueError)   a saved session, message or log that is no valid conversation
    │   └── MissingField   (KeyError)     a required field is missing
    ├── AgentError         (RuntimeError) an agent that failed; the text received so far is kept
    ├── StaleSession       (RuntimeError) a stored session that another writer has saved meanwhile
    ├── ReplayMiss         (AssertionError) a request that a replayed log does not hold, or recordings not asked for
    ├── SessionNotSaved    (OSError)      a store that could not save a session; memory and log are complete
    └── MissingExtra       (ImportError)  an optional package; the message names what to install
"""

from __future__ import annotations

from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal

    Severity = Literal["info", "damage"]
else:
    Severity = str


class SessionLogError(Exception):
    """Base of everything that sessionlog raises."""


class InvalidSessionId(SessionLogError, ValueError):
    """A session id that is not `[A-Za-z0-9][A-Za-z0-9._-]{0,127}` or is reserved somewhere."""


class InvalidWindow(SessionLogError, ValueError):
    """A time window that the grammar does not know, or that is empty."""


class InvalidPrices(SessionLogError, ValueError):
    """A user's price that cannot be used: negative, not finite, missing, or of an unknown key."""


class InvalidQuery(SessionLogError, ValueError):
    """A grouping, filter, column or axis that does not exist."""


class InvalidSettings(SessionLogError, ValueError):
    """A value in config.toml or the environment that cannot be used."""


class LogNotReadable(SessionLogError, OSError):
    """A path that cannot be read as a log at all."""


class LogLocked(LogNotReadable):
    """A database whose lock another program holds, for longer than a reader waits."""


_NAMED = 8
"""Candidates that fit in a sentence."""


class AmbiguousSession(SessionLogError, LookupError):
    """A session prefix with several matches.

    Attributes:
        candidates: The ids that begin with the prefix, sorted.
    """

    def __init__(self, prefix: str, candidates: tuple[str, ...]) -> None:
        self.candidates = candidates
        more = f" and {len(candidates) - _NAMED:,} more" if len(candidates) > _NAMED else ""
        named = f"{', '.join(candidates[:_NAMED])}{more}"
        super().__init__(f"{prefix!r} names {len(candidates)} sessions: {named}; `sessionlog sessions` lists them")


class LedgerUnusable(SessionLogError, OSError):
    """A ledger's file that cannot be used; it is left as it is."""


class GitFailed(SessionLogError, OSError):
    """Git that is missing, refuses a repository, or takes too long."""


class NotRecorded(SessionLogError, OSError):
    """An event that was not written, raised only by a logger with `on_error="raise"`."""


class NotExported(SessionLogError, OSError):
    """A collector or store that could not be reached, or refused what was sent; what it has confirmed stays so."""


class InvalidHistory(SessionLogError, ValueError):
    """A saved session, a message or a log that is no valid conversation; the text names the place and the reason."""


class MissingField(InvalidHistory, KeyError):
    """A saved session or message lacks a field."""

    __str__ = Exception.__str__  # a KeyError quotes its message


class AgentError(SessionLogError, RuntimeError):
    """An agent that failed, or whose answer cannot be used. The cause is chained.

    Attributes:
        partial: The text received before it failed; it is kept in the session, marked as partial.
        attempts: How often the model was called.
    """

    def __init__(self, message: str, *, partial: str = "", attempts: int = 1) -> None:
        super().__init__(message)
        self.partial = partial
        self.attempts = attempts


class StaleSession(SessionLogError, RuntimeError):
    """A stored session was saved by another writer since it was loaded; saving would overwrite that."""


class SessionNotSaved(SessionLogError, OSError):
    """A store could not save a session. The history in memory, and the log if there is one, are complete."""


class ReplayMiss(SessionLogError, AssertionError):
    """A request that has no recording in a replayed log; or, at a strict end, recordings that were not asked for."""


class EngineFailed(SessionLogError, RuntimeError):
    """An engine that reads logs on other machines could not be started, or its job failed."""


class MissingExtra(SessionLogError, ImportError):
    """An optional package that is not installed."""


class Problem(NamedTuple):
    """Something wrong with data. Reports count problems and name the first ones; they never fail because of one.

    Attributes:
        path: The file, as the caller named it.
        line: 1-based line, 0 when the finding is about the whole file.
        offset: Byte offset of the damaged piece in the (decompressed) file.
        length: Bytes that could not be read, 0 when nothing was lost.
        kind: One of: torn_tail, torn_json, not_json, not_object, bad_envelope, bad_utf8, bad_number,
            bad_payload, nul_bytes, too_long, too_large, too_deep, bad_compression, bad_database, unreadable,
            unknown_format, unknown_version, source_failed, not_archived, unknown_type, unknown_field, seq_gap,
            seq_repeat, clock_back, wide_mode, stopped_repair, secret, foreign, odd_machine.
        detail: One sentence for people. It may quote the log: escape it for the sink that shows it.
        severity: `info` for things worth knowing, `damage` for bytes that were not understood.
    """

    path: str
    kind: str
    detail: str
    line: int = 0
    offset: int = 0
    length: int = 0
    severity: Severity = "damage"

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place} {self.kind} {self.detail}".rstrip()


def log_problem(path: str, error: Exception, source: str = "") -> Problem:
    """Return the problem of a log that an error kept from being read: it cannot be opened, or its source failed."""
    if isinstance(error, LogNotReadable | MissingExtra):
        return Problem(path=path, kind="unreadable", detail=str(error).removeprefix(f"{path}: "))
    return Problem(path=path, kind="source_failed", detail=f"{source}: {type(error).__name__}: {error}")


def problems_dict(count: int, problems: Sequence[Problem]) -> dict[str, Any]:
    """Return the `problems` object of a report's JSON: the count, and the first ten as sentences."""
    return {"count": count, "first": [str(problem) for problem in problems[:10]]}
