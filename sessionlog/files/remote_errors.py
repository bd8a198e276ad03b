"""Errors of remote stores: which of them pass, when to try again, and what to write about those that stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TypeVar

from sessionlog.errors import SessionLogError

TRIES = 5
"""How often a request is made."""

FIRST_WAIT = 0.25
"""Seconds before the second try; each further wait is twice as long."""

LONGEST_SECONDS = 30.0
"""Seconds after which no further try begins: stores' own clients wait and try again, too."""

_LASTING = (
    SessionLogError, FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, NotImplementedError,
    TypeError, ImportError,
)  # fmt: skip
_LASTING_NAMES = {"NoCredentialsError", "PartialCredentialsError", "NoSuchBucket", "InvalidAccessKeyId", "HttpError401"}
_LONGEST = 200
_T = TypeVar("_T")


class Retries:
    """Tries requests again, until it is stopped."""

    def __init__(self) -> None:
        self._stops: SimpleQueue[None] = SimpleQueue()  # a Ctrl-C may leave the lock of an Event held

    def run(self, call: Callable[[], _T]) -> _T:
        """Return what `call` returns, at the first or a later try; raise its last error."""
        wait, end = FIRST_WAIT, monotonic() + LONGEST_SECONDS
        for left in range(TRIES - 1, -1, -1):
            try:
                return call()
            except Exception as error:
                if not left or is_lasting(error) or monotonic() > end or self._is_stopped(wait):
                    raise
                wait *= 2
        raise AssertionError  # the last try returns or raises

    def stop(self) -> None:
        """End all waits: the next error of a request is its last."""
        self._stops.put(None)

    def _is_stopped(self, wait: float) -> bool:
        """Wait some seconds, or until it is stopped; return whether it is."""
        try:
            self._stops.get(timeout=wait)
        except Empty:
            return False
        self.stop()  # for the others who wait
        return True


def is_lasting(error: Exception) -> bool:
    """Whether trying again is in vain: nothing is there, or it may not be read."""
    return isinstance(error, _LASTING) or type(error).__name__ in _LASTING_NAMES


def describe(error: Exception) -> str:
    """Return in a sentence why a store refused, with what to do about it."""
    name, text = type(error).__name__, " ".join(str(error).split())
    if "Credentials" in name or "credentials" in text.lower():
        return f"no credentials for it ({text[:_LONGEST] or name}); set them as its command line tool expects them"
    if isinstance(error, PermissionError):
        return "access denied; reading takes the rights to list the folder and to get its objects"
    if isinstance(error, FileNotFoundError):
        return "no such bucket, folder or object"
    if isinstance(error, EOFError):
        return f"the answer is cut, at each try: {text}"
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return "no answer in time, at each try"
    if isinstance(error, ConnectionError) or "Connect" in name or "Connection" in name:
        return f"the store cannot be reached, or ended the connection, at each try ({text[:_LONGEST] or name})"
    return text[:_LONGEST] or name


def clean(text: str, secrets: Iterable[str]) -> str:
    """Return a text without passwords and keys."""
    for secret in secrets:
        text = text.replace(secret, "…")
    return text
